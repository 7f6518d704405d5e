import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { ListAsker } from "./ask-list.ts";
import type { Blocklist, TargetKind } from "./blocklist.ts";
import type { Decoded } from "./decode.ts";
import { inParallel } from "./in-parallel.ts";
import type { Finding } from "./list-test.ts";
import { testedKind, testList } from "./list-test.ts";

/** The health of one list through this resolver, for one kind of targets. */
export interface ListHealth extends Finding {
  readonly list: string;
  /** The kind whose test points were asked; another than the target's when the list has none of that. */
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
  /** What is known now, without asking anybody. */
  of(list: Blocklist, kind: TargetKind): ListHealth;
  /** Takes note of an ordinary answer: one outside 127/8 makes the list unhealthy at once, a doubtful one brings its test forward. */
  note(list: Blocklist, kind: TargetKind, decoded: Decoded): void;
}

/** For how long a test holds. */
const FRESH_MS = 30 * 60_000;
/** A list that could not be reached, or passed once after trouble, is tried again sooner; one that refuses us is not. */
const RETRY_MS = 5 * 60_000;
const PASSES_TO_RESTORE = 2;
const LISTS_AT_ONCE = 16;
/** Lists times kinds: far more than a catalogue holds. */
const RECORDS_MAX = 2000;

interface HealthRecord {
  health: ListHealth;
  /** How many passes in a row are still needed before the list is believed. */
  passesMissing: number;
  /** Monotonic time of the next test. */
  dueAtMs: number;
  running: Promise<ListHealth> | null;
}

const UNTESTED: Finding = { state: "unknown", reason: "The list was not tested yet.", remedy: null };

export const createDnsblHealth = (deps: { asker: ListAsker; clock: Clock; random: Random }): DnsblHealth => {
  const { clock } = deps;
  const records = new Map<string, HealthRecord>();

  const recordOf = (list: Blocklist, kind: TargetKind): HealthRecord => {
    const tested = testedKind(list, kind);
    const key = `${list.id} ${tested}`;
    const known = records.get(key);
    if (known !== undefined) return known;
    if (records.size >= RECORDS_MAX) throw new Error("More lists are tested than a catalogue can hold.");
    const health: ListHealth = { list: list.id, kind: tested, ...UNTESTED, testedAtMs: null };
    const record: HealthRecord = { health, passesMissing: 1, dueAtMs: Number.NEGATIVE_INFINITY, running: null };
    records.set(key, record);
    return record;
  };

  const test = async (record: HealthRecord, list: Blocklist): Promise<ListHealth> => {
    const finding = await testList(deps, list, record.health.kind);
    // Nothing was found out: what was known stands, and the next one who asks has it tested.
    if (finding !== null) applyFinding(record, finding, clock);
    return record.health;
  };

  const ensureFresh = (list: Blocklist, kind: TargetKind): Promise<ListHealth> => {
    const record = recordOf(list, kind);
    if (record.running !== null) return record.running;
    if (clock.monotonicMs() < record.dueAtMs) return Promise.resolve(record.health);
    record.running = test(record, list).finally(() => {
      record.running = null;
    });
    return record.running;
  };

  return {
    ensureFresh,
    async ensureAllFresh(lists) {
      const pairs = lists.flatMap((list) =>
        [...new Set(list.kinds.map((kind) => testedKind(list, kind)))].map((kind) => ({ list, kind })),
      );
      return inParallel(pairs, LISTS_AT_ONCE, ({ list, kind }) => ensureFresh(list, kind));
    },
    of: (list, kind) => recordOf(list, kind).health,
    note(list, kind, decoded) {
      const record = recordOf(list, kind);
      if (decoded.outcome === "failed" && decoded.cause === "outside_loopback") {
        applyFinding(record, { state: "wildcard", reason: decoded.reason, remedy: null }, clock);
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

const applyFinding = (record: HealthRecord, finding: Finding, clock: Clock): void => {
  const passed = finding.state === "healthy";
  const isBad = !passed && finding.state !== "unknown";
  record.passesMissing = isBad ? PASSES_TO_RESTORE : Math.max(0, record.passesMissing - (passed ? 1 : 0));
  // A list that passes for the first time after trouble keeps the name of its trouble until it passes again.
  const shown = passed && record.passesMissing > 0 ? record.health : finding;
  const { state, reason, remedy } = shown;
  record.health = { ...record.health, state, reason, remedy, testedAtMs: clock.nowMs() };
  const isSoon = finding.state === "unreachable" || (passed && record.passesMissing > 0);
  record.dueAtMs = clock.monotonicMs() + (isSoon ? RETRY_MS : FRESH_MS);
};
