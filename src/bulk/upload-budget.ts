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
export interface UploadPass {
  /** Called before these bytes are written; throws 503 `unavailable` when they do not fit. */
  add(bytes: number): void;
  /** The file is gone from the disk. */
  leave(): void;
}

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });

/** Bounds what uploaded lists take of the disk from their first byte until they are in the database. */
export const createUploadBudget = (limits: UploadBudgetLimits = LIMITS) => {
  const accounts = new Map<string, { files: number; bytes: number }>();
  let bytesOfAll = 0;

  return {
    /** Throws 503 `unavailable` when the account uploads as many files at a time as it may. */
    enter(accountId: string): UploadPass {
      const own = accounts.get(accountId) ?? { files: 0, bytes: 0 };
      if (own.files >= limits.filesPerAccountMax)
        throw busy(`An account can upload ${limits.filesPerAccountMax} lists at a time.`);
      accounts.set(accountId, own);
      own.files++;
      let bytes = 0;
      return {
        add(more) {
          if (own.bytes + more > limits.bytesPerAccountMax)
            throw busy("The lists that this account uploads at a time are too large together.");
          if (bytesOfAll + more > limits.bytesMax) throw busy("Too much is being uploaded at the moment.");
          bytes += more;
          own.bytes += more;
          bytesOfAll += more;
        },
        leave() {
          own.files--;
          own.bytes -= bytes;
          bytesOfAll -= bytes;
          bytes = 0;
          if (own.files === 0) accounts.delete(accountId);
        },
      };
    },
    /** Bytes of all uploads at the moment. */
    bytes: (): number => bytesOfAll,
  };
};

export type UploadBudget = ReturnType<typeof createUploadBudget>;
