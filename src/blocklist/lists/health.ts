import type { Clock } from "../../foundation/base/clock.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import type { LivenessProber, Liveness } from "./liveness.ts";
import {
  type ListClient,
  type ListFinding,
  type ListResponse,
  hasEntry,
  HEALTHY,
  type HealthState,
  judgeFailure,
  judgeNegative,
  judgePositive,
  wildcard,
} from "./list-client.ts";
import type { Blocklist, TargetKind, TestPoints } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import { mapConcurrently } from "../../foundation/base/wait.ts";
import { literalName } from "./query-name.ts";
import { canaryPrefix, type ListSample, sampleList } from "./list-sample.ts";

/** The health of one list through this resolver, for one kind of target. */
export interface ListHealth extends ListFinding {
  readonly list: string;
  readonly kind: TargetKind;
  /** When the last complete test ended, in milliseconds since 1970; null before the first. */
  readonly testedAtMs: number | null;
}

/** How long a test result is valid. */
const FRESH_MS = 30 * 60_000;
/** A list that passed once after trouble is tested again sooner. */
const RETRY_MS = 5 * 60_000;
/** The resolver may soon be back, and then one passed test is enough. */
const RETRY_UNREACHABLE_MS = 60_000;
const PASSES_TO_RESTORE = 2;
/** After this many queries in a row without a response, the list is skipped. */
const UNANSWERED_MAX = 5;
const LISTS_AT_ONCE = 16;
/** Lists for each kind: far more than a catalogue contains. */
const RECORDS_MAX = 2000;

interface HealthRecord {
  health: ListHealth;
  /** Tests that must still pass in a row before the list is usable again. */
  passesMissing: number;
  /** Monotonic time of the next test. */
  dueAtMs: number;
  /** The test that is running; resolves to whether it was complete. */
  running: Promise<boolean> | null;
  /** Queries in a row without a response. */
  unanswered: number;
}

const UNTESTED: ListFinding = { state: "unknown", reason: "The list was not tested yet.", remedy: null };

const UNPROVEN: ListFinding = {
  state: "unknown",
  reason: "Your resolver returned the list's test point from its cache; the list itself has not confirmed it yet.",
  remedy: null,
};

