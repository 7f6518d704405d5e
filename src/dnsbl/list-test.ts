import type { Random } from "../base/secrets.ts";
import type { LivenessProber, Liveness } from "./liveness.ts";
import type { ListResponse, ListClient } from "./list-client.ts";
import type { Blocklist, TargetKind, TestPoints } from "./blocklist.ts";
import {
  type ListFinding,
  HEALTHY,
  type HealthState,
  isAnswered,
  judgeNegative,
  judgePositive,
  judgeTrouble,
  wildcard,
} from "./list-finding.ts";
import { literalName } from "./query-name.ts";
import { canaryPrefix, type ListSample, sampleList } from "./list-sample.ts";

/** The worst that a test found is what it says; a refusal explains all else. */
const ORDER: readonly HealthState[] = ["refused", "wildcard", "unreachable", "silent", "unknown", "healthy"];

/** Whether a list has a positive test point of this kind; without one its "not listed" proves nothing. */
export const isProvable = ({ testPoints }: Blocklist, kind: TargetKind): boolean =>
  (testPoints[kind]?.positive.length ?? 0) > 0;

/** What a test came to: a finding, or that only a copy in a cache vouches for the list until `untilMs` (monotonic). Null when it could not be made. */
export type TestResult = ListFinding | { readonly state: "unproven"; readonly untilMs: number } | null;

/**
 * Asks a list for its positive and negative test points of one kind (RFC 5782 §5), and for random targets. The positive
 * test point counts when the list itself gave it since `sinceMs` (monotonic), not a cache. Null when the test could not
 * be made in full (budget, overload), and nothing bad was found.
 */
export const testList = async (
  deps: { client: ListClient; random: Random; prober: LivenessProber },
  { list, kind, sinceMs }: { readonly list: Blocklist; readonly kind: TargetKind; readonly sinceMs: number },
): Promise<TestResult> => {
  const { client, random, prober } = deps;
  const { positive, negative }: TestPoints = list.testPoints[kind] ?? { positive: [], negative: [] };
  const askPoint = (value: string) => client.query(list, literalName({ kind, value }) ?? value);
  const proving = positive.length > 0 ? prober.prove(list, kind, sinceMs) : null;
  const points = await Promise.all([
    client.query(list, canaryPrefix(kind, random)).then(judgeCanary),
    ...negative.map(async (value) => judgeNegative(value, await askPoint(value))),
    ...positive.slice(1).map(async (point) => judgePositive(point, await askPoint(point.value))),
  ]);
  const proof = await proving;
  const found = [...points, proof === null ? NO_TEST_POINT : judgeProof(proof)];
  const known = worstOf(found);
  const isGood = known === null || known.state === "healthy" || known.state === "unknown";
  const sample = isGood ? judgeSample(await sampleList(deps, list, kind)) : HEALTHY;
  const worst = worstOf([...found, sample]);
  const isBad = worst !== null && worst.state !== "healthy" && worst.state !== "unknown";
  if (isBad) return worst;
  if (proof?.kind === "unproven") return { state: "unproven", untilMs: proof.untilMs };
  return found.includes(null) || sample === null ? null : worst;
};

const worstOf = (findings: readonly (ListFinding | null)[]): ListFinding | null =>
  ORDER.flatMap((state) => findings.find((finding) => finding?.state === state) ?? [])[0] ?? null;

const judgeProof = (proof: Liveness): ListFinding | null => {
  if (proof.kind === "failed") return proof.finding;
  return proof.kind === "alive" ? HEALTHY : null;
};

const judgeSample = ({ everything, trouble, isComplete }: ListSample): ListFinding | null => {
  if (everything !== null) return wildcard(`${everything.value}, chosen at random`, everything.answer);
  const finding = trouble === null ? null : judgeTrouble(trouble);
  if (finding?.state === "unreachable") {
    return {
      ...finding,
      reason: `The list answers for its test entries, but not for other names. ${finding.reason ?? ""}`.trim(),
    };
  }
  return finding ?? (isComplete ? HEALTHY : null);
};

const NO_TEST_POINT: ListFinding = {
  state: "unknown",
  reason: "The list publishes no entry for tests of this kind, so its silence proves nothing.",
  remedy: null,
};

/** A random name that is not answered tells nothing: some servers drop names that are no address. */
const judgeCanary = (answer: ListResponse): ListFinding | null => {
  if (isAnswered(answer)) return wildcard("a random name", answer);
  const { decoded } = answer;
  return decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? judgeTrouble(answer) : HEALTHY;
};
