import { nextTurn } from "../base/clock.ts";
import type { Db } from "./open.ts";
import { statements } from "./statements.ts";

/**
 * Values that were read from the database in this turn of the event loop: requests that arrive together read the same. Outside of
 * transactions, the locks of the file cost more than the read. A write of this process is seen at once, a write of another
 * process in the next turn.
 */
export class TurnReads<T> {
  readonly #values = new Map<string, T>();
  readonly #sql;
  #changes = 0;

  constructor(private readonly db: Pick<Db, "sqlite">) {
    this.#sql = statements({
      changes: () => db.sqlite.prepare<{ n: number }, []>("SELECT total_changes() AS n"),
    });
  }

  /** What `read` returned for the key in this turn, or returns now. A key without a value is read each time. */
  get(key: string, read: () => T | undefined): T | undefined {
    // The transaction may be rolled back.
    if (this.db.sqlite.inTransaction) return read();
    const changes = this.#sql.changes.get()?.n ?? 0;
    if (changes !== this.#changes) this.#values.clear();
    this.#changes = changes;
    const known = this.#values.get(key);
    if (known !== undefined) return known;
    const value = read();
    if (value === undefined) return undefined;
    if (this.#values.size === 0) void nextTurn().then(() => this.#values.clear());
    this.#values.set(key, value);
    return value;
  }
}
