import type { Clock } from "../../foundation/base/clock.ts";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import type { Poster } from "../../foundation/net/fetch-url.ts";
import { signatureHeaders } from "./secret-store.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import { z } from "zod";

/** The result of one attempt. */
export interface DeliveryResult {
  readonly delivered: boolean;
  /** 410: the endpoint is permanently gone. */
  readonly gone: boolean;
  /** A permanent refusal: a 4xx other than 408, 409, 410, 425 and 429. */
  readonly rejected: boolean;
  readonly httpStatus: number | null;
  /** Why the delivery failed, as a sentence; null when it was delivered. */
  readonly problem: string | null;
  /** The first kB of the response body; null when it was delivered, or without a response. */
  readonly response: string | null;
  /** From the `Retry-After` header; null without one. */
  readonly retryAfterMs: number | null;
  /** 429 or 503: `retryAfterMs` applies to every delivery to this URL. */
  readonly rateLimited: boolean;
  readonly timedOut: boolean;
}

/** Loads the descriptions of all types of events. */
export type LoadEventDocs = () => Promise<readonly EventDoc[]>;

/** Characters of a response quoted in `problem`. */
const QUOTED_CHARACTERS_MAX = 200;
const RESPONSE_BYTES_MAX = 1024;
const GONE = 410;
const TEMPORARY_4XX: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const RATE_LIMITED: ReadonlySet<number> = new Set([429, 503]);

export type Sender = (request: {
  id: string;
  url: string;
  /** The body of the event (Standard Webhooks); for Slack and Teams a message is made of it. */
  body: string;
  secrets: readonly string[];
  signal?: AbortSignal;
}) => Promise<DeliveryResult>;

/** Returns the function that makes one attempt. Any status but 2xx is a failure, including redirects. */
export const createSender =
  ({
    post,
    clock,
    userAgent,
    baseUrl,
    loadDocs,
  }: {
    post: Poster;
    clock: Clock;
    userAgent: string;
    /** Base of the links in chat messages; null when POSTWARDEN_BASE_URL is not set. */
    baseUrl: string | null;
    loadDocs: LoadEventDocs;
  }): Sender =>
  async ({ id, url, body: event, secrets, signal }) => {
    const { payloadOf, isFailure } = formatFor(url);
    const body = payloadOf(event, { baseUrl, docs: isPaced(url) ? await loadDocs() : [] });
    const headers = {
      "content-type": "application/json",
      "user-agent": userAgent,
      ...signatureHeaders(secrets, { id, atMs: clock.nowMs(), body }),
    };
    const posted = await post({ url, headers, body, ...(signal === undefined ? {} : { signal }) });
    if (!posted.ok) {
      const { kind, problem } = posted.error;
      return { ...NO_RESPONSE, problem, timedOut: kind === "timeout" || kind === "aborted" };
    }
    const { status, body: response, retryAfter } = posted.value;
    if (status >= 200 && status < 300 && !isFailure(response))
      return { ...NO_RESPONSE, delivered: true, httpStatus: status };
    return {
      ...NO_RESPONSE,
      gone: status === GONE,
      rejected: status >= 400 && status < 500 && status !== GONE && !TEMPORARY_4XX.has(status),
      httpStatus: status,
      problem: describe(status, response),
      response: firstBytes(response),
      retryAfterMs: retryAfterMs(retryAfter, clock.nowMs()),
      rateLimited: RATE_LIMITED.has(status),
    };
  };

const NO_RESPONSE: DeliveryResult = {
  delivered: false,
  gone: false,
  rejected: false,
  httpStatus: null,
  problem: null,
  response: null,
  retryAfterMs: null,
  rateLimited: false,
  timedOut: false,
};

const firstBytes = (text: string) =>
  Buffer.from(text)
    .subarray(0, RESPONSE_BYTES_MAX)
    .toString("utf8")
    .replace(/(?<!\u{FFFD})\u{FFFD}+$/u, "");

const describe = (status: number, body: string) => {
  const quoted = body
    .slice(0, QUOTED_CHARACTERS_MAX * 2)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, QUOTED_CHARACTERS_MAX);
  const hint = status >= 300 && status < 400 ? " Redirects are not followed: set the final URL." : "";
  return `The receiver responded ${status}${quoted === "" ? "" : `: ${quoted}`}.${hint}`;
};

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

