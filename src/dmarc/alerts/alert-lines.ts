import { z } from "zod";
import type { AlertMailLine } from "../domains/alert-store.ts";
import { hintsOf } from "./alert-hints.ts";
import { type Hint, oneLine, shortName } from "./digest-page.ts";
import { mailTime } from "./mail-words.ts";

/** An alert as a mail tells of it. Every text is one line, without controls. */
export interface ToldAlert {
  readonly domain: string;
  readonly domainId: string;
  /** Names the domain. */
  readonly headline: string;
  readonly label: string | null;
  readonly at: string;
  readonly details: readonly string[];
  /** What to do; empty when nothing need be done. */
  readonly hints: readonly Hint[];
}

const bodySchema = z.object({ summary: z.string(), data: z.record(z.string(), z.unknown()) });
const sourcesSchema = z.object({
  count: z.int().optional(),
  sources: z.array(
    z.object({
      name: z.string(),
      service: z.string().nullable(),
      classification: z.string(),
      messages: z.int(),
      aligned: z.int(),
      failing: z.int().optional(),
      causes: z.array(z.object({ message: z.string() })).optional(),
    }),
  ),
});
const campaignSchema = z.object({ rejected: z.int(), quarantined: z.int() });
const namesSchema = z.object({
  count: z.int(),
  names: z.array(z.object({ name: z.string(), messages: z.int(), aligned: z.int() })),
});
const checksSchema = z.object({ checks: z.array(z.object({ ok: z.boolean().nullable(), message: z.string() })) });
const recordSchema = z.object({ record: z.string().nullable(), previous_record: z.string().nullable().optional() });
const changesSchema = recordSchema.required();
const tlsSchema = z.object({
  state: z.enum(["began", "ended"]),
  policy_type: z.string().nullable(),
  advice: z.string(),
  mx_hosts: z.array(z.object({ host: z.string(), sessions: z.int() })),
  reporters: z.array(z.string()),
});
const reportedSchema = z.object({ reported: z.object({ reporters: z.array(z.string()) }) });

const DETAILS_MAX = 10;
const DETAIL_CHARACTERS_MAX = 500;

/** Reads a line of an alert mail; null when the alert or its domain is gone meanwhile. */
export const readAlert = (line: AlertMailLine, baseUrl: string): ToldAlert | null => {
  const { rule, atMs, body, domain, domainId, label } = line;
  if (rule === null || atMs === null || body === null || domain === null || domainId === null) return null;
  const { summary, data } = bodySchema.parse(JSON.parse(body));
  const said = oneLine(summary);
  return {
    domain,
    domainId,
    headline: namesDomain(said, domain) ? said : `${domain}: ${said}`,
    label: label === null ? null : shortName(label),
    at: mailTime(atMs),
    details: detailsOf(rule, data).slice(0, DETAILS_MAX).map(cut),
    hints: hintsOf(rule, data, { domain, place: { baseUrl, domainId } }),
  };
};

/** Whether a sentence begins with the domain: one that names another below it does not say which it is about. */
const namesDomain = (said: string, domain: string): boolean =>
  said.startsWith(domain) && !/^[\w.-]/.test(said.slice(domain.length).replace(/^\.(?=\s|$)/, ""));

/** What an alert says beyond its summary; nothing where its data is not as expected, for a mail must not fail on that. */
const detailsOf = (rule: string, data: Readonly<Record<string, unknown>>): readonly string[] => {
  switch (rule) {
    case "status_changed":
      return failingChecks(data);
    case "record_changed":
      return recordChanges(data);
    case "policy_weakened":
      return currentRecord(data);
    case "new_subdomain":
      return newNames(data);
    case "spoofing_campaign":
      return campaignLines(data);
    case "tls_failures":
      return tlsFailures(data);
    default:
      return listedSources(data);
  }
};

const tlsFailures = (data: unknown): readonly string[] => {
  const read = tlsSchema.safeParse(data);
  if (!read.success || read.data.state === "ended") return [];
  const { advice, mx_hosts, reporters, policy_type } = read.data;
  const hosts = mx_hosts.map(({ host, sessions }) => `${host}: ${sessions} failed`);
  const policy = policy_type === null ? [] : [`Policy: ${policy_type}`];
  const told = reporters.length === 0 ? [] : [`Reported by ${reporters.map(shortName).join(", ")}`];
  return [advice, ...policy, ...told, ...withRest(hosts, hosts.length)];
};

const failingChecks = (data: unknown): readonly string[] => {
  const read = checksSchema.safeParse(data);
  return read.success ? read.data.checks.filter(({ ok }) => ok === false).map(({ message }) => message) : [];
};

const recordChanges = (data: unknown): readonly string[] => {
  const read = changesSchema.safeParse(data);
  if (!read.success) return [];
  const { previous_record: before, record } = read.data;
  return before === record ? [] : [`Before: ${before ?? "no record"}`, `Now: ${record ?? "no record"}`];
};

const currentRecord = (data: unknown): readonly string[] => {
  const read = recordSchema.safeParse(data);
  if (!read.success) return [];
  const now = read.data.record ?? "none";
  const found = reportedSchema.safeParse(data);
  if (!found.success) return [`Record: ${now}`];
  const { reporters } = found.data.reported;
  return [`Found by: ${reporters.map(shortName).join(", ")}`, `The record as last checked: ${now}`];
};

const newNames = (data: unknown): readonly string[] => {
  const read = namesSchema.safeParse(data);
  if (!read.success) return [];
  const { count, names } = read.data;
  const lines = names.map(({ name, messages, aligned }) => `${shortName(name)}: ${passed(messages, aligned)}`);
  return withRest(lines, count);
};

const listedSources = (data: unknown): readonly string[] => {
  const read = sourcesSchema.safeParse(data);
  if (!read.success) return [];
  const { count, sources } = read.data;
  const lines = sources.flatMap(({ name, service, classification, messages, aligned, failing, causes = [] }) => {
    const known = service === null || service === name ? "" : ` (${shortName(service)})`;
    const counts = failing === undefined ? passed(messages, aligned) : `${failing} of ${messages} messages fail DMARC`;
    return [`${shortName(name)}${known}, ${classification}: ${counts}`, ...causes.map(({ message }) => message)];
  });
  return withRest(lines, count ?? lines.length);
};

const campaignLines = (data: unknown): readonly string[] => {
  const read = campaignSchema.safeParse(data);
  if (!read.success) return [];
  const { rejected, quarantined } = read.data;
  return [`Receivers rejected ${rejected} and quarantined ${quarantined} of these messages.`];
};

const passed = (messages: number, aligned: number): string =>
  `${messages} ${messages === 1 ? "message" : "messages"}, ${aligned} passed DMARC`;

const withRest = (lines: readonly string[], count: number): readonly string[] => {
  const shown = lines.slice(0, count > DETAILS_MAX ? DETAILS_MAX - 1 : DETAILS_MAX);
  return count > shown.length ? [...shown, `and ${count - shown.length} more`] : shown;
};

const cut = (text: string): string => {
  const line = oneLine(text);
  return line.length > DETAIL_CHARACTERS_MAX ? `${line.slice(0, DETAIL_CHARACTERS_MAX - 1)}…` : line;
};
