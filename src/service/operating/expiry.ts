import type { Database as Sqlite } from "bun:sqlite";
import type { Db } from "../../foundation/db/open.ts";
import { type ExpiringParts, expiringJobs } from "../jobs.ts";
import { kindOf } from "./status.ts";

/** Rows that were removed, or of which something was. */
interface RemovedRows {
  readonly kind: string;
  readonly rows: number;
}

/** What a run of the jobs that delete what is old removed, the most rows first. */
export interface Expired {
  readonly kinds: readonly RemovedRows[];
  /** By how much the file became smaller; another process may have used some of the space meanwhile. */
  readonly bytesReturned: number;
}

/** The only column that expires before its row. */
const CELLS = { table: "bulk_rows", column: "cells", kind: "columns of uploaded lists" };

/** Counts what this connection removes, by kind: others may add and remove rows at the same time. */
class RemovalCounter {
  constructor(private readonly sqlite: Sqlite) {
    sqlite.run("CREATE TEMP TABLE removed_rows (kind TEXT PRIMARY KEY, rows INTEGER NOT NULL)");
    const tables = sqlite
      .query<{ name: string }, []>(
        "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
      )
      .all();
    for (const { name } of tables) this.#count(`DELETE ON main."${name}"`, name, kindOf({ table: name }));
    this.#count(`UPDATE OF ${CELLS.column} ON main.${CELLS.table}`, CELLS.column, CELLS.kind);
  }

  read(): readonly RemovedRows[] {
    return this.sqlite.query<RemovedRows, []>("SELECT kind, rows FROM removed_rows ORDER BY rows DESC, kind").all();
  }

  #count(event: string, name: string, kind: string): void {
    this.sqlite.run(`CREATE TEMP TRIGGER "removed_${name}" AFTER ${event} BEGIN
      INSERT INTO removed_rows VALUES ('${kind}', 1) ON CONFLICT (kind) DO UPDATE SET rows = rows + 1; END`);
  }
}

const fileBytesOf = ({ sqlite }: Pick<Db, "sqlite">): number =>
  sqlite
    .query<{ bytes: number }, []>(
      "SELECT c.page_count * s.page_size AS bytes FROM pragma_page_count c, pragma_page_size s",
    )
    .get()?.bytes ?? 0;

/**
 * Runs the jobs that delete what is old, one after the other, each in short transactions, so that a server can work
 * meanwhile. `service` is on the database `db`, which nothing else of this process has open.
 */
export const expireNow = async (service: ExpiringParts, db: Pick<Db, "sqlite">): Promise<Expired> => {
  const counter = new RemovalCounter(db.sqlite);
  const before = fileBytesOf(db);
  for (const { run } of expiringJobs(service)) await run(() => false);
  return { kinds: counter.read(), bytesReturned: Math.max(0, before - fileBytesOf(db)) };
};
