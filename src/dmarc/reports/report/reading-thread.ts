import { parentPort, Worker } from "node:worker_threads";
import { type Clock, nextTurn } from "../../../foundation/base/clock.ts";
import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { Log } from "../../../foundation/base/log.ts";
import { Gate, waitFor } from "../../../foundation/base/wait.ts";
import {
  type FileReader,
  type FileToRead,
  hashRows,
  type ReadFailure,
  type ReadOutcome,
  readingHere,
  readWithin,
  type UnpackAllowance,
} from "./file-reader.ts";
import type { Report, ReportReading } from "./report.ts";
import type { ReportRow } from "./report-row.ts";

/** Files that the thread reads together: large ones alone. */
const FILES_MAX = 32;
const BYTES_MAX = 512 * 1024;
/** Rows after which it reads no further file: what was read is in memory until it is written. */
const ROWS_MAX = 1_000;
/** After this time the thread is ended. The largest files that the limits allow take some seconds. */
export const READ_MS_MAX = 60_000;
/** The thread ends when it had nothing to read for this long. */
const IDLE_MS = 60_000;
/** Files after which the thread collects its garbage: otherwise its heap keeps growing while many mails arrive. */
const COLLECT_AFTER = 512;

/** What the thread gets: the bytes of all files in one buffer, which becomes the thread's. */
interface ReadOrder {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly files: ReadonlyArray<{ readonly name: string | null; readonly length: number }>;
  readonly bytesLeft: number;
}

/** A file as the thread passes it on. */
interface PassedFile {
  /** The JSON of a `PassedHead`. */
  readonly head: string;
  /** The pieces of rows of its reports: their lengths in bytes, each with the index of its reading. */
  readonly pieces: ReadonlyArray<readonly [reading: number, length: number]>;
}

/** Null instead of readings: the file exceeds the allowance. */
type PassedHead = {
  readonly readings: readonly ReportReading[] | null;
  readonly hashes: ReadonlyArray<string | null>;
  readonly problem: string | null;
};

interface ReadReply {
  /** Of the first files, one at least. */
  readonly files: readonly PassedFile[];
  /** The JSON of the rows of all files, in their order: a buffer that is moved costs nothing, texts of 15 MB cost 80 ms. */
  readonly rows: Uint8Array<ArrayBuffer>;
  readonly bytesLeft: number;
}

/** A file that was read in the thread. */
interface FinishedFile {
  readonly head: string;
  readonly pieces: ReadonlyArray<readonly [reading: number, json: Uint8Array]>;
  /** The number of its rows. */
  readonly rows: number;
}

const finished = (head: Partial<PassedHead>, pieces: FinishedFile["pieces"] = [], rows = 0): FinishedFile => ({
  pieces,
  rows,
  head: JSON.stringify({ readings: null, hashes: [], problem: null, ...head } satisfies PassedHead),
});

const encoder = new TextEncoder();
const decoder = new TextDecoder();

/** Reads a file in the thread. */
const passOn = async (file: FileToRead, allowance: UnpackAllowance): Promise<FinishedFile> => {
  try {
    const readings = await readWithin(file, allowance);
    if (readings === null) return finished({});
    const pieces: [number, Uint8Array][] = [];
    const hashes: (string | null)[] = [];
    let rows = 0;
    for (const [index, { report }] of readings.entries()) {
      hashes.push(
        report === null ? null : await hashRows(report, (json) => pieces.push([index, encoder.encode(json)])),
      );
      rows += report?.rows.length ?? 0;
    }
    const heads = readings.map((one) => (one.report === null ? one : { ...one, report: { ...one.report, rows: [] } }));
    return finished({ readings: heads, hashes }, pieces, rows);
  } catch (error) {
    return finished({ problem: String(error) });
  }
};

