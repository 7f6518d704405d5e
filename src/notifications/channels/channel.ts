import type { Severity } from "../../foundation/base/severity.ts";

/** An event as a message for people. All texts are one line without control characters; outsiders can have chosen any of them. */
export interface ChannelMessage {
  readonly title: string;
  /** Null when the event has none. */
  readonly severity: Severity | null;
  readonly facts: ReadonlyArray<readonly [name: string, value: string]>;
  /** Related pages: https URLs, and http URLs of this service. */
  readonly links: ReadonlyArray<{ readonly title: string; readonly url: string }>;
  /** What it is about: a domain, an address, a list. */
  readonly source: string;
  readonly type: string;
  /** When it happened, as in the event. */
  readonly at: string;
  readonly incident: MessageIncident | null;
}

/** The problem that an event begins or ends. */
export interface MessageIncident {
  /** The same for all events about one problem: 64 hexadecimal digits. */
  readonly key: string;
  readonly ends: boolean;
  readonly severity: Severity;
}

/** A request to a service. */
export interface ChannelRequest {
  readonly url: string;
  /** In addition to `content-type` and `user-agent`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** JSON text. */
  readonly body: string;
}

/** The response of a service, of any status. */
export interface ChannelResponse {
  readonly status: number;
  readonly body: string;
}

/**
 * What a response means. `accepted`: delivered. `gone`: nothing will ever be accepted at this URL, which is disabled. `refused`: this
 * message will never be accepted. `failed`: try again.
 */
export interface Reading {
  readonly verdict: "accepted" | "gone" | "refused" | "failed";
  /** How long nothing is to be sent to the URL; null: what the header `Retry-After` says. */
  readonly waitMs?: number | null;
  /** What the user can do, as a sentence. */
  readonly hint?: string;
}

/** A service that takes messages: everything about it. */
export interface NotificationChannel {
  readonly name: "slack" | "teams" | "discord" | "telegram" | "ntfy" | "pagerduty" | "opsgenie";
  /** What people call it. */
  readonly title: string;
  /** A URL as a user enters it, for hints and errors. */
  readonly example: string;
  /** Whether a URL is one of the service. */
  readonly matches: (url: URL) => boolean;
  /** Why nothing can be sent to a URL of the service, as a sentence; null when it is complete. */
  readonly problem: (url: URL) => string | null;
  /** The parts of a URL by which anybody could send as its owner, as written in it. */
  readonly secrets: (url: URL) => readonly string[];
  /** Time between two requests to a URL. */
  readonly paceMs: number;
  /** The service keeps incidents: an event that ends a problem closes what its beginning opened. */
  readonly hasIncidents: boolean;
  readonly request: (url: URL, message: ChannelMessage) => ChannelRequest;
  readonly read: (response: ChannelResponse) => Reading;
}

const GONE = 410;
const TEMPORARY_4XX: ReadonlySet<number> = new Set([408, 409, 425, 429]);

/** What a status says by itself (RFC 9110): 410 is for good, other 4xx are refusals except 408, 409, 425 and 429. */
export const readStatus = ({ status }: ChannelResponse): Reading => {
  if (status >= 200 && status < 300) return { verdict: "accepted" };
  if (status === GONE) return { verdict: "gone" };
  const isRefused = status >= 400 && status < 500 && !TEMPORARY_4XX.has(status);
  return { verdict: isRefused ? "refused" : "failed" };
};

/** For services that respond 429 without a time. */
export const BUSY_WAIT_MS = 60_000;

/** The JSON object of a response; empty for anything else, such as the HTML of a proxy. */
export const jsonOf = ({ body }: ChannelResponse): Readonly<Record<string, unknown>> => {
  try {
    const value: unknown = JSON.parse(body);
    return typeof value === "object" && value !== null ? Object.fromEntries(Object.entries(value)) : {};
  } catch {
    return {};
  }
};

/** For a service that accepts with JSON: a 2xx with anything else comes from a proxy or another program. */
export const acceptedOnlyIf = (isAccepted: boolean, title: string): Reading =>
  isAccepted
    ? { verdict: "accepted" }
    : { verdict: "failed", hint: `This is not the response of ${title}: check the URL.` };

interface Cutting {
  /** Each character as the service needs it. */
  readonly escaping?: (character: string) => string;
  /** The size of a text; default: UTF-16 code units, which are never fewer than characters. */
  readonly sizeOf?: (text: string) => number;
}

/** A text, escaped, of at most `max`; a longer one ends in `…`. An escaped character is never divided. */
export const cutTo = (
  text: string,
  max: number,
  { escaping = (character) => character, sizeOf = (one) => one.length }: Cutting = {},
): string => {
  const room = max - sizeOf("…");
  let [kept, whole, size] = ["", "", 0];
  for (const character of text) {
    const escaped = escaping(character);
    size += sizeOf(escaped);
    if (size > max) return room < 0 ? "" : `${kept}…`;
    whole += escaped;
    if (size <= room) kept = whole;
  }
  return whole;
};

/** The severity of a message for services that need one: that of its problem; `info` when it ends, or there is none. */
export const urgencyOf = ({ incident }: ChannelMessage): Severity =>
  incident === null || incident.ends ? "info" : incident.severity;

/** The page of the service about the event; null without POSTWARDEN_BASE_URL. */
export const detailsUrlOf = ({ links }: ChannelMessage): string | null =>
  links.find(({ title }) => title === "Details")?.url ?? null;
