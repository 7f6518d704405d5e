import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import { newId } from "../../base/secrets.ts";
import type { Db } from "../../db/open.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import { createFairBatches } from "./fair-batches.ts";
import { type Ingest, type IngestItem, isDatabaseState } from "./ingest.ts";
import type { IngestionStore, PendingIngestion } from "./ingestion-store.ts";

export interface IngestionWorkerDeps {
  readonly db: Db;
  readonly store: IngestionStore;
  readonly ingest: Ingest;
  /** While it is low nothing is read: reports take more space than the mails they came in. */
  readonly reserve: Pick<DiskReserve, "isLow">;
  readonly clock: Clock;
  readonly log: Log;
}

/** Mails read before the garbage is collected: 30 ms then, for 20 MB less while mail pours in. */
const TIDY_EVERY = 1_024;
/** How often reading is begun that ends the service. */
export const READ_ATTEMPTS_MAX = 5;
/** How long after the start it is not begun again, for each time. */
export const REREAD_AFTER_MS = 3_000;
/** How often mails are looked for whose authenticity could not be found out, and how many are judged again then. */
const UNDECIDED_EVERY_MS = 10 * 60_000;
const UNDECIDED_MAX = 500;
/** How often the list is looked at although nobody said that it is longer: another process may have put something there. */
const LOOK_EVERY_MS = 30_000;
/** Waits after failures of the database. */
const AGAIN_MS_MIN = 1_000;
const AGAIN_MS_MAX = 60_000;

/**
 * Works off what waits to be read: of each domain the oldest first. What waits survives restarts, and waits on while the database cannot be
 * written. Of what waited when it started, reading is counted before it begins, so that a mail that ends the process is not
 * tried for ever: whatever was begun before is taken alone and after a wait, so that no other is blamed for it. What came later is
 * counted after the next start, if it still waits then.
 */
export const createIngestionWorker = ({ db, store, ingest, reserve, clock, log }: IngestionWorkerDeps) => {
  let running: Promise<void> | null = null;
  let isStarted = false;
  let isWanted = false;
  let failures = 0;
  let sinceTidy = 0;
  let cancelLook: () => void = () => undefined;
  /** Tries counted by this process, which evidently lives. */
  const begun = new Set<string>();
  /** An id of the moment of the start: those that came before are smaller. */
  let startId = "";
  let startedMs = 0;
  let undecidedAtMs = 0;
  /** How long it is until something may be begun again; null when nothing waits for that. */
  let deferredMs: number | null = null;

  const attemptsOf = ({ id, attempts }: PendingIngestion): number => attempts - (begun.has(id) ? 1 : 0);

  /** What ended a process is left alone for a while: one that is ended again and again must not be held against it. */
  const waitMsOf = (one: PendingIngestion): number =>
    attemptsOf(one) * REREAD_AFTER_MS - (clock.monotonicMs() - startedMs);

  const isDeferred = (one: PendingIngestion): boolean => {
    const waitMs = waitMsOf(one);
    if (attemptsOf(one) === 0 || waitMs <= 0) return false;
    deferredMs = Math.min(deferredMs ?? waitMs, waitMs);
    return true;
  };

  const { pending, pendingElsewhere } = store;
  const turns = createFairBatches({ pending, pendingElsewhere, attemptsOf, isDeferred });

  /** Has mails judged again about which the DNS may say more now; false when there are none. */
  const putBackUndecided = async (): Promise<boolean> => {
    if (clock.monotonicMs() < undecidedAtMs || reserve.isLow()) return false;
    undecidedAtMs = clock.monotonicMs() + UNDECIDED_EVERY_MS;
    const ids = store.undecided(clock.nowMs(), UNDECIDED_MAX);
    if (ids.length === 0) return false;
    await db.commit((tx) => {
      for (const id of ids) store.setPending(tx, id);
    });
    return true;
  };

  const countAttempts = async (batch: readonly PendingIngestion[]): Promise<void> => {
    const uncounted = batch.filter(({ id }) => id < startId && !begun.has(id));
    if (uncounted.length === 0) return;
    await db.commit((tx) => {
      for (const { id } of uncounted) store.countAttempt(tx, id, 1);
    });
    for (const { id } of uncounted) begun.add(id);
  };

  const itemOf = (pending: PendingIngestion, isGivenUp: boolean): IngestItem => {
    const bytes = isGivenUp ? new Uint8Array() : (store.findRaw(pending.id) ?? new Uint8Array());
    if (isGivenUp) {
      log.error("reading a report ended the service several times; it is not tried again", { ingestion: pending.id });
    }
    return { ingestion: { ...pending, bytes }, isNew: false, isGivenUp };
  };

  /** What was read is garbage; left to itself the heap grows on while mail pours in. */
  const tidyUp = (mails: number): void => {
    sinceTidy += mails;
    if (sinceTidy < TIDY_EVERY) return;
    sinceTidy = 0;
    Bun.gc(true);
  };

  /** Works off one batch; false when nothing waits. */
  const workOff = async (): Promise<boolean> => {
    deferredMs = null;
    if (reserve.isLow()) return false;
    const batch = turns.next();
    if (batch.length === 0) return false;
    const isGivenUp = batch.some((one) => attemptsOf(one) >= READ_ATTEMPTS_MAX);
    if (!isGivenUp) await countAttempts(batch);
    await ingest.process(batch.map((one) => itemOf(one, isGivenUp)));
    for (const { id } of batch) begun.delete(id);
    tidyUp(batch.length);
    return true;
  };

  const run = async (): Promise<void> => {
    while (isStarted && isWanted) {
      isWanted = false;
      try {
        while (isStarted && ((await workOff()) || (await putBackUndecided()))) failures = 0;
      } catch (error) {
        failures += 1;
        const isState = isDatabaseState(error);
        log.error("reports that came in have to wait", { cause: error, because_of_the_database: isState });
        return;
      }
    }
  };

  const againMs = (): number =>
    failures === 0
      ? Math.min(LOOK_EVERY_MS, deferredMs ?? LOOK_EVERY_MS)
      : Math.min(AGAIN_MS_MAX, AGAIN_MS_MIN * 2 ** (failures - 1));

  const kick = (): void => {
    isWanted = true;
    if (!isStarted || running !== null || failures > 0) return;
    go();
  };

  const go = (): void => {
    cancelLook();
    running = run().finally(() => {
      running = null;
      if (!isStarted) return;
      cancelLook = clock.after(againMs(), look);
      if (isWanted && failures === 0) go();
    });
  };

  const look = (): void => {
    isWanted = true;
    if (isStarted && running === null) go();
  };

  return {
    /** Begins with what waits. Whatever a crash left half written has to be removed before. */
    start(): void {
      if (isStarted) return;
      isStarted = true;
      startId = newId();
      startedMs = clock.monotonicMs();
      undecidedAtMs = startedMs;
      look();
    },
    /** Ends after the batch that is being worked on. */
    async stop(): Promise<void> {
      isStarted = false;
      cancelLook();
      await running;
    },
    /** Says that there is something new. While the database fails it waits for the next try. */
    kick,
    /** Resolves when nothing is being worked on: all is read, or the database cannot be written. */
    async idle(): Promise<void> {
      while (running !== null) await running;
    },
  };
};

export type IngestionWorker = ReturnType<typeof createIngestionWorker>;
