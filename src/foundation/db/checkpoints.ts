import { type Database as Sqlite, SQLiteError } from "bun:sqlite";
import type { Clock } from "../base/clock.ts";

/**
 * What a checkpoint moved into the file: `all` that was in the write-ahead log, or `some`, because a reader needs an older
 * state or another program is at it. `none`: it could not be tried.
 */
export type Moved = "all" | "some" | "none";

/** Makes checkpoints without holding the event loop. */
export interface CheckpointMaker {
  /** Never rejects. */
  make(): Promise<Moved>;
  stop(): void;
}

/** Frames (changed pages) of the write-ahead log. */
export interface LogState {
  readonly log: number;
  /** How many of them are in the file, too. */
  readonly checkpointed: number;
}

/** Pages that a connection may move itself, which takes it some milliseconds. Also SQLite's own interval of checkpoints. */
const OWN_PAGES_MAX = 1_000;
/** From this length on the log has to begin anew: for that, all of it must be in the file when somebody writes. */
const LOG_PAGES_MAX = 4_000;
const AGAIN_MS = 1_000;
/** What a log that was longer keeps on the disk, and how much of it is cut off at once: the kernel takes 60 ms for a gigabyte. */
export const LOG_BYTES_MIN = 64 * 1024 * 1024;
const CUT_BYTES = 64 * 1024 * 1024;
/** Section 4.1 of the WAL file format: the header of a frame. */
const FRAME_HEADER_BYTES = 24;

/**
 * Checkpoints of the database of a server. SQLite makes one in the commit that makes the log 1,000 pages long: while a
 * backup reads, the log grows by gigabytes, and the first commit after it held the event loop for six seconds. So
 * a thread moves the pages; what it leaves is moved here when it is little. Without a thread SQLite goes on as it does.
 */
export class Checkpoints {
  readonly #state: () => LogState;
  readonly #frameBytes: number;
  #maker: CheckpointMaker | null = null;
  #running: Promise<void> | null = null;
  #notBeforeMs = 0;
  #pages = 0;
  #bytesMax = LOG_BYTES_MIN;

  constructor(
    private readonly sqlite: Sqlite,
    private readonly deps: {
      readonly clock: Pick<Clock, "monotonicMs">;
      /** Syncs the file beside the event loop. May reject. */
      readonly syncFile: () => Promise<void>;
    },
  ) {
    const state = sqlite.prepare<LogState, []>("PRAGMA wal_checkpoint(NOOP)");
    this.#state = () => ignoringProblems(() => state.get()) ?? { log: 0, checkpointed: 0 };
    const page = sqlite.query<{ page_size: number }, []>("PRAGMA page_size").get();
    this.#frameBytes = FRAME_HEADER_BYTES + (page?.page_size ?? 0);
  }

  /** From now on `maker` makes the checkpoints. */
  use(maker: CheckpointMaker): void {
    this.sqlite.run("PRAGMA wal_autocheckpoint = 0");
    this.#maker = maker;
  }

  /** Call it after each transaction. Does nothing until the log is long. */
  afterCommit(): void {
    if (this.#maker === null) return;
    const { log, checkpointed } = this.#state();
    this.#limitFile(log);
    if (log - checkpointed >= OWN_PAGES_MAX && this.deps.clock.monotonicMs() >= this.#notBeforeMs)
      this.#running ??= this.#run(this.#maker).finally(() => {
        this.#running = null;
      });
  }

  /** Resolves when what a connection would have to move itself is little, as far as readers let it. */
  async settle(): Promise<void> {
    await this.#running;
    this.afterCommit();
    await this.#running;
  }

  stop(): void {
    this.#maker?.stop();
    this.#maker = null;
  }

  async #run(maker: CheckpointMaker): Promise<void> {
    const moved = await maker.make();
    if (moved !== "all") this.#notBeforeMs = this.deps.clock.monotonicMs() + AGAIN_MS;
    if (moved === "none") this.#moveRest();
    if (!this.#isAlmostMoved()) return;
    // SQLite syncs the file in the checkpoint that moves the last page: after gigabytes that takes a second.
    await this.deps.syncFile().catch(() => undefined);
    if (this.#isAlmostMoved()) this.#moveRest();
  }

  /** Whether the log has to begin anew, and little is left to move. */
  #isAlmostMoved(): boolean {
    if (this.#maker === null) return false;
    const { log, checkpointed } = this.#state();
    return log >= LOG_PAGES_MAX && log - checkpointed < OWN_PAGES_MAX;
  }

  #moveRest() {
    if (this.#maker !== null) ignoringProblems(() => this.sqlite.query("PRAGMA wal_checkpoint(PASSIVE)").all());
  }

  /** SQLite cuts the file of the log to its limit when the log begins anew: never by much at once. */
  #limitFile(pages: number) {
    const bytes = pages * this.#frameBytes;
    const hasBegunAnew = pages < this.#pages;
    this.#pages = pages;
    if (bytes > this.#bytesMax + CUT_BYTES) this.#setLimit(bytes);
    else if (hasBegunAnew && this.#bytesMax > LOG_BYTES_MIN)
      this.#setLimit(Math.max(LOG_BYTES_MIN, this.#bytesMax - CUT_BYTES));
  }

  #setLimit(bytes: number) {
    this.#bytesMax = bytes;
    this.sqlite.run(`PRAGMA journal_size_limit = ${bytes}`);
  }
}

/** As SQLite does with its own checkpoints: the log stays as it is, and the next commit tries again. */
const ignoringProblems = <T>(work: () => T): T | null => {
  try {
    return work();
  } catch (error) {
    if (error instanceof SQLiteError) return null;
    throw error;
  }
};
