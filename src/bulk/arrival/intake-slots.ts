import { AppError } from "../../foundation/base/errors.ts";
import { FairQueue } from "../../foundation/base/fair-queue.ts";
import type { OnBehalfOf } from "../../foundation/base/on-behalf-of.ts";
import { createShares } from "../../foundation/base/shares.ts";

/** Lists read at a time; a large one may take 40 MB, a workbook 100 MB. One slot is reserved for small lists, one for large ones. */
const SLOTS = 3;
const SLOTS_PER_KIND_MAX = SLOTS - 1;
/** Lists that may wait: 80 small and 20 large ones, and of these only a share of one account. */
const WAITING_MAX = { realtime: 80, bulk: 20 } as const;
/** A small list is read within a second. */
export const SMALL_ROWS_MAX = 10_000;
export const SMALL_BYTES_MAX = 512 * 1024;
const RETRY_AFTER_S = 30;

export interface IntakeSlotOptions {
  readonly accountId: string;
  readonly isSmall: boolean;
}

/**
 * Limits how many lists are read and written at a time. The others wait: small lists before large ones, and the accounts
 * in turn. When too many wait, of an account or in all, a list is refused with 503 `unavailable`.
 */
export class IntakeSlots {
  readonly #queue = new FairQueue<() => void>();
  readonly #waiting = { realtime: waitingShares(WAITING_MAX.realtime), bulk: waitingShares(WAITING_MAX.bulk) };
  readonly #running = { realtime: 0, bulk: 0 };

  async run<T>({ accountId, isSmall }: IntakeSlotOptions, task: () => Promise<T>): Promise<T> {
    const who: OnBehalfOf = { account: accountId, priority: isSmall ? "realtime" : "bulk" };
    await this.#acquire(who);
    try {
      return await task();
    } finally {
      this.#release(who);
    }
  }

  #acquire(who: OnBehalfOf): Promise<void> | undefined {
    if (this.#hasSlot(who)) {
      this.#running[who.priority]++;
      return undefined;
    }
    const waiting = this.#waiting[who.priority];
    if (!waiting.mayHold(who)) throw tooMany();
    waiting.hold(who);
    return new Promise((resolve) => this.#queue.add(who, resolve));
  }

  #release({ priority }: OnBehalfOf): void {
    this.#running[priority]--;
    const hasSlot = (who: OnBehalfOf) => this.#hasSlot(who);
    for (let next = this.#queue.take(hasSlot); next !== undefined; next = this.#queue.take(hasSlot)) {
      this.#waiting[next.who.priority].release(next.who);
      this.#running[next.who.priority]++;
      next.item();
    }
  }

  #hasSlot({ priority }: OnBehalfOf): boolean {
    const { realtime, bulk } = this.#running;
    return realtime + bulk < SLOTS && this.#running[priority] < SLOTS_PER_KIND_MAX;
  }
}

const waitingShares = (placesMax: number) => createShares({ placesMax, realtimeShare: 0 });

const tooMany = (): AppError =>
  new AppError("unavailable", {
    message: "Too many lists are being received. Try again later.",
    headers: { "retry-after": String(RETRY_AFTER_S) },
  });
