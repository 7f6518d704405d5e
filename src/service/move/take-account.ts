import { SQLiteError } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import type { AuditLog } from "../../accounts/audit-store.ts";
import { errorCode, err, type Result } from "../../foundation/base/errors.ts";
import { roomIn } from "../../foundation/db/backup.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { checkFile, type MovedAccount } from "./account-file.ts";
import type { MoveProblem } from "./move-problem.ts";
import { DERIVED, differenceOf, type MovedTable, movedTables, shifted, type Shifts, sumsOf } from "./moved-tables.ts";

/** The rows, in the database and in its write-ahead log. */
const COPIES = 2;
const NAMED_MAX = 5;

/** Undoes the transaction. */
class NotTaken extends Error {
  constructor(readonly problem: MoveProblem) {
    super(problem.kind);
  }
}

/** Takes an account from a file into a database that no server uses. */
export class AccountTaking {
  readonly #tables: readonly MovedTable[];

  constructor(
    private readonly db: Db,
    private readonly audit: Pick<AuditLog, "append">,
  ) {
    this.#tables = movedTables(db.sqlite);
  }

  /**
   * Checks a file, then takes all of its rows in one transaction, which also compares the sums of every table with those in
   * the database that they come from. The account stays disabled. On a problem, nothing was changed.
   */
  run(file: string): Result<MovedAccount, MoveProblem> {
    const { sqlite, path } = this.db;
    const checked = checkFile(this.db, file);
    if (!checked.ok) return checked;
    const [folder, bytes] = [dirname(path), COPIES * statSync(file).size];
    if (path !== ":memory:" && roomIn(folder) < bytes)
      return err({ kind: "no_room", folder, freeBytes: roomIn(folder) });
    sqlite.query("ATTACH ? AS moved").run(file);
    try {
      this.db.transact((tx) => this.#take(tx, checked.value));
      return checked;
    } catch (error) {
      if (error instanceof NotTaken) return err(error.problem);
      if (error instanceof SQLiteError && errorCode(error).startsWith("SQLITE_CONSTRAINT"))
        return err({ kind: "row_exists", detail: error.message });
      throw error;
    } finally {
      sqlite.run("DETACH moved");
    }
  }

  #take(tx: Tx, { account, tables }: MovedAccount): void {
    const { sqlite } = this.db;
    const conflict = this.#conflict(account);
    if (conflict !== null) throw new NotTaken(conflict);
    sqlite.run("PRAGMA defer_foreign_keys = ON");
    const shifts = this.#shifts();
    for (const table of this.#tables) if (!DERIVED.has(table.name)) this.#insert(table, shifts);
    for (const table of this.#tables.filter(({ name }) => DERIVED.has(name))) {
      sqlite.query(`DELETE FROM main."${table.name}" WHERE ${table.owner} = ?`).run(account.id);
      this.#insert(table, shifts);
    }
    for (const table of this.#tables) {
      const here = sumsOf(sqlite, table, { schema: "main", account: account.id, shifts });
      const difference = differenceOf(
        here,
        tables.find(({ table: name }) => name === table.name),
      );
      if (difference !== null) throw new NotTaken({ kind: "differs", detail: difference });
    }
    const rows = tables.reduce((sum, one) => sum + one.rows, 0);
    const { id: accountId, name: subject } = account;
    this.audit.append(tx, { action: "accounts.take", accountId, subject, after: { rows } });
  }

  #insert({ name, columns }: MovedTable, shifts: Shifts): void {
    const names = columns.map((column) => `"${column.name}"`).join(", ");
    const values = columns.map((column) => shifted(column, shifts)).join(", ");
    this.db.sqlite.run(`INSERT INTO main."${name}" (${names}) SELECT ${values} FROM moved."${name}" ORDER BY rowid`);
  }

  /** What of the account is here already. */
  #conflict({ id, name }: MovedAccount["account"]): MoveProblem | null {
    const { sqlite } = this.db;
    const [same] = sqlite
      .query<{ name: string; isDeleted: 0 | 1 }, [string]>(
        "SELECT name, deleted_at_ms IS NOT NULL AS isDeleted FROM main.accounts WHERE id = ?",
      )
      .all(id);
    if (same !== undefined) return { kind: "account_exists", name, isDeleted: same.isDeleted === 1 };
    if (sqlite.query("SELECT 1 FROM main.accounts WHERE name = ?").get(name) !== null)
      return { kind: "name_exists", name };
    const emails = sqlite
      .query<{ email: string }, [number]>(
        "SELECT u.email FROM moved.users u JOIN main.users h ON h.email = u.email ORDER BY u.email LIMIT ?",
      )
      .all(NAMED_MAX)
      .map(({ email }) => email);
    if (emails.length > 0) return { kind: "users_exist", emails };
    const keys = sqlite
      .query<{ n: number }, []>(
        `SELECT (SELECT count(*) FROM moved.key_secrets s JOIN main.key_secrets h ON h.hash = s.hash)
          + (SELECT count(*) FROM moved.api_keys k JOIN main.api_keys h ON h.id = k.id) AS n`,
      )
      .get()?.n;
    return keys === undefined || keys === 0 ? null : { kind: "keys_exist", keys };
  }

  /**
   * By how much the numbers of each table grow, so that they lie above all that this instance has ever given. Also of numbers
   * whose rows are gone, such as sources that expired: they must never be those of rows of others.
   */
  #shifts(): Shifts {
    const { sqlite } = this.db;
    const shifts = new Map<string, number>();
    for (const { name, key } of this.#tables) {
      if (key === null) continue;
      const used = this.#tables.flatMap((table) =>
        table.columns.flatMap(({ name: column, numbers }) => {
          if (numbers?.table !== name) return [];
          const [number, where] = numbers.isVoucher
            ? [`"${column}" - 1`, `WHERE "${column}" > 1`]
            : [`"${column}"`, ""];
          return [`SELECT min(${number}) AS low, max(${number}) AS high FROM moved."${table.name}" ${where}`];
        }),
      );
      const found = sqlite
        .query<{ low: number | null; high: number | null }, []>(
          `SELECT min(low) AS low, max(high) AS high FROM (${used.join(" UNION ALL ")})`,
        )
        .get();
      if (found?.low == null || found.high === null) continue;
      const given = sqlite
        .query<{ n: number }, [string]>("SELECT coalesce(max(seq), 0) AS n FROM main.sqlite_sequence WHERE name = ?")
        .get(name)?.n;
      const by = (given ?? 0) + 1 - found.low;
      shifts.set(name, by);
      sqlite.query("DELETE FROM main.sqlite_sequence WHERE name = ?").run(name);
      sqlite.query("INSERT INTO main.sqlite_sequence (name, seq) VALUES (?, ?)").run(name, found.high + by);
    }
    return shifts;
  }
}
