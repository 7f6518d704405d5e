import type { Random } from "../base/secrets.ts";
import type { ListAnswer, ListAsker } from "./ask-list.ts";
import type { Blocklist, TargetKind, TestPoint, TestPoints } from "./blocklist.ts";
import { TARGET_KINDS } from "./blocklist.ts";
import { literalName } from "./query-name.ts";

/**
 * How a list behaves through this resolver.
 *
 * - `healthy`: its test points answer as they must; its silence means "not listed".
 * - `refused`: it does not serve us; see the remedy.
 * - `silent`: it does not know its own positive test point: emptied, or its answers are stripped on the way.
 * - `wildcard`: it lists what cannot be listed, or answers outside 127/8: parked, or answers are rewritten on the way.
 * - `unreachable`: the DNS has no answer.
 * - `unknown`: it has no positive test point, answers it strangely, or was not tested yet.
 */
export type HealthState = "healthy" | "refused" | "silent" | "wildcard" | "unreachable" | "unknown";

/** What one test found. `reason` is a sentence, null when healthy; `remedy` says what may help, null when nothing is known. */
export interface Finding {
  readonly state: HealthState;
  readonly reason: string | null;
  readonly remedy: string | null;
}

const LABEL_CHARACTERS = 16;
const LABEL_ALPHABET = "abcdefghijklmnopqrstuvwxyz";
/** The worst that a test found is what it says; a refusal explains all else. */
const ORDER: readonly HealthState[] = ["refused", "wildcard", "unreachable", "silent", "unknown", "healthy"];

const HEALTHY: Finding = { state: "healthy", reason: null, remedy: null };

/** The kind whose test points speak for a kind of a list: its own, else the first that has a positive one, else itself. */
export const testedKind = ({ testPoints }: Blocklist, kind: TargetKind): TargetKind => {
  const hasPositive = (candidate: TargetKind) => (testPoints[candidate]?.positive.length ?? 0) > 0;
  return hasPositive(kind) ? kind : (TARGET_KINDS.find(hasPositive) ?? kind);
};

/**
 * Asks a list for its positive and negative test points of one kind (RFC 5782 §5) and for a random name, which no list
 * can hold. Null when the test could not be made in full (budget, overload), and nothing bad was found.
 */
export const testList = async (
  { asker, random }: { asker: ListAsker; random: Random },
  list: Blocklist,
  kind: TargetKind,
): Promise<Finding | null> => {
  const { positive, negative }: TestPoints = list.testPoints[kind] ?? { positive: [], negative: [] };
  const askPoint = (value: string) => asker.ask(list, literalName({ kind, value }) ?? value);
  const findings = await Promise.all([
    asker.ask(list, canaryPrefix(kind, random)).then(judgeCanary),
    ...negative.map(async (value) => judgeNegative(value, await askPoint(value))),
    ...positive.map(async (point) => judgePositive(point, await askPoint(point.value))),
  ]);
  const known = positive.length > 0 ? findings : [...findings, NO_TEST_POINT];
  const worst = ORDER.flatMap((state) => known.find((finding) => finding?.state === state) ?? [])[0];
  const isComplete = !findings.includes(null);
  return worst === undefined || (!isComplete && (worst.state === "healthy" || worst.state === "unknown"))
    ? null
    : worst;
};

/** A name that nobody can have listed: a random label, and for domains one below `invalid` (RFC 6761 §6.4). */
export const canaryPrefix = (kind: TargetKind, random: Random): string => {
  const letters = Array.from({ length: LABEL_CHARACTERS }, () => LABEL_ALPHABET[random.integer(LABEL_ALPHABET.length)]);
  return kind === "domain" ? `${letters.join("")}.invalid` : letters.join("");
};

const NO_TEST_POINT: Finding = {
  state: "unknown",
  reason: "The list publishes no entry for tests, so its silence proves nothing.",
  remedy: null,
};

/** What the answer for a positive test point says of its list; null when nobody was asked. */
export const judgePositive = ({ value, answers: expected }: TestPoint, answer: ListAnswer): Finding | null => {
  const { decoded, answers } = answer;
  if (decoded.outcome === "listed" || answers.some((text) => expected.includes(text))) return HEALTHY;
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
export const judgeNegative = (value: string, answer: ListAnswer): Finding | null => {
  if (answer.decoded.outcome === "not_listed") return HEALTHY;
  return isAnswered(answer) ? wildcard(`${value}, which must never be listed`, answer) : judgeTrouble(answer);
};

/** A random name that is not answered tells nothing: some servers drop names that are no address. */
const judgeCanary = (answer: ListAnswer): Finding | null => {
  if (isAnswered(answer)) return wildcard("a random name", answer);
  const { decoded } = answer;
  return decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? judgeTrouble(answer) : HEALTHY;
};

const isAnswered = ({ decoded }: ListAnswer): boolean =>
  decoded.outcome === "listed" || (decoded.outcome === "failed" && decoded.cause === "unrecognised");

const wildcard = (what: string, { answers }: ListAnswer): Finding => ({
  state: "wildcard",
  reason: `The list answered ${answers.join(", ")} for ${what}: it lists everything.`,
  remedy: null,
});

const judgeTrouble = ({ decoded }: ListAnswer): Finding | null => {
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
