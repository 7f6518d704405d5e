import type { Clock } from "../base/clock.ts";
import type { Poster } from "../net/fetch.ts";
import { createFormats, type FormatDeps } from "./formats.ts";
import { retryAfterMs } from "./retry-after.ts";
import { signatureHeaders } from "./signature.ts";

/** What is sent: the same event at every attempt, signed anew at each. */
export interface WebhookRequest {
  readonly id: string;
  readonly url: string;
  /** The event as Standard Webhooks has it; a URL of Slack or Teams gets a message made of it. */
  readonly body: string;
  readonly secrets: readonly string[];
  /** Gives up the attempt. */
  readonly signal?: AbortSignal;
}

/** How one attempt ended. `problem` is a sentence; null when it was taken. */
export interface DeliveryResult {
  readonly taken: boolean;
  /** The receiver says that it is gone for good (410). */
  readonly gone: boolean;
  /** The receiver refused in a way that a repeat does not change: any other 4xx but 408, 409, 425 and 429. */
  readonly rejected: boolean;
  readonly httpStatus: number | null;
  readonly problem: string | null;
  /** The first kB of the receiver's answer; null when there was none, or the event was taken. */
  readonly answer: string | null;
  /** How long the receiver asks to wait; null when it does not. */
  readonly retryAfterMs: number | null;
  /** The receiver limits how often it is called (429, 503): the wait is for every event that goes there. */
  readonly limited: boolean;
  /** There was no answer in time. */
  readonly hung: boolean;
}

export interface SenderDeps extends FormatDeps {
  readonly post: Poster;
  readonly clock: Clock;
  readonly userAgent: string;
}

/** What a receiver says about a refusal is shown in a sentence, cut to this. */
const WORDS_CHARACTERS_MAX = 200;
/** And kept, cut to this. */
const RESPONSE_BYTES_MAX = 1024;
const GONE = 410;
const TEMPORARY_4XX: ReadonlySet<number> = new Set([408, 409, 425, 429]);
const LIMITED: ReadonlySet<number> = new Set([429, 503]);

/** Builds the function that makes one attempt. Any status but 2xx is a failure, redirects too. */
export const createSender = ({ post, clock, userAgent, ...rest }: SenderDeps) => {
  const formats = createFormats(rest);
  return async ({ id, url, body: event, secrets, signal }: WebhookRequest): Promise<DeliveryResult> => {
    const { payloadOf, isRefused } = formats.formatFor(url);
    const body = payloadOf(event);
    const headers = {
      "content-type": "application/json",
      "user-agent": userAgent,
      ...signatureHeaders(secrets, { id, atMs: clock.nowMs(), body }),
    };
    const answer = await post({ url, headers, body, ...(signal === undefined ? {} : { signal }) });
    if (!answer.ok) {
      const { kind, problem } = answer.error;
      return { ...NOTHING_HEARD, problem, hung: kind === "timeout" || kind === "aborted" };
    }
    const { status, body: said } = answer.value;
    const taken = status >= 200 && status < 300 && !isRefused(said);
    if (taken) return { ...NOTHING_HEARD, taken, httpStatus: status };
    return {
      ...NOTHING_HEARD,
      gone: status === GONE,
      rejected: status >= 400 && status < 500 && status !== GONE && !TEMPORARY_4XX.has(status),
      httpStatus: status,
      problem: describe(status, said),
      answer: Buffer.from(said)
        .subarray(0, RESPONSE_BYTES_MAX)
        .toString("utf8")
        .replace(/\u{FFFD}+$/u, ""),
      retryAfterMs: retryAfterMs(answer.value.retryAfter, clock.nowMs()),
      limited: LIMITED.has(status),
    };
  };
};

export type Sender = ReturnType<typeof createSender>;

const NOTHING_HEARD: DeliveryResult = {
  taken: false,
  gone: false,
  rejected: false,
  httpStatus: null,
  problem: null,
  answer: null,
  retryAfterMs: null,
  limited: false,
  hung: false,
};

const describe = (status: number, body: string): string => {
  const words = body
    .slice(0, WORDS_CHARACTERS_MAX * 2)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, WORDS_CHARACTERS_MAX);
  const hint = status >= 300 && status < 400 ? " Redirects are not followed: give the final URL." : "";
  return `The receiver answered ${status}${words === "" ? "" : `: ${words}`}.${hint}`;
};
