import { Readable } from "node:stream";
import { createGzip } from "node:zlib";
import { backgroundTurn } from "../base/fair-queue.ts";
import { type ResponseReservation, reserveResponse, accountOfRequest } from "./request-memory.ts";

/** Smaller responses are sent whole and uncompressed: compression and streaming would cost more than they save. */
const LARGE_BYTES = 32 * 1024;
const PIECE_BYTES = 64 * 1024;
/** Takes half the time of the default level, for 5 % more bytes. */
const GZIP_LEVEL = 4;

type Headers = Readonly<Record<string, string>>;

/** Whether a request accepts gzip, by name or by `*`, and not with q=0 (RFC 9110 §12.5.3). */
export const takesGzip = (request: Request): boolean => {
  let any = false;
  for (const range of (request.headers.get("accept-encoding") ?? "").toLowerCase().split(",")) {
    const [name = "", ...parameters] = range.split(";").map((part) => part.trim());
    const isWanted = !parameters.some((parameter) => /^q=0(\.0*)?$/.test(parameter));
    if (name === "gzip" || name === "x-gzip") return isWanted;
    if (name === "*") any = isWanted;
  }
  return any;
};

const withVary = (headers: Headers): Headers => ({
  ...headers,
  vary: "vary" in headers ? `${headers.vary}, accept-encoding` : "accept-encoding",
});

/**
 * A streamed response, compressed if the request accepts it. `end` is called once: when all is sent, when a piece fails, and
 * when the client disconnects or stops reading for longer than the idle timeout.
 */
export const streamResponse = (
  request: Request,
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  { headers, end = nothing }: { readonly headers: Headers; readonly end?: () => void },
): Response => {
  const isZipped = takesGzip(request);
  const all = withVary(headers);
  const init = { headers: isZipped ? { ...all, "content-encoding": "gzip" } : all };
  if (request.method === "HEAD") {
    end();
    unmeasured.add(request);
    return new Response(null, init);
  }
  const iterator = (isZipped ? zipped(pieces) : plain(pieces))[Symbol.asyncIterator]();
  let isEnded = false;
  const finish = () => {
    if (isEnded) return;
    isEnded = true;
    request.signal.removeEventListener("abort", onAbort);
    end();
  };
  const abandon = async () => {
    finish();
    await iterator.return?.().catch(nothing);
  };
  const onAbort = () => void abandon();
  request.signal.addEventListener("abort", onAbort);
  const stream = new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const next = await iterator.next();
          if (next.done !== true) return controller.enqueue(next.value);
          finish();
          controller.close();
        } catch (error) {
          finish();
          controller.error(error);
        }
      },
      cancel: abandon,
    },
    { highWaterMark: 0 },
  );
  return new Response(stream, init);
};

/** HEAD requests whose GET response would be streamed. */
const unmeasured = new WeakSet<Request>();

/**
 * Removes the Content-Length that the router computes from the empty body of a HEAD response, where GET would send no or another
 * one (RFC 9110 §8.6). The body is never read; without one the runtime would write a length of 0.
 */
export const withoutWrongLength = (request: Request, answer: Response): Response => {
  if (!unmeasured.has(request)) return answer;
  const headers = new Headers(answer.headers);
  headers.delete("content-length");
  const unread = new ReadableStream<Uint8Array>({ pull: (controller) => controller.close() }, { highWaterMark: 0 });
  return new Response(unread, { status: answer.status, headers });
};

async function* plain(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  yield* pieces;
}

/** Compressed on a thread of its own, a piece ahead at most. */
async function* zipped(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): AsyncGenerator<Uint8Array, void> {
  const source = Readable.from(pieces, { objectMode: true, highWaterMark: 1 });
  const gzip = createGzip({ level: GZIP_LEVEL });
  source.on("error", (error) => gzip.destroy(error));
  source.pipe(gzip);
  try {
    for await (const piece of gzip) yield piece as Uint8Array;
  } finally {
    // The loop has destroyed its own stream.
    source.destroy();
  }
}

const nothing = () => undefined;

/** Memory of a streamed response: a batch of rows, and the buffers of the runtime. */
const STREAM_BYTES = 1024 * 1024;

/** Each piece is made in a turn of the account's background work. */
async function* inTurns(pieces: AsyncIterable<Uint8Array>, account: string | null): AsyncGenerator<Uint8Array, void> {
  const iterator = pieces[Symbol.asyncIterator]();
  try {
    for (;;) {
      await backgroundTurn(account);
      const next = await iterator.next();
      if (next.done === true) return;
      // An empty chunk would end the response.
      if (next.value.byteLength > 0) yield next.value;
    }
  } finally {
    await iterator.return?.();
  }
}

