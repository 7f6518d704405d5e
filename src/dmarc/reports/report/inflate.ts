import { constants, createInflateRaw, inflateRawSync } from "node:zlib";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";

/** Decompressed bytes. `isTruncated`: the stream ended early; these are the bytes before that. */
export interface Inflated {
  readonly bytes: Uint8Array;
  readonly isTruncated: boolean;
  /** How many bytes of the input belong to the stream. */
  readonly consumedBytes: number;
}

export type InflateProblem = "too_large" | "damaged";

/** Larger output is inflated asynchronously: 64 MB would hold the event loop for 100 ms. */
const SYNC_BYTES_MAX = 1024 * 1024;

/**
 * Inflates a raw DEFLATE stream (RFC 1951) to at most `bytesMax` bytes. Bytes after the stream are ignored. The memory used
 * is bounded by `bytesMax`, however much the stream would produce. Large streams are inflated asynchronously.
 */
export const inflateRaw = async (input: Uint8Array, bytesMax: number): Promise<Result<Inflated, InflateProblem>> => {
  const bytes = Math.min(bytesMax, SYNC_BYTES_MAX);
  const small = await inflateWith((finishFlush) => attempt(input, bytes, finishFlush));
  if (small.ok || small.error !== "too_large" || bytes === bytesMax) return small;
  return inflateWith((finishFlush) => attemptLarge(input, bytesMax, finishFlush));
};

type Attempt = Result<Inflated, InflateProblem | "cut_off">;

const inflateWith = async (
  inflate: (finishFlush: number) => Attempt | Promise<Attempt>,
): Promise<Result<Inflated, InflateProblem>> => {
  const whole = await inflate(constants.Z_FINISH);
  if (whole.ok) return whole;
  if (whole.error !== "cut_off") return err(whole.error);
  const begun = await inflate(constants.Z_SYNC_FLUSH);
  if (!begun.ok) return err(begun.error === "too_large" ? "too_large" : "damaged");
  return ok({ ...begun.value, isTruncated: true });
};

/** Members of one gzip file; reporters write one, `cat a.gz b.gz` makes two. */
const GZIP_MEMBERS_MAX = 16;

/**
 * Unpacks a gzip file (RFC 1952) to at most `bytesMax` bytes. The trailer is not required and bytes after it are ignored:
 * mail programs append a line end, and some reporters omit the checksum.
 */
export const gunzip = async (input: Uint8Array, bytesMax: number): Promise<Result<Inflated, InflateProblem>> => {
  const members: Uint8Array[] = [];
  let at = 0;
  let bytesLeft = bytesMax;
  let isTruncated = false;
  while (members.length < GZIP_MEMBERS_MAX && isGzip(input.subarray(at))) {
    const header = headerLength(input.subarray(at));
    const member = header === null ? err("damaged" as const) : await inflateRaw(input.subarray(at + header), bytesLeft);
    if (!member.ok) {
      // Bytes after a valid member that only look like another one are garbage, not damage.
      if (members.length > 0 && member.error === "damaged") break;
      return member;
    }
    members.push(member.value.bytes);
    bytesLeft -= member.value.bytes.byteLength;
    isTruncated = member.value.isTruncated;
    at += (header ?? 0) + member.value.consumedBytes + TRAILER_BYTES;
  }
  const [first, second] = members;
  if (first === undefined) return err("damaged");
  const bytes = second === undefined ? first : Buffer.concat(members);
  return ok({ bytes, isTruncated, consumedBytes: Math.min(at, input.byteLength) });
};

/** Whether the bytes begin like a gzip file: magic number and the only method. */
export const isGzip = (bytes: Uint8Array): boolean => bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8;

const TRAILER_BYTES = 8;
const FIXED_HEADER_BYTES = 10;
const FLAG = { headerChecksum: 2, extra: 4, name: 8, comment: 16 } as const;

/** RFC 1952 §2.3; null when the header does not end. */
const headerLength = (bytes: Uint8Array): number | null => {
  const flags = bytes[3] ?? 0;
  let at = FIXED_HEADER_BYTES;
  if ((flags & FLAG.extra) !== 0) at += 2 + (bytes[at] ?? 0) + 256 * (bytes[at + 1] ?? 0);
  for (const flag of [FLAG.name, FLAG.comment]) {
    if ((flags & flag) === 0) continue;
    const end = bytes.indexOf(0, at);
    if (end === -1) return null;
    at = end + 1;
  }
  if ((flags & FLAG.headerChecksum) !== 0) at += 2;
  return at < bytes.byteLength ? at : null;
};

const attempt = (input: Uint8Array, bytesMax: number, finishFlush: number): Attempt => {
  if (bytesMax < 1) return err("too_large");
  try {
    // With `info` the result includes how far the input was read; the type declarations omit that.
    const options = { maxOutputLength: bytesMax, finishFlush, info: true };
    const answer: unknown = inflateRawSync(input, options);
    return ok({ ...readAnswer(answer), isTruncated: false });
  } catch (error) {
    return err(problemOf(error));
  }
};

/** DEFLATE's highest expansion factor. */
const EXPANSION_MAX = 1032;
const CHUNK_BYTES = 256 * 1024;

/** The same in chunks. The whole buffer is allocated at once, and uses only the memory that is written to. */
const attemptLarge = async (input: Uint8Array, bytesMax: number, finishFlush: number): Promise<Attempt> => {
  const stream = createInflateRaw({ chunkSize: CHUNK_BYTES, finishFlush });
  const place = new Uint8Array(Math.min(bytesMax, input.byteLength * EXPANSION_MAX));
  let length = 0;
  stream.end(input);
  try {
    for await (const chunk of stream) {
      if (!(chunk instanceof Uint8Array)) throw new Error("zlib gave something else than bytes");
      if (length + chunk.byteLength > place.byteLength) return err("too_large");
      place.set(chunk, length);
      length += chunk.byteLength;
    }
  } catch (error) {
    return err(problemOf(error));
  }
  return ok({ bytes: place.subarray(0, length), isTruncated: false, consumedBytes: stream.bytesWritten });
};

/** The problem that an error of zlib means; rethrows any other error. */
const problemOf = (error: unknown): InflateProblem | "cut_off" => {
  const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
  if (code === "ERR_BUFFER_TOO_LARGE") return "too_large";
  if (code === "Z_BUF_ERROR") return "cut_off";
  if (typeof code === "string" && code.startsWith("Z_")) return "damaged";
  throw error;
};

const readAnswer = (answer: unknown): { bytes: Uint8Array; consumedBytes: number } => {
  const { buffer, engine } = Object(answer) as { buffer?: unknown; engine?: { bytesWritten?: unknown } };
  const consumed = engine?.bytesWritten;
  if (!(buffer instanceof Uint8Array) || typeof consumed !== "number") throw new Error("zlib answered without info");
  return { bytes: buffer, consumedBytes: consumed };
};
