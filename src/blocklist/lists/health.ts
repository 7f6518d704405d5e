import type { Clock } from "../../foundation/base/clock.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import type { LivenessProber } from "./liveness.ts";
import type { ListClient } from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import type { ListFinding } from "./list-finding.ts";
import { mapConcurrently } from "../../foundation/base/wait.ts";
import { testList } from "./list-test.ts";

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
/** Lists times kinds: far more than a catalogue contains. */
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
  readonly #records = new Map<string, HealthRecord>();

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
  recordResponse(list: Blocklist, kind: TargetKind, decoded: DecodedResponse): void {
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

  #bringForward(record: HealthRecord, inMs: number): void {
    if (record.health.state !== "healthy") return;
    record.dueAtMs = Math.min(record.dueAtMs, this.clock.monotonicMs() + inMs);
  }

  #recordOf(list: Blocklist, kind: TargetKind): HealthRecord {
    const key = `${list.id} ${kind}`;
    const known = this.#records.get(key);
    if (known !== undefined) return known;
    if (this.#records.size >= RECORDS_MAX) throw new Error("More lists are tested than a catalogue can hold.");
    const health: ListHealth = { list: list.id, kind, ...UNTESTED, testedAtMs: null };
    const dueAtMs = Number.NEGATIVE_INFINITY;
    const record: HealthRecord = { health, passesMissing: 1, dueAtMs, running: null, unanswered: 0 };
    this.#records.set(key, record);
    return record;
  }

  #testOnce(record: HealthRecord, list: Blocklist): Promise<boolean> {
    record.running ??= this.#test(record, list).finally(() => {
      record.running = null;
    });
    return record.running;
  }

  async #test(record: HealthRecord, list: Blocklist): Promise<boolean> {
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

  #apply(record: HealthRecord, finding: ListFinding): void {
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
