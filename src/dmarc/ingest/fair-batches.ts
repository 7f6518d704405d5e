import type { PendingIngestion } from "./ingestion-store.ts";

/** Mails taken up together. */
export const BATCH_MAX = 64;
const BATCH_BYTES_MAX = 8 * 1024 * 1024;
/** Of one domain, while others wait. */
export const BATCH_PER_DOMAIN_MAX = 8;
/** How many of those that wait are looked at, and of others beyond them. */
export const CANDIDATES_MAX = 512;
/** Domains of which it is remembered when they last had their turn. */
const REMEMBERED_MAX = 10_000;

export interface FairBatchesDeps {
  /** What waits, the oldest first. */
  readonly pending: (limit: number) => PendingIngestion[];
  /** The same without some domains; -1 stands for files, which came to no domain. */
  readonly pendingElsewhere: (domains: readonly number[], limit: number) => PendingIngestion[];
  /** How often reading was begun by processes that did not live to see its end. */
  readonly attemptsOf: (one: PendingIngestion) => number;
  /** Whether it is not to be read yet. */
  readonly isDeferred: (one: PendingIngestion) => boolean;
}

const groupOf = ({ domain }: PendingIngestion): number => domain ?? -1;

/**
 * Says what is read next: of each domain the oldest first, and the domains by turns, so that a flood for one does not
 * keep the others waiting. What was begun before is alone in its batch.
 */
export const createFairBatches = ({ pending, pendingElsewhere, attemptsOf, isDeferred }: FairBatchesDeps) => {
  const servedIn = new Map<number, number>();
  let turn = 0;

  const serve = (batch: readonly PendingIngestion[]): PendingIngestion[] => {
    turn += 1;
    if (servedIn.size > REMEMBERED_MAX) servedIn.clear();
    for (const one of batch) servedIn.set(groupOf(one), turn);
    return [...batch];
  };

  /** What waits, by domain; whoever was served longest ago is first. */
  const queues = (): PendingIngestion[][] => {
    const oldest = pending(CANDIDATES_MAX);
    const domains = [...new Set(oldest.map(groupOf))];
    const others = oldest.length < CANDIDATES_MAX ? [] : pendingElsewhere(domains, CANDIDATES_MAX);
    const ready = [...oldest, ...others].filter((one) => !isDeferred(one));
    const lastOf = ([first]: readonly PendingIngestion[]): number =>
      first === undefined ? 0 : (servedIn.get(groupOf(first)) ?? 0);
    return [...Map.groupBy(ready, groupOf).values()].toSorted((a, b) => lastOf(a) - lastOf(b));
  };

  return {
    /** What is read together next; empty when nothing is to be read now. */
    next(): PendingIngestion[] {
      let waiting = queues();
      const batch: PendingIngestion[] = [];
      let bytes = 0;
      const rounds = waiting.length > 1 ? BATCH_PER_DOMAIN_MAX : BATCH_MAX;
      for (let round = 0; round < rounds && waiting.length > 0; round += 1) {
        const going: PendingIngestion[][] = [];
        for (const queue of waiting) {
          const one = queue[round];
          if (one === undefined) continue;
          const isBegun = attemptsOf(one) > 0;
          if (isBegun && batch.length === 0) return serve([one]);
          // A queue ends before what was begun.
          if (isBegun) continue;
          bytes += one.size;
          if (batch.length > 0 && (bytes > BATCH_BYTES_MAX || batch.length >= BATCH_MAX)) return serve(batch);
          batch.push(one);
          going.push(queue);
        }
        waiting = going;
      }
      return serve(batch);
    },
  };
};
