import { AppError } from "../../foundation/base/errors.ts";

export interface UploadBudgetLimits {
  /** Files of one account that are being received or wait to be read. */
  readonly filesPerAccountMax: number;
  /** Their bytes on the disk, of one account and of all. */
  readonly bytesPerAccountMax: number;
  readonly bytesMax: number;
}

const MIB = 1024 ** 2;
const GIB = 1024 * MIB;
const LIMITS: UploadBudgetLimits = { filesPerAccountMax: 40, bytesPerAccountMax: GIB, bytesMax: 4 * GIB };
const RETRY_AFTER_S = 30;

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