const carryOut = async ({ bytes, files, bytesLeft }: ReadOrder): Promise<ReadReply> => {
  const allowance = { bytesLeft };
  const read: FinishedFile[] = [];
  let [at, rows] = [0, 0];
  for (const { name, length } of files) {
    const file = await passOn({ bytes: bytes.subarray(at, at + length), name }, allowance);
    read.push(file);
    at += length;
    rows += file.rows;
    if (rows >= ROWS_MAX) break;
  }
  const pieces = read.flatMap((file) => file.pieces.map(([, json]) => json));
  return {
    files: read.map(({ head, pieces: of }) => ({ head, pieces: of.map(([reading, { length }]) => [reading, length]) })),
    rows: new Uint8Array(Bun.concatArrayBuffers(pieces)),
    bytesLeft: allowance.bytesLeft,
  };
};

/** What the thread does: `main.ts` starts it. It carries out one order at a time until it is ended. */
export const runReadingThread = (): void => {
  const port = parentPort;
  let files = 0;
  port?.on("message", (order: ReadOrder) => {
    void carryOut(order).then((reply) => {
      port.postMessage(reply, [reply.rows.buffer]);
      files += reply.files.length;
      if (files < COLLECT_AFTER) return;
      files = 0;
      Bun.gc(true);
    });
  });
};

/** A reading whose rows are still being put into it. */
type OpenReading = ReportReading & { readonly report: (Report & { readonly rows: ReportRow[] }) | null };

/** Takes a file in, yielding between the pieces of a large one. `next` returns the next bytes of the rows, as text. */
const takeIn = async ({ head, pieces }: PassedFile, next: (length: number) => string): Promise<ReadOutcome> => {
  const { readings, hashes, problem } = JSON.parse(head) as PassedHead & { readonly readings: readonly OpenReading[] };
  if (problem !== null) return err({ reason: "internal_error", error: new Error(problem) });
  if (readings === null) return err({ reason: "upload_too_large", error: null });
  for (const [number, [index, length]] of pieces.entries()) {
    if (number > 0) await nextTurn();
    const some = JSON.parse(`[${next(length)}]`) as readonly ReportRow[];
    for (const row of some) readings[index]?.report?.rows.push(row);
  }
  const rowsHashes = new Map<Report, string>();
  for (const [index, { report }] of readings.entries())
    if (report !== null) rowsHashes.set(report, hashes[index] ?? "");
  return ok({ readings, rowsHashes });
};

const takeAllIn = async ({ files, rows }: ReadReply): Promise<readonly ReadOutcome[]> => {
  let at = 0;
  const next = (length: number) => {
    at += length;
    return decoder.decode(rows.subarray(at - length, at));
  };
  const outcomes: ReadOutcome[] = [];
  for (const file of files) outcomes.push(await takeIn(file, next));
  return outcomes;
};

/** The first files that are read together. */
const firstTogether = (files: readonly FileToRead[]): readonly FileToRead[] => {
  let bytes = 0;
  const end = files.slice(0, FILES_MAX).findIndex((file, at) => {
    bytes += file.bytes.byteLength;
    return at > 0 && bytes > BYTES_MAX;
  });
  return files.slice(0, end === -1 ? FILES_MAX : end);
};

/** Copied in one turn: new memory costs far more than the copying. */
const COPIED_BYTES = 2 * 1024 * 1024;

const orderOf = async (files: readonly FileToRead[], { bytesLeft }: UnpackAllowance): Promise<ReadOrder> => {
  const bytes = new Uint8Array(files.reduce((sum, file) => sum + file.bytes.byteLength, 0));
  let at = 0;
  for (const file of files) {
    for (let from = 0; from < file.bytes.byteLength; from += COPIED_BYTES) {
      if (from > 0) await nextTurn();
      bytes.set(file.bytes.subarray(from, from + COPIED_BYTES), at + from);
    }
    at += file.bytes.byteLength;
  }
  return { bytes, files: files.map((file) => ({ name: file.name, length: file.bytes.byteLength })), bytesLeft };
};

/**
 * Reads files in a thread, which is started when something is to be read, so that the event loop goes on. A thread that takes too
 * long or ends early takes only the file with it of which it does so: the others that it had are read again one by one.
 */
