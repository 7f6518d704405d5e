import type { Clock } from "../base/clock.ts";
import type { Poster } from "../net/fetch.ts";
import { signatureHeaders } from "./signature.ts";

/** What is sent: the same body at every attempt, signed anew at each. */
export interface Message {
  readonly id: string;
  readonly url: string;
  readonly body: string;
  readonly secrets: readonly string[];
}

/** How one attempt ended. `problem` is a sentence; null when it was taken. */
export interface SendEnd {
  readonly taken: boolean;
  /** The receiver says that it is gone for good (410). */
  readonly gone: boolean;
  readonly httpStatus: number | null;
  readonly problem: string | null;
}

export interface SenderDeps {
  readonly post: Poster;
  readonly clock: Clock;
  readonly userAgent: string;
}

/** What a receiver says about a refusal is kept, cut to this. */
const ANSWER_CHARACTERS_MAX = 200;
const GONE = 410;

/** Builds the function that makes one attempt. Any status but 2xx is a failure, redirects too. */
export const createSender =
  ({ post, clock, userAgent }: SenderDeps) =>
  async ({ id, url, body, secrets }: Message): Promise<SendEnd> => {
    const headers = {
      "content-type": "application/json",
      "user-agent": userAgent,
      ...signatureHeaders(secrets, { id, atMs: clock.nowMs(), body }),
    };
    const answer = await post({ url, headers, body });
    if (!answer.ok) return { taken: false, gone: false, httpStatus: null, problem: answer.error.problem };
    const { status } = answer.value;
    const taken = status >= 200 && status < 300;
    return {
      taken,
      gone: status === GONE,
      httpStatus: status,
      problem: taken ? null : describe(status, answer.value.body),
    };
  };

export type Sender = ReturnType<typeof createSender>;

const describe = (status: number, body: string): string => {
  const words = body
    .slice(0, ANSWER_CHARACTERS_MAX * 2)
    .replace(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .trim()
    .slice(0, ANSWER_CHARACTERS_MAX);
  const hint = status >= 300 && status < 400 ? " Redirects are not followed: give the final URL." : "";
  return `The receiver answered ${status}${words === "" ? "" : `: ${words}`}.${hint}`;
};
