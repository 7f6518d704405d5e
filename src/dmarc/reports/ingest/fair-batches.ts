import type { IngestionStore, PendingIngestion } from "./ingestion-store.ts";

/** Ingestions read together. */
export const BATCH_MAX = 64;
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
/** Of one domain, while others wait. */
export const BATCH_PER_DOMAIN_MAX = 8;
/** How many of the oldest are candidates, and how many of other domains beyond them. */
export const CANDIDATES_MAX = 512;
/** Domains for which the last turn is kept. */
const DOMAINS_MAX = 10_000;
/** Stands for files, which have no recipient domain. */
const NO_DOMAIN = -1;

export interface FairBatchesParts {
  readonly store: Pick<IngestionStore, "pending" | "pendingElsewhere">;
  /** How often processes began to read it that did not live to finish it. */
  readonly attemptsOf: (one: PendingIngestion) => number;
  /** Whether it is not to be read yet. */
  readonly isDeferred: (one: PendingIngestion) => boolean;
}

const domainOf = ({ domain }: PendingIngestion): number => domain ?? NO_DOMAIN;

/**
 * Chooses what is read next: of each domain the oldest first, round-robin over the domains, so that a flood for one does
 * not delay the others. What was begun before is alone in its batch.
 */
export class FairBatches {
  readonly #parts: FairBatchesParts;
  /** The turn in which each domain was served last. */
  readonly #servedIn = new Map<number, number>();
  #turn = 0;

  constructor(parts: FairBatchesParts) {
    this.#parts = parts;
  }

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
        const isBegun = this.#parts.attemptsOf(one) > 0;
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
    const { store, isDeferred } = this.#parts;
    const oldest = store.pending(CANDIDATES_MAX);
    const domains = [...new Set(oldest.map(domainOf))];
    const others = oldest.length < CANDIDATES_MAX ? [] : store.pendingElsewhere(domains, CANDIDATES_MAX);
    const ready = [...oldest, ...others].filter((one) => !isDeferred(one));
    const lastTurn = ([first]: readonly PendingIngestion[]): number =>
      first === undefined ? 0 : (this.#servedIn.get(domainOf(first)) ?? 0);
    return [...Map.groupBy(ready, domainOf).values()].toSorted((a, b) => lastTurn(a) - lastTurn(b));
  }
}
