import { DAY_MS, dayOfTime } from "../../base/days.ts";
import { type Clock, nextTurn } from "../../base/clock.ts";
import { forEachIsolated } from "../../base/for-each-isolated.ts";
import type { Log } from "../../base/log.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import { ingestionConclusion, type IngestionFinding } from "./ingestion-finding.ts";
import { findingsIn } from "./ingestion-view.ts";
import { RAW_DAYS, rawDaysOf, type RawWishes } from "./raw-days.ts";
import { type NameRetention, RetentionStopped } from "./retention-names.ts";
import type { AgeCursor, OwnedIngestion, RetentionStore } from "./retention-store.ts";

export interface RetentionDeps {
  readonly db: Db;
  readonly store: RetentionStore;
  readonly names: NameRetention;
  readonly domains: DomainStore;
  readonly clock: Clock;
  readonly log: Log;
}

/** Days for which the list of what came in is kept (longer while its bytes are), and alerts and changes of records. */
export const HISTORY_DAYS = 400;
/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 500;
/** Transactions of one run of a job; the next one goes on. */
const CHUNKS_MAX = 20_000;
/** Deleted domains dealt with in one run. */
const DOMAINS_AT_ONCE = 100;

/** What is forgotten after a time. Each job works in short transactions, and goes on after a crash where it was. */
export const createRetention = ({ db, store, names, domains, clock, log }: RetentionDeps) => {
  let isStopping = false;
  const running = new Set<Promise<unknown>>();

  const goOn = (): void => {
    if (isStopping) throw new RetentionStopped();
  };

  /** Runs a job that may be stopped; `stopped` is its answer then. */
  const job = async <T>(work: () => Promise<T>, stopped: T): Promise<T> => {
    if (isStopping) return stopped;
    const done = work().catch((error: unknown) => {
      if (error instanceof RetentionStopped) return stopped;
      throw error;
    });
    running.add(done);
    return done.finally(() => void running.delete(done));
  };

  /** Removes in short transactions until there is nothing left; true when it came to an end. */
  const untilGone = async (remove: (tx: Tx) => number): Promise<boolean> => {
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
      goOn();
      if ((await db.commit(remove)) === 0) return true;
    }
    return false;
  };

  const onFailure = ({ number }: { readonly number: number }, cause: unknown): void => {
    if (cause instanceof RetentionStopped) throw cause;
    log.error("old data of a domain could not be removed; it is tried again in the next run", { number, cause });
  };

  const beforeMs = (days: number): number => clock.nowMs() - days * DAY_MS;

  /** Sources that were last seen before a day. */
  const forgetSources = async (domain: number, day: number): Promise<void> => {
    let after = "";
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
      goOn();
      const some = store.sourcesAfter(domain, after, ROWS_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.key;
      const old = some.filter(({ lastDay }) => lastDay < day);
      if (old.length === 0) continue;
      await db.commit((tx) => {
        for (const source of old) store.removeSource(tx, source, day);
      });
    }
  };

  /** Walks through ingestions by their age, and removes something of those that are not wanted any more. */
  const throughAges = async <R extends AgeCursor & { readonly id: string }>(
    page: (after: AgeCursor) => R[],
    isOver: (row: R) => boolean,
    remove: (tx: Tx, id: string) => void,
  ): Promise<void> => {
    let after: AgeCursor = { receivedAtMs: -1, rowid: 0 };
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
      goOn();
      const some = page(after);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last;
      const old = some.filter(isOver);
      if (old.length === 0) await nextTurn();
      else {
        await db.commit((tx) => {
          for (const { id } of old) remove(tx, id);
        });
      }
    }
  };

  /**
   * Removes what came in and is about a domain or came to its address, unless it is about one that is there: that stays,
   * and what was found about the domain is forgotten. False while
   * some of it is still to be read: it may be about another one.
   */
  const purgeIngestions = async (domain: DomainRow): Promise<boolean> => {
    const isConcerned = (one: OwnedIngestion): boolean =>
      one.domain === domain.number || one.findings?.includes(domain.id) === true;
    let isWaiting = false;
    let after = "";
    for (let chunk = 0; chunk < CHUNKS_MAX; chunk += 1) {
      goOn();
      const page = await db.commit((tx) => {
        const some = store.ingestionsOf(domain, after, ROWS_AT_ONCE);
        const concerned = some.filter(isConcerned);
        const done = concerned.filter(({ isPending }) => isPending === 0);
        const living = new Set(done.length === 0 ? [] : store.domains().map(({ id }) => id));
        for (const one of done) {
          const isOthers = findingsIn(one).some(({ domain_id }) => domain_id !== null && living.has(domain_id));
          if (!isOthers) {
            store.removeIngestion(tx, one.id);
            continue;
          }
          if (one.domain === domain.number) store.detachIngestion(tx, one.id);
          const findings = findingsIn(one).map((finding) =>
            finding.domain_id === domain.id ? forgotten(finding) : finding,
          );
          store.conclude(tx, one.id, { ...ingestionConclusion(findings), findings });
        }
        return { last: some.at(-1), isWaiting: done.length < concerned.length };
      });
      isWaiting ||= page.isWaiting;
      if (page.last === undefined) return !isWaiting;
      after = page.last.id;
    }
    return false;
  };

  const forgetRaw = async (): Promise<void> => {
    const living = store.domains();
    const wishes: RawWishes = {
      byNumber: new Map(living.map(({ number, rawRetentionDays }) => [number, rawRetentionDays])),
      byId: new Map(living.map(({ id, rawRetentionDays }) => [id, rawRetentionDays])),
    };
    const youngestMs = beforeMs(Math.min(RAW_DAYS, ...wishes.byNumber.values()));
    await throughAges(
      (after) => store.holders(after, youngestMs, ROWS_AT_ONCE),
      (holder) => {
        const days = rawDaysOf({ ...holder, findings: findingsIn(holder) }, wishes);
        return holder.receivedAtMs < beforeMs(days);
      },
      store.removeRaw,
    );
  };

  const forgetReports = async (): Promise<void> => {
    const forget = async (domain: ReturnType<RetentionStore["domains"]>[number]): Promise<void> => {
      const { number, retentionDays, rawRetentionDays } = domain;
      const day = dayOfTime(clock.nowMs()) - retentionDays;
      await untilGone((tx) => store.removeBeforeDay(tx, number, day, ROWS_AT_ONCE));
      await untilGone((tx) => store.removeTlsBefore(tx, number, beforeMs(retentionDays), ROWS_AT_ONCE));
      await untilGone((tx) => store.removeFailuresBefore(tx, number, beforeMs(rawRetentionDays), ROWS_AT_ONCE));
      await forgetSources(number, day);
      await names.forgetNames(number, day);
      await names.forgetWords(number, beforeMs(retentionDays));
    };
    await forEachIsolated(store.domains(), forget, { onFailure });
    await names.forgetReverseNames();
  };

  const forgetHistory = async (): Promise<void> => {
    const oldMs = beforeMs(HISTORY_DAYS);
    await throughAges(
      (after) => store.ingestionsBefore(after, oldMs, ROWS_AT_ONCE),
      ({ isHeld }) => isHeld === 0,
      store.removeOldIngestion,
    );
    await forEachIsolated(
      store.domains(),
      ({ number }) => untilGone((tx) => store.removeHappenings(tx, number, oldMs, ROWS_AT_ONCE)),
      { onFailure },
    );
  };

  const purgeDeleted = async (): Promise<number> => {
    let purged = 0;
    const purge = async (domain: DomainRow): Promise<void> => {
      const isEmpty = await untilGone((tx) => store.removeOfDomain(tx, domain.number, ROWS_AT_ONCE));
      if (!isEmpty || !(await purgeIngestions(domain))) return;
      await db.commit((tx) => domains.remove(tx, domain.number));
      purged += 1;
    };
    await forEachIsolated(domains.deleted(DOMAINS_AT_ONCE), purge, { onFailure });
    return purged;
  };

  return {
    /** Forgets the bytes of what came in, as long ago as the domains want it. */
    forgetRaw: (): Promise<void> => job(forgetRaw, undefined),
    /** Forgets reports, their records, what was counted of them, and sources that are not seen any more. */
    forgetReports: (): Promise<void> => job(forgetReports, undefined),
    /** Forgets the list of what came in, alerts and the history of records. */
    forgetHistory: (): Promise<void> => job(forgetHistory, undefined),
    /** Removes all that deleted domains have left, and at last the domains; answers how many are gone for good. */
    purgeDeleted: (): Promise<number> => job(purgeDeleted, 0),
    /** Ends what goes on after its present step; the next start goes on there. */
    async stop(): Promise<void> {
      isStopping = true;
      names.stop();
      await Promise.allSettled(running);
    },
  };
};

/** What is left of a finding about a deleted domain. The name of a file mostly tells the domain. */
const forgotten = ({ outcome }: IngestionFinding): IngestionFinding => ({
  ...{ outcome, reason: "domain_deleted", name: null, report_id: null, domain_id: null },
  ...{ domain: null, org_name: null, external_report_id: null },
});

export type Retention = ReturnType<typeof createRetention>;
