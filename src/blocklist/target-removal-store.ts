import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../foundation/db/open.ts";

/** What belongs to a target. */
const TABLES = ["blocklist_checks", "blocklist_listings", "blocklist_mutes"];

/** A target, and the addresses of a range. */
const WITH_MEMBERS = "blocklist_targets WHERE id = ?1 OR (range_id <> '' AND range_id = ?1)";

const prepareAll = (sqlite: Sqlite) => ({
  note: sqlite.prepare<{ id: string }, [string]>(
    `INSERT INTO blocklist_removed_targets (id, account_id) SELECT id, account_id FROM ${WITH_MEMBERS} RETURNING id`,
  ),
  targets: sqlite.prepare<unknown, [string]>(`DELETE FROM ${WITH_MEMBERS}`),
  parts: TABLES.map((table) =>
    sqlite.prepare<unknown, [string, number]>(
      `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE target_id = ? LIMIT ?)`,
    ),
  ),
  end: sqlite.prepare<unknown, [string]>("DELETE FROM blocklist_removed_targets WHERE id = ?"),
  unfinished: sqlite.prepare<{ id: string }, []>("SELECT id FROM blocklist_removed_targets ORDER BY id LIMIT 1"),
});

/**
 * Removes targets at once, and then their history, listings and mutes: years of checks, so a limited number of rows at a
 * time. What a crash leaves is noted, and removed later.
 */
export class TargetRemovalStore {
  readonly #sql: ReturnType<typeof prepareAll>;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareAll(sqlite);
  }

  /** Removes a target, with the addresses of a range. Returns the ids of those whose rows are to be removed by `removeSome`. */
  removeTarget(_tx: Tx, id: string): string[] {
    const removed = this.#sql.note.all(id);
    this.#sql.targets.run(id);
    return removed.map((one) => one.id);
  }

  /** Removes up to `limit` rows of a removed target, the note last; returns how many. 0: nothing of it is left. */
  removeSome(_tx: Tx, id: string, limit: number): number {
    let left = limit;
    for (const statement of this.#sql.parts) if (left > 0) left -= statement.run(id, left).changes;
    if (left > 0) left -= this.#sql.end.run(id).changes;
    return limit - left;
  }

  /** A removed target of which rows are left, of any account. */
  unfinished(): string | undefined {
    return this.#sql.unfinished.get()?.id;
  }
}
