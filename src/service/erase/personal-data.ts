import { parentPort, Worker } from "node:worker_threads";
import type { AuditLog } from "../../accounts/audit-store.ts";
import { AccountsSlice } from "../../accounts/open.ts";
import { systemClock } from "../../foundation/base/clock.ts";
import { AppError, errorText } from "../../foundation/base/errors.ts";
import { waitFor } from "../../foundation/base/wait.ts";
import { type Db, openDb } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { createAddressPattern } from "./address-pattern.ts";
import type { AddressTraces } from "./address-search.ts";
import { type ExportSubject, writeExport } from "./data-export.ts";
import { eraseEverywhere, type ErasureRun } from "./erase-everywhere.ts";
import { openAddressSearch } from "./open.ts";

/** An erasure that a user of the dashboard orders. */
export interface ErasureOrder {
  readonly address: string;
  readonly keepSuppression: boolean;
  /** The ids of the user and of the user's account. */
  readonly by: string;
  readonly accountId: string;
}

/** Work that reads the whole database, in a thread of its own. */
type Order =
  | { readonly task: "find"; readonly subject: ExportSubject }
  | { readonly task: "export"; readonly subject: ExportSubject }
  | ({ readonly task: "erase"; readonly folders: readonly string[] } & ErasureOrder);

/** How the last erasure of this process ended: what it did, or why it failed. */
type EndedErasure = { readonly atMs: number } & ({ readonly run: ErasureRun } | { readonly problem: string });

type Piece = AddressTraces | ErasureRun | Uint8Array;
type Reply = { readonly piece: Piece } | { readonly isEnd: true };

const FIND_MS_MAX = 5 * 60_000;
const PIECE_MS_MAX = 10 * 60_000;
const ERASE_MS_MAX = 6 * 60 * 60_000;
const READERS_MAX = 2;
const RETRY_S = "30";

interface PersonalDataDeps {
  /** The data directory and that of the backups: an erasure searches their files. */
  readonly folders: readonly string[];
  /** The path of `main.ts`, from which threads are started. */
  readonly program: string;
  readonly audit: Pick<AuditLog, "append">;
}

/** Finds, exports and erases what is stored about a person, and exports an account, beside the work of the service. */
export class PersonalData {
  #readers = 0;
  #isErasing: boolean = false;
  #last: EndedErasure | null = null;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: PersonalDataDeps,
  ) {}

  get isErasing(): boolean {
    return this.#isErasing;
  }

  get lastErasure(): EndedErasure | null {
    return this.#last;
  }

  /** Where an address is, of an account or of all. 503 while two others read. */
  async find(subject: ExportSubject): Promise<AddressTraces> {
    for await (const piece of this.#read({ task: "find", subject }, FIND_MS_MAX)) if ("tables" in piece) return piece;
    throw new Error("the search ended without a result");
  }

  /** The archive in pieces. 503 while two others read. */
  async *export(subject: ExportSubject): AsyncGenerator<Uint8Array, void> {
    for await (const piece of this.#read({ task: "export", subject }, PIECE_MS_MAX))
      if (piece instanceof Uint8Array) yield piece;
  }

  /** Begins an erasure once the audit log has it; `lastErasure` tells its end. False while one runs. */
  async startErasing(order: ErasureOrder): Promise<boolean> {
    const { by, accountId } = order;
    if (this.#isErasing) return false;
    this.#isErasing = true;
    try {
      // Never the address: the audit log is not erased.
      const entry = { action: "erase", accountId, subject: null, by };
      await this.runtime.db.commit((tx) => this.deps.audit.append(tx, entry));
    } catch (error) {
      this.#isErasing = false;
      throw error;
    }
    void this.#erase(order);
    return true;
  }

  /** Never rejects. */
  async #erase(order: ErasureOrder): Promise<void> {
    const { clock, log } = this.runtime;
    try {
      const work: Order = { task: "erase", folders: this.deps.folders, ...order };
      for await (const piece of this.#pieces(work, ERASE_MS_MAX))
        if ("erased" in piece) this.#last = { atMs: clock.nowMs(), run: piece };
    } catch (error) {
      // The error of SQLite or the file system does not contain the address.
      log.error("an erasure failed", { error });
      this.#last = { atMs: clock.nowMs(), problem: errorText(error) };
    } finally {
      this.#isErasing = false;
    }
  }

  async *#read(order: Order, timeoutMs: number): AsyncGenerator<Piece, void> {
    if (this.#readers >= READERS_MAX)
      throw new AppError("unavailable", {
        message: "Two searches or exports are running. Try again when they have ended.",
        headers: { "retry-after": RETRY_S },
      });
    this.#readers += 1;
    try {
      yield* this.#pieces(order, timeoutMs);
    } finally {
      this.#readers -= 1;
    }
  }

  /** The pieces that a thread makes, one at a time. The thread ends with the loop. */
  async *#pieces(order: Order, timeoutMs: number): AsyncGenerator<Piece, void> {
    const { clock, db } = this.runtime;
    const workerData = { task: "personal data", path: db.path, order };
    const worker = new Worker(this.deps.program, { workerData });
    try {
      for (;;) {
        const reply = await waitFor(clock, nextReply(worker), { timeoutMs });
        if (!reply.ok) throw new AppError("unavailable", { message: "The database took too long to read." });
        if ("isEnd" in reply.value) return;
        yield reply.value.piece;
      }
    } finally {
      worker.postMessage("stop");
    }
  }
}

/** Asks a thread for its next piece. Rejects with what it throws, and when it ends early. */
const nextReply = (worker: Worker): Promise<Reply> => {
  const { promise, resolve, reject } = Promise.withResolvers<Reply>();
  const end = () => reject(new Error("the thread ended early"));
  worker.once("message", resolve);
  worker.once("error", reject);
  worker.once("exit", end);
  worker.postMessage("next");
  return promise.finally(() => {
    worker.off("message", resolve);
    worker.off("error", reject);
    worker.off("exit", end);
  });
};

async function* piecesOf(db: Db, order: Order): AsyncGenerator<Piece, void> {
  if (order.task === "export") return yield* writeExport(db, order.subject, systemClock.nowMs());
  const pattern = createAddressPattern(order.task === "find" ? (order.subject.address ?? "") : order.address);
  if (!pattern.ok) throw new Error("no address");
  if (order.task === "find") {
    yield await openAddressSearch(db, { pattern: pattern.value, accountId: order.subject.accountId }).count();
    return;
  }
  const { audit } = new AccountsSlice({ db, clock: systemClock });
  // The first entry was written before the thread was started.
  const log = { append: audit.append.bind(audit), perform: <T>({ work }: { work: () => Promise<T> }) => work() };
  yield await eraseEverywhere(db, { ...order, pattern: pattern.value, audit: log });
}

/** What the thread does: `main.ts` starts it. It makes a piece for each "next", and ends after the last one or "stop". */
export const runPersonalDataWorker = async ({ path, order }: { path: string; order: Order }): Promise<void> => {
  const port = parentPort;
  if (port === null) return;
  const opened = openDb(path);
  if (!opened.ok) throw new Error(`the database cannot be opened: ${opened.error.kind}`);
  const pieces = piecesOf(opened.value, order);
  try {
    for (;;) {
      const asked = await new Promise<unknown>((resolve) => void port.once("message", resolve));
      if (asked !== "next") return;
      const next = await pieces.next();
      const reply: Reply = next.done === true ? { isEnd: true } : { piece: next.value };
      port.postMessage(reply);
      if (next.done === true) return;
    }
  } finally {
    await pieces.return();
    opened.value.close();
    port.close();
  }
};
