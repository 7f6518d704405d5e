import type { ListResponse } from "./list-client.ts";
import type { TestPoint } from "./blocklist.ts";

/**
 * How a list behaves through this resolver.
 *
 * - `healthy`: its test points are answered as documented, so "not listed" is reliable.
 * - `refused`: it does not accept our queries; see the remedy.
 * - `silent`: it has no entry for its own positive test point: the list is empty, or the resolver strips its responses.
 * - `wildcard`: it lists what cannot be listed, or returns addresses outside 127.0.0.0/8: the domain is parked, or the
 *   resolver rewrites responses.
 * - `unreachable`: no response, or responses for its test points only.
 * - `unknown`: no positive test point, an unrecognised response for it, or not tested yet.
 */
export type HealthState = "healthy" | "refused" | "silent" | "wildcard" | "unreachable" | "unknown";

/** The result of one test. `reason` is a sentence, null when healthy; `remedy` is what may help, null when nothing is known. */
export interface ListFinding {
  readonly state: HealthState;
  readonly reason: string | null;
  readonly remedy: string | null;
}

export const HEALTHY: ListFinding = { state: "healthy", reason: null, remedy: null };

/** Whether the response means that the list has an entry. */
export const hasEntry = ({ decoded }: ListResponse): boolean =>
  decoded.outcome === "listed" || (decoded.outcome === "failed" && decoded.cause === "unrecognised");

/** What the response for a positive test point says about its list; null when no query was sent. */
export const judgePositive = ({ value, answers: expected }: TestPoint, response: ListResponse): ListFinding | null => {
  const { decoded, returnCodes } = response;
  if (decoded.outcome === "listed" || returnCodes.some((code) => expected.includes(code))) return HEALTHY;
  if (decoded.outcome === "not_listed") {
    return {
      state: "silent",
      reason: `The list has no entry for its own test point ${value}: the list is empty, or your resolver strips its responses.`,
      remedy: "Use a resolver that does not strip addresses in 127.0.0.0/8 from responses (DNS rebinding protection).",
    };
  }
  return judgeFailure(response);
};

/** What the response for a negative test point says about its list; null when no query was sent. */
export const judgeNegative = (value: string, response: ListResponse): ListFinding | null =>
  hasEntry(response) ? wildcard(`${value}, which is never listed`, response) : judgeFailure(response);

/** The list has an entry for something that cannot be listed. */
export const wildcard = (what: string, { returnCodes }: ListResponse): ListFinding => ({
  state: "wildcard",
  reason: `The list returned ${returnCodes.join(", ")} for ${what}: it lists everything.`,
  remedy: null,
});

/** What a response that says nothing about a target says about its list; null when no query was sent. */
export const judgeFailure = ({ decoded }: ListResponse): ListFinding | null => {
  if (decoded.outcome === "refused") return { state: "refused", reason: decoded.reason, remedy: decoded.remedy };
  if (decoded.outcome !== "failed") return HEALTHY;
  switch (decoded.cause) {
    case "not_sent":
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
