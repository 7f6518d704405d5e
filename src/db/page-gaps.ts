import { fstatSync, fsync, read, readSync, statSync, writeSync } from "node:fs";
import { promisify } from "node:util";
import { type Clock, nextTurn, systemClock } from "../base/clock.ts";
import { wait } from "../base/wait.ts";
import { canReturnPages } from "./free-pages.ts";
import { isBusy } from "./group-commit.ts";
import type { Db } from "./open.ts";

/**
 * `cleared`: no gap has content. `busy`: another program, such as a backup, read the database the whole time. `stopped`: by
 * `isStopping`. `unsupported`: the file does not say which pages are trees; `compact` changes that.
 */
export interface ClearedGaps {
  readonly outcome: "cleared" | "busy" | "stopped" | "unsupported";
  readonly pages: number;
}

/** Pages that are read, and cleared, at once: some milliseconds. */
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

/** A part of the file, in bytes. */
interface Span {
  readonly from: number;
  readonly to: number;
}

interface Layout {
  readonly pageBytes: number;
  /** Without the bytes at the end of each page that SQLite leaves to extensions. */
  readonly usableBytes: number;
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
 * It writes there directly, while it holds the write lock and the write-ahead log is empty: no other page image exists then,
 * SQLite never reads this space, and a crash leaves it cleared in part. The commit at the end has other connections drop the
 * pages that they have cached.
 */
class GapClearing {
  readonly #layout: Layout;
  readonly #zeros: Buffer;
  /** Until the database is closed: closing any descriptor of its file ends the locks of SQLite in this process. */
  readonly #descriptor: number;

  constructor(private readonly db: Pick<Db, "sqlite" | "path" | "descriptor">) {
    this.#descriptor = db.descriptor();
    const header = Buffer.alloc(21);
    readSync(this.#descriptor, header, 0, header.length, 0);
    // Section 1.3.2: 1 stands for 65536.
    const pageBytes = header.readUInt16BE(16) === 1 ? BYTES_65536 : header.readUInt16BE(16);
    this.#layout = { pageBytes, usableBytes: pageBytes - header.readUInt8(20) };
    this.#zeros = Buffer.alloc(pageBytes);
  }

  get pages(): number {
    return Math.floor(fstatSync(this.#descriptor).size / this.#layout.pageBytes);
  }

  /** Whether one of the pages from `first` (counted from 1) seems to have a gap with content. */
  async isDirty(first: number): Promise<boolean> {
    const { pageBytes } = this.#layout;
    const block = Buffer.alloc(PAGES_AT_ONCE * pageBytes);
    const { bytesRead } = await readAsync(this.#descriptor, block, 0, block.length, (first - 1) * pageBytes);
    return this.#gapsIn(block.subarray(0, bytesRead), first).length > 0;
  }

  /** Clears the gaps of the pages from `first`; returns how many, or null when the database is in use. */
  clear(first: number): number | null {
    const { sqlite } = this.db;
    const timeoutMs = this.#pragma("busy_timeout", "timeout");
    // The checkpoint keeps writers out while it waits for readers.
    sqlite.run(`PRAGMA busy_timeout = ${LOCK_MS_MAX}`);
    try {
      sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
      return sqlite.transaction(() => this.#clearLocked(first)).immediate();
    } catch (error) {
      if (isBusy(error)) return null;
      throw error;
    } finally {
      sqlite.run(`PRAGMA busy_timeout = ${timeoutMs}`);
    }
  }

  async sync(): Promise<void> {
    await syncAsync(this.#descriptor);
  }

  #pragma(name: string, column = name): number {
    const row = this.db.sqlite.query<Record<string, number>, []>(`PRAGMA ${name}`).get();
    return row?.[column] ?? 0;
  }

  #clearLocked(first: number): number | null {
    const { sqlite, path } = this.db;
    if ((statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0) > 0) return null;
    const gaps = this.#gapsIn(this.#read(first), first).filter(({ from }) => this.#isTree(from));
    for (const { from, to } of gaps) writeSync(this.#descriptor, this.#zeros, 0, to - from, from);
    // Drops the pages that this connection has cached. The commit, which needs a page that is written, is for the others.
    sqlite.run("PRAGMA shrink_memory");
    sqlite.run(`PRAGMA user_version = ${this.#pragma("user_version")}`);
    return gaps.length;
  }

  #read(first: number): Buffer {
    const { pageBytes } = this.#layout;
    const block = Buffer.alloc(PAGES_AT_ONCE * pageBytes);
    return block.subarray(0, readSync(this.#descriptor, block, 0, block.length, (first - 1) * pageBytes));
  }

  /** The gaps with content, as parts of the file. The first page holds the schema only. */
  #gapsIn(block: Buffer, first: number): Span[] {
    const { pageBytes, usableBytes } = this.#layout;
    const spans: Span[] = [];
    for (let at = first === 1 ? pageBytes : 0; at + pageBytes <= block.length; at += pageBytes) {
      const page = block.subarray(at, at + pageBytes);
      const gap = gapOf(page, usableBytes);
      if (gap === null || page.compare(this.#zeros, 0, gap.to - gap.from, gap.from, gap.to) === 0) continue;
      const start = (first - 1) * pageBytes + at;
      spans.push({ from: start + gap.from, to: start + gap.to });
    }
    return spans;
  }

  /** Whether the page at an offset is one of a tree, by the pointer map: any content can look like one. */
  #isTree(offset: number): boolean {
    const { pageBytes, usableBytes } = this.#layout;
    const page = Math.floor(offset / pageBytes) + 1;
    const mapped = Math.floor(usableBytes / MAP_ENTRY_BYTES) + 1;
    const map = Math.floor((page - 2) / mapped) * mapped + 2;
    const at = map === LOCK_OFFSET / pageBytes + 1 ? map + 1 : map;
    if (page <= at) return false;
    const type = Buffer.alloc(1);
    readSync(this.#descriptor, type, 0, 1, (at - 1) * pageBytes + MAP_ENTRY_BYTES * (page - at - 1));
    return TREE_TYPES.has(type.readUInt8(0));
  }
}

/** Clears 256 pages, and tries again for five seconds while another program uses the database. */
const clearPatiently = async (clearing: GapClearing, first: number, clock: Clock): Promise<number | null> => {
  for (let tries = 0; tries < TRIES; tries++) {
    const cleared = clearing.clear(first);
    if (cleared !== null) return cleared;
    await wait(clock, AGAIN_MS);
  }
  return null;
};

/**
 * Clears what deleted rows left in the unused space of pages, in short steps, so that a server can work meanwhile. Until it
 * ends or `isStopping`. Reads the whole file.
 */
export const clearPageGaps = async (
  db: Pick<Db, "sqlite" | "path" | "descriptor">,
  isStopping: () => boolean = () => false,
  clock: Clock = systemClock,
): Promise<ClearedGaps> => {
  if (db.path === ":memory:") return { outcome: "cleared", pages: 0 };
  if (!canReturnPages(db)) return { outcome: "unsupported", pages: 0 };
  db.sqlite.query("PRAGMA wal_checkpoint(PASSIVE)").all();
  const clearing = new GapClearing(db);
  let pages = 0;
  for (let first = 1; first <= clearing.pages; first += PAGES_AT_ONCE, await nextTurn()) {
    if (isStopping()) return { outcome: "stopped", pages };
    if (!(await clearing.isDirty(first))) continue;
    const cleared = await clearPatiently(clearing, first, clock);
    if (cleared === null) return { outcome: "busy", pages };
    pages += cleared;
  }
  await clearing.sync();
  return { outcome: "cleared", pages };
};