/** Streams a response of any length; 503 when too many are open. */
export const streamRows = (request: Request, pieces: AsyncIterable<Uint8Array>, headers: Headers): Response => {
  const held = reserveResponse(request);
  held.add(STREAM_BYTES);
  return streamResponse(request, inTurns(pieces, accountOfRequest(request)), { headers, end: () => held.release() });
};

/** Sends bytes in pieces; 503 when too much is unsent. */
export const sendBytes = (request: Request, bytes: Uint8Array, headers: Headers): Response => {
  const held = reserveResponse(request);
  held.add(bytes.byteLength);
  return streamResponse(request, slices(bytes), { headers, end: () => held.release() });
};

/** A file that somebody else wrote, to be saved: no browser shows it. */
export interface ForeignFile {
  readonly bytes: Uint8Array;
  /** In ASCII, without quotation marks. */
  readonly fileName: string;
  /** Default: application/octet-stream. */
  readonly contentType?: string;
}

/** Sends a file in pieces; 503 when too much is unsent. */
export const sendFile = (
  request: Request,
  { bytes, fileName, contentType = "application/octet-stream" }: ForeignFile,
): Response =>
  sendBytes(request, bytes, {
    "content-type": contentType,
    "content-disposition": `attachment; filename="${fileName}"`,
    "x-content-type-options": "nosniff",
  });

function* slices(bytes: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < bytes.byteLength; at += PIECE_BYTES) yield bytes.subarray(at, at + PIECE_BYTES);
}

/** A value as JSON, of any size; 503 when too much is unsent. */
export const sendJson = (request: Request, value: unknown, headers: Headers = {}): Response =>
  sendText(request, JSON.stringify(value), { "content-type": "application/json", ...headers });

/** A text of any size; 503 when too much is unsent. */
export const sendText = (request: Request, text: string, headers: Headers): Response => {
  const answer = new TextResponse(request);
  answer.write(text);
  return answer.send(headers);
};

/** Text whose bytes are counted from when they are written until they are sent. */
export class TextResponse {
  readonly #held: ResponseReservation;
  readonly #pieces: Array<Buffer<ArrayBuffer>> = [];
  #texts: string[] = [];
  #waiting = 0;
  #reserved = 0;

  constructor(private readonly request: Request) {
    this.#held = reserveResponse(request);
  }

  /** Counts bytes before they are written; 503 when too much of the account or of all callers is unsent. */
  reserve(bytes: number): void {
    this.#held.add(bytes);
    this.#reserved += bytes;
  }

  /** 503 as for `reserve`. */
  write(text: string): void {
    const bytes = Buffer.byteLength(text);
    if (bytes > this.#reserved) this.reserve(bytes - this.#reserved);
    this.#reserved -= bytes;
    this.#texts.push(text);
    this.#waiting += bytes;
    if (this.#waiting >= PIECE_BYTES) this.#pack();
  }

  /** Releases what was written but will not be sent. */
  abandon(): void {
    this.#held.release();
  }

  send(headers: Headers): Response {
    this.#pack();
    const [only = new Uint8Array(), ...others] = this.#pieces;
    if (others.length === 0 && only.byteLength < LARGE_BYTES) {
      this.#held.release();
      return new Response(only, { headers });
    }
    return streamResponse(this.request, this.#drain(), { headers, end: () => this.#held.release() });
  }

  #pack() {
    this.#pieces.push(Buffer.from(this.#texts.join("")));
    this.#texts = [];
    this.#waiting = 0;
  }

  /** A piece is released when the next one is requested: it is sent by then. */
  *#drain(): Generator<Uint8Array, void> {
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift()) {
      yield* slices(piece);
      this.#held.release(piece.byteLength);
    }
  }
}

/** Code points of a file's name without its ending. */
const NAME_CHARACTERS_MAX = 100;
/** Characters that file systems or shells reject or interpret, invisible ones, and those that change the writing direction. */
const UNFIT = /[/\\:*?"<>|\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]+/gu;

const cleaned = (name: string) =>
  [...name.toWellFormed().normalize("NFC").replace(UNFIT, " ").replace(/\s+/g, " ")]
    .slice(0, NAME_CHARACTERS_MAX)
    .join("")
    .replace(/^[\s.]+|[\s.]+$/g, "");

/** Percent-encodes the characters that encodeURIComponent leaves but RFC 8187 §3.2.1 does not allow. */
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (sign) => `%${sign.charCodeAt(0).toString(16).toUpperCase()}`);

/**
 * The value of Content-Disposition for a download called `name` + `ending` (RFC 6266): in ASCII for old clients, and
 * where that is not the name, as UTF-8 (RFC 8187). The value is always one line of printable ASCII.
 */
export const attachment = (name: string, ending: string): string => {
  const whole = (cleaned(name) || "download") + ending;
  const ascii = whole
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .replace(/[^\x20-\x7e]|%/g, "_");
  return `attachment; filename="${ascii}"${ascii === whole ? "" : `; filename*=UTF-8''${encoded(whole)}`}`;
};
