import type { Clock } from "../../base/clock.ts";
import { newId } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { effectsOfCheck } from "./check-effects.ts";
import type { DomainCheck, DnsCheckResult } from "./domain-check.ts";
import type { DomainRow, DomainStatus, DomainStore } from "./domain-store.ts";
import type { RaiseAlert } from "./raise.ts";
import { enforcedCheckMs, type Trigger } from "./domain-status.ts";
import { drain } from "../../base/wait.ts";

export interface DomainMonitorDeps {
  readonly db: Db;
  readonly store: DomainStore;
  readonly look: DomainCheck;
  readonly raise: RaiseAlert;
  readonly clock: Clock;
}

/** A check that was recorded. */
export interface CheckedDomain {
  readonly domain: DomainRow;
  readonly previousStatus: DomainStatus;
  readonly finding: DnsCheckResult;
}

/** A check that is under way. */
interface Run {
  readonly trigger: Trigger;
  readonly done: Promise<CheckedDomain | null>;
  /** Ends its look, whose finding is not recorded any more: whoever waits for it gets what `successor` finds. */
  readonly giveUp: (successor: Run) => void;
}

const DRAIN_MS_MAX = 1_000;
/** How long a count of all domains is good enough. */
const COUNT_MS = 10 * 60_000;

/**
 * Checks domains: looks at the DNS, draws the conclusion, and records it. There is one look at a domain at a time, so that none is
 * recorded that began before the last one that was.
 */
export const createDomainMonitor = ({ db, store, look, raise, clock }: DomainMonitorDeps) => {
  const running = new Map<string, Run>();
  const stopping = new AbortController();
  let counted = { domains: 0, untilMs: Number.NEGATIVE_INFINITY };

  const countMonitored = (nowMs: number): number => {
    if (nowMs >= counted.untilMs) counted = { domains: store.countMonitored(), untilMs: nowMs + COUNT_MS };
    return counted.domains;
  };

  /** State, history and alerts in one transaction. */
  const record = (tx: Tx, id: string, trigger: Trigger, finding: DnsCheckResult): CheckedDomain | null => {
    const before = store.findById(id);
    if (before === undefined) return null;
    const nowMs = clock.nowMs();
    const { change, history, alerts } = effectsOfCheck(before, finding, {
      ...{ trigger, nowMs },
      enforcedEveryMs: enforcedCheckMs(countMonitored(nowMs)),
    });
    const domain = { ...before, ...change };
    store.update(tx, before.number, change);
    if (history !== null) {
      const body = JSON.stringify(history);
      store.insertHistory(tx, { id: newId(), domain: before.number, trigger, atMs: nowMs, body });
    }
    for (const alert of alerts) raise(tx, domain, alert, nowMs);
    return { domain, previousStatus: before.status, finding };
  };

  /** Null when it was given up: questions that were not waited for say nothing about the domain. */
  const perform = async (row: DomainRow, trigger: Trigger, signal: AbortSignal): Promise<CheckedDomain | null> => {
    const finding = await look(row, { isSetUp: trigger === "manual", signal });
    if (signal.aborted) return null;
    return db.commit((tx) => (signal.aborted ? null : record(tx, row.id, trigger, finding)));
  };

  const begin = (row: DomainRow, trigger: Trigger): Run => {
    const ending = new AbortController();
    let successor: Run | null = null;
    const run: Run = {
      trigger,
      done: perform(row, trigger, AbortSignal.any([stopping.signal, ending.signal]))
        .then((checked) => checked ?? successor?.done ?? null)
        .finally(() => {
          if (running.get(row.id) === run) running.delete(row.id);
        }),
      giveUp(by) {
        successor = by;
        ending.abort();
      },
    };
    return run;
  };

  return {
    /**
     * Checks a domain, or joins the check that runs already. Only a user's check does not join one of the timetable: it takes its
     * place, and whoever waits for that one gets the user's. Null when the domain was removed meanwhile or the service stops. The
     * check goes on whoever stops waiting for it.
     */
    check(row: DomainRow, trigger: Trigger): Promise<CheckedDomain | null> {
      const known = running.get(row.id);
      if (known !== undefined && (trigger !== "manual" || known.trigger === "manual")) return known.done;
      const run = begin(row, trigger);
      running.set(row.id, run);
      known?.giveUp(run);
      return run.done;
    },
    /** Gives up what is under way; it is done again when it is due. */
    async stop(): Promise<void> {
      stopping.abort();
      const checks = [...running.values()].map(({ done }) => done);
      await drain(clock, DRAIN_MS_MAX, checks);
    },
    isStopping: (): boolean => stopping.signal.aborted,
  };
};

export type DomainMonitor = ReturnType<typeof createDomainMonitor>;
