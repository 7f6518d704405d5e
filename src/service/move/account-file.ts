import { Database as Sqlite } from "bun:sqlite";
import { statSync } from "node:fs";
import { dirname } from "node:path";
import { z } from "zod";
import { errorCode, err, ok, type Result } from "../../foundation/base/errors.ts";
import { createExclusively } from "../../foundation/base/private-file.ts";
import { checksumProblem, roomIn } from "../../foundation/db/backup.ts";
import { findDamage, type Db } from "../../foundation/db/open.ts";
import {
  nameIsTaken,
  partialNameOf,
  publishChecked,
  removeAbandonedPartialsOf,
  removePartial,
  syncFile,
} from "../../foundation/db/partial-file.ts";
import { schemaVersion } from "../../foundation/db/migrate.ts";
import type { MoveProblem } from "./move-problem.ts";
import { differenceOf, type MovedTable, movedTables, NO_SHIFTS, shifted, sumsOf } from "./moved-tables.ts";

/** "PWMV": marks a SQLite file as an account that moves (PRAGMA application_id). */
const APPLICATION_ID = 0x50574d56;
const MANIFEST = "moved_account";

const sumsSchema = z.object({ table: z.string(), rows: z.int().min(0), sums: z.record(z.string(), z.number()) });
const manifestSchema = z.object({
  account: z.object({ id: z.string().min(1), name: z.string().min(1) }),
  tables: z.array(sumsSchema),
});

/** What a file says of itself: whose rows it has, and their sums in the database that they come from. */
export type MovedAccount = z.infer<typeof manifestSchema>;

/** Work of an account that is not done: on another instance, it would be done twice or never. */
const OPEN_WORK: ReadonlyArray<readonly [what: string, sql: string]> = [
  ["pending verifications", "SELECT count(*) AS n FROM verifications WHERE account_id = ?1 AND status = 'pending'"],
  [
    "unfinished lists",
    "SELECT count(*) AS n FROM bulk_jobs WHERE account_id = ?1 AND (status NOT IN ('completed', 'cancelled', 'failed') OR is_resetting = 1)",
  ],
  ["unread report mails", "SELECT count(*) AS n FROM dmarc_ingestions WHERE account_id = ?1 AND status = 'pending'"],
  ["events without deliveries", "SELECT count(*) AS n FROM outbox WHERE account_id = ?1 AND delivered_at_ms IS NULL"],
  [
    "waiting webhooks (`postwarden webhooks cancel` ends them)",
    "SELECT count(*) AS n FROM webhook_deliveries WHERE account_id = ?1 AND status = 'pending'",
  ],
  [
    "waiting mails",
    `SELECT (SELECT count(*) FROM bulk_mails WHERE account_id = ?1) + (SELECT count(*) FROM blocklist_alerts WHERE account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains d JOIN dmarc_alerts a ON a.domain = d.number JOIN dmarc_alert_mails m ON m.alert = a.id
          WHERE d.account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains d JOIN dmarc_alert_mails m ON m.alert LIKE 'digest:' || d.number || ':%'
          WHERE d.account_id = ?1) AS n`,
  ],
  [
    "removed targets and domains whose history is still being deleted",
    `SELECT (SELECT count(*) FROM blocklist_removed_targets WHERE account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains WHERE account_id = ?1 AND deleted_at_ms IS NOT NULL) AS n`,
  ],
];

/** What of the work of an account is not done, as `3 pending verifications`. */
const openWorkOf = (sqlite: Sqlite, accountId: string): readonly string[] =>
  OPEN_WORK.flatMap(([what, sql]) => {
    const count = sqlite.query<{ n: number }, [string]>(sql).get(accountId)?.n ?? 0;
    return count === 0 ? [] : [`${count} ${what}`];
  });

const writeTables = ({ sqlite }: Pick<Db, "sqlite">, account: string): Result<MovedAccount["tables"], MoveProblem> => {
  const tables: MovedAccount["tables"] = [];
  for (const table of movedTables(sqlite)) {
    const { name, owner } = table;
    const columns = table.columns.map((column) => `${shifted(column, NO_SHIFTS)} AS "${column.name}"`).join(", ");
    sqlite
      .query(`CREATE TABLE moved."${name}" AS SELECT ${columns} FROM main."${name}" WHERE ${owner} = ?`)
      .run(account);
    for (const column of table.soughtBy)
      sqlite.run(`CREATE INDEX moved."${name}_by_${column}" ON "${name}" ("${column}")`);
    const stored = sumsOf(sqlite, table, { schema: "main", account, shifts: NO_SHIFTS });
    const difference = differenceOf(
      stored,
      sumsOf(sqlite, table, { schema: "moved", account: null, shifts: NO_SHIFTS }),
    );
    if (difference !== null) return err({ kind: "differs", detail: difference });
    tables.push(stored);
  }
  return ok(tables);
};

const isDisabled = (sqlite: Sqlite, accountId: string): boolean =>
  sqlite.query("SELECT 1 FROM accounts WHERE id = ? AND disabled_at_ms IS NOT NULL").get(accountId) !== null;

