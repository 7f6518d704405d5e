import { z } from "zod";

/** An event in words, for people who read it in a chat. All texts are one line, without control characters. */
export interface EventMessage {
  readonly title: string;
  /** Null where the event has none. */
  readonly severity: "info" | "low" | "medium" | "high" | "critical" | null;
  /** Name and value. */
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>;
  /** Pages that tell more: https URLs. */
  readonly links: ReadonlyArray<{ readonly title: string; readonly url: string }>;
}

const FACTS_MAX = 10;
const VALUE_CHARACTERS_MAX = 300;
const TITLE_CHARACTERS_MAX = 200;

const eventSchema = z.object({ type: z.string(), timestamp: z.string(), data: z.record(z.string(), z.unknown()) });
type Data = Readonly<Record<string, unknown>>;

/** The fields that are facts, in the order in which they are shown. */
const FACTS: ReadonlyArray<readonly [field: string, name: string]> = [
  ["severity", "Severity"],
  ["label", "Label"],
  ["name", "Name"],
  ["category", "Category"],
  ["meaning", "Meaning"],
  ["text", "The list says"],
  ["reason", "Reason"],
  ["remedy", "What to do"],
  ["previous_status", "Status before"],
  ["status", "Status"],
  ["listed_on", "Listed on"],
  ["previous_record", "Record before"],
  ["record", "Record"],
  ["count", "Number"],
  ["day", "Day"],
  ["messages", "Messages"],
  ["failing", "Failing"],
  ["last_report_at", "Last report"],
  ["message", "Message"],
  ["checked_at", "Checked"],
];

const TITLES: Readonly<Record<string, (data: Data) => string>> = {
  "blacklist.listed": (data) => `${said(data.target)} is listed on ${said(data.listing_name)}`,
  "blacklist.delisted": (data) => `${said(data.target)} is no longer on ${said(data.listing_name)}`,
  "blacklist.list_unusable": (data) => `The blocklist ${listOf(data)} cannot be used`,
  "blacklist.list_usable": (data) => `The blocklist ${listOf(data)} can be used again`,
  "dmarc.status_changed": (data) => `${said(data.domain)}: DMARC status ${said(data.status)}`,
  "dmarc.record_changed": (data) => `${said(data.domain)}: the DMARC record changed`,
  "dmarc.policy_weakened": (data) => `${said(data.domain)}: the DMARC policy protects less than before`,
  "dmarc.new_source": (data) => `${said(data.domain)}: new senders use the domain`,
  "dmarc.new_subdomain": (data) => `${said(data.domain)}: mail names new subdomains`,
  "dmarc.failure_spike": (data) =>
    data.state === "ended"
      ? `${said(data.domain)}: mail passes DMARC again`
      : `${said(data.domain)}: much more mail fails DMARC`,
  "dmarc.spoofing_campaign": (data) => `${said(data.domain)}: a spoofing campaign, all unauthenticated`,
  "dmarc.reports_stopped": (data) => `${said(data.domain)}: no more DMARC reports arrive`,
  "dmarc.tls_failures": (data) =>
    data.state === "ended"
      ? `${said(data.domain)}: inbound TLS sessions no longer fail (${said(data.meaning)})`
      : `${said(data.domain)}: inbound TLS sessions fail, ${said(data.meaning)}`,
  "bulk.completed": () => "A list is completed",
  "bulk.cancelled": () => "A list was cancelled",
  "bulk.failed": () => "A list failed",
  "webhook.test": () => "Test message",
};

/** Where the interface shows what an event is about. */
const PATHS: ReadonlyArray<readonly [prefix: string, path: (data: Data) => string | null]> = [
  ["blacklist.", ({ target_id }) => pathOf("/v1/blacklist/targets/", target_id)],
  ["dmarc.", ({ domain_id }) => pathOf("/v1/dmarc/domains/", domain_id)],
  ["bulk.", ({ id }) => pathOf("/v1/bulk-verifications/", id)],
];

/** What an event (the JSON text of its body) says, in words. `baseUrl`: where the service is reached; null when nobody said. */
export const eventMessage = (body: string, baseUrl: string | null): EventMessage => {
  const { type, timestamp, data } = eventSchema.parse(JSON.parse(body));
  const severity = z.enum(["info", "low", "medium", "high", "critical"]).safeParse(data.severity);
  const title = TITLES[type]?.(data) ?? type;
  const marks = [
    ...(data.test === true ? ["TEST, nothing happened"] : []),
    ...(data.mode === "test" ? ["test key"] : []),
  ];
  const facts = FACTS.flatMap(([field, name]): Array<[string, string]> => {
    const value = said(data[field]);
    return value === "" ? [] : [[name, cut(value, VALUE_CHARACTERS_MAX)]];
  });
  return {
    title: cut(marks.length === 0 ? title : `[${marks.join(", ")}] ${title}`, TITLE_CHARACTERS_MAX),
    severity: severity.success ? severity.data : null,
    facts: [...facts.slice(0, FACTS_MAX), ["Event", `${oneLine(type)}, ${oneLine(timestamp)}`]],
    links: linksOf(type, data, baseUrl),
  };
};

const linksOf = (type: string, data: Data, baseUrl: string | null): EventMessage["links"] => {
  const path = PATHS.find(([prefix]) => type.startsWith(prefix))?.[1](data) ?? null;
  const delisting = type === "blacklist.listed" ? httpsUrl(data.delist_url) : null;
  return [
    ...(delisting === null ? [] : [{ title: "Delisting page", url: delisting }]),
    ...(baseUrl === null || path === null ? [] : [{ title: "Details", url: new URL(path, baseUrl).href }]),
  ];
};

const listOf = (data: Data): string => said(data.list_name ?? data.name ?? data.list);

const pathOf = (prefix: string, id: unknown): string | null =>
  typeof id === "string" && /^[0-9a-f-]{36}$/.test(id) ? prefix + id : null;

const httpsUrl = (value: unknown): string | null => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : null;
  return url?.protocol === "https:" ? url.href : null;
};

/** A value as people read it; an empty text for what cannot be said in a line. */
const said = (value: unknown): string => {
  if (typeof value === "string") return oneLine(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return value.map(said).filter(Boolean).join(", ");
  return "";
};

const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();

const cut = (text: string, most: number): string => {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
};
