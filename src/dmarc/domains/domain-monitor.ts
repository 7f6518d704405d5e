import type { Clock } from "../../base/clock.ts";
import { newId } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { conclude } from "./conclusion.ts";
import type { DomainCheck, Finding } from "./domain-check.ts";
import type { DomainRow, DomainStatus, DomainStore } from "./domain-store.ts";
import type { Raise } from "./raise.ts";
import type { Trigger } from "./transition.ts";

export interface DomainMonitorDeps {
  readonly db: Db;
  readonly store: DomainStore;
  readonly look: DomainCheck;
  readonly raise: Raise;
  readonly clock: Clock;
}

/** A check that was recorded. */
export interface CheckedDomain {
  readonly domain: DomainRow;
  readonly previousStatus: DomainStatus;
  readonly finding: Finding;
}

const DRAIN_MS_MAX = 1_000;

/** Checks domains: looks at the DNS, draws the conclusion, and records it. */
export const createDomainMonitor = ({ db, store, look, raise, clock }: DomainMonitorDeps) => {
  const running = new Map<string, Promise<CheckedDomain | null>>();
  const stopping = new AbortController();

  /** State, history and alerts in one transaction. */
  const record = (tx: Tx, id: string, trigger: Trigger, finding: Finding): CheckedDomain | null => {
    const before = store.findById(id);
    if (before === undefined) return null;
    const nowMs = clock.nowMs();
    const { change, history, alerts } = conclude(before, finding, { trigger, nowMs });
    const domain = { ...before, ...change };
    store.update(tx, before.number, change);
    if (history !== null) {
      const body = JSON.stringify(history);
      store.insertHistory(tx, { id: newId(), domain: before.number, trigger, atMs: nowMs, body });
    }
    for (const alert of alerts) raise(tx, domain, alert, nowMs);
    return { domain, previousStatus: before.status, finding };
  };

  const perform = async (row: DomainRow, trigger: Trigger): Promise<CheckedDomain | null> => {
    const finding = await look(row, { isSetUp: trigger === "manual", signal: stopping.signal });
    // Questions that were given up at the end of the service say nothing about the domain.
    if (stopping.signal.aborted) return null;
    return db.commit((tx) => record(tx, row.id, trigger, finding));
  };

  return {
    /**
     * Checks a domain, or joins the check of the same kind that runs already. Null when the domain was removed meanwhile or the
     * service stops. The check goes on whoever stops waiting for it.
     */
    check(row: DomainRow, trigger: Trigger): Promise<CheckedDomain | null> {
      const key = `${trigger} ${row.id}`;
      const known = running.get(key);
      if (known !== undefined) return known;
      const check = perform(row, trigger).finally(() => running.delete(key));
      running.set(key, check);
      return check;
    },
    /** Gives up what is under way; it is done again when it is due. */
    async stop(): Promise<void> {
      stopping.abort();
      const { promise, resolve } = Promise.withResolvers<void>();
      const cancel = clock.after(DRAIN_MS_MAX, resolve);
      await Promise.race([promise, Promise.allSettled(running.values())]);
      cancel();
    },
    isStopping: (): boolean => stopping.signal.aborted,
  };
};

export type DomainMonitor = ReturnType<typeof createDomainMonitor>;
