import { nextTurn, systemClock } from "../../../foundation/base/clock.ts";
import { unhurried } from "../../../foundation/db/unhurried.ts";
import { pagesOf, type StepLimits } from "../../../foundation/base/in-steps.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";

/** A mail or file as it came, and the id of its ingestion. */
export interface RawMail {
  readonly id: string;
  readonly bytes: Uint8Array;
}

interface ChunkRow {
  readonly ingestion: string;
  readonly chunk: number;
  readonly size: number;
  readonly isStray: 0 | 1;
}

/** Most mails have no more. Hundreds of them are removed in one transaction. */
const HEAD_BYTES = 16 * 1024;
/** What a transaction writes, removes or reads of a large mail: it holds the event loop for 5 ms. Less would take longer in all. */
const CHUNK_BYTES = 512 * 1024;
/** Larger mails are written ahead. */
export const WHOLE_BYTES_MAX = HEAD_BYTES + CHUNK_BYTES;
const ROWS_AT_ONCE = 50;

const STRAY = `NOT EXISTS (SELECT 1 FROM dmarc_raw r WHERE r.ingestion = c.ingestion)
  OR $unfinished AND NOT EXISTS (SELECT 1 FROM dmarc_ingestions i WHERE i.id = c.ingestion)`;

const STATEMENTS = {
  insertHead: "INSERT INTO dmarc_raw (ingestion, bytes) VALUES (?, ?)",
  insertChunk: "INSERT OR REPLACE INTO dmarc_raw_chunks (ingestion, chunk, bytes) VALUES (?, ?, ?)",
  has: rows<unknown, [string]>("SELECT 1 FROM dmarc_raw WHERE ingestion = ?"),
  head: rows<{ bytes: Uint8Array; size: number }, [string]>(
    `SELECT bytes, length(bytes) + coalesce((SELECT sum(length(c.bytes)) FROM dmarc_raw_chunks c WHERE c.ingestion = r.ingestion), 0)
      AS size FROM dmarc_raw r WHERE ingestion = ?`,
  ),
  chunk: rows<{ bytes: Uint8Array }, [string, number]>(
    "SELECT bytes FROM dmarc_raw_chunks WHERE ingestion = ? AND chunk = ?",
  ),
  remove: "DELETE FROM dmarc_raw WHERE ingestion = ?",
  removeUnowned:
    "DELETE FROM dmarc_raw WHERE ingestion = ?1 AND NOT EXISTS (SELECT 1 FROM dmarc_ingestions WHERE id = ?1)",
  removeChunk: `DELETE FROM dmarc_raw_chunks WHERE ingestion = ?1 AND chunk = ?2
    AND NOT EXISTS (SELECT 1 FROM dmarc_raw WHERE ingestion = ?1)`,
  chunksAfter: rows<ChunkRow, { ingestion: string; chunk: number; unfinished: boolean; limit: number }>(
    `SELECT c.ingestion, c.chunk, length(c.bytes) AS size, ${STRAY} AS isStray FROM dmarc_raw_chunks c
      WHERE (c.ingestion, c.chunk) > ($ingestion, $chunk) ORDER BY c.ingestion, c.chunk LIMIT $limit`,
  ),
};

/**
 * The bytes of mails and files. SQLite writes and removes a blob page by page, so that one of 25 MB would hold the event loop
 * for a third of a second: the bytes after the first ones are chunks, written before the row with the first ones has an
 * ingestion, and removed after it, with a pause after each transaction. So a mail is whole whenever its ingestion and its first
 * bytes are there.
 */
export class RawStore {
  readonly #db: Pick<Db, "apart" | "commit">;
  readonly #sql;