/** Which lists are reliable through this resolver. Lists are tested when a caller needs them, never in the background. */
export class DnsblHealth {
  readonly #records: Record<TargetKind, Map<string, HealthRecord>> = {
    ipv4: new Map(),
    ipv6: new Map(),
    domain: new Map(),
  };

  constructor(
    private readonly clock: Clock,
    private readonly tester: { client: ListClient; random: Random; prober: LivenessProber },
  ) {}

  /** The health of a list for a kind of target; tests the list first when the last test is too old or missing. */
  async ensureFresh(list: Blocklist, kind: TargetKind): Promise<ListHealth> {
    const record = this.#recordOf(list, kind);
    if (record.running !== null || this.clock.monotonicMs() >= record.dueAtMs) await this.#testOnce(record, list);
    return record.health;
  }

  /** Does that for every kind of every list, some at a time. */
  ensureAllFresh(lists: readonly Blocklist[]): Promise<readonly ListHealth[]> {
    const pairs = lists.flatMap((list) => list.kinds.map((kind) => ({ list, kind })));
    return mapConcurrently(pairs, LISTS_AT_ONCE, ({ list, kind }) => this.ensureFresh(list, kind));
  }

  /** Tests a list now. `isTested` is false when the test was incomplete, or only a cached copy supports the list. */
  async testAgain(
    list: Blocklist,
    kind: TargetKind,
  ): Promise<{ readonly health: ListHealth; readonly isTested: boolean }> {
    const record = this.#recordOf(list, kind);
    // A running test may have begun before the doubt arose.
    if (record.running !== null) await record.running;
    const isTested = await this.#testOnce(record, list);
    return { health: record.health, isTested };
  }

  /** The health known now, without a query. */
  of(list: Blocklist, kind: TargetKind): ListHealth {
    return this.#recordOf(list, kind).health;
  }

  /**
   * Takes an ordinary response into account: an address outside 127.0.0.0/8, or several queries in a row without a
   * response, make the list unhealthy at once. A refusal or an unconfirmed change brings its next test forward.
   */
  recordResponse(list: Blocklist, kind: TargetKind, decoded: DecodedResponse) {
    const record = this.#recordOf(list, kind);
    const cause = decoded.outcome === "failed" ? decoded.cause : null;
    if (decoded.outcome === "failed" && cause === "outside_loopback") {
      this.#apply(record, { state: "wildcard", reason: decoded.reason, remedy: null });
    }
    record.unanswered = cause === "unreachable" ? record.unanswered + 1 : 0;
    if (record.unanswered >= UNANSWERED_MAX && record.health.state === "healthy") {
      const reason = `The list did not respond to ${UNANSWERED_MAX} queries in a row.`;
      this.#apply(record, { state: "unreachable", reason, remedy: null });
    }
    // A refusal may concern one name only: the test points show it, soon. An unconfirmed change is tested at once.
    if (decoded.outcome === "refused") this.#bringForward(record, RETRY_MS);
    if (cause === "unconfirmed") this.#bringForward(record, 0);
  }

  #bringForward(record: HealthRecord, inMs: number) {
    if (record.health.state !== "healthy") return;
    record.dueAtMs = Math.min(record.dueAtMs, this.clock.monotonicMs() + inMs);
  }

  #recordOf(list: Blocklist, kind: TargetKind): HealthRecord {
    const records = this.#records[kind];
    const known = records.get(list.id);
    if (known !== undefined) return known;
    if (records.size >= RECORDS_MAX) throw new Error("More lists are tested than a catalogue can hold.");
    const health: ListHealth = { list: list.id, kind, ...UNTESTED, testedAtMs: null };
    const dueAtMs = Number.NEGATIVE_INFINITY;
    const record: HealthRecord = { health, passesMissing: 1, dueAtMs, running: null, unanswered: 0 };
    records.set(list.id, record);
    return record;
  }

  #testOnce(record: HealthRecord, list: Blocklist) {
    record.running ??= this.#test(record, list).finally(() => {
      record.running = null;
    });
    return record.running;
  }

  async #test(record: HealthRecord, list: Blocklist) {
    const sinceMs = this.clock.monotonicMs();
    const result = await testList(this.tester, { list, kind: record.health.kind, sinceMs });
    // Incomplete: the previous result stands, and the next caller tests again.
    if (result === null) return false;
    if (result.state !== "unproven") {
      this.#apply(record, result);
      return true;
    }
    record.dueAtMs = Math.min(result.untilMs, this.clock.monotonicMs() + FRESH_MS);
    if (record.health.state === "unknown") record.health = { ...record.health, ...UNPROVEN };
    return false;
  }

  #apply(record: HealthRecord, finding: ListFinding) {
    const hasPassed = finding.state === "healthy";
    const isUnreachable = finding.state === "unreachable";
    const isBad = !hasPassed && finding.state !== "unknown";
    const missingAfterTrouble = isUnreachable ? Math.max(1, record.passesMissing) : PASSES_TO_RESTORE;
    record.passesMissing = isBad ? missingAfterTrouble : Math.max(0, record.passesMissing - (hasPassed ? 1 : 0));
    if (hasPassed) record.unanswered = 0;
    // After trouble, the first passed test does not change the state yet.
    const isProbation = hasPassed && record.passesMissing > 0;
    const { state, reason, remedy } = isProbation ? record.health : finding;
    record.health = { ...record.health, state, reason, remedy, testedAtMs: this.clock.nowMs() };
    const nextMs = isProbation ? RETRY_MS : FRESH_MS;
    record.dueAtMs = this.clock.monotonicMs() + (isUnreachable ? RETRY_UNREACHABLE_MS : nextMs);
  }
}

/** The worst finding is the result; a refusal explains all others. */
const ORDER: readonly HealthState[] = ["refused", "wildcard", "unreachable", "silent", "unknown", "healthy"];

/** Whether a list has a positive test point of this kind; without one its "not listed" proves nothing. */
export const isProvable = ({ testPoints }: Blocklist, kind: TargetKind): boolean =>
  (testPoints[kind]?.positive.length ?? 0) > 0;

/**
 * The result of a test: a finding, or `unproven` while only a cached copy of the test point exists, until `untilMs`
 * (monotonic). Null when the test was incomplete.
 */
type TestResult = ListFinding | { readonly state: "unproven"; readonly untilMs: number } | null;

/**
 * Queries the positive and negative test points of one kind (RFC 5782 §5) and random targets. The positive test point
 * counts when the list itself returned it since `sinceMs` (monotonic), not a cache. Null when some queries could not be
 * sent (budget, overload) and the others found nothing wrong.
 */
const testList = async (
  deps: { client: ListClient; random: Random; prober: LivenessProber },
  { list, kind, sinceMs }: { list: Blocklist; kind: TargetKind; sinceMs: number },
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

const worstOf = (findings: readonly (ListFinding | null)[]) =>
  ORDER.flatMap((state) => findings.find((finding) => finding?.state === state) ?? [])[0] ?? null;

const isBad = (finding: ListFinding | null) =>
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