/** Writes the rows of an account, and the manifest, into an empty file, from one state of the database. */
const fill = (db: Db, account: MovedAccount["account"], partial: string): Result<MovedAccount, MoveProblem> => {
  const { sqlite } = db;
  sqlite.query("ATTACH ? AS moved").run(partial);
  try {
    for (const pragma of ["journal_mode = OFF", "synchronous = OFF", `application_id = ${APPLICATION_ID}`])
      sqlite.run(`PRAGMA moved.${pragma}`);
    return db.snapshot(() => {
      if (!isDisabled(sqlite, account.id)) return err({ kind: "enabled", name: account.name });
      const work = openWorkOf(sqlite, account.id);
      if (work.length > 0) return err({ kind: "open_work", work });
      const tables = writeTables(db, account.id);
      if (!tables.ok) return tables;
      const moved: MovedAccount = { account, tables: tables.value };
      sqlite.run(`CREATE TABLE moved.${MANIFEST} AS SELECT ? AS manifest`, [JSON.stringify(moved)]);
      sqlite.run(`PRAGMA moved.user_version = ${schemaVersion(sqlite)}`);
      return ok(moved);
    });
  } finally {
    sqlite.run("DETACH moved");
  }
};

/**
 * Writes an account with everything that belongs to it into a new file, readable by its owner only, with its checksum beside
 * it. The account must be disabled and have no open work. The database can be in use, and is not changed. Throws what SQLite
 * and the file system throw.
 */
export const writeAccountFile = (
  db: Db,
  account: MovedAccount["account"],
  file: string,
): Result<MovedAccount, MoveProblem> => {
  if (nameIsTaken(file)) return err({ kind: "file_exists" });
  removeAbandonedPartialsOf(file);
  const partial = partialNameOf(file);
  try {
    createExclusively(partial);
    const moved = fill(db, account, partial);
    if (!moved.ok) return moved;
    syncFile(partial);
    const read = checkFile(db, partial);
    if (!read.ok) return read;
    return publishChecked(partial, file) ? moved : err({ kind: "file_exists" });
  } catch (error) {
    if (errorCode(error) !== "SQLITE_FULL") throw error;
    return err({ kind: "no_room", folder: dirname(file), freeBytes: roomIn(dirname(file)) });
  } finally {
    removePartial(file);
  }
};

const readManifest = (sqlite: Sqlite): MovedAccount | null => {
  try {
    const row = sqlite.query<{ manifest: string }, []>(`SELECT manifest FROM ${MANIFEST}`).get();
    return manifestSchema.parse(JSON.parse(row?.manifest ?? ""));
  } catch {
    return null;
  }
};

const columnNames = (sqlite: Sqlite, table: string): readonly string[] =>
  sqlite
    .query<{ name: string }, []>(`PRAGMA main.table_info("${table}")`)
    .all()
    .map(({ name }) => name);

/** What is wrong with the tables of a file: they must be those that move, with rows of its account only. */
const tablesProblem = (sqlite: Sqlite, tables: readonly MovedTable[], { account, tables: stated }: MovedAccount) => {
  const others = sqlite
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type NOT IN ('table', 'index')")
    .all();
  if (others.length > 0) return `it has ${others[0]?.name}, which is no table`;
  for (const table of tables) {
    const columns = table.columns.map(({ name }) => name);
    if (columnNames(sqlite, table.name).join() !== columns.join()) return `the columns of ${table.name} are others`;
    const foreign = sqlite
      .query<object, [string]>(`SELECT 1 FROM "${table.name}" WHERE ${table.owner} IS NOT ? LIMIT 1`)
      .get(account.id);
    if (foreign !== null) return `${table.name} has rows of another account`;
    const difference = differenceOf(
      sumsOf(sqlite, table, { schema: "main", account: null, shifts: NO_SHIFTS }),
      stated.find((one) => one.table === table.name),
    );
    if (difference !== null) return difference;
  }
  const [named, another] = sqlite.query<{ name: string }, []>("SELECT name FROM accounts").all();
  return named?.name === account.name && another === undefined ? null : "it does not have one account";
};

/** Reads all of a file: is it an account that moves, of this schema, undamaged, and of this account only? */
export const checkFile = ({ sqlite }: Pick<Db, "sqlite">, file: string): Result<MovedAccount, MoveProblem> => {
  if (!statSync(file).isFile()) return err({ kind: "no_account_file" });
  if (checksumProblem(file) !== null) return err({ kind: "damaged", detail: `it does not match ${file}.sha256` });
  const read = new Sqlite(file, { readonly: true });
  try {
    read.run("PRAGMA trusted_schema = OFF");
    const id = read.query<{ application_id: number }, []>("PRAGMA application_id").get()?.application_id;
    if (id !== APPLICATION_ID) return err({ kind: "no_account_file" });
    const [has, knows] = [schemaVersion(read), schemaVersion(sqlite)];
    if (has !== knows) return err({ kind: "other_schema", has, knows });
    const damage = findDamage(read);
    if (damage !== null) return err({ kind: "damaged", detail: damage });
    const manifest = readManifest(read);
    if (manifest === null) return err({ kind: "damaged", detail: "it does not say whose rows it has" });
    const problem = tablesProblem(read, movedTables(sqlite), manifest);
    return problem === null ? ok(manifest) : err({ kind: "damaged", detail: problem });
  } catch (error) {
    const code = errorCode(error);
    if (code === "SQLITE_NOTADB") return err({ kind: "no_account_file" });
    if (code.startsWith("SQLITE_CORRUPT") || code === "SQLITE_ERROR")
      return err({ kind: "damaged", detail: (error as Error).message });
    throw error;
  } finally {
    read.close();
  }
};
