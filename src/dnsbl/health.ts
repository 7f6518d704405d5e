import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { LivenessProber } from "./liveness.ts";
import type { ListClient } from "./list-client.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { DecodedResponse } from "./decode.ts";
import type { ListFinding } from "./list-finding.ts";
import { mapConcurrently } from "../base/wait.ts";
import { testList } from "./list-test.ts";

/** The health of one list through this resolver, for one kind of targets. */
export interface ListHealth extends ListFinding {
  readonly list: string;
  readonly kind: TargetKind;
  /** When the last complete test ended, in milliseconds since 1970; null before the first. */
  readonly testedAtMs: number | null;
}

/** Knows which lists can be believed. It tests when somebody asks, never by itself. */
export interface DnsblHealth {
  /** The health known for a kind of targets, tested first when nothing is known or the last test is too old. */
  ensureFresh(list: Blocklist, kind: TargetKind): Promise<ListHealth>;
  /** Makes sure of every kind of every list, some at a time. */
  ensureAllFresh(lists: readonly Blocklist[]): Promise<readonly ListHealth[]>;
  /** Tests a list again now, because of a doubt. `isTested` is false when the test could not be made, or only a cache vouches for the list. */
  testAgain(list: Blocklist, kind: TargetKind): Promise<{ readonly health: ListHealth; readonly isTested: boolean }>;
  /** What is known now, without asking anybody. */
  of(list: Blocklist, kind: TargetKind): ListHealth;
  /**
   * Takes note of an ordinary answer: one outside 127/8, or several queries in a row without a response, make the list
   * unhealthy at once; a doubtful one brings its test forward.
   */
  recordOutcome(list: Blocklist, kind: TargetKind, decoded: DecodedResponse): void;
}

/** For how long a test holds. */
const FRESH_MS = 30 * 60_000;
/** A list that passed once after trouble is tried again sooner; one that refuses us is not. */
const RETRY_MS = 5 * 60_000;
/** The resolver may be back in a moment, and then one pass is enough. */
const RETRY_UNREACHABLE_MS = 60_000;
const PASSES_TO_RESTORE = 2;
/** So many queries in a row without a response: whoever comes next does not wait for the list. */
const UNANSWERED_MAX = 5;
const LISTS_AT_ONCE = 16;
/** Lists times kinds: far more than a catalogue holds. */
const RECORDS_MAX = 2000;

interface HealthRecord {
  health: ListHealth;
  /** How many passes in a row are still needed before the list is believed. */
  passesMissing: number;
  /** Monotonic time of the next test. */
  dueAtMs: number;
  /** Tells whether the test could be made. */
  running: Promise<boolean> | null;
  /** Queries in a row that nobody answered. */
  unanswered: number;
}

const UNTESTED: ListFinding = { state: "unknown", reason: "The list was not tested yet.", remedy: null };

const UNPROVEN: ListFinding = {
  state: "unknown",
  reason:
    "The answer for the list's test entry comes from your resolver's cache, and the list itself does not confirm it yet.",
  remedy: null,
};

