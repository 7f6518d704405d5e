import fixture from "../../fixtures/test-keys-blacklist.json" with { type: "json" };
import type { ByMode } from "../foundation/base/secrets.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import type { DnsblLookup, ListOutcome } from "./lists/lookup.ts";
import type { TargetRow } from "./store.ts";
import { z } from "zod";
import { type Clock, isoTime } from "../foundation/base/clock.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { DnsblHealth } from "./lists/health.ts";

/** The lists that targets of one mode are checked on. */
export interface TargetLookup {
  /** The lists in use. */
  readonly lists: readonly Blocklist[];
  /** Looks up a target in some of these lists. */
  check(target: TargetRow, lists: readonly Blocklist[], signal: AbortSignal): Promise<JudgedOutcomes>;
}

/** Real lists for live keys, the test list for test keys; selected by the mode of the target. */
export type TargetLookups = ByMode<TargetLookup>;

/** Queries DNS blocklists: a list's health first, and a change is confirmed; a list that changes too many targets is held back. */
export const createLiveLookup = (
  lists: readonly Blocklist[],
  { lookup, breaker }: { lookup: DnsblLookup; breaker: ListBreaker },
): TargetLookup => ({
  lists,
  async check(target, some, signal) {
    const options = { previous: target.listedOn, muted: target.mutedLists, signal };
    return breaker.judge(target, some, await lookup.checkAll(target, some, options));
  },
});

const table = z
  .strictObject({
    list: z.string(),
    answer: z.string(),
    text: z.string(),
    listed: z.array(z.string()),
    unknown: z.array(z.string()),
  })
  .parse(fixture);

/** The only list of test keys. It exists in this program only. */
export const TEST_LIST: Blocklist = {
  id: table.list,
  name: "The test list",
  operator: "Postwarden (test keys)",
  kinds: ["ipv4", "ipv6", "domain"],
  scope: "single",
  zone: null,
  keyedZone: null,
  key: null,
  domainForm: "host",
  codes: [
    {
      matches: [],
      id: table.list,
      name: "The test list",
      meaning: "Test keys report this target as listed.",
      category: "spam",
      severity: "high",
    },
  ],
  refusals: [],
  ignores: [],
  testPoints: {},
  defaultEnabled: false,
  switchedOn: null,
  usage: null,
  budget: { queriesPerDay: null, spacingMs: null },
  delistUrl: null,
  lookupUrl: null,
  confidence: "A",
  notes: null,
};

/** The lists of each mode: the catalogue for live keys, the test list for test keys. */
export type ListsByMode = ByMode<readonly Blocklist[]>;
export const listsByMode = (live: readonly Blocklist[]): ListsByMode => ({ live, test: [TEST_LIST] });

/** Looks up targets of test keys in the test list (contract §3): the same result for every call, without network access. */
export const createTestLookup = (clock: Clock): TargetLookup => ({
  lists: [TEST_LIST],
  check: async ({ value }, lists) => ({
    outcomes: lists.map(() => testOutcome(value, clock.nowMs())),
    heldUntilMs: null,
  }),
});

const testOutcome = (value: string, atMs: number): ListOutcome => {
  const base = {
    list: table.list,
    queryNames: [],
    text: null,
    reason: null,
    remedy: null,
    checkedAtMs: atMs,
    retryAtMs: null,
  };
  if (table.unknown.includes(value)) {
    const reason = "The test list refuses queries about this target.";
    return { ...base, outcome: "refused", listings: [], returnCodes: [], reason };
  }
  if (!table.listed.includes(value)) return { ...base, outcome: "not_listed", listings: [], returnCodes: [] };
  const listings = TEST_LIST.codes.map(({ id, name, meaning, category, severity }) => ({
    id,
    name,
    meanings: [meaning],
    category,
    severity,
    returnCodes: [table.answer],
  }));
  return { ...base, outcome: "listed", listings, returnCodes: [table.answer], text: table.text };
};

/** The outcomes of a check; `heldUntilMs` is set when some are held back. */
export interface JudgedOutcomes {
  readonly outcomes: readonly ListOutcome[];
  readonly heldUntilMs: number | null;
}

/** A change of one target on one list. */
export interface ListMovement {
  readonly list: Blocklist;
  readonly kind: TargetRow["kind"];
  readonly targetId: string;
}

const WINDOW_MS = 60 * 60_000;
const MOVED_MIN = 5;
const MOVED_SHARE = 0.3;
/** How long a list that failed its test is held back before it is tested again. */
const HOLD_MS = 30 * 60_000;
/** The same when the test was incomplete, or the list did not respond. */
const HOLD_UNTESTED_MS = 5 * 60_000;
/** How long a list that passed its test is trusted: long enough for every target to be checked. */
const TRUSTED_MS = 7 * 60 * 60_000;
/** Counting many targets takes time and need not be exact to the minute. */
const COUNT_VALID_MS = 60_000;

/** All times are monotonic. */
interface ListState {
  /** Target id → when it changed. */
  readonly moved: Map<string, number>;
  heldUntilMs: number | null;
  trustedUntilMs: number;
  /** The test that decides; concurrent checks wait for it too. */
  testing: Promise<number | null> | null;
}

