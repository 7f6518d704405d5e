import { newId } from "../../../foundation/base/secrets.ts";
import { drain, mapConcurrently } from "../../../foundation/base/wait.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { effectsOfCheck } from "./check-effects.ts";
import type { DomainCheck } from "./domain-check.ts";
import type { DnsCheckResult } from "./publication.ts";
import { enforcedCheckMs, type Trigger, spreadOf } from "./domain-state.ts";
import type { DomainRow, DomainStatus, DomainStore } from "./domain-store.ts";
import type { RaiseAlert } from "./alert-store.ts";
import type { DbClock, DbClockLog } from "../../../foundation/db/runtime.ts";

/** A check whose result is stored. */
export interface CheckedDomain {
  readonly domain: DomainRow;
  readonly previousStatus: DomainStatus;
  readonly result: DnsCheckResult;
}

/** A check in progress. */
interface Run {
  readonly trigger: Trigger;
  readonly done: Promise<CheckedDomain | null>;
  /** Aborts the check; its callers get the result of `successor`. */
  readonly replaceBy: (successor: Run) => void;
}

const DRAIN_MS_MAX = 1_000;
/** How long a count of all domains is used. */
const COUNT_MS = 10 * 60_000;

/**
 * Checks the DNS of domains and stores the results. There is one check of a domain at a time, so that no result is stored that is
 * older than the stored one.
 */
export class DomainMonitor {
  readonly #running = new Map<string, Run>();
  readonly #stopping = new AbortController();
  #monitored = { domains: 0, untilMs: Number.NEGATIVE_INFINITY };

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: DomainStore;
      check: DomainCheck;
      raise: RaiseAlert;
    },
  ) {}

  /**
   * Checks a domain, or joins the check in progress; but a user's check replaces a scheduled one, and the callers of that one
   * gets the user's result. Null when the domain was deleted meanwhile or the service stops. The check continues when its caller
   * stops waiting.
   */
  check(row: DomainRow, trigger: Trigger): Promise<CheckedDomain | null> {
    const current = this.#running.get(row.id);
    if (current !== undefined && (trigger !== "manual" || current.trigger === "manual")) return current.done;
    const run = this.#begin(row, trigger);
    this.#running.set(row.id, run);
    current?.replaceBy(run);
    return run.done;
  }

  /** Aborts the checks in progress; they run again when they are due. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await drain(
      this.runtime.clock,
      DRAIN_MS_MAX,
      [...this.#running.values()].map(({ done }) => done),
    );
  }

  isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  #begin(row: DomainRow, trigger: Trigger): Run {
    const ending = new AbortController();
    let successor: Run | null = null;
    const run: Run = {
      trigger,
      done: this.#perform(row, trigger, AbortSignal.any([this.#stopping.signal, ending.signal]))
        .then((checked) => checked ?? successor?.done ?? null)
        .finally(() => {
          if (this.#running.get(row.id) === run) this.#running.delete(row.id);
        }),
      replaceBy(by) {
        successor = by;
        ending.abort();
      },
    };
    return run;
  }

  /** Null when it was aborted: queries that were not waited for say nothing about the domain. */
  async #perform(row: DomainRow, trigger: Trigger, signal: AbortSignal): Promise<CheckedDomain | null> {
    const result = await this.deps.check(row, { isSetUp: trigger === "manual", signal });
    if (signal.aborted) return null;
    return this.runtime.db.commit((tx) => (signal.aborted ? null : this.#record(tx, row.id, trigger, result)));
  }

  /** Stores state, history and alerts in one transaction. */
  #record(tx: Tx, id: string, trigger: Trigger, result: DnsCheckResult): CheckedDomain | null {
    const { store, raise } = this.deps;
    const before = store.findById(id);
    if (before === undefined) return null;
    const nowMs = this.runtime.clock.nowMs();
    const enforcedEveryMs = enforcedCheckMs(this.#countMonitored(nowMs));
    const { change, history, alerts } = effectsOfCheck(before, result, { trigger, nowMs, enforcedEveryMs });
    const domain = { ...before, ...change };
    store.update(tx, before.number, change);
    if (history !== null) {
      const body = JSON.stringify(history);
      store.insertHistory(tx, { id: newId(), domain: before.number, trigger, atMs: nowMs, body });
    }
    for (const alert of alerts) raise(tx, domain, alert, nowMs);
    return { domain, previousStatus: before.status, result };
  }

  #countMonitored(nowMs: number) {
    if (nowMs >= this.#monitored.untilMs) {
      this.#monitored = { domains: this.deps.store.countMonitored(), untilMs: nowMs + COUNT_MS };
    }
    return this.#monitored.domains;
  }
}

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Domains checked at a time; each has two queries in flight. */
const DOMAINS_AT_ONCE = 8;
/** This many checks that are this late mean that the service was down: they are spread, to spare the name servers. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
const SPREAD_MS = 60 * 60_000;
const RETRY_MS = 30 * 60_000;
const ROWS_AT_ONCE = 1_000;

/** Checks the DNS of domains when they are due. */
export class ScheduledChecks {
  constructor(
    private readonly runtime: DbClockLog,
    private readonly store: DomainStore,
    private readonly domains: {
      canCheck(): boolean;
      checkScheduled(row: DomainRow): Promise<unknown>;
    },
  ) {}

  /** Checks every due domain until there is none. */
  async run(): Promise<void> {
    while (this.domains.canCheck()) {
      const due = this.store.due(this.runtime.clock.nowMs(), DUE_AT_ONCE_MAX);
      if (due.length === 0) return;
      await mapConcurrently(due, DOMAINS_AT_ONCE, async (row) => {
        if (this.domains.canCheck()) await this.#check(row);
      });
    }
  }

  /** At the start: when many checks are long overdue, spreads them over the next hour. */
  async spreadBacklog(): Promise<void> {
    const { clock, log } = this.runtime;
    const late = this.store.countDue(clock.nowMs() - LATE_MS);
    if (late < BACKLOG_MIN) return;
    log.info("many DNS checks of domains are overdue; spreading them over the next hour", { late });
    let spread = ROWS_AT_ONCE;
    while (spread === ROWS_AT_ONCE) spread = await this.#spreadSome();
  }

  async #check(row: DomainRow) {
    const { db, clock, log } = this.runtime;
    try {
      await this.domains.checkScheduled(row);
    } catch (error) {
      log.error("DNS check of a domain failed; retrying in 30 minutes", { domain: row.id, error });
      const nextCheckAtMs = clock.nowMs() + RETRY_MS;
      await db.commit((tx) => this.store.update(tx, row.number, { nextCheckAtMs }));
    }
  }

  #spreadSome() {
    return this.runtime.db.commit((tx) => {
      const nowMs = this.runtime.clock.nowMs();
      const late = this.store.due(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, number } of late) {
        this.store.update(tx, number, { nextCheckAtMs: Math.round(nowMs + SPREAD_MS * spreadOf(id)) });
      }
      return late.length;
    });
  }
}
