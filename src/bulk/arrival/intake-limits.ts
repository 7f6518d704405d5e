import { AppError } from "../../foundation/base/errors.ts";
import { FairQueue } from "../../foundation/base/fair-queue.ts";
import { type OnBehalfOf, createShares } from "../../foundation/base/on-behalf-of.ts";

/** Lists read at a time; a large one may take 40 MB, a workbook 100 MB. One slot is reserved for small lists, one for large ones. */
const SLOTS = 3;
const SLOTS_PER_KIND_MAX = SLOTS - 1;
/** Lists that may wait: 80 small and 20 large ones, and of these only a share of one account. */
const WAITING_MAX = { realtime: 80, bulk: 20 } as const;
/** A small list is read within a second. */
export const SMALL_ROWS_MAX = 10_000;
export const SMALL_BYTES_MAX = 512 * 1024;
const RETRY_AFTER_S = 30;

interface IntakeSlotOptions {
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

interface UploadBudgetLimits {
  /** Files of one account that are being received or wait to be read. */
  readonly filesPerAccountMax: number;
  /** Bytes of these lists on the disk, of one account and of all. */
  readonly bytesPerAccountMax: number;
  readonly bytesMax: number;
}

const MIB = 1024 ** 2;
const GIB = 1024 * MIB;
const LIMITS: UploadBudgetLimits = { filesPerAccountMax: 40, bytesPerAccountMax: GIB, bytesMax: 4 * GIB };

const sizeText = (bytes: number): string => {
  if (bytes % MIB !== 0) return `${bytes} bytes`;
  return bytes % GIB === 0 ? `${bytes / GIB} GiB` : `${bytes / MIB} MiB`;
};

/** The disk space reserved for one upload. */
export interface UploadReservation {
  /** The upload is complete and has no more than these bytes. */
  shrink(bytes: number): void;
  /** The file is deleted. */
  release(): void;
}

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });

/** Limits the disk space of uploads. The largest possible size is reserved in advance, so that no upload fails halfway. */
export class UploadBudget {
  readonly #limits: UploadBudgetLimits;
  readonly #accounts = new Map<string, { files: number; bytes: number }>();
  #bytes = 0;

  constructor(limits: UploadBudgetLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Bytes reserved for all uploads. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws 503 `unavailable` when the account, or all accounts together, exceed the limits. */
  reserve(accountId: string, bytes: number): UploadReservation {
    const { filesPerAccountMax, bytesPerAccountMax, bytesMax } = this.#limits;
    const own = this.#accounts.get(accountId) ?? { files: 0, bytes: 0 };
    if (own.files >= filesPerAccountMax) throw busy(`An account can upload ${filesPerAccountMax} lists at a time.`);
    if (own.bytes + bytes > bytesPerAccountMax)
      throw busy(`Concurrent uploads exceed ${sizeText(bytesPerAccountMax)} for this account.`);
    if (this.#bytes + bytes > bytesMax) throw busy("Too many lists are being uploaded. Try again later.");
    this.#accounts.set(accountId, own);
    own.files++;
    let reserved = 0;
    const resize = (now: number): void => {
      own.bytes += now - reserved;
      this.#bytes += now - reserved;
      reserved = now;
    };
    resize(bytes);
    return {
      shrink: (now) => resize(Math.min(reserved, now)),
      release: () => {
        resize(0);
        own.files--;
        if (own.files === 0) this.#accounts.delete(accountId);
      },
    };
  }
}