/** Waits between attempts (contract §8); after the last attempt a delivery fails. */
const WAITS_MS: readonly number[] = [
  5 * SECOND_MS,
  5 * MINUTE_MS,
  30 * MINUTE_MS,
  2 * HOUR_MS,
  5 * HOUR_MS,
  10 * HOUR_MS,
  14 * HOUR_MS,
  20 * HOUR_MS,
  24 * HOUR_MS,
];
export const DELIVERY_ATTEMPTS_MAX = WAITS_MS.length + 1;
/** Up to a tenth is added, so that an endpoint that recovers does not receive everything at once. */
const JITTER_SHARE = 0.1;
const RETRY_AFTER_MS_MAX = 24 * HOUR_MS;
/** IMF-fixdate (RFC 9110 §5.6.7). */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/** The wait after this many failed attempts; null after the last. */
export const waitAfter = (attempts: number, random: Random): number | null => {
  const waitMs = WAITS_MS[attempts - 1];
  return waitMs === undefined ? null : waitMs + random.integer(Math.floor(waitMs * JITTER_SHARE) + 1);
};

/** The wait that a `Retry-After` header asks for, in milliseconds, at most 24 hours; null when it is absent or invalid. */
export const retryAfterMs = (header: string | null, nowMs: number): number | null => {
  const text = header?.trim() ?? "";
  const waitMs = /^\d+$/.test(text)
    ? Number(text) * SECOND_MS
    : HTTP_DATE.test(text)
      ? Date.parse(text) - nowMs
      : Number.NaN;
  return Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), RETRY_AFTER_MS_MAX);
};

/** `standard`: the event as Standard Webhooks defines it. The others are messages for people. */
export const DELIVERY_FORMATS = ["standard", "slack", "teams"] as const;
export type DeliveryFormat = (typeof DELIVERY_FORMATS)[number];

/** Chat services accept about one message per second and URL. */
export const PACE_MS = 1_000;

const SLACK_HOSTS: readonly string[] = ["hooks.slack.com", "hooks.slack-gov.com"];
/** Slack workflows have another path and their own fields. */
const SLACK_PATH = "/services/";
const TEAMS_HOST = /\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)$/;

/** The format of deliveries to a URL, by its host. */
export const formatOf = (url: string): DeliveryFormat => {
  const { hostname, pathname } = new URL(url);
  if (SLACK_HOSTS.includes(hostname) && pathname.startsWith(SLACK_PATH)) return "slack";
  return TEAMS_HOST.test(hostname) ? "teams" : "standard";
};

/** Whether a URL takes one request at a time: it gets chat messages. */
export const isPaced = (url: string): boolean => formatOf(url) !== "standard";

/** What chat messages are written with. */
interface MessageContext {
  /** The base of links, or null. */
  readonly baseUrl: string | null;
  readonly docs: readonly EventDoc[];
}

export interface Format {
  /** The request body for the JSON text of an event. */
  readonly payloadOf: (event: string, context: MessageContext) => string;
  /** Whether a 2xx response with this body is a failure. */
  readonly isFailure: (response: string) => boolean;
}

export const formatFor = (url: string): Format => FORMATS[formatOf(url)];

/** `&`, `<` and `>` are the only characters with a meaning in Slack's text. */
const escapeSlack = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const slackLink = ({ title, url }: EventMessage["links"][number]) =>
  `<${url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E")}|${escapeSlack(title)}>`;

/** `verbatim`: channel names and URLs in the text do not become links. */
const slackSection = (text: string) => ({ type: "section", text: { type: "mrkdwn", text, verbatim: true } }) as const;

const SEVERITY_NAMES: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Info",
  low: "Low",
  medium: "Medium",
  high: "High",
  critical: "Critical",
};

/** The body for an incoming webhook of Slack: `text` for notifications, and Block Kit blocks. */
const slackPayload = ({ title, severity, facts, links }: EventMessage) => {
  const escaped = escapeSlack(title);
  const heading = severity === null ? escaped : `${SEVERITY_NAMES[severity]}: ${escaped}`;
  return JSON.stringify({
    text: heading,
    mrkdwn: false,
    parse: "none",
    link_names: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      slackSection(`*${heading}*`),
      ...facts.map(([name, value]) => slackSection(`*${escapeSlack(name)}:* ${escapeSlack(value)}`)),
      ...(links.length === 0 ? [] : [slackSection(links.map(slackLink).join("  "))]),
    ],
  });
};

