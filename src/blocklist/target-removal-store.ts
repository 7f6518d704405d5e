import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../db/open.ts";

/** What belongs to a target. */
const TABLES = ["blocklist_checks", "blocklist_listings", "blocklist_mutes"];

const prepareAll = (sqlite: Sqlite) => ({
  parts: TABLES.map((table) =>
    sqlite.prepare<unknown, [string, number]>(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE target_id = ? LIMIT ?)`,
    ),
  ),
  target: sqlite.prepare<unknown, [string]>("DELETE FROM blocklist_targets WHERE id = ?"),
});

/** Removes targets with their history, listings and mutes: years of checks, so a limited number of rows at a time. */
export class TargetRemovalStore {
  readonly #sql: ReturnType<typeof prepareAll>;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareAll(sqlite);
  }

  /** Removes up to `limit` rows of a target, its own row last; returns how many. 0: the target is gone. */
  removeSome(_tx: Tx, id: string, limit: number): number {
    let left = limit;
    for (const statement of this.#sql.parts) if (left > 0) left -= statement.run(id, left).changes;
    if (left > 0) left -= this.#sql.target.run(id).changes;
    return limit - left;
  }
}
