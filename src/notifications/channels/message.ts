import { createHash } from "node:crypto";
import { z } from "zod";
import { SEVERITIES } from "../../foundation/base/severity.ts";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import type { ChannelMessage, MessageIncident } from "./channel.ts";

/** What messages are written with. */
export interface MessageContext {
  /** The base of links, or null. */
  readonly baseUrl: string | null;
  readonly docs: readonly EventDoc[];
}

const FACTS_MAX = 10;
/** Lines of a summary that are shown. */
const LINES_MAX = 20;
const VALUE_CHARACTERS_MAX = 300;
const TITLE_CHARACTERS_MAX = 200;
const SOURCE_CHARACTERS_MAX = 255;
/** A longer link is left out: it would not fit into messages of all services. */
const LINK_CHARACTERS_MAX = 1_000;

const eventSchema = z.object({ type: z.string(), timestamp: z.string(), data: z.record(z.string(), z.unknown()) });
type Data = Readonly<Record<string, unknown>>;

/** The fields of events that are shown, in order. */
const FACTS = {
  severity: "Severity",
  label: "Label",
  name: "Name",
  category: "Category",
  meaning: "Meaning",
  text: "TXT record",
  reason: "Reason",
  remedy: "What to do",
  previous_status: "Previous status",
  status: "Status",
  listed_on: "Listed on",
  previous_record: "Previous record",
  record: "Record",
  count: "Count",
  day: "Day",
  messages: "Messages",
  failing: "Failing",
  last_report_at: "Last report",
  message: "Message",
  checked_at: "Checked",
};

const linesSchema = z.object({
  lines: z.array(z.object({ at: z.string(), text: z.string(), ended_at: z.string().nullable() })),
  more: z.number(),
});

/** `2026-01-01T22:14:00.000Z` to the minute. */
const minuteOf = (time: string) => oneLine(time).slice(0, "2026-01-01T22:14".length).replace("T", " ");

/** The lines of a summary of many events, in place of the fields of one. */
const linesOf = (data: Data): Array<[string, string]> | null => {
  const read = linesSchema.safeParse(data);
  if (!read.success) return null;
  const { lines, more } = read.data;
  const shown = lines.slice(0, LINES_MAX).map(({ at, text, ended_at }): [string, string] => {
    const ended = ended_at === null ? "" : ` (ended ${minuteOf(ended_at)} UTC)`;
    return [`${minuteOf(at)} UTC`, cut(oneLine(text), VALUE_CHARACTERS_MAX) + ended];
  });
  const left = more + lines.length - shown.length;
  return left === 0 ? shown : [...shown, ["More", `and ${left} more; see the event feed`]];
};

/** What an event is about, the first that it has. */
const SOURCES = ["target", "domain", "list_name", "name"];

/** Pages of the subjects of events. */
const PATHS: ReadonlyArray<readonly [prefix: string, path: (data: Data) => string | null]> = [
  ["blacklist.", ({ target_id }) => pathOf("/blocklists/", target_id)],
  ["dmarc.", ({ domain_id }) => pathOf("/dmarc/", domain_id)],
  ["bulk.", ({ id }) => pathOf("/lists/", id)],
];

/** The message for an event, given as the JSON text of its body. */
export const eventMessage = (body: string, { baseUrl, docs }: MessageContext): ChannelMessage => {
  const { type, timestamp, data } = eventSchema.parse(JSON.parse(body));
  const severity = z.enum(SEVERITIES).safeParse(data.severity);
  const doc = docs.find((event) => event.type === type);
  const textIn = (field: string) => textOf(data[field]);
  const title = doc?.title(textIn) ?? type;
  const marks = [
    ...(data.test === true ? ["TEST, nothing happened"] : []),
    ...(data.mode === "test" ? ["test key"] : []),
  ];
  const facts = Object.entries(FACTS).flatMap(([field, name]): Array<[string, string]> => {
    const value = textIn(field);
    return value === "" ? [] : [[name, cut(value, VALUE_CHARACTERS_MAX)]];
  });
  const at = oneLine(timestamp);
  const shown = linesOf(data) ?? facts.slice(0, FACTS_MAX);
  return {
    title: cut(marks.length === 0 ? title : `[${marks.join(", ")}] ${title}`, TITLE_CHARACTERS_MAX),
    severity: severity.success ? severity.data : null,
    facts: [...shown, ["Event", `${oneLine(type)}, ${at}`]],
    links: linksOf(type, data, baseUrl),
    source: cut(SOURCES.map(textIn).find((text) => text !== "") ?? "Postwarden", SOURCE_CHARACTERS_MAX),
    type: oneLine(type),
    at,
    incident: incidentOf(doc, data),
  };
};

/** The incident of an event, given as the JSON text of its body; null of an event that is no problem and ends none. */
export const eventIncident = (body: string, docs: readonly EventDoc[]): MessageIncident | null => {
  const { type, data } = eventSchema.parse(JSON.parse(body));
  return incidentOf(
    docs.find((event) => event.type === type),
    data,
  );
};

/** Tests have incidents of their own, so that a test does not end a real one. */
const incidentOf = (doc: EventDoc | undefined, data: Data): MessageIncident | null => {
  const textIn = (field: string) => textOf(data[field]);
  const incident = doc?.incident?.(textIn, data) ?? null;
  if (incident === null) return null;
  const { about, ends, severity } = incident;
  const parts = [data.mode, data.test === true, ...about];
  const key = createHash("sha256").update(JSON.stringify(parts)).digest("hex");
  const own = z.enum(SEVERITIES).safeParse(data.severity);
  return { key, ends, severity: own.success ? own.data : severity };
};

const linksOf = (type: string, data: Data, baseUrl: string | null): ChannelMessage["links"] => {
  const path = PATHS.find(([prefix]) => type.startsWith(prefix))?.[1](data) ?? null;
  const side = data.mode === "test" ? "/test" : "";
  const delisting = type === "blacklist.listed" ? httpsUrl(data.delist_url) : null;
  const links = [
    ...(delisting === null ? [] : [{ title: "Delisting page", url: delisting }]),
    ...(baseUrl === null || path === null ? [] : [{ title: "Details", url: new URL(baseUrl + side + path).href }]),
  ];
  return links.filter(({ url }) => url.length <= LINK_CHARACTERS_MAX);
};

const pathOf = (prefix: string, id: unknown) =>
  typeof id === "string" && /^[0-9a-f-]{36}$/.test(id) ? prefix + id : null;

const httpsUrl = (value: unknown) => {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : null;
  return url?.protocol === "https:" ? url.href : null;
};

/** A value as text; empty for objects. */
const textOf = (value: unknown): string => {
  if (typeof value === "string") return oneLine(value);
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (Array.isArray(value)) return value.map(textOf).filter(Boolean).join(", ");
  return "";
};

const oneLine = (text: string) =>
  text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ")
    .trim();

const cut = (text: string, most: number) => {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
};
