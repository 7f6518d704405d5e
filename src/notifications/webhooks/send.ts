import type { Clock } from "../../foundation/base/clock.ts";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import type { Poster } from "../../foundation/net/fetch-url.ts";
import { signatureHeaders } from "./secret-store.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import { type NotificationChannel, readStatus, type Reading } from "../channels/channel.ts";
import { channelOf, hideSecrets } from "../channels/channels.ts";
import { eventMessage } from "../channels/message.ts";

/** The result of one attempt. */
export interface DeliveryResult {
  readonly delivered: boolean;
  /** 410, or what a service responds in its place: the endpoint is permanently gone. */
  readonly gone: boolean;
  /** A permanent refusal of this event: for a webhook, a 4xx other than 408, 409, 410, 425 and 429. */
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
const RATE_LIMITED: ReadonlySet<number> = new Set([429, 503]);

export type Sender = (request: {
  id: string;
  url: string;
  /** The body of the event (Standard Webhooks); for a channel a message is made of it. */
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
    const channel = channelOf(url);
    const request =
      channel === null
        ? { url, body: event, headers: signatureHeaders(secrets, { id, atMs: clock.nowMs(), body: event }) }
        : channel.request(new URL(url), eventMessage(event, { baseUrl, docs: await loadDocs() }));
    const headers = { "content-type": "application/json", "user-agent": userAgent, ...request.headers };
    const posted = await post({ ...request, headers, ...(signal === undefined ? {} : { signal }) });
    if (!posted.ok) {
      const { kind, problem } = posted.error;
      return { ...NO_RESPONSE, problem, timedOut: kind === "timeout" || kind === "aborted" };
    }
    const { status, retryAfter } = posted.value;
    const reading = (channel?.read ?? readStatus)(posted.value);
    if (reading.verdict === "accepted") return { ...NO_RESPONSE, delivered: true, httpStatus: status };
    // A service can repeat the URL in its response.
    const response = hideSecrets(posted.value.body, url);
    return {
      ...NO_RESPONSE,
      gone: reading.verdict === "gone",
      rejected: reading.verdict === "refused",
      httpStatus: status,
      problem: describe({ status, response, channel, reading }),
      response: firstBytes(response),
      retryAfterMs: capped(reading.waitMs ?? null) ?? retryAfterMs(retryAfter, clock.nowMs()),
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

interface Refusal {
  readonly status: number;
  readonly response: string;
  readonly channel: NotificationChannel | null;
  readonly reading: Reading;
}

const describe = ({ status, response, channel, reading }: Refusal) => {
  const quoted = response
    .slice(0, QUOTED_CHARACTERS_MAX * 2)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, QUOTED_CHARACTERS_MAX);
  const isRedirect = status >= 300 && status < 400;
  const hint = isRedirect ? "Redirects are not followed: set the final URL." : reading.hint;
  const responded = `${channel?.title ?? "The receiver"} responded ${status}${quoted === "" ? "" : `: ${quoted}`}.`;
  return hint === undefined ? responded : `${responded} ${hint}`;
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
  return capped(waitMs);
};

const capped = (waitMs: number | null) =>
  waitMs === null || Number.isNaN(waitMs) ? null : Math.min(Math.max(0, waitMs), RETRY_AFTER_MS_MAX);