const TEAMS_COLOURS: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Default",
  low: "Default",
  medium: "Warning",
  high: "Attention",
  critical: "Attention",
};

/** Text runs have no Markdown, so quoted text cannot contain a link or mention. */
const teamsRun = (text: string, style: Readonly<Record<string, string>> = {}) => ({ type: "TextRun", text, ...style });
const teamsLine = (...inlines: ReadonlyArray<ReturnType<typeof teamsRun>>) => ({ type: "RichTextBlock", inlines });

/** The body for a workflow or incoming webhook of Microsoft Teams: a message with an Adaptive Card 1.4. */
const teamsPayload = ({ title, severity, facts, links }: EventMessage) => {
  const colour = severity === null ? {} : { color: TEAMS_COLOURS[severity] };
  const actions = links.map((link) => ({ type: "Action.OpenUrl", title: link.title, url: link.url }));
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      teamsLine(teamsRun(title, { weight: "Bolder", size: "Medium", ...colour })),
      ...facts.map(([name, value]) => teamsLine(teamsRun(`${name}: `, { weight: "Bolder" }), teamsRun(value))),
    ],
    ...(actions.length === 0 ? {} : { actions }),
  };
  const contentType = "application/vnd.microsoft.card.adaptive";
  return JSON.stringify({ type: "message", attachments: [{ contentType, contentUrl: null, content }] });
};

/** A Teams connector responds 200 even when it could not deliver, and says so in the body. */
const isTeamsFailure = (response: string) =>
  /webhook message delivery failed|endpoint returned http error/i.test(response);

const FORMATS: Readonly<Record<DeliveryFormat, Format>> = {
  standard: { payloadOf: (event) => event, isFailure: () => false },
  slack: {
    payloadOf: (event, context) => slackPayload(eventMessage(event, context)),
    isFailure: () => false,
  },
  teams: {
    payloadOf: (event, context) => teamsPayload(eventMessage(event, context)),
    isFailure: isTeamsFailure,
  },
};

/** An event as a chat message. All texts are one line without control characters. */
interface EventMessage {
  readonly title: string;
  /** Null when the event has none. */
  readonly severity: "info" | "low" | "medium" | "high" | "critical" | null;
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>;
  /** Related pages: https URLs. */
  readonly links: ReadonlyArray<{ readonly title: string; readonly url: string }>;
}

const FACTS_MAX = 10;
const VALUE_CHARACTERS_MAX = 300;
const TITLE_CHARACTERS_MAX = 200;

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

/** Pages of the subjects of events. */
const PATHS: ReadonlyArray<readonly [prefix: string, path: (data: Data) => string | null]> = [
  ["blacklist.", ({ target_id }) => pathOf("/blocklists/", target_id)],
  ["dmarc.", ({ domain_id }) => pathOf("/dmarc/", domain_id)],
  ["bulk.", ({ id }) => pathOf("/lists/", id)],
];

/** The message for an event, given as the JSON text of its body. */
const eventMessage = (body: string, { baseUrl, docs }: MessageContext): EventMessage => {
  const { type, timestamp, data } = eventSchema.parse(JSON.parse(body));
  const severity = z.enum(["info", "low", "medium", "high", "critical"]).safeParse(data.severity);
  const doc = docs.find((event) => event.type === type);
  const title = doc?.title((field) => textOf(data[field])) ?? type;
  const marks = [
    ...(data.test === true ? ["TEST, nothing happened"] : []),
    ...(data.mode === "test" ? ["test key"] : []),
  ];
  const facts = Object.entries(FACTS).flatMap(([field, name]): Array<[string, string]> => {
    const value = textOf(data[field]);
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
  const side = data.mode === "test" ? "/test" : "";
  const delisting = type === "blacklist.listed" ? httpsUrl(data.delist_url) : null;
  return [
    ...(delisting === null ? [] : [{ title: "Delisting page", url: delisting }]),
    ...(baseUrl === null || path === null ? [] : [{ title: "Details", url: new URL(baseUrl + side + path).href }]),
  ];
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

const oneLine = (text: string) => text.replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\s]+/gu, " ").trim();

const cut = (text: string, most: number) => {
  const characters = [...text];
  return characters.length > most ? `${characters.slice(0, most - 1).join("")}…` : text;
};
