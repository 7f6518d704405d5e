import { newId } from "../foundation/base/secrets.ts";
import { drain, mapConcurrently } from "../foundation/base/wait.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { JudgedOutcomes, TargetLookups } from "./target-lookup.ts";
import type { CheckedState, BlocklistStore, CheckRow, TargetRow } from "./store.ts";
import type { ChangeNotifier, ListingChange } from "./change-notifier.ts";
import {
  bodyOf,
  type CheckBody,
  checkBodyOf,
  hasExpired,
  nextTargetCheckMs,
  applyOutcomes,
  type TargetTransition,
  spreadMs,
} from "./check-result.ts";
import type { Listings } from "./listings.ts";
import { PassStorage, STORED_AT_ONCE } from "./pass-storage.ts";
import type { RangeStore } from "./range-store.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import { inSteps, pagesOf } from "../foundation/base/in-steps.ts";
import type { DnsblHealth } from "./lists/health.ts";
import { LIST_OUTCOMES } from "./lists/lookup.ts";
import { countEach } from "./lists/blocklist.ts";

type BegunCheck = Pick<CheckRow, "id" | "trigger" | "startedAtMs">;

/** A check that was begun. */
export interface RunningCheck extends BegunCheck {
  /** The target and its check; null when the target was removed meanwhile or the service stops. */
  readonly done: Promise<FinishedCheck | null>;
}

export interface FinishedCheck {
  readonly target: TargetRow;
  readonly check: CheckRow;
  readonly changes: readonly ListingChange[];
}

/** This many changes of a listing within the window are flapping. */
const FLAPPING_CHANGES = 4;
const FLAPPING_WINDOW_MS = 24 * 60 * 60_000;
/** Checks of one target within the window; a further request gets the last of them. */
const ON_DEMAND_MAX = 3;
const ON_DEMAND_WINDOW_MS = 30_000;
const DRAIN_MS_MAX = 1_000;
/** Scheduled lookups: each queries 16 lists at a time, and the DNS client sends 256 queries at a time. */
const LOOKUPS_AT_ONCE = 16;
/** How long a listing stands without being repeated by a list that cannot be tested. */
const EXPIRY_MS = 48 * 60 * 60_000;

