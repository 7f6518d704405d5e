import type { ListResponse } from "./list-client.ts";
import type { TestPoint } from "./blocklist.ts";

/**
 * How a list behaves through this resolver.
 *
 * - `healthy`: its test points answer as they must; its silence means "not listed".
 * - `refused`: it does not serve us; see the remedy.
 * - `silent`: it does not know its own positive test point: emptied, or its answers are stripped on the way.
 * - `wildcard`: it lists what cannot be listed, or answers outside 127/8: parked, or answers are rewritten on the way.
 * - `unreachable`: the DNS has no answer, or the list answers for its test points only.
 * - `unknown`: it has no positive test point, answers it strangely, or was not tested yet.
 */
export type HealthState = "healthy" | "refused" | "silent" | "wildcard" | "unreachable" | "unknown";

/** What one test found. `reason` is a sentence, null when healthy; `remedy` says what may help, null when nothing is known. */
export interface ListFinding {
  readonly state: HealthState;
  readonly reason: string | null;
  readonly remedy: string | null;
}

export const HEALTHY: ListFinding = { state: "healthy", reason: null, remedy: null };

/** Whether a list answered as if it had an entry. */
export const isAnswered = ({ decoded }: ListResponse): boolean =>
  decoded.outcome === "listed" || (decoded.outcome === "failed" && decoded.cause === "unrecognised");

/** What the answer for a positive test point says of its list; null when nobody was asked. */
export const judgePositive = ({ value, answers: expected }: TestPoint, answer: ListResponse): ListFinding | null => {
  const { decoded, returnCodes } = answer;
  if (decoded.outcome === "listed" || returnCodes.some((text) => expected.includes(text))) return HEALTHY;
  if (decoded.outcome === "not_listed") {
    return {
      state: "silent",
      reason: `The list does not know its own test entry ${value}: it was emptied, or its answers are stripped on the way.`,
      remedy: "Use a resolver that does not strip answers in 127.0.0.0/8 (rebinding protection).",
    };
  }
  return judgeTrouble(answer);
};

/** What the answer for a negative test point says of its list; null when nobody was asked. */
export const judgeNegative = (value: string, answer: ListResponse): ListFinding | null => {
  if (answer.decoded.outcome === "not_listed") return HEALTHY;
  return isAnswered(answer) ? wildcard(`${value}, which must never be listed`, answer) : judgeTrouble(answer);
};

/** The list answered for what it cannot hold. */
export const wildcard = (what: string, { returnCodes }: ListResponse): ListFinding => ({
  state: "wildcard",
  reason: `The list answered ${returnCodes.join(", ")} for ${what}: it lists everything.`,
  remedy: null,
});

/** What an answer that says nothing about a target says of its list; null when nobody was asked. */
export const judgeTrouble = ({ decoded }: ListResponse): ListFinding | null => {
  if (decoded.outcome === "refused") return { state: "refused", reason: decoded.reason, remedy: decoded.remedy };
  if (decoded.outcome !== "failed") return HEALTHY;
  switch (decoded.cause) {
    case "not_asked":
    case "unconfirmed":
      return null;
    case "outside_loopback":
      return { state: "wildcard", reason: decoded.reason, remedy: null };
    case "unreachable":
      return { state: "unreachable", reason: decoded.reason, remedy: null };
    case "unrecognised":
      return { state: "unknown", reason: decoded.reason, remedy: null };
    default:
      return decoded.cause satisfies never;
  }
};