export class ReadingThread implements FileReader {
  readonly isBeside = true;
  readonly #gate = new Gate(1);
  /** For a machine that has no room for the thread. */
  readonly #here = readingHere();
  #thread: Worker | null = null;
  /** Files that are read one by one, because one of them ended the thread. */
  #suspects = 0;
  #cancelEnd: () => void = () => undefined;

  constructor(
    private readonly runtime: { readonly clock: Clock; readonly log: Log },
    private readonly deps: {
      /** The path of `main.ts`, from which threads are started. */
      readonly program: string;
    },
  ) {}

  read(files: readonly FileToRead[], allowance: UnpackAllowance): Promise<readonly ReadOutcome[]> {
    return this.#gate.run(() => this.#readSome(files, allowance));
  }

  stop(): void {
    this.#cancelEnd();
    void this.#thread?.terminate();
    this.#thread = null;
  }

  async #readSome(files: readonly FileToRead[], allowance: UnpackAllowance): Promise<readonly ReadOutcome[]> {
    const some = this.#suspects > 0 ? files.slice(0, 1) : firstTogether(files);
    if (some.length === 0) return [];
    this.#suspects = Math.max(0, this.#suspects - 1);
    const read = await this.#order(some, allowance);
    if (read === null) return this.#here.read(files, allowance);
    if (read.ok) return read.value;
    if (some.length > 1) {
      this.#suspects = some.length;
      return this.#readSome(files, allowance);
    }
    const again = read.error.reason === "took_too_long" ? read : await this.#order(some, allowance);
    if (again === null) return this.#here.read(files, allowance);
    return again.ok ? again.value : [again];
  }

  /** Null when it cannot be started. */
  #start(): Worker | null {
    let thread: Worker;
    try {
      thread = new Worker(this.deps.program, { workerData: { task: "report reading" } });
    } catch (error) {
      this.runtime.log.warn("the thread that reads reports cannot be started; the event loop reads them", { error });
      return null;
    }
    // Also while nobody waits for a reply.
    thread.on("error", () => undefined);
    thread.once("exit", () => {
      if (this.#thread === thread) this.#thread = null;
    });
    thread.unref();
    this.#thread = thread;
    return thread;
  }

  /** Null when there is no thread. The error is about the thread, which has ended. */
  async #order(
    files: readonly FileToRead[],
    allowance: UnpackAllowance,
  ): Promise<Result<readonly ReadOutcome[], ReadFailure> | null> {
    this.#cancelEnd();
    const order = await orderOf(files, allowance);
    const thread = this.#thread ?? this.#start();
    if (thread === null) return null;
    const reply = await this.#reply(thread, () => thread.postMessage(order, [order.bytes.buffer]));
    if (!reply.ok) {
      this.runtime.log.warn("the thread that reads reports was ended", { files: files.length, ...reply.error });
      this.stop();
      return reply;
    }
    this.#cancelEnd = this.runtime.clock.after(IDLE_MS, () => this.stop());
    allowance.bytesLeft = reply.value.bytesLeft;
    return ok(await takeAllIn(reply.value));
  }

  async #reply(thread: Worker, send: () => void): Promise<Result<ReadReply, ReadFailure>> {
    const { promise, resolve } = Promise.withResolvers<Result<ReadReply, ReadFailure>>();
    const onReply = (reply: ReadReply) => resolve(ok(reply));
    const onError = (error: unknown) => resolve(err({ reason: "internal_error", error }));
    const onEnd = () => onError(new Error("the thread that reads reports ended early"));
    thread.once("message", onReply);
    thread.once("error", onError);
    thread.once("exit", onEnd);
    send();
    const reply = await waitFor(this.runtime.clock, promise, { timeoutMs: READ_MS_MAX });
    thread.off("message", onReply);
    thread.off("error", onError);
    thread.off("exit", onEnd);
    return reply.ok ? reply.value : err({ reason: "took_too_long", error: null });
  }
}
