import { fstatSync, fsync, read, readSync, realpathSync, statSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { type Clock, nextTurn, systemClock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import { canReturnPages } from "./free-pages.ts";
import { isBusy } from "./group-commit.ts";
import type { Db } from "./open.ts";

/**
 * `cleared`: what was deleted before is in no gap, and the write-ahead log was emptied. `busy`: another program, such as a
 * backup, read the database for five seconds. `stopped`: by `isStopping`. `unsupported`: the file does not say which pages
 * are trees, or has no write-ahead log; `compact` removes what was deleted.
 */
export interface ClearedGaps {
  readonly outcome: "cleared" | "busy" | "stopped" | "unsupported";
  readonly pages: number;
}

type ClearedDb = Pick<Db, "sqlite" | "path" | "descriptor" | "transactUnsynced" | "checkpoints">;

/** Pages that are read at once, and pages that are cleared in one transaction: some milliseconds. */
const PAGES_AT_ONCE = 256;
const TRIES = 20;
const AGAIN_MS = 250;
const LOCK_MS_MAX = 10;
/** File format of SQLite 3, section 1.6: the first bytes of pages of a tree, with the sizes of their headers. */
const HEADER_BYTES: ReadonlyMap<number, number> = new Map([
  [2, 12],
  [5, 12],
  [10, 8],
  [13, 8],
]);
const BYTES_65536 = 65_536;
/** Section 1.8: the types of pages in the pointer map that are trees. */
const TREE_TYPES: ReadonlySet<number> = new Set([1, 5]);
const MAP_ENTRY_BYTES = 5;
/** The page at this offset is never used, which moves a page of the pointer map. */
const LOCK_OFFSET = 0x4000_0000;

/** A part of a page, in bytes. */
interface Span {
  readonly from: number;
  readonly to: number;
}

const readAsync = promisify(read);
const syncAsync = promisify(fsync);

/** The unused space between the cell pointers and the cells of a page; null for what cannot be a page of a tree. */
const gapOf = (page: Buffer, usableBytes: number): Span | null => {
  const header = HEADER_BYTES.get(page.readUInt8(0));
  if (header === undefined) return null;
  const from = header + 2 * page.readUInt16BE(3);
  const to = page.readUInt16BE(5) || BYTES_65536;
  return from <= to && to <= usableBytes ? { from, to } : null;
};

/**
 * Clears the space between the cell pointers and the cells of the pages of a database. `secure_delete` zeroes rows that are
 * deleted, but where SQLite moves rows to another page, their former bytes stay in that space until it is used again.
 *
 * It writes there directly, while it holds the write lock and the write-ahead log is empty. Then nobody else writes to the
 * file: a change needs that lock, a checkpoint needs something in the log. SQLite never reads this space, so readers see the
 * same content before, during and after it, and a crash leaves it cleared in part. So does a power failure, in any order and
 * by sector, on a disk that keeps the bytes beside those that it was writing (SQLite assumes that, too: "powersafe
 * overwrite"). The commit at the end has other connections drop the pages that they have cached.
 */
class GapClearing {
  readonly #pageBytes: number;
  /** Without the bytes at the end of each page that SQLite leaves to extensions. */
  readonly #usableBytes: number;
  readonly #zeros: Buffer;
  readonly #page: Buffer;
  /** SQLite names the log after the file itself, not after a symbolic link to it. */
  readonly #log: string;
  /** Until the database is closed: closing any descriptor of its file ends the locks of SQLite in this process. */
  readonly #descriptor: number;

  constructor(private readonly db: ClearedDb) {
    this.#descriptor = db.descriptor();
    this.#log = `${realpathSync(db.path)}-wal`;
    const header = Buffer.alloc(21);
    readSync(this.#descriptor, header, 0, header.length, 0);
    // Section 1.3.2: 1 stands for 65536.
    this.#pageBytes = header.readUInt16BE(16) === 1 ? BYTES_65536 : header.readUInt16BE(16);
    this.#usableBytes = this.#pageBytes - header.readUInt8(20);
    this.#zeros = Buffer.alloc(this.#pageBytes);
    this.#page = Buffer.alloc(this.#pageBytes);
  }

  get pages(): number {
    return Math.floor(fstatSync(this.#descriptor).size / this.#pageBytes);
  }

  /** The pages of 256 from `first` (counted from 1) that seem to have a gap with content, read without a lock. */
  async findDirty(first: number): Promise<number[]> {
    const bytes = this.#pageBytes;
    const block = Buffer.alloc(PAGES_AT_ONCE * bytes);
    const { bytesRead } = await readAsync(this.#descriptor, block, 0, block.length, (first - 1) * bytes);
    const pages = Array.from({ length: Math.floor(bytesRead / bytes) }, (_, at) => first + at);
    return pages.filter((page) => {
      const at = (page - first) * bytes;
      return this.#dirtyGapOf(page, block.subarray(at, at + bytes)) !== null;
    });
  }

  /** Clears the gaps of pages; returns how many it had to clear, or null while the database is in use. */
  clear(pages: readonly number[]): number | null {
    const { db } = this;
    // Unsynced: the commit has nothing to keep.
    return withoutWaiting(db, () => (emptyLog(db) ? db.transactUnsynced(() => this.#clearLocked(pages)) : null));
  }

  /** Until then a power failure may bring content of gaps back. Nothing else depends on it. */
  async sync(): Promise<void> {
    await syncAsync(this.#descriptor);
  }

  #clearLocked(pages: readonly number[]) {
    const { sqlite } = this.db;
    // Somebody wrote between the checkpoint and the lock, or has deleted the log.
    if (statSync(this.#log, { throwIfNoEntry: false })?.size !== 0) return null;
    let cleared = 0;
    for (const page of pages) cleared += this.#clearPage(page) ? 1 : 0;
    // Drops the pages that this connection has cached. The commit, which needs a page that is written, is for the others.
    sqlite.run("PRAGMA shrink_memory");
    sqlite.run(`PRAGMA user_version = ${pragmaOf(sqlite, "user_version")}`);
    return cleared;
  }

  #clearPage(page: number) {
    const start = (page - 1) * this.#pageBytes;
    const bytes = this.#page;
    if (readSync(this.#descriptor, bytes, 0, bytes.length, start) < bytes.length) return false;
    const gap = this.#dirtyGapOf(page, bytes);
    if (gap === null) return false;
    const length = gap.to - gap.from;
    const written = writeSync(this.#descriptor, this.#zeros, 0, length, start + gap.from);
    if (written < length) throw new Error(`${this.db.path}: only ${written} of ${length} bytes were written`);
    return true;
  }

  /** Null when there is nothing to clear. The first page holds the schema only. */
  #dirtyGapOf(page: number, bytes: Buffer): Span | null {
    const gap = page === 1 ? null : gapOf(bytes, this.#usableBytes);
    if (gap === null || bytes.compare(this.#zeros, 0, gap.to - gap.from, gap.from, gap.to) === 0) return null;
    return this.#isTree(page) ? gap : null;
  }

  /** By the pointer map: any content can look like a page of a tree. */
  #isTree(page: number) {
    const mapped = Math.floor(this.#usableBytes / MAP_ENTRY_BYTES) + 1;
    const map = Math.floor((page - 2) / mapped) * mapped + 2;
    const at = map === LOCK_OFFSET / this.#pageBytes + 1 ? map + 1 : map;
    if (page <= at) return false;
    const type = Buffer.alloc(1);
    const offset = (at - 1) * this.#pageBytes + MAP_ENTRY_BYTES * (page - at - 1);
    readSync(this.#descriptor, type, 0, 1, offset);
    return TREE_TYPES.has(type.readUInt8(0));
  }
}

const pragmaOf = (sqlite: Db["sqlite"], name: string): unknown => sqlite.query(`PRAGMA ${name}`).values()[0]?.[0];

/** A checkpoint keeps writers out while it waits for readers, so it must not wait. Null while the database is in use. */
const withoutWaiting = <T>({ sqlite }: Pick<Db, "sqlite">, work: () => T): T | null => {
  const timeoutMs = pragmaOf(sqlite, "busy_timeout");
  sqlite.run(`PRAGMA busy_timeout = ${LOCK_MS_MAX}`);
  try {
    return work();
  } catch (error) {
    if (isBusy(error)) return null;
    throw error;
  } finally {
    sqlite.run(`PRAGMA busy_timeout = ${timeoutMs}`);
  }
};

/** Moves the write-ahead log into the file and empties it; false while another program reads or writes. */
const emptyLog = ({ sqlite }: Pick<Db, "sqlite">) => {
  // Copies, without keeping writers out, most of what the second then has to.
  sqlite.query("PRAGMA wal_checkpoint(PASSIVE)").all();
  return sqlite.query<{ busy: number }, []>("PRAGMA wal_checkpoint(TRUNCATE)").get()?.busy === 0;
};

interface Patience {
  readonly isStopping: () => boolean;
  readonly clock: Clock;
}

/** Tries for five seconds, while another program uses the database. */
const patiently = async <T>({ isStopping, clock }: Patience, work: () => T | null): Promise<T | null> => {
  for (let tries = 0; tries < TRIES && !isStopping(); tries++) {
    const done = work();
    if (done !== null) return done;
    await wait(clock, AGAIN_MS);
  }
  return null;
};

/**
 * Empties the write-ahead log and clears what deleted rows left in the unused space of pages, in short steps, so that a server
 * can work meanwhile. Until it ends or `isStopping`. Reads the whole file: SQLite does not say which pages changed since.
 */
export const clearPageGaps = async (
  db: ClearedDb,
  isStopping: () => boolean = () => false,
  clock: Clock = systemClock,
): Promise<ClearedGaps> => {
  if (db.path === ":memory:") return { outcome: "cleared", pages: 0 };
  const patience = { isStopping, clock };
  let pages = 0;
  const ended = (): ClearedGaps => ({ outcome: isStopping() ? "stopped" : "busy", pages });
  await db.checkpoints.settle();
  // Content that is only in the log would come into the file behind the search.
  if ((await patiently(patience, () => withoutWaiting(db, () => emptyLog(db) || null))) === null) return ended();
  if (!canReturnPages(db) || pragmaOf(db.sqlite, "journal_mode") !== "wal") return { outcome: "unsupported", pages };
  const clearing = new GapClearing(db);
  const last = clearing.pages;
  const dirty: number[] = [];
  for (let first = 1; first <= last; first += PAGES_AT_ONCE, await nextTurn()) {
    if (isStopping()) return ended();
    dirty.push(...(await clearing.findDirty(first)));
    const isLast = first + PAGES_AT_ONCE > last;
    while (dirty.length >= PAGES_AT_ONCE || (isLast && dirty.length > 0)) {
      const step = dirty.splice(0, PAGES_AT_ONCE);
      const cleared = await patiently(patience, () => clearing.clear(step));
      if (cleared === null) return ended();
      pages += cleared;
      await clearing.sync();
    }
  }
  return { outcome: "cleared", pages };
};
