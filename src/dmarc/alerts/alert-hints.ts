import { z } from "zod";
import type { Hint } from "./digest-page.ts";
import {
  changeCommand,
  type Place,
  publishHints,
  readCommand,
  recordToPublish,
  sourcePath,
  verifyCommand,
} from "./mail-words.ts";

const text = z.string().nullable();
const checksSchema = z.object({ checks: z.array(z.object({ code: z.string(), observed: text, expected: text })) });
const sourcesSchema = z.object({ sources: z.array(z.object({ key: z.string() })) });

interface About {
  readonly domain: string;
  readonly place: Place;
}

/** What to do about an alert; nothing when all is well again. Of data that is not as expected only what is sure is made use of. */
export const hintsOf = (
  rule: string,
  data: Readonly<Record<string, unknown>>,
  { domain, place }: About,
): readonly Hint[] => {
  switch (rule) {
    case "status_changed":
      return data.status === "active" ? [] : publishHints(place, domain, recordIn(data));
    case "record_changed":
      return [
        hint(
          "Was that you? If not, somebody else can change your DNS. What was there before:",
          readCommand(place, "/history"),
        ),
      ];
    case "policy_weakened":
      if (data.trigger === "reports") {
        return [
          hint(
            "The weaker record came and went between two checks. If that was not you, see who can change your DNS, and whether all name servers of the domain serve the same record. What the checks found:",
            readCommand(place, "/history"),
          ),
        ];
      }
      return [
        hint(
          "Was that you? Forged mail gets through more easily now. What was there before:",
          readCommand(place, "/history"),
        ),
      ];
    case "new_source":
      return [sourceHint(data, place)];
    case "new_subdomain":
      return [
        hint(
          "Is it yours? If not, somebody uses your name: np=reject stops names that do not exist. The way there:",
          readCommand(place, "/advice"),
        ),
      ];
    case "failure_spike":
      return data.state === "ended"
        ? []
        : [hint("The failing records, with what receivers saw:", readCommand(place, "/records?aligned=false"))];
    case "spoofing_campaign":
      if (isMostlyRefused(data)) return [];
      return [
        hint("Receivers refuse such mail once your policy is p=reject. Your next step:", readCommand(place, "/advice")),
      ];
    case "reports_stopped":
      return [hint("Does the record still name the reporting address? Have it checked:", verifyCommand(place))];
    case "tls_failures":
      return data.state === "ended" ? [] : [hint("The TLS reports:", readCommand(place, "/tls-reports"))];
    default:
      return [];
  }
};

const campaignSchema = z.object({ messages: z.int(), rejected: z.int(), quarantined: z.int() });

/** Whether receivers did what the policy asks: then nothing is left to do. */
const isMostlyRefused = (data: unknown): boolean => {
  const read = campaignSchema.safeParse(data);
  return read.success && (read.data.rejected + read.data.quarantined) * 2 >= read.data.messages;
};

const hint = (words: string, code: string): Hint => ({ words, code });

const recordIn = (data: unknown): string | null => {
  const read = checksSchema.safeParse(data);
  return read.success ? recordToPublish(read.data.checks) : null;
};

const sourceHint = (data: unknown, place: Place): Hint => {
  const read = sourcesSchema.safeParse(data);
  const [only, ...others] = read.success ? read.data.sources : [];
  const path = only === undefined || others.length > 0 ? null : sourcePath(only.key);
  return path === null
    ? hint("Do you know what sends there? Say of each source what it is. All of them:", readCommand(place, "/sources"))
    : hint("Is it yours? Then say so:", changeCommand(place, path, { classification: "authorized" }));
};
