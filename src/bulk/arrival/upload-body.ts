import { backgroundTurn } from "../../foundation/base/background.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { waitFor } from "../../foundation/base/wait.ts";

/** How long an upload may pause, and how long it may take in total. */
export const STALL_MS_MAX = 30_000;
export const UPLOAD_MS_MAX = 30 * 60_000;

export const uploadTooLarge = (bytesMax: number): AppError =>
  new AppError("payload_too_large", { message: `The list may have at most ${bytesMax.toLocaleString("en")} bytes.` });

export const uploadRefused = (message: string): AppError => new AppError("Invalid request body", { message });

export interface BodyLimits {
  readonly listBytesMax: number;
  /** Bytes of the other parts of a form. */
  readonly aroundBytesMax: number;
  readonly clock: Clock;
  /** Whose upload it is. */
  readonly account: string;
}

/**
 * The bytes of a request body as they arrive. Throws 413 as soon as they exceed the limits (immediately if the
 * Content-Length does), 415 when compressed, 400 when the client disconnects or stalls, or when the body is shorter than
 * its Content-Length. Stopping early releases the body.
 */
export async function* bodyChunks(request: Request, limits: BodyLimits): AsyncGenerator<Uint8Array, void> {
  const { account, clock, listBytesMax } = limits;
  const bytesMax = listBytesMax + limits.aroundBytesMax;
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type", { message: "Send the list without a Content-Encoding." });
  }
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > bytesMax) throw uploadTooLarge(listBytesMax);
  const reader = request.body?.getReader();
  if (reader === undefined) return;
  const endsAtMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  let bytes = 0;
  try {
    for (;;) {
      const leftMs = Math.min(STALL_MS_MAX, endsAtMs - clock.monotonicMs());
      const { done, value } = await within(clock, leftMs, readOrRefuse(reader));
      if (done) break;
      bytes += value.length;
      if (bytes > bytesMax) throw uploadTooLarge(listBytesMax);
      yield value;
      // What has not been read yet waits with its sender: many uploads at once would hold the event loop.
      await backgroundTurn(account);
    }
    if (declared !== null && bytes !== Number(declared)) throw uploadRefused("The upload ended prematurely.");
  } finally {
    reader.cancel().catch(ignoreLateFailure);
  }
}

/**
 * Reads a body to its end and keeps nothing of it: a browser shows the response to an upload only after it has sent all of
 * it. Gives up when the client stalls or is gone.
 */
export const discardBody = async (request: Request, clock: Clock): Promise<void> => {
  const reader = request.bodyUsed ? undefined : request.body?.getReader();
  if (reader === undefined) return;
  const endsAtMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  try {
    while (!(await within(clock, Math.min(STALL_MS_MAX, endsAtMs - clock.monotonicMs()), readOrRefuse(reader))).done);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  } finally {
    reader.cancel().catch(ignoreLateFailure);
  }
};

/** Settles with `task`, or throws 400 after `delayMs`. */
export const within = async <T>(clock: Clock, delayMs: number, task: Promise<T>): Promise<T> => {
  const waited = await waitFor(clock, task, { timeoutMs: delayMs });
  if (waited.ok) return waited.value;
  const reason = delayMs < STALL_MS_MAX ? "it took too long" : `no data for ${STALL_MS_MAX / 1000} s`;
  throw uploadRefused(`Upload timed out: ${reason}.`);
};

const readOrRefuse = async <T>(reader: { read(): Promise<T> }): Promise<T> => {
  try {
    return await reader.read();
  } catch {
    // Whatever the cause, the list is incomplete.
    throw uploadRefused("The upload ended prematurely.");
  }
};

/** The body is no longer needed, so an error of its connection is irrelevant. */
const ignoreLateFailure = (): undefined => undefined;
