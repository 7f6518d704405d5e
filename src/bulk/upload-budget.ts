import { AppError } from "../base/errors.ts";

export interface UploadBudgetLimits {
  /** Files of one account that are arriving or waiting to be taken in. */
  readonly filesPerAccountMax: number;
  /** Their bytes on the disk, of one account and of all. */
  readonly bytesPerAccountMax: number;
  readonly bytesMax: number;
}

const GIB = 1024 ** 3;
const LIMITS: UploadBudgetLimits = { filesPerAccountMax: 40, bytesPerAccountMax: GIB, bytesMax: 4 * GIB };
const RETRY_AFTER_S = 30;

/** One upload's part of the budget. */
export interface UploadReservation {
  /** The file has arrived, and has no more than these bytes. */
  shrink(bytes: number): void;
  /** The file is gone from the disk. */
  leave(): void;
}

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });

/**
 * Bounds what uploaded lists take of the disk from their first byte until they are in the database. What an upload may
 * grow to is set aside for it before it begins, so that none is broken off half-way for want of it.
 */
export const createUploadBudget = (limits: UploadBudgetLimits = LIMITS) => {
  const accounts = new Map<string, { files: number; bytes: number }>();
  let bytesOfAll = 0;

  return {
    /** Sets `bytes` aside. Throws 503 `unavailable` when the account, or all together, upload as much as they may. */
    enter(accountId: string, bytes: number): UploadReservation {
      const own = accounts.get(accountId) ?? { files: 0, bytes: 0 };
      if (own.files >= limits.filesPerAccountMax)
        throw busy(`An account can upload ${limits.filesPerAccountMax} lists at a time.`);
      if (own.bytes + bytes > limits.bytesPerAccountMax)
        throw busy("The lists that this account uploads at a time are too large together.");
      if (bytesOfAll + bytes > limits.bytesMax) throw busy("Too much is being uploaded at the moment.");
      accounts.set(accountId, own);
      own.files++;
      let left = 0;
      const setAside = (now: number): void => {
        own.bytes += now - left;
        bytesOfAll += now - left;
        left = now;
      };
      setAside(bytes);
      return {
        shrink: (now) => setAside(Math.min(left, now)),
        leave() {
          setAside(0);
          own.files--;
          if (own.files === 0) accounts.delete(accountId);
        },
      };
    },
    /** Bytes set aside for all uploads at the moment. */
    bytes: (): number => bytesOfAll,
  };
};

export type UploadBudget = ReturnType<typeof createUploadBudget>;
