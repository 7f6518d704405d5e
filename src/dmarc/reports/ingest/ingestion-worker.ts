import { Recurring } from "../../../foundation/base/recurring.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import type { DiskReserve, IngestionStore, PendingIngestion } from "./ingestion-store.ts";
import type { Ingest, IngestItem } from "./ingest.ts";

/** Mails after which the garbage is collected: takes 30 ms, and saves 20 MB while many mails arrive. */
const COLLECT_AFTER = 1_024;
/** How often an ingestion is read that ends the process. */
export const READ_ATTEMPTS_MAX = 5;
/** How long after the start it is read again, for each attempt. */
export const REREAD_AFTER_MS = 3_000;
/** How often mails whose authentication had a temporary error are looked up, and how many are checked again then. */
const UNDECIDED_EVERY_MS = 10 * 60_000;
const UNDECIDED_MAX = 500;
/** How often the worker looks for pending ingestions without being notified: another process may have added some. */
const POLL_EVERY_MS = 30_000;
/** Delays after failures of the database. */
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 60_000;

/**
 * Reads pending ingestions, of each domain the oldest first. They survive restarts, and wait while the database cannot be
 * written. An attempt is counted before it begins for those that were pending at the start, so that a mail that ends the
 * process is not read for ever: after an attempt it is read alone and later, so that no other is blamed for it.
 */
