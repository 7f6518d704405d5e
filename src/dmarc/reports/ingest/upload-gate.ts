import type { Clock } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { filesIn, readUpload, type UploadedFile } from "./report-upload.ts";
import { Gate, waitFor } from "../../../foundation/base/wait.ts";

/** Bytes of all uploads together, from the first byte until their reports are stored. */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
const UPLOADS_PER_ACCOUNT_MAX = 4;
/** Uploads processed at a time, and those that wait. */
const UPLOADS_AT_ONCE = 2;
const UPLOADS_WAITING_MAX = 32;
const RETRY_AFTER_S = 5;
/** The timeout without data, and in all. */
const STILL_MS_MAX = 60_000;
const BODY_MS_MAX = 300_000;

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });
const late = (): AppError =>
  new AppError("Invalid request body", {
    message: `Upload timed out: no data for ${STILL_MS_MAX / 1000} seconds, or ${BODY_MS_MAX / 60_000} minutes in all.`,
  });

/** Limits of uploads; tests change them. */
export interface UploadLimits {
  readonly heldBytesMax: number;
}

/**
 * Limits uploads. Bodies are received concurrently, so that a slow one delays no other; complete uploads are processed a few at
 * a time, in order. Throws what `readUpload` throws, 400 when an upload times out, 503 with `Retry-After` beyond the limits.
 */
export const createUploadGate = (clock: Clock, { heldBytesMax }: UploadLimits = { heldBytesMax: HELD_BYTES_MAX }) => {
  const gate = new Gate(UPLOADS_AT_ONCE);
  const byAccount = new Map<string, number>();
  let heldBytes = 0;

  const enter = (accountId: string): void => {
    const there = byAccount.get(accountId) ?? 0;
    if (there >= UPLOADS_PER_ACCOUNT_MAX) throw busy("This account has too many uploads in progress.");
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
    /** Called for every chunk of the body. */
    const hold = (more: number): void => {
      if (heldBytes + more > heldBytesMax) throw busy("Too much data is being uploaded.");
      heldBytes += more;
      bytes += more;
    };
    try {
      const upload = await readUpload(request, (body) => inTime(body, clock, hold));
      if (gate.waiting >= UPLOADS_WAITING_MAX) throw busy("Too many uploads in progress.");
      return await gate.run(async () => work(await filesIn(upload)));
    } finally {
      leave(accountId, bytes);
    }
  };
};

/** The chunks of a body as they arrive. Throws when it times out, and what `hold` throws. */
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
