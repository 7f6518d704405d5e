import { and, asc, count, eq, gt, sql } from "drizzle-orm";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { suppressions } from "../../foundation/db/schema.ts";
import { statements } from "../../foundation/db/statements.ts";

/** One entry of the suppression list: a normalized address, or a domain that stands for its subdomains too. */
export interface Suppression {
  readonly entry: string;
  readonly note: string | null;
  readonly createdAtMs: number;
}

/** What a statement looks for at once: more than addresses usually have candidates. */
const NO_CANDIDATES: readonly null[] = Array.from({ length: 8 }, () => null);

const prepareAll = ({ sqlite }: Db) =>
  statements({
    insert: () =>
      sqlite.prepare<unknown, [string, string | null, number]>(
        "INSERT INTO suppressions (entry, note, created_at_ms) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      ),
    // One statement for several candidates, in their order: each takes and releases the locks of the database.
    findFirst: () =>
      sqlite.prepare<{ entry: string }, Array<string | null>>(
        NO_CANDIDATES.map(() => "SELECT entry FROM suppressions WHERE entry = ?").join(" UNION ALL "),
      ),
  });

export interface SuppressionSearch {
  /** What an entry contains; empty: anything. */
  readonly text: string;
  /** The last entry of the page before; empty: the first page. */
  readonly after: string;
  readonly limit: number;
}

/** The operator's suppression list. */
export class SuppressionStore {
  readonly #orm: Db["orm"];
  readonly #statements;

  constructor(db: Db) {
    this.#orm = db.orm;
    this.#statements = prepareAll(db);
  }

  /** False when the entry exists already. */
  insert(_tx: Tx, { entry, note, createdAtMs }: Suppression): boolean {
    return this.#statements.insert.run(entry, note, createdAtMs).changes > 0;
  }

  /** False when there was no such entry. */
  remove(_tx: Tx, entry: string): boolean {
    const removed = this.#orm.delete(suppressions).where(eq(suppressions.entry, entry)).returning().all();
    return removed.length > 0;
  }

  count(): number {
    return this.#orm.select({ count: count() }).from(suppressions).get()?.count ?? 0;
  }

  /** Entries after one that contain a text, in their order. */
  search({ text, after, limit }: SuppressionSearch): Suppression[] {
    const escaped = text.replaceAll(/[\\%_]/g, (character) => `\\${character}`);
    const contains = text === "" ? undefined : sql`${suppressions.entry} LIKE ${`%${escaped}%`} ESCAPE '\\'`;
    return this.#orm
      .select()
      .from(suppressions)
      .where(and(gt(suppressions.entry, after), contains))
      .orderBy(asc(suppressions.entry))
      .limit(limit)
      .all();
  }

  list(): Suppression[] {
    return this.#orm.select().from(suppressions).orderBy(asc(suppressions.entry)).all();
  }

  /** The first of the candidates that is on the list. */
  findAny(candidates: readonly string[]): string | null {
    for (let at = 0; at < candidates.length; at += NO_CANDIDATES.length) {
      const some = candidates.slice(at, at + NO_CANDIDATES.length);
      const found = this.#statements.findFirst.get(...some, ...NO_CANDIDATES.slice(some.length));
      if (found !== null) return found.entry;
    }
    return null;
  }
}
