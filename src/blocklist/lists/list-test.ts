import type { Random } from "../../foundation/base/secrets.ts";
import type { Liveness, LivenessProber } from "./liveness.ts";
import type { ListClient, ListResponse } from "./list-client.ts";
import type { Blocklist, TargetKind, TestPoints } from "./blocklist.ts";
import {
  hasEntry,
  HEALTHY,
  type HealthState,
  judgeFailure,
  judgeNegative,
  judgePositive,
  type ListFinding,
  wildcard,
} from "./list-finding.ts";
import { literalName } from "./query-name.ts";
import { canaryPrefix, type ListSample, sampleList } from "./list-sample.ts";

/** The worst finding is the result; a refusal explains all others. */
const ORDER: readonly HealthState[] = ["refused", "wildcard", "unreachable", "silent", "unknown", "healthy"];

/** Whether a list has a positive test point of this kind; without one its "not listed" proves nothing. */
export const isProvable = ({ testPoints }: Blocklist, kind: TargetKind): boolean =>
  (testPoints[kind]?.positive.length ?? 0) > 0;

/**
 * The result of a test: a finding, or `unproven` while only a cached copy of the test point exists, until `untilMs`
 * (monotonic). Null when the test was incomplete.
 */
export type TestResult = ListFinding | { readonly state: "unproven"; readonly untilMs: number } | null;

/**
 * Queries the positive and negative test points of one kind (RFC 5782 §5) and random targets. The positive test point
 * counts when the list itself returned it since `sinceMs` (monotonic), not a cache. Null when some queries could not be
 * sent (budget, overload) and the others found nothing wrong.
 */
export const testList = async (
  deps: { client: ListClient; random: Random; prober: LivenessProber },
  { list, kind, sinceMs }: { readonly list: Blocklist; readonly kind: TargetKind; readonly sinceMs: number },
): Promise<TestResult> => {
  const { client, random, prober } = deps;
  const { positive, negative }: TestPoints = list.testPoints[kind] ?? { positive: [], negative: [] };
  const queryPoint = (value: string) => client.query(list, literalName({ kind, value }) ?? value);
  const proving = positive.length > 0 ? prober.prove(list, kind, sinceMs) : null;
  const points = await Promise.all([
    client.query(list, canaryPrefix(kind, random)).then(judgeCanary),
    ...negative.map(async (value) => judgeNegative(value, await queryPoint(value))),
    ...positive.slice(1).map(async (point) => judgePositive(point, await queryPoint(point.value))),
  ]);
  const proof = await proving;
  const findings = [...points, proof === null ? NO_TEST_POINT : judgeLiveness(proof)];
  const sample = isBad(worstOf(findings)) ? HEALTHY : judgeSample(await sampleList(deps, list, kind));
  const worst = worstOf([...findings, sample]);
  if (isBad(worst)) return worst;
  if (proof?.kind === "unproven") return { state: "unproven", untilMs: proof.untilMs };
  return findings.includes(null) || sample === null ? null : worst;
};

const worstOf = (findings: readonly (ListFinding | null)[]): ListFinding | null =>
  ORDER.flatMap((state) => findings.find((finding) => finding?.state === state) ?? [])[0] ?? null;

const isBad = (finding: ListFinding | null): boolean =>
  finding !== null && finding.state !== "healthy" && finding.state !== "unknown";

const judgeLiveness = (proof: Liveness): ListFinding | null => {
  if (proof.kind === "failed") return proof.finding;
  return proof.kind === "alive" ? HEALTHY : null;
};

const judgeSample = ({ everything, failure, isComplete }: ListSample): ListFinding | null => {
  if (everything !== null) return wildcard(`${everything.value}, a random target`, everything.response);
  const finding = failure === null ? null : judgeFailure(failure);
  if (finding?.state === "unreachable") {
    return {
      ...finding,
      reason: `The list responds for its test points, but not for other names. ${finding.reason ?? ""}`.trim(),
    };
  }
  return finding ?? (isComplete ? HEALTHY : null);
};

const NO_TEST_POINT: ListFinding = {
  state: "unknown",
  reason: 'The list publishes no test point of this kind, so its "not listed" cannot be verified.',
  remedy: null,
};

/** A random name without a response means nothing: some servers drop names that are no address. */
const judgeCanary = (response: ListResponse): ListFinding | null => {
  if (hasEntry(response)) return wildcard("a random name", response);
  const { decoded } = response;
  return decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? judgeFailure(response) : HEALTHY;
};