export const createDnsblHealth = (deps: {
  client: ListClient;
  clock: Clock;
  random: Random;
  prober: LivenessProber;
}): DnsblHealth => {
  const { clock } = deps;
  const records = new Map<string, HealthRecord>();

  const recordOf = (list: Blocklist, kind: TargetKind): HealthRecord => {
    const key = `${list.id} ${kind}`;
    const known = records.get(key);
    if (known !== undefined) return known;
    if (records.size >= RECORDS_MAX) throw new Error("More lists are tested than a catalogue can hold.");
    const health: ListHealth = { list: list.id, kind, ...UNTESTED, testedAtMs: null };
    const dueAtMs = Number.NEGATIVE_INFINITY;
    const record: HealthRecord = { health, passesMissing: 1, dueAtMs, running: null, unanswered: 0 };
    records.set(key, record);
    return record;
  };

  const test = async (record: HealthRecord, list: Blocklist): Promise<boolean> => {
    const sinceMs = clock.monotonicMs();
    const found = await testList(deps, { list, kind: record.health.kind, sinceMs });
    // Nothing was found out: what was known stands, and the next one who asks has it tested.
    if (found === null) return false;
    if (found.state !== "unproven") {
      applyFinding(record, found, clock);
      return true;
    }
    record.dueAtMs = Math.min(found.untilMs, clock.monotonicMs() + FRESH_MS);
    if (record.health.state === "unknown") record.health = { ...record.health, ...UNPROVEN };
    return false;
  };

  const testOnce = (record: HealthRecord, list: Blocklist): Promise<boolean> => {
    record.running ??= test(record, list).finally(() => {
      record.running = null;
    });
    return record.running;
  };

  const ensureFresh = async (list: Blocklist, kind: TargetKind): Promise<ListHealth> => {
    const record = recordOf(list, kind);
    if (record.running !== null || clock.monotonicMs() >= record.dueAtMs) await testOnce(record, list);
    return record.health;
  };

  return {
    ensureFresh,
    async ensureAllFresh(lists) {
      const pairs = lists.flatMap((list) => list.kinds.map((kind) => ({ list, kind })));
      return mapConcurrently(pairs, LISTS_AT_ONCE, ({ list, kind }) => ensureFresh(list, kind));
    },
    async testAgain(list, kind) {
      const record = recordOf(list, kind);
      // A test that is under way may have asked before the doubt arose.
      if (record.running !== null) await record.running;
      const isTested = await testOnce(record, list);
      return { health: record.health, isTested };
    },
    of: (list, kind) => recordOf(list, kind).health,
    recordOutcome(list, kind, decoded) {
      const record = recordOf(list, kind);
      if (decoded.outcome === "failed" && decoded.cause === "outside_loopback") {
        applyFinding(record, { state: "wildcard", reason: decoded.reason, remedy: null }, clock);
      }
      record.unanswered = isUnanswered(decoded) ? record.unanswered + 1 : 0;
      if (record.unanswered >= UNANSWERED_MAX && record.health.state === "healthy") {
        const reason = `The list did not respond to ${UNANSWERED_MAX} queries in a row.`;
        applyFinding(record, { state: "unreachable", reason, remedy: null }, clock);
      }
      // A refusal may concern one name only, and a doubt one moment: the test points tell, soon or at once.
      const soonMs = decoded.outcome === "refused" ? RETRY_MS : 0;
      const isDoubt =
        decoded.outcome === "refused" || (decoded.outcome === "failed" && decoded.cause === "unconfirmed");
      if (isDoubt && record.health.state === "healthy") {
        record.dueAtMs = Math.min(record.dueAtMs, clock.monotonicMs() + soonMs);
      }
    },
  };
};

const isUnanswered = (decoded: DecodedResponse): boolean =>
  decoded.outcome === "failed" && decoded.cause === "unreachable";

const applyFinding = (record: HealthRecord, finding: ListFinding, clock: Clock): void => {
  const passed = finding.state === "healthy";
  const isUnreachable = finding.state === "unreachable";
  const isBad = !passed && finding.state !== "unknown";
  const missingAfterTrouble = isUnreachable ? Math.max(1, record.passesMissing) : PASSES_TO_RESTORE;
  record.passesMissing = isBad ? missingAfterTrouble : Math.max(0, record.passesMissing - (passed ? 1 : 0));
  if (passed) record.unanswered = 0;
  // A list that passes for the first time after trouble keeps the name of its trouble until it passes again.
  const shown = passed && record.passesMissing > 0 ? record.health : finding;
  const { state, reason, remedy } = shown;
  record.health = { ...record.health, state, reason, remedy, testedAtMs: clock.nowMs() };
  const isSoon = passed && record.passesMissing > 0;
  const nextMs = isSoon ? RETRY_MS : FRESH_MS;
  record.dueAtMs = clock.monotonicMs() + (isUnreachable ? RETRY_UNREACHABLE_MS : nextMs);
};