/**
 * Holds back a list that changes more targets within an hour than is plausible: more than five and more than 30 % of all.
 * The list is tested at once; if it passes, its changes are accepted, otherwise its previous results stand until it
 * passes a later test.
 */
export class ListBreaker {
  readonly #states = new Map<string, ListState>();
  #counted = { atMs: Number.NEGATIVE_INFINITY, targets: 0 };

  constructor(
    private readonly runtime: Pick<Runtime, "clock" | "log">,
    private readonly deps: {
      health: Pick<DnsblHealth, "testAgain">;
      /** How many targets are monitored. */
      countTargets: () => number;
    },
  ) {}

  /** Replaces the outcomes of lists that are held back by failures. A first check changes nothing, so it is not judged. */
  async judge(
    target: TargetRow,
    lists: readonly Blocklist[],
    outcomes: readonly ListOutcome[],
  ): Promise<JudgedOutcomes> {
    if (target.lastCheckedAtMs === null) return { outcomes, heldUntilMs: null };
    const judged: ListOutcome[] = [];
    const held: number[] = [];
    for (const outcome of outcomes) {
      const list = lists.find(({ id }) => id === outcome.list);
      const untilMs =
        list !== undefined && isChange(target, list, outcome)
          ? await this.holdsUntil({ list, kind: target.kind, targetId: target.id })
          : null;
      judged.push(untilMs === null ? outcome : heldOutcome(outcome, untilMs));
      if (untilMs !== null) held.push(untilMs);
    }
    return { outcomes: judged, heldUntilMs: held.length === 0 ? null : Math.max(...held) };
  }

  /** Counts a change and tests the list when there are too many. Returns until when (wall time) it is held back; null: it is trusted. */
  async holdsUntil(movement: ListMovement): Promise<number | null> {
    const { clock } = this.runtime;
    const untilMs = await this.#heldUntil(movement);
    return untilMs === null ? null : Math.round(clock.nowMs() + untilMs - clock.monotonicMs());
  }

  async #heldUntil(movement: ListMovement): Promise<number | null> {
    const nowMs = this.runtime.clock.monotonicMs();
    const state = this.#stateOf(movement.list.id);
    if (state.testing !== null) return state.testing;
    if (nowMs < state.trustedUntilMs) return null;
    if (state.heldUntilMs !== null) {
      return nowMs < state.heldUntilMs ? state.heldUntilMs : this.#testOnce(state, movement);
    }
    for (const [id, atMs] of state.moved) if (atMs <= nowMs - WINDOW_MS) state.moved.delete(id);
    state.moved.set(movement.targetId, nowMs);
    if (state.moved.size <= Math.max(MOVED_MIN, MOVED_SHARE * this.#targetCount())) return null;
    return this.#testOnce(state, movement);
  }

  #stateOf(id: string): ListState {
    const state = this.#states.get(id) ?? {
      moved: new Map(),
      heldUntilMs: null,
      trustedUntilMs: Number.NEGATIVE_INFINITY,
      testing: null,
    };
    this.#states.set(id, state);
    return state;
  }

  #targetCount() {
    const nowMs = this.runtime.clock.monotonicMs();
    if (nowMs - this.#counted.atMs >= COUNT_VALID_MS)
      this.#counted = { atMs: nowMs, targets: this.deps.countTargets() };
    return this.#counted.targets;
  }

  #testOnce(state: ListState, movement: ListMovement): Promise<number | null> {
    state.testing ??= this.#test(state, movement).finally(() => {
      state.testing = null;
    });
    return state.testing;
  }

  async #test(state: ListState, { list, kind }: ListMovement): Promise<number | null> {
    const { clock, log } = this.runtime;
    const { health, isTested } = await this.deps.health.testAgain(list, kind);
    const facts = { list: list.id, targets: state.moved.size };
    if (isTested && health.state === "healthy") {
      log.warn("blocklist changed many targets at once and passed its test, changes accepted", facts);
      state.heldUntilMs = null;
      state.trustedUntilMs = clock.monotonicMs() + TRUSTED_MS;
      state.moved.clear();
      return null;
    }
    const hasFailed = isTested && health.state !== "unreachable" && health.state !== "unknown";
    state.heldUntilMs = clock.monotonicMs() + (hasFailed ? HOLD_MS : HOLD_UNTESTED_MS);
    log.error("blocklist changed too many targets at once, changes held back until it passes a test", {
      ...facts,
      state: isTested ? health.state : "not tested",
    });
    return state.heldUntilMs;
  }
}

const heldOutcome = (outcome: ListOutcome, untilMs: number): ListOutcome => ({
  ...outcome,
  outcome: "failed",
  listings: [],
  reason: `The list changed unusually many targets at once and did not pass a test. Its changes are held back until ${isoTime(untilMs)}; then it is tested again.`,
});

/** Whether an outcome changes what is known about the target. Muted listings do not count. */
const isChange = (target: TargetRow, { codes }: Blocklist, { outcome, listings }: ListOutcome) => {
  if (outcome !== "listed" && outcome !== "not_listed") return false;
  const isCounted = (id: string) => !target.mutedLists.includes(id);
  const before = target.listedOn.filter((id) => isCounted(id) && codes.some((code) => code.id === id));
  const now = listings.map(({ id }) => id).filter(isCounted);
  return now.some((id) => !before.includes(id)) || before.some((id) => !now.includes(id));
};