/** Checks targets, one check per target at a time: a request during a check gets that check. */
export class BlocklistMonitor {
  readonly #running = new Map<string, RunningCheck>();
  readonly #stopping = new AbortController();
  readonly #pass: PassStorage;

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: BlocklistStore;
      lookups: TargetLookups;
      listings: Listings;
      notifier: ChangeNotifier;
    },
  ) {
    this.#pass = new PassStorage(runtime.clock, LOOKUPS_AT_ONCE);
  }

  get isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Whether a check of this target is running. */
  isChecking(targetId: string): boolean {
    return this.#running.has(targetId);
  }

  /** Begins a check on request. Joins the one that runs; after several within seconds, returns the last of them. */
  checkOnDemand(target: TargetRow): RunningCheck {
    return this.#running.get(target.id) ?? this.#recentCheck(target) ?? this.check(target, "manual");
  }

  /** Begins a check of a target, or joins the one that runs. */
  check(target: TargetRow, trigger: CheckRow["trigger"]): RunningCheck {
    const known = this.#running.get(target.id);
    if (known !== undefined) return known;
    const begun = { id: newId(), trigger, startedAtMs: this.runtime.clock.nowMs() };
    const done = this.#perform(target, begun).finally(() => this.#running.delete(target.id));
    const check = { ...begun, done };
    this.#running.set(target.id, check);
    return check;
  }

  /** Cancels the running checks; their targets are due again after the restart. */
  async stop() {
    this.#stopping.abort();
    this.#pass.flush();
    const { clock } = this.runtime;
    await drain(
      clock,
      DRAIN_MS_MAX,
      [...this.#running.values()].map(({ done }) => done),
    );
  }

  /** One check, from the queries to the stored result. `CheckScheduler.checkDue` calls it for every target that is due. */
  async #perform(target: TargetRow, begun: BegunCheck): Promise<FinishedCheck | null> {
    const { store, lookups, listings, notifier } = this.deps;
    const { db, clock } = this.runtime;

    // Every list: its health first, then the queries; a change is confirmed, an implausible one held back.
    const lookup = lookups[target.mode];
    const { lists } = lookup;
    const queried = lists.filter(({ id }) => !target.mutedLists.includes(id));
    const look = () => lookup.check(target, queried, this.#stopping.signal);
    const isScheduled = begun.trigger === "scheduled";
    const found = await (isScheduled ? this.#pass.lookUp(look) : look());
    // Cancelled queries say nothing about the target.
    if (this.isStopping) return null;
    if (isScheduled) await this.#pass.untilStored();

    return db.commit((tx) => {
      const before = store.findTarget(target.id);
      if (before === undefined) return null;
      const atMs = clock.nowMs();

      // The outcomes decide the new state of the target and what changed.
      const outcomes = found.outcomes.filter(({ list }) => !before.mutedLists.includes(list));
      const transition = applyOutcomes(before, outcomes, {
        lists,
        mutedLists: before.mutedLists,
        hasExpired: (listing, list) => hasExpired(store.checksSince(before.id, atMs - EXPIRY_MS), listing, list),
      });
      const changes = this.#changesOf(before.id, transition);
      const after = stateAfter(before, transition, { ...found, outcomes }, atMs);

      // State, history, listings and events are stored together.
      const { status, listedOn } = after;
      const isChange = changes.length > 0;
      const row = { ...begun, targetId: before.id, finishedAtMs: atMs, status, isChange };
      const context = { before, after, lists, outcomes, checkId: begun.id, atMs, range: this.#rangeOf(before) };
      const mailedTo = notifier.notify(tx, changes, context);
      const body = { ...checkBodyOf(transition, outcomes, lists), ...(isChange ? { mailed_to: mailedTo } : {}) };
      const check = { ...row, body: JSON.stringify(body) };
      store.insertCheck(tx, check);
      const { added, removed } = transition;
      const counts = { status, listed: added.length, delisted: removed.length };
      db.note(tx, { kind: "blocklist_check", mode: target.mode, trigger: begun.trigger, ...counts });
      store.updateState(tx, before.id, after);
      listings.update(tx, { ...before, status, listedOn }, { outcomes, lists, atMs });
      this.#recordInRange(tx, before, row, body);
      return { target: store.findTarget(before.id) ?? before, check, changes };
    });
  }

  /** The range that an address belongs to, as text; null for a target of its own. */
  #rangeOf({ rangeId }: TargetRow) {
    return rangeId === "" ? null : (this.deps.store.findTarget(rangeId)?.value ?? null);
  }

  /** Adds a check with changes to the history of the range, if any. */
  #recordInRange(tx: Tx, { rangeId, value }: TargetRow, row: Omit<CheckRow, "body">, body: CheckBody) {
    if (rangeId === "" || !row.isChange) return;
    const text = JSON.stringify({ ...body, address: value });
    this.deps.store.insertCheck(tx, { ...row, id: newId(), targetId: rangeId, body: text });
  }

  #changesOf(targetId: string, { added, removed }: TargetTransition): readonly ListingChange[] {
    if (added.length + removed.length === 0) return [];
    const sinceMs = this.runtime.clock.nowMs() - FLAPPING_WINDOW_MS;
    const earlier = this.deps.store.changesSince(targetId, sinceMs).map(bodyOf);
    const isFlapping = (listing: string) =>
      earlier.filter((body) => body.added.includes(listing) || body.removed.includes(listing)).length + 1 >=
      FLAPPING_CHANGES;
    return [
      ...added.map((listing) => ({ listing, reason: null, flapping: isFlapping(listing) })),
      ...removed.map(({ listing, reason }) => ({ listing, reason, flapping: isFlapping(listing) })),
    ];
  }

  /** The last check of a target after several recent ones: another would find the same. */
  #recentCheck(target: TargetRow): RunningCheck | null {
    const recent = this.deps.store.checksSince(target.id, this.runtime.clock.nowMs() - ON_DEMAND_WINDOW_MS);
    const check = recent.at(-1);
    if (check === undefined || recent.length < ON_DEMAND_MAX) return null;
    const { id, trigger, startedAtMs } = check;
    return { id, trigger, startedAtMs, done: Promise.resolve({ target, check, changes: [] }) };
  }
}

