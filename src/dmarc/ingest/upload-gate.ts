import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { filesIn, readUpload, type UploadedFile } from "./report-upload.ts";
import { Gate, waitFor } from "../../base/wait.ts";

/** Bodies of all uploads together, from the first byte until their reports are stored. */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
const UPLOADS_PER_ACCOUNT_MAX = 4;
/** Uploads worked on at a time, and those that wait for that. */
const UPLOADS_AT_ONCE = 2;
const UPLOADS_WAITING_MAX = 32;
const RETRY_AFTER_S = 5;
/** How long a body may stand still, and how long it may take in all. */
const STILL_MS_MAX = 60_000;
const BODY_MS_MAX = 300_000;

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });
const late = (): AppError =>
  new AppError("Invalid request body", {
    message: `The body did not arrive in time: ${STILL_MS_MAX / 1000} seconds without a byte, or ${BODY_MS_MAX / 60_000} minutes in all.`,
  });

/** Ceilings of uploads, as they are unless a test says otherwise. */
export interface UploadLimits {
  readonly heldBytesMax: number;
}

/**
 * Takes uploads in. Bodies are read side by side, whoever drips; what is complete is worked on a few at a time, in the order
 * in which it was. Throws what `readUpload` does, 400 for a body that does not arrive in time, 503 with
 * `Retry-After` beyond the ceilings.
 */
export const createUploadGate = (clock: Clock, { heldBytesMax }: UploadLimits = { heldBytesMax: HELD_BYTES_MAX }) => {
  const gate = new Gate(UPLOADS_AT_ONCE);
  const byAccount = new Map<string, number>();
  let heldBytes = 0;

  const enter = (accountId: string): void => {
    const there = byAccount.get(accountId) ?? 0;
    if (there >= UPLOADS_PER_ACCOUNT_MAX) throw busy("Too many uploads of this account at a time.");
    byAccount.set(accountId, there + 1);
  };

  const leave = (accountId: string, bytes: number): void => {
    heldBytes -= bytes;
    const left = (byAccount.get(accountId) ?? 1) - 1;
    if (left > 0) byAccount.set(accountId, left);
    else byAccount.delete(accountId);
  };

  return async <T>(request: Request, accountId: string, work: (files: UploadedFile[]) => Promise<T>): Promise<T> => {
    enter(accountId);
    let bytes = 0;
    /** Called with every piece of the body. */
    const hold = (more: number): void => {
      if (heldBytes + more > heldBytesMax) throw busy("Too much is being uploaded at a time.");
      heldBytes += more;
      bytes += more;
    };
    try {
      const upload = await readUpload(request, (body) => inTime(body, clock, hold));
      if (gate.waiting >= UPLOADS_WAITING_MAX) throw busy("Too many uploads at a time.");
      return await gate.run(async () => work(await filesIn(upload)));
    } finally {
      leave(accountId, bytes);
    }
  };
};

/** Hands the pieces of a body on as they come; throws when they take too long, and what `hold` throws. */
async function* inTime(
  body: ReadableStream<Uint8Array>,
  clock: Clock,
  hold: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const endsAtMs = clock.monotonicMs() + BODY_MS_MAX;
  try {
    for (;;) {
      const leftMs = endsAtMs - clock.monotonicMs();
      const read = await waitFor(clock, reader.read(), { timeoutMs: Math.min(STILL_MS_MAX, leftMs) });
      if (!read.ok) throw late();
      const { done, value } = read.value;
      if (done) return;
      hold(value.byteLength);
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
