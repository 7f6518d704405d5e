import { z } from "zod";
import { SEVERITIES } from "../foundation/base/severity.ts";
import { MailBatcher, type Mailing } from "../notifications/mail/mail-batcher.ts";
import { action, line, type MailContent, type MailSection, pageLink } from "../notifications/mail/mail-content.ts";
import { minuteTime, plural } from "../notifications/mail/mail-text.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { listingDigestMail, digestSchema } from "./digest.ts";
import type { ListingChangeFacts } from "./events.ts";
import type { ListingMailQueue, QueuedListingMail } from "./mail-queue-store.ts";
import { worstRank } from "./severity.ts";

const CHANGES_MAX = 100;
const MINUTE_MS = 60_000;
const WHY_MAILED = "You receive this mail as a recipient of these targets, or of all mail of the account.";

const changeEntrySchema = z.object({
  /** Missing in entries of older versions. */
  target_id: z.string().optional(),
  target: z.string(),
  label: z.string().nullable(),
  came: z.boolean(),
  name: z.string(),
  severity: z.enum(SEVERITIES).nullable(),
  meaning: z.string(),
  delist_url: z.string().nullable(),
  flapping: z.boolean(),
  at: z.string(),
  /** Why it was removed; missing in entries of older versions. */
  reason: z.string().optional(),
});
type ChangeEntry = z.output<typeof changeEntrySchema>;

/** About a list that became unusable, or usable again. */
const noticeEntrySchema = z.object({ notice: z.string(), detail: z.string(), at: z.string() });
type NoticeEntry = z.output<typeof noticeEntrySchema>;

interface NoticeFacts {
  readonly list_name: string;
  readonly state: string;
  readonly reason: string | null;
  readonly remedy: string | null;
  readonly checked_at: string;
}

/** What is queued: a change, a notice about a list, a digest. Older versions queued the text of a digest. */
const mailEntrySchema = z.union([
  z.object({ digest: digestSchema }),
  z.object({ digest: z.object({ subject: z.string(), text: z.string() }) }),
  noticeEntrySchema,
  changeEntrySchema,
]);

/** The queue entry of a change. */
export const changeEntry = (facts: ListingChangeFacts): ChangeEntry => ({
  target_id: facts.target_id,
  target: facts.target,
  label: facts.label,
  came: !("reason" in facts),
  name: facts.listing_name,
  severity: facts.severity,
  meaning: facts.meaning,
  delist_url: facts.delist_url,
  flapping: facts.flapping,
  at: facts.checked_at,
  ...("reason" in facts ? { reason: facts.reason } : {}),
});

/** The queue entry of a list that became unusable, or usable again. */
export const noticeEntry = ({ list_name, state, reason, remedy, checked_at }: NoticeFacts): NoticeEntry => ({
  notice: `${list_name} ${state === "healthy" ? "can be used again" : "cannot be used"}`,
  detail: [reason, remedy].filter((text) => text !== null).join(" "),
  at: checked_at,
});

export interface ListingMailsDeps {
  readonly mailing: Mailing;
  readonly queue: ListingMailQueue;
  /** Queues the digests that are due. */
  readonly queueDigests: () => Promise<void>;
}

/** Mails what is queued: one mail about all that happened in a minute, and at most one in ten minutes to each recipient. */
export const createListingMails = (runtime: Runtime, { mailing, queue, queueDigests }: ListingMailsDeps) => {
  const batcher = new MailBatcher<QueuedListingMail>(runtime, {
    ...{ name: "blocklist alert mail", queue, mailing, compose: listingMail, topicOf },
    gatherMs: MINUTE_MS,
    intervalMs: 10 * MINUTE_MS,
  });
  return {
    async send(): Promise<void> {
      try {
        await queueDigests();
      } catch (error) {
        runtime.log.error("blocklist digests could not be queued, will be retried in the next run", { error });
      }
      await batcher.send();
    },
  };
};

const DIGEST_BEGINNING = '{"digest":';

const topicOf = ({ accountId, body }: QueuedListingMail) => {
  const kind = body.startsWith(DIGEST_BEGINNING) ? ("blocklist_digest" as const) : ("blocklist_alerts" as const);
  return accountId === "" ? null : { accountId, kind };
};