/** The state of a target after a check, and when it is checked again. */
const stateAfter = (
  { id, unknownChecks: before }: TargetRow,
  { status: concluded, listedOn }: TargetTransition,
  { outcomes, heldUntilMs }: JudgedOutcomes,
  nowMs: number,
) => {
  // An outcome that is held back may be a listing, so the other lists alone do not make the target clean.
  const status = heldUntilMs !== null && concluded === "clean" ? ("unknown" as const) : concluded;
  // Sooner checks do not help while a list is held back.
  const unknownChecks = concluded === "unknown" ? before + 1 : 0;
  const regularMs = nextTargetCheckMs({ id, status: concluded, listedOn, unknownChecks }, nowMs);
  const retries = [...outcomes.map(({ retryAtMs }) => retryAtMs), heldUntilMs].filter((atMs) => atMs !== null);
  const nextCheckAtMs = Math.min(regularMs, ...retries);
  return { status, listedOn, unknownChecks, lastCheckedAtMs: nowMs, nextCheckAtMs } satisfies CheckedState;
};

/** Addresses of one range that are checked at a time, so that other checks get their share. */
const ADDRESSES_AT_ONCE = 8;
const MEMBERS_MAX = 1_024;
/** Results stored of a check of a range, listings first. */
const RESULTS_MAX = 200;

/** Checks all addresses of a range on request; a request during a check gets that check. */
export class RangeChecks {
  readonly #running = new Map<string, RunningCheck>();

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: BlocklistStore;
      ranges: RangeStore;
      monitor: BlocklistMonitor;
    },
  ) {}

  /** Whether a check of this range is running. */
  isChecking(rangeId: string): boolean {
    return this.#running.has(rangeId);
  }

  /** Begins a check of a range, or joins the one that runs. */
  check({ id: rangeId }: TargetRow): RunningCheck {
    const known = this.#running.get(rangeId);
    if (known !== undefined) return known;
    const begun = { id: newId(), trigger: "manual", startedAtMs: this.runtime.clock.nowMs() } as const;
    const check = { ...begun, done: this.#perform(rangeId, begun).finally(() => this.#running.delete(rangeId)) };
    this.#running.set(rangeId, check);
    return check;
  }

  async #perform(
    rangeId: string,
    begun: Pick<RunningCheck, "id" | "trigger" | "startedAtMs">,
  ): Promise<FinishedCheck | null> {
    const { store, ranges, monitor } = this.deps;
    const bodies: CheckBody[] = [];
    await mapConcurrently(ranges.members(rangeId, MEMBERS_MAX), ADDRESSES_AT_ONCE, async (member) => {
      const finished = monitor.isStopping ? null : await monitor.checkOnDemand(member).done;
      if (finished !== null) bodies.push({ ...bodyOf(finished.check), address: member.value });
    });
    if (monitor.isStopping) return null;
    return this.runtime.db.commit((tx) => {
      const target = store.findTarget(rangeId);
      if (target === undefined) return null;
      const check = {
        ...begun,
        targetId: rangeId,
        finishedAtMs: this.runtime.clock.nowMs(),
        status: target.status === "pending" ? ("unknown" as const) : target.status,
        isChange: bodies.some(({ added, removed }) => added.length + removed.length > 0),
        body: JSON.stringify(sumOf(bodies, target)),
      };
      store.insertCheck(tx, check);
      return { target, check, changes: [] };
    });
  }
}

/** The checks of all addresses as one; every result names its address. */
const sumOf = (bodies: readonly CheckBody[], { listedOn }: TargetRow): CheckBody => {
  const total = (outcome: keyof CheckBody["counts"]) => bodies.reduce((sum, { counts }) => sum + counts[outcome], 0);
  const each = (field: "added" | "removed") => [...new Set(bodies.flatMap((body) => body[field]))].toSorted();
  const results = bodies.flatMap((body) => body.results.map((result) => ({ ...result, address: body.address })));
  const listedFirst = results.toSorted((a, b) => Number(b.outcome === "listed") - Number(a.outcome === "listed"));
  return {
    listed_on: [...listedOn],
    added: each("added"),
    removed: each("removed"),
    counts: countEach(LIST_OUTCOMES, total),
    results: listedFirst.slice(0, RESULTS_MAX),
  };
};

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Targets checked at a time; some of them wait until they are stored with others. */
const TARGETS_AT_ONCE = LOOKUPS_AT_ONCE + STORED_AT_ONCE;
/** This many checks this late are a backlog after a stop: they are spread instead of queried all at once. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
/** Checks with a change are kept at least this long, whatever the retention. */
const CHANGES_KEPT_DAYS = 400;
const ROWS_AT_ONCE = 1_000;

