import { type Clock, isoTime } from "../base/clock.ts";
import { newId } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import type { Blocklist } from "../dnsbl/blocklist.ts";
import type { DnsblLookup, ListOutcome } from "../dnsbl/lookup.ts";
import type { NotifyChanges } from "./change-notifier.ts";
import type { Breaker } from "./breaker.ts";
import { checkBodyOf, checkBodySchema } from "./check-body.ts";
import type { ListingChange } from "./events.ts";
import { hasExpired } from "./expiry.ts";
import type { Listings } from "./listings.ts";
import { nextTargetCheckMs } from "./schedule.ts";
import type { BlocklistStore, CheckRow, TargetRow } from "./store.ts";
import { TEST_LIST, testOutcome } from "./test-list.ts";
import { applyOutcomes, type TargetTransition } from "./transition.ts";
import { drain } from "../base/wait.ts";

export interface MonitorDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  /** The lists in force. */
  readonly lists: readonly Blocklist[];
  readonly lookup: DnsblLookup;
  readonly breaker: Breaker;
  readonly listings: Listings;
  readonly announce: NotifyChanges;
  readonly clock: Clock;
}

/** A check that has been begun. */
export interface RunningCheck extends Pick<CheckRow, "id" | "trigger" | "startedAtMs"> {
  /** The target and its check afterwards; null when the target was removed meanwhile or the service stops. */
  readonly done: Promise<FinishedCheck | null>;
}

export interface FinishedCheck {
  readonly target: TargetRow;
  readonly check: CheckRow;
  readonly changes: readonly ListingChange[];
}

/** So many changes of a listing within the time make it flapping. */
const FLAPPING_CHANGES = 4;
const FLAPPING_WINDOW_MS = 24 * 60 * 60_000;
/** Checks of one target within the time; whoever asks for another one gets the last of them. */
const ON_DEMAND_MAX = 3;
const ON_DEMAND_WINDOW_MS = 30_000;
const DRAIN_MS_MAX = 1_000;
/** For how long a list that cannot be tested is taken at its last word. */
const EXPIRY_MS = 48 * 60 * 60_000;

/** What the history says of an answer that is held back. */
const heldReason = (untilMs: number): string =>
  `The list moved unusually many targets at once and did not stand a test. It is not believed before ${isoTime(untilMs)}; then it is tested again.`;

/** Which lists a target can be found on. */
export const listsFor = (mode: TargetRow["mode"], inForce: readonly Blocklist[]): readonly Blocklist[] =>
  mode === "test" ? [TEST_LIST] : inForce;