export class IngestionWorker {
  readonly #batches: FairBatches;
  /** Attempts that this process, which evidently lives, has counted. */
  readonly #begun = new Set<string>();
  readonly #reading: Recurring;
  #isStarted: boolean = false;
  #sinceCollect = 0;
  /** An id of the moment of the start: ids of what was pending then are smaller. */
  #startId = "";
  #startedMs = 0;
  #undecidedAtMs = 0;
  /** The time until an ingestion may be read again; null when none waits for that. */
  #deferredMs: number | null = null;

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: {
      store: IngestionStore;
      ingest: Pick<Ingest, "process">;
      /** Nothing is read while the disk is low: reports take more space than the mails they came in. */
      reserve: Pick<DiskReserve, "isLow">;
    },
  ) {
    this.#batches = new FairBatches({
      store: deps.store,
      attemptsOf: (one) => this.#attemptsOf(one),
      isDeferred: (one) => this.#isDeferred(one),
    });
    this.#reading = new Recurring(runtime, {
      name: "report ingestion",
      run: (signal, succeeded) => this.#readPending(signal, succeeded),
      retryMs: (_, failures) => Math.min(RETRY_MS_MAX, RETRY_MS_MIN * 2 ** (failures - 1)),
    });
  }

  /** Starts reading. Call it after the incomplete reports of a crash are removed. */
  start(): void {
    if (this.#isStarted) return;
    this.#isStarted = true;
    this.#startId = newId();
    this.#startedMs = this.runtime.clock.monotonicMs();
    this.#undecidedAtMs = this.#startedMs;
    void this.#reading.run();
  }

  /** Resolves after the present batch. */
  stop(): Promise<void> {
    return this.#reading.stop();
  }

  /** Notifies the worker of a pending ingestion. While the database fails it waits for the next retry. */
  wake(): void {
    if (this.#isStarted && !this.#reading.isFailing) void this.#reading.run();
  }

  /** Resolves when nothing is being read: everything is done, or the database cannot be written. */
  idle(): Promise<void> {
    return this.#reading.idle();
  }

  /** Reads until nothing is pending. Returns when to look again. */
  async #readPending(signal: AbortSignal, succeeded: () => void): Promise<number> {
    while (!signal.aborted && ((await this.#processBatch()) || (await this.#retryUndecided()))) succeeded();
    return Math.min(POLL_EVERY_MS, this.#deferredMs ?? POLL_EVERY_MS);
  }

  /** False when nothing is to be read now. */
  async #processBatch() {
    this.#deferredMs = null;
    if (this.deps.reserve.isLow()) return false;
    const batch = this.#batches.next();
    if (batch.length === 0) return false;
    const isGivenUp = batch.some((one) => this.#attemptsOf(one) >= READ_ATTEMPTS_MAX);
    if (!isGivenUp) await this.#countAttempts(batch);
    const items: IngestItem[] = [];
    for (const one of batch) items.push(await this.#itemOf(one, isGivenUp));
    await this.deps.ingest.process(items);
    for (const { id } of batch) this.#begun.delete(id);
    this.#collectGarbage(batch.length);
    return true;
  }

  async #itemOf(pending: PendingIngestion, isGivenUp: boolean): Promise<IngestItem> {
    if (isGivenUp) {
      const fields = { ingestion: pending.id };
      this.runtime.log.error("the service ended several times while it read an ingestion; giving up", fields);
    }
    const bytes = isGivenUp ? undefined : await this.deps.store.raw.find(pending.id);
    return { ingestion: { ...pending, bytes: bytes ?? new Uint8Array() }, isNew: false, isGivenUp };
  }

  /** Makes mails pending again whose authentication had a temporary error; false when there are none. */
  async #retryUndecided() {
    const { db, clock } = this.runtime;
    const { store, reserve } = this.deps;
    if (clock.monotonicMs() < this.#undecidedAtMs || reserve.isLow()) return false;
    this.#undecidedAtMs = clock.monotonicMs() + UNDECIDED_EVERY_MS;
    const ids = store.undecided(clock.nowMs(), UNDECIDED_MAX);
    if (ids.length === 0) return false;
    await db.commit((tx) => {
      for (const id of ids) store.setPending(tx, id);
    });
    return true;
  }

  async #countAttempts(batch: readonly PendingIngestion[]) {
    const uncounted = batch.filter(({ id }) => id < this.#startId && !this.#begun.has(id));
    if (uncounted.length === 0) return;
    await this.runtime.db.commit((tx) => {
      for (const { id } of uncounted) this.deps.store.countAttempt(tx, id);
    });
    for (const { id } of uncounted) this.#begun.add(id);
  }

  /** How often processes began to read it that did not live to finish it. */
  #attemptsOf({ id, attempts }: PendingIngestion) {
    return attempts - (this.#begun.has(id) ? 1 : 0);
  }

  /** What ended a process is left alone for a while, so that it is not the first thing that every restart reads. */
  #isDeferred(one: PendingIngestion) {
    const attempts = this.#attemptsOf(one);
    const waitMs = attempts * REREAD_AFTER_MS - (this.runtime.clock.monotonicMs() - this.#startedMs);
    if (attempts === 0 || waitMs <= 0) return false;
    this.#deferredMs = Math.min(this.#deferredMs ?? waitMs, waitMs);
    return true;
  }

  /** Otherwise the heap keeps growing while many mails arrive. */
  #collectGarbage(mails: number) {
    this.#sinceCollect += mails;
    if (this.#sinceCollect < COLLECT_AFTER) return;
    this.#sinceCollect = 0;
    Bun.gc(true);
  }
}

/** Ingestions read together: while some are written, another thread reads the next. */
const BATCH_MAX = 256;
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
/** Of one domain, while others wait. */
export const BATCH_PER_DOMAIN_MAX = 8;
/** How many of the oldest are candidates, and how many of other domains beyond them. */
export const CANDIDATES_MAX = 512;
/** Domains for which the last turn is kept. */
const DOMAINS_MAX = 10_000;
/** Stands for files, which have no recipient domain. */
const NO_DOMAIN = -1;

const domainOf = ({ domain }: PendingIngestion) => domain ?? NO_DOMAIN;

/**
 * Chooses what is read next: of each domain the oldest first, round-robin over the domains, so that a flood for one does
 * not delay the others. An ingestion that was begun before is alone in its batch.
 */
class FairBatches {
  /** The turn in which each domain was served last. */
  readonly #servedIn = new Map<number, number>();
  #turn = 0;

  constructor(
    private readonly deps: {
      store: Pick<IngestionStore, "pending" | "pendingElsewhere">;
      /** How often processes began to read it that did not live to finish it. */
      attemptsOf: (one: PendingIngestion) => number;
      /** Whether it is not to be read yet. */
      isDeferred: (one: PendingIngestion) => boolean;
    },
  ) {}

  /** Empty when nothing is to be read now. */
  next(): PendingIngestion[] {
    const batch = this.#choose();
    this.#turn += 1;
    if (this.#servedIn.size > DOMAINS_MAX) this.#servedIn.clear();
    for (const one of batch) this.#servedIn.set(domainOf(one), this.#turn);
    return batch;
  }

  #choose(): PendingIngestion[] {
    let waiting = this.#queues();
    const batch: PendingIngestion[] = [];
    let bytes = 0;
    const rounds = waiting.length > 1 ? BATCH_PER_DOMAIN_MAX : BATCH_MAX;
    for (let round = 0; round < rounds && waiting.length > 0; round += 1) {
      const going: PendingIngestion[][] = [];
      for (const queue of waiting) {
        const one = queue[round];
        if (one === undefined) continue;
        const isBegun = this.deps.attemptsOf(one) > 0;
        if (isBegun && batch.length === 0) return [one];
        // Ends this domain's part of the batch.
        if (isBegun) continue;
        bytes += one.size;
        if (batch.length > 0 && (bytes > BATCH_BYTES_MAX || batch.length >= BATCH_MAX)) return batch;
        batch.push(one);
        going.push(queue);
      }
      waiting = going;
    }
    return batch;
  }

  /** What waits, by domain; the domain that was served longest ago is first. */
  #queues(): PendingIngestion[][] {
    const { store, isDeferred } = this.deps;
    const oldest = store.pending(CANDIDATES_MAX);
    const domains = [...new Set(oldest.map(domainOf))];
    const others = oldest.length < CANDIDATES_MAX ? [] : store.pendingElsewhere(domains, CANDIDATES_MAX);
    const ready = [...oldest, ...others].filter((one) => !isDeferred(one));
    const lastTurn = ([first]: readonly PendingIngestion[]) =>
      first === undefined ? 0 : (this.#servedIn.get(domainOf(first)) ?? 0);
    return [...Map.groupBy(ready, domainOf).values()].toSorted((a, b) => lastTurn(a) - lastTurn(b));
  }
}