/** The scheduled work of blocklist monitoring. */
export class CheckScheduler {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: BlocklistStore;
      monitor: BlocklistMonitor;
      health: DnsblHealth;
      lookups: TargetLookups;
      listings: Listings;
      /** For how many days checks without a change are kept. */
      retentionDays: number;
    },
  ) {}

  /** Checks every target that is due, until there is none. */
  async checkDue() {
    const { store, monitor } = this.deps;
    while (!monitor.isStopping) {
      const due = store.dueTargets(this.runtime.clock.nowMs(), DUE_AT_ONCE_MAX);
      if (due.length === 0) return;
      await mapConcurrently(due, TARGETS_AT_ONCE, async (target) => {
        if (!monitor.isStopping) await this.#checkOne(target);
      });
    }
  }

  async #checkOne(target: TargetRow) {
    const { db, clock, log } = this.runtime;
    const { store, monitor } = this.deps;
    try {
      await monitor.check(target, "scheduled").done;
    } catch (error) {
      log.error("blocklist check failed, will be repeated at the next scheduled time", { target: target.id, error });
      const nextCheckAtMs = nextTargetCheckMs(target, clock.nowMs());
      await db.commit((tx) => store.updateTarget(tx, target.id, { nextCheckAtMs }));
    }
  }

  /** At startup: spreads the checks of many overdue targets over the next hour. */
  async spreadBacklog() {
    const { db, clock, log } = this.runtime;
    const { store } = this.deps;
    const late = store.countDue(clock.nowMs() - LATE_MS);
    if (late < BACKLOG_MIN) return;
    log.info("many blocklist checks are overdue, spreading them over the next hour", { late });
    const spread = (tx: Tx) => {
      const nowMs = clock.nowMs();
      const overdue = store.dueTargets(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, status } of overdue) store.updateTarget(tx, id, { nextCheckAtMs: spreadMs(id, status, nowMs) });
      return overdue.length;
    };
    await inSteps(() => db.commit(spread));
  }

  /** At startup: computes the severity of listings that were stored by versions without it. */
  async fillSeverities() {
    const { store, lookups, listings } = this.deps;
    const { db, clock } = this.runtime;
    const read = (after: string) => store.withoutSeverity(after, ROWS_AT_ONCE);
    for await (const targets of pagesOf({ start: "", read, positionOf: ({ id }) => id })) {
      await db.commit((tx) => {
        for (const target of targets) {
          const { lists } = lookups[target.mode];
          listings.update(tx, target, { outcomes: [], lists, atMs: clock.nowMs() });
        }
      });
    }
  }

  /** Tests the lists whose last test is too old, if any target is monitored. */
  async testLists() {
    const { store, health, lookups } = this.deps;
    if (store.countWatched() > 0) await health.ensureAllFresh(lookups.live.lists);
  }

  /** Deletes checks after the retention; those with a change after 400 days, or after the retention if that is longer. */
  async purgeOldChecks() {
    const { retentionDays } = this.deps;
    await this.#purge(retentionDays, false);
    await this.#purge(Math.max(CHANGES_KEPT_DAYS, retentionDays), true);
  }

  async #purge(days: number, isChange: boolean) {
    const beforeMs = this.runtime.clock.nowMs() - days * DAY_MS;
    const { store, monitor } = this.deps;
    const purgeSome = (tx: Tx) => store.purgeChecks(tx, { isChange, beforeMs, limit: ROWS_AT_ONCE });
    await inSteps(() => this.runtime.db.commit(purgeSome), { isStopping: () => monitor.isStopping });
  }
}