/** Checks targets, one check a target at a time: whoever asks while one runs gets that one. */
export const createMonitor = (deps: MonitorDeps) => {
  const { db, store, lists: inForce, lookup, breaker, listings, announce, clock } = deps;
  const running = new Map<string, RunningCheck>();
  const stopping = new AbortController();

  const ask = async (target: TargetRow): Promise<readonly ListOutcome[]> => {
    const asked = listsFor(target.mode, inForce).filter(({ id }) => !target.mutedLists.includes(id));
    if (target.mode === "test") return asked.map(() => testOutcome(target.value, clock.nowMs()));
    return lookup.checkAll(target, asked, {
      previous: target.listedOn,
      muted: target.mutedLists,
      signal: stopping.signal,
    });
  };

  /** Puts the breaker between a list that changed its mind and the target. A first check changes nothing. */
  const holdBack = async (target: TargetRow, outcomes: readonly ListOutcome[]) => {
    if (target.mode === "test" || target.lastCheckedAtMs === null) return { outcomes, heldUntilMs: null };
    let heldUntilMs: number | null = null;
    const judged: ListOutcome[] = [];
    for (const outcome of outcomes) {
      const list = inForce.find(({ id }) => id === outcome.list);
      const untilMs =
        list !== undefined && isMove(target, list, outcome)
          ? await breaker.judge({ list, kind: target.kind, targetId: target.id })
          : null;
      if (untilMs !== null) heldUntilMs = Math.max(untilMs, heldUntilMs ?? 0);
      judged.push(
        untilMs === null ? outcome : { ...outcome, outcome: "failed", listings: [], reason: heldReason(untilMs) },
      );
    }
    return { outcomes: judged, heldUntilMs };
  };

  const changesOf = (targetId: string, { added, removed }: TargetTransition): readonly ListingChange[] => {
    if (added.length + removed.length === 0) return [];
    const earlier = store.changesSince(targetId, clock.nowMs() - FLAPPING_WINDOW_MS).map(({ body }) => {
      const change = checkBodySchema.parse(JSON.parse(body));
      return [...change.added, ...change.removed];
    });
    const isFlapping = (listing: string): boolean =>
      earlier.filter((ids) => ids.includes(listing)).length + 1 >= FLAPPING_CHANGES;
    return [
      ...added.map((listing) => ({ listing, reason: null, flapping: isFlapping(listing) })),
      ...removed.map(({ listing, reason }) => ({ listing, reason, flapping: isFlapping(listing) })),
    ];
  };

  interface Findings {
    readonly outcomes: readonly ListOutcome[];
    readonly heldUntilMs: number | null;
  }

  /** State, history and events in one transaction. */
  const record = (
    tx: Tx,
    targetId: string,
    begun: Pick<CheckRow, "id" | "trigger" | "startedAtMs">,
    findings: Findings,
  ): FinishedCheck | null => {
    const before = store.findTarget(targetId);
    if (before === undefined) return null;
    const lists = listsFor(before.mode, inForce);
    const outcomes = findings.outcomes.filter(({ list }) => !before.mutedLists.includes(list));
    const nowMs = clock.nowMs();
    const transition = applyOutcomes(before, outcomes, {
      lists,
      mutedLists: before.mutedLists,
      hasExpired: (listing, list) => hasExpired(store.checksSince(targetId, nowMs - EXPIRY_MS), listing, list),
    });
    const { listedOn } = transition;
    // An answer that is held back may be a listing: the others' "no" does not make the target clean.
    const isDoubtful = findings.heldUntilMs !== null && transition.status === "clean";
    const status = isDoubtful ? "unknown" : transition.status;
    const changes = changesOf(targetId, transition);
    // While a list is held back, asking again soon would not help.
    const unknownChecks = transition.status === "unknown" ? before.unknownChecks + 1 : 0;
    const scheduled = { id: targetId, status: transition.status, listedOn, unknownChecks };
    const regularMs = nextTargetCheckMs(scheduled, nowMs);
    const retries = [...outcomes.map(({ retryAtMs }) => retryAtMs), findings.heldUntilMs];
    const nextCheckAtMs = Math.min(regularMs, ...retries.filter((atMs) => atMs !== null));
    const check = {
      ...begun,
      targetId,
      finishedAtMs: nowMs,
      status,
      isChange: changes.length > 0,
      body: JSON.stringify(checkBodyOf(transition, outcomes, lists)),
    };
    store.insertCheck(tx, check);
    store.updateTarget(tx, targetId, { status, listedOn, unknownChecks, lastCheckedAtMs: nowMs, nextCheckAtMs });
    listings.settle(tx, { ...before, status, listedOn }, { outcomes, lists, atMs: nowMs });
    const range = before.rangeId === "" ? undefined : store.findTarget(before.rangeId);
    if (range !== undefined && check.isChange) {
      const body = JSON.stringify({ ...checkBodyOf(transition, outcomes, lists), address: before.value });
      store.insertCheck(tx, { ...check, id: newId(), targetId: range.id, body });
    }
    const context = { before, after: { status, listedOn }, lists, outcomes, checkId: begun.id, atMs: nowMs };
    announce(tx, changes, { ...context, range: range?.value ?? null });
    return { target: store.findTarget(targetId) ?? before, check, changes };
  };

  const perform = async (
    target: TargetRow,
    begun: Pick<CheckRow, "id" | "trigger" | "startedAtMs">,
  ): Promise<FinishedCheck | null> => {
    const findings = await holdBack(target, await ask(target));
    // Questions that were given up at the end of the service say nothing about the target.
    if (stopping.signal.aborted) return null;
    return db.commit((tx) => record(tx, target.id, begun, findings));
  };

  /** The last check of a target when enough were asked for lately: asking the lists again would tell nothing new. */
  const recentCheck = (target: TargetRow): RunningCheck | null => {
    const recent = store.checksSince(target.id, clock.nowMs() - ON_DEMAND_WINDOW_MS);
    const check = recent.at(-1);
    if (check === undefined || recent.length < ON_DEMAND_MAX) return null;
    const { id, trigger, startedAtMs } = check;
    return { id, trigger, startedAtMs, done: Promise.resolve({ target, check, changes: [] }) };
  };

  return {
    /** Begins a check that somebody asks for, joins the one that runs, or gives the last one when there were several just now. */
    checkOnDemand(target: TargetRow): RunningCheck {
      return running.get(target.id) ?? recentCheck(target) ?? this.check(target, "manual");
    },
    /** Begins a check of a target, or joins the one that runs. */
    check(target: TargetRow, trigger: CheckRow["trigger"]): RunningCheck {
      const known = running.get(target.id);
      if (known !== undefined) return known;
      const begun = { id: newId(), trigger, startedAtMs: clock.nowMs() };
      const check = { ...begun, done: perform(target, begun).finally(() => running.delete(target.id)) };
      running.set(target.id, check);
      return check;
    },
    /** Gives up what is under way; it is done again when it is due. */
    async stop(): Promise<void> {
      stopping.abort();
      // Checks that still wait for a list are abandoned: nothing is recorded any more.
      const checks = [...running.values()].map(({ done }) => done);
      await drain(clock, DRAIN_MS_MAX, checks);
    },
    isStopping: (): boolean => stopping.signal.aborted,
  };
};

export type Monitor = ReturnType<typeof createMonitor>;

/** Whether a list tells of a change. What is muted does not count. */
const isMove = (target: TargetRow, { codes }: Blocklist, { outcome, listings }: ListOutcome): boolean => {
  if (outcome !== "listed" && outcome !== "not_listed") return false;
  const counts = (id: string): boolean => !target.mutedLists.includes(id);
  const before = target.listedOn.filter((id) => counts(id) && codes.some((code) => code.id === id));
  const now = listings.map(({ id }) => id).filter(counts);
  return now.some((id) => !before.includes(id)) || before.some((id) => !now.includes(id));
};
