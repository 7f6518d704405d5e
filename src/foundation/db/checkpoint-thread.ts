import { Database as Sqlite, SQLiteError } from "bun:sqlite";
import { parentPort, Worker, workerData } from "node:worker_threads";
import type { Clock } from "../base/clock.ts";
import type { Log } from "../base/log.ts";
import type { CheckpointMaker, LogState, Moved } from "./checkpoints.ts";

/** The thread ends when it had nothing to do for this long. */
const IDLE_MS = 60_000;

interface ThreadData {
  readonly task: "checkpoints";
  /** The database file. */
  readonly path: string;
}

/** Syncs before and after, as SQLite does by itself. */
const checkpoint = (path: string): Moved => {
  const sqlite = new Sqlite(path, { readwrite: true, create: false });
  try {
    const state = sqlite.query<LogState & { busy: number }, []>("PRAGMA wal_checkpoint(PASSIVE)").get();
    return state?.busy === 0 && state.log === state.checkpointed ? "all" : "some";
  } catch (error) {
    // A full disk, for example: the log stays as it is.
    if (error instanceof SQLiteError) return "some";
    throw error;
  } finally {
    sqlite.close();
  }
};

/** What the thread does, once for each message: `main.ts` starts it. */
export const runCheckpointThread = (): void => {
  const { path } = workerData as ThreadData;
  parentPort?.on("message", () => {
    parentPort?.postMessage(checkpoint(path));
  });
};

/** Makes the checkpoints of the database at `path` in a thread, which is started when there is one to make. */
export class CheckpointThread implements CheckpointMaker {
  #thread: Worker | null = null;
  #reply: (moved: Moved) => void = () => undefined;
  #cancelEnd: () => void = () => undefined;

  constructor(
    private readonly path: string,
    private readonly deps: {
      readonly log: Log;
      readonly clock: Clock;
      /** The path of `main.ts`, from which threads are started. */
      readonly program: string;
    },
  ) {}

  make(): Promise<Moved> {
    this.#cancelEnd();
    const { promise, resolve } = Promise.withResolvers<Moved>();
    this.#reply = resolve;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(null);
    } catch (error) {
      this.#lose(this.#thread, error);
    }
    return promise;
  }

  stop(): void {
    const thread = this.#thread;
    this.#thread = null;
    this.#cancelEnd();
    void thread?.terminate();
    this.#reply("none");
  }

  #start(): Worker {
    const workerData: ThreadData = { task: "checkpoints", path: this.path };
    const thread = new Worker(this.deps.program, { workerData });
    thread.on("message", (moved: Moved) => {
      this.#cancelEnd = this.deps.clock.after(IDLE_MS, () => this.stop());
      this.#reply(moved);
    });
    thread.on("error", (error: unknown) => this.#lose(thread, error));
    thread.on("exit", (status) => this.#lose(thread, new Error(`exit status ${status}`)));
    thread.unref();
    return thread;
  }

  #lose(thread: Worker | null, error: unknown) {
    if (this.#thread !== thread) return;
    this.#thread = null;
    this.deps.log.warn("the thread that makes checkpoints ended early", { error });
    this.#reply("none");
  }
}