  constructor(db: Db) {
    this.#db = unhurried(db, systemClock);
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  /**
   * Writes the large ones of some mails, and then has `write` insert the ingestions of all by `add`. Rejects as `write` does:
   * then mails without an ingestion are removed again.
   */
  async adding<T>(mails: readonly RawMail[], write: () => Promise<T>): Promise<T> {
    const large = mails.filter(({ bytes }) => bytes.byteLength > WHOLE_BYTES_MAX);
    if (large.length === 0) return write();
    try {
      for (const mail of large) await this.#db.apart(() => this.#addAhead(mail));
      return await write();
    } catch (error) {
      // What cannot be removed now either, `removeStray` finds.
      await this.#db.apart(() => this.#removeUnowned(large)).catch(() => undefined);
      throw error;
    }
  }

  /** Writes a mail unless `adding` has done it. */
  add(_tx: Tx, mail: RawMail): void {
    if (mail.bytes.byteLength > WHOLE_BYTES_MAX && this.#sql.has.get(mail.id) !== null) return;
    for (const write of this.#writesOf(mail)) write();
  }

  /** The bytes as they came; undefined when they are no longer kept. */
  async find(id: string): Promise<Uint8Array | undefined> {
    const head = this.#sql.head.get(id);
    if (head === null) return undefined;
    if (head.size === head.bytes.byteLength) return head.bytes;
    const bytes = Buffer.allocUnsafe(head.size);
    let filled = 0;
    for (let [part, next] = [head as { bytes: Uint8Array } | null, 0]; part !== null; next += 1) {
      bytes.set(part.bytes, filled);
      filled += part.bytes.byteLength;
      if (part.bytes.byteLength >= CHUNK_BYTES) await nextTurn();
      part = this.#sql.chunk.get(id, next);
    }
    // Removed meanwhile, the first bytes before all others.
    return filled < bytes.byteLength || this.#sql.has.get(id) === null ? undefined : bytes;
  }

  /** Removes a mail; its chunks are stray then. */
  remove(_tx: Tx, id: string): void {
    this.#sql.remove.run(id);
  }

  /**
   * Removes the chunks of removed mails, from the id `from` on; with `unfinished` also mails without an ingestion, whose arrival a
   * crash ended. One that is still arriving, in another process, is written again by `add`.
   */
  async removeStray({ from = "", unfinished = false } = {}, limits?: StepLimits): Promise<void> {
    const start = { ingestion: from, chunk: -1 };
    const read = ({ ingestion, chunk }: typeof start) =>
      this.#sql.chunksAfter.all({ ingestion, chunk, unfinished, limit: ROWS_AT_ONCE });
    for await (const page of pagesOf({ start, read, positionOf: (row: typeof start) => row }, limits))
      for (const some of bySize(page.filter(({ isStray }) => isStray === 1)))
        await this.#db.commit(() => {
          for (const { ingestion, chunk } of some) {
            this.#sql.removeUnowned.run(ingestion);
            this.#sql.removeChunk.run(ingestion, chunk);
          }
        });
  }

  async #addAhead(mail: RawMail) {
    const [head, first, ...others] = this.#writesOf(mail);
    // Together, because `removeStray` finds mails by their chunks.
    await this.#db.commit(() => {
      head?.();
      first?.();
    });
    for (const write of others) await this.#db.commit(write);
  }

  #writesOf({ id, bytes }: RawMail) {
    const writes = [() => void this.#sql.insertHead.run(id, bytes.subarray(0, HEAD_BYTES))];
    for (let at = HEAD_BYTES; at < bytes.byteLength; at += CHUNK_BYTES) {
      const chunk = writes.length - 1;
      writes.push(() => void this.#sql.insertChunk.run(id, chunk, bytes.subarray(at, at + CHUNK_BYTES)));
    }
    return writes;
  }

  async #removeUnowned(mails: readonly RawMail[]) {
    await this.#db.commit(() => {
      for (const { id } of mails) this.#sql.removeUnowned.run(id);
    });
    await this.removeStray({ from: mails.map(({ id }) => id).toSorted()[0] });
  }
}

/** Chunks in their order, of `CHUNK_BYTES` at most together. */
function* bySize(chunks: readonly ChunkRow[]): Generator<readonly ChunkRow[], void> {
  let [some, size]: [ChunkRow[], number] = [[], 0];
  for (const chunk of chunks) {
    if (size + chunk.size > CHUNK_BYTES) {
      yield some;
      [some, size] = [[], 0];
    }
    some.push(chunk);
    size += chunk.size;
  }
  if (some.length > 0) yield some;
}
