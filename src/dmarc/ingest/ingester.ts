import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import { type Ingest, type IngestItem, isDatabaseState } from "./ingest.ts";
import type { IngestionStore, PendingIngestion } from "./ingestion-store.ts";

export interface IngesterDeps {
  readonly db: Db;
  readonly store: IngestionStore;
  readonly ingest: Ingest;
  readonly clock: Clock;
  readonly log: Log;
}

/** Mails taken up together. */
const BATCH_MAX = 64;
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
/** How often reading is begun that ends the service. */
export const ATTEMPTS_MAX = 3;
/** How often the list is looked at although nobody said that it is longer: another process may have put something there. */
const LOOK_EVERY_MS = 30_000;
/** Waits after failures of the database. */
const AGAIN_MS_MIN = 1_000;
const AGAIN_MS_MAX = 60_000;

/**
 * Works off what waits to be read, oldest first. What waits survives restarts, and waits on while the database cannot be
 * written. Reading is counted before it begins, so that a mail that ends the process is not tried for ever: whatever was
 * begun before is taken alone, so that no other is blamed for it.
 */
export const createIngester = ({ db, store, ingest, clock, log }: IngesterDeps) => {
  let running: Promise<void> | null = null;
  let isStarted = false;
  let isWanted = false;
  let failures = 0;
  let cancelLook: () => void = () => undefined;
  /** Tries counted by this process, which evidently lives. */
  const begun = new Set<string>();

  const attemptsOf = ({ id, attempts }: PendingIngestion): number => attempts - (begun.has(id) ? 1 : 0);

  /** What is read next; what was begun before is alone. */
  const nextBatch = (): PendingIngestion[] => {
    const waiting = store.pending(BATCH_MAX);
    const [first] = waiting;
    if (first === undefined || attemptsOf(first) > 0) return waiting.slice(0, 1);
    const batch: PendingIngestion[] = [];
    let bytes = 0;
    for (const one of waiting) {
      bytes += one.size;
      if (batch.length > 0 && (bytes > BATCH_BYTES_MAX || attemptsOf(one) > 0)) break;
      batch.push(one);
    }
    return batch;
  };

  const countAttempts = async (batch: readonly PendingIngestion[]): Promise<void> => {
    const uncounted = batch.filter(({ id }) => !begun.has(id));
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

  /** Works off one batch; false when nothing waits. */
  const workOff = async (): Promise<boolean> => {
    const batch = nextBatch();
    if (batch.length === 0) return false;
    const isGivenUp = batch.some((one) => attemptsOf(one) >= ATTEMPTS_MAX);
    if (!isGivenUp) await countAttempts(batch);
    await ingest.process(batch.map((one) => itemOf(one, isGivenUp)));
    for (const { id } of batch) begun.delete(id);
    return true;
  };

  const run = async (): Promise<void> => {
    while (isStarted && isWanted) {
      isWanted = false;
      try {
        while (isStarted && (await workOff())) failures = 0;
      } catch (error) {
        failures += 1;
        const isState = isDatabaseState(error);
        log.error("reports that came in have to wait", { cause: error, because_of_the_database: isState });
        return;
      }
    }
  };

  const againMs = (): number =>
    failures === 0 ? LOOK_EVERY_MS : Math.min(AGAIN_MS_MAX, AGAIN_MS_MIN * 2 ** (failures - 1));

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

export type Ingester = ReturnType<typeof createIngester>;
