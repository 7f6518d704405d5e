import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { waitFor } from "../base/wait.ts";

/** How long an upload may stand still, and how long it may take in all. */
export const STALL_MS_MAX = 30_000;
export const UPLOAD_MS_MAX = 30 * 60_000;

export const uploadTooLarge = (bytesMax: number): AppError =>
  new AppError("payload_too_large", { message: `The list may have ${bytesMax.toLocaleString("en")} bytes at most.` });

export const uploadRefused = (message: string): AppError => new AppError("Invalid request body", { message });

export interface BodyLimits {
  readonly listBytesMax: number;
  /** What may stand around the list: the other parts of a form. */
  readonly aroundBytesMax: number;
  readonly clock: Clock;
}

/**
 * The bytes of a request's body as they arrive. Throws an AppError: 413 as soon as there are more than the limits allow
 * (at once when the Content-Length says so), 415 when compressed, 400 when the client goes away or falls silent, or when
 * the body is shorter than its Content-Length. Whoever stops reading early releases the body.
 */
export async function* bodyChunks(request: Request, limits: BodyLimits): AsyncGenerator<Uint8Array, void> {
  const { clock, listBytesMax } = limits;
  const bytesMax = listBytesMax + limits.aroundBytesMax;
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type", { message: "Send the list uncompressed (no Content-Encoding)." });
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
    }
    if (declared !== null && bytes !== Number(declared)) throw uploadRefused("The upload broke off before its end.");
  } finally {
    reader.cancel().catch(ignoreLateFailure);
  }
}

/** Settles as `task` does, or throws 400 after `delayMs`. */
export const within = async <T>(clock: Clock, delayMs: number, task: Promise<T>): Promise<T> => {
  const waited = await waitFor(clock, task, { timeoutMs: delayMs });
  if (waited.ok) return waited.value;
  throw uploadRefused("The upload stood still for too long.");
};

const readOrRefuse = async <T>(reader: { read(): Promise<T> }): Promise<T> => {
  try {
    return await reader.read();
  } catch {
    // Whatever broke the connection, the list did not arrive.
    throw uploadRefused("The upload broke off before its end.");
  }
};

/** The body is given up already: how its connection ended no longer matters. */
const ignoreLateFailure = (): undefined => undefined;