/** One mail about all changes and notices, and the digests that are due. `rows` is not empty. */
export const listingMail = (rows: readonly QueuedListingMail[]): MailContent | null => {
  const entries = rows.map(({ body }) => mailEntrySchema.parse(JSON.parse(body)));
  const digests = entries.flatMap((entry) => ("digest" in entry ? (digestContent(entry.digest) ?? []) : []));
  const changes = entries.filter((entry) => "target" in entry);
  const notices = entries.filter((entry) => "notice" in entry);
  const mails = [...(changes.length + notices.length === 0 ? [] : [changesMail(changes, notices)]), ...digests];
  const [first] = mails;
  if (first === undefined) return null;
  return {
    subject: first.subject,
    sections: mails.flatMap(({ sections }) => sections),
    closing: [...mails.flatMap(({ closing }) => closing), WHY_MAILED],
  };
};

type DigestEntry = z.output<typeof digestSchema> | { readonly subject: string; readonly text: string };

const digestContent = (digest: DigestEntry): MailContent | null => {
  if (!("text" in digest)) return listingDigestMail(digest);
  const blocks = digest.text.split("\n").map((text) => line(text.trim() === "" ? null : text));
  return { subject: digest.subject, sections: [{ heading: digest.subject, blocks }], closing: [] };
};

const changesMail = (changes: readonly ChangeEntry[], notices: readonly NoticeEntry[]): MailContent => {
  // The rows are in the order of their time; sorting keeps that order among equals.
  const sorted = changes.toSorted((a, b) => worstRank([b.severity]) - worstRank([a.severity]));
  const added = sorted.filter(({ came }) => came);
  const removed = sorted.filter(({ came }) => !came);
  const sections = [...[...added, ...removed].slice(0, CHANGES_MAX).map(changeSection)];
  const more = changes.length - sections.length;
  const allSections = [...sections, ...notices.slice(0, CHANGES_MAX).map(noticeSection)];
  const counts = [
    ...(added.length > 0 ? [plural(added.length, "new listing")] : []),
    ...(removed.length > 0 ? [plural(removed.length, "delisting")] : []),
    ...(notices.length > 0 ? [plural(notices.length, "notice")] : []),
  ];
  const [only] = allSections;
  const isSingle = changes.length + notices.length === 1 && only !== undefined;
  return {
    subject: `Blocklists: ${isSingle ? only.heading : counts.join(", ")}`,
    sections: allSections,
    closing:
      more > 0 ? [`and ${more} more.`, pageLink("What is listed now", "/blocklists?status=listed", "Blocklists")] : [],
  };
};

const changeSection = (entry: ChangeEntry): MailSection => {
  const { target, label, came, name, severity, meaning, delist_url, flapping } = entry;
  const at = minuteTime(Date.parse(entry.at));
  const often = flapping ? "The entry was added and removed at least four times within a day." : null;
  if (!came) {
    const reason = REMOVAL_REASONS[entry.reason ?? ""] ?? "";
    return {
      ...{ heading: `${target} is no longer listed on ${name}`, label },
      blocks: [line(`Since ${at}. ${reason}`.trim(), "good"), line(often), targetLink(entry)],
    };
  }
  return {
    ...{ heading: `${target} is listed on ${name}`, label },
    blocks: [
      line(severity === null ? null : `Severity: ${severity}`, "strong"),
      line(meaning),
      line(`Listed since ${at}.`),
      line(often),
      delist_url === null
        ? action("Find and fix the cause. This list has no delisting page.")
        : action("Find and fix the cause, then request delisting:", delist_url),
      targetLink(entry),
    ],
  };
};

const targetLink = ({ target_id, target }: ChangeEntry) =>
  target_id === undefined ? null : pageLink(`Open ${target}`, `/blocklists/${target_id}`, `Blocklists › ${target}`);

const REMOVAL_REASONS: Readonly<Record<string, string>> = {
  list_retired: "The list is no longer queried.",
  expired: "The list has not repeated the entry for 48 hours.",
};

const noticeSection = ({ notice, detail, at }: NoticeEntry): MailSection => ({
  heading: notice,
  blocks: [
    line(detail === "" ? null : detail),
    line(`Since ${minuteTime(Date.parse(at))}.`),
    pageLink("The health of the blocklists", "/blocklists/lists", "Blocklists › Lists"),
  ],
});
