import { Database as Sqlite } from "bun:sqlite";
import { copyFileSync, existsSync, linkSync, realpathSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { err, ok, type Result } from "../base/errors.ts";
import { giveToOwnerOf } from "../base/private-file.ts";
import {
  checksumProblem,
  COMPANION_SUFFIXES,
  copyDatabase,
  type CopyProblem,
  damageOf,
  type DatabaseFileProblem,
  describeCopyProblem,
  describeDatabaseFileProblem,
  type VerifiedCopy,
  verifyCopy,
} from "./backup.ts";
import { hasChecksum, syncNames, syncFile } from "./partial-file.ts";
import { isBusy } from "./group-commit.ts";
import { removeOldCopies } from "./backup-directory.ts";

/** Why nothing was restored; then nothing was changed. */
type RestoreProblem =
  | { readonly kind: "backup"; readonly problem: DatabaseFileProblem }
  | { readonly kind: "copy"; readonly problem: CopyProblem }
  | { readonly kind: "in_use" };

/** Where `restoreBackup` put the former database, and what it restored. */
export interface Restored extends VerifiedCopy {
  /** Null if there was none. */
  readonly kept: string | null;
  /** Whether a checksum beside the backup proved that it is what was written. */
  readonly hasChecksum: boolean;
  readonly access: RestoredAccess;
}

/** A sentence for each problem of restoring `file` as the database at `path`. */
export const describeRestoreProblem = (file: string, path: string, problem: RestoreProblem): string => {
  switch (problem.kind) {
    case "backup":
      return describeDatabaseFileProblem(file, problem.problem);
    case "copy":
      return describeCopyProblem(file, path, problem.problem);
    case "in_use":
      return `Another program has ${path} open, such as a running command or Litestream. Stop it first.`;
    default:
      return problem satisfies never;
  }
};

interface RestoreOptions {
  readonly path: string;
  readonly keptSuffix: string;
  readonly schemaMax: number;
  /** Whether sessions and set-up links of the backup work again. */
  readonly keepSessions: boolean;
  readonly by: RestoredBy;
}

/**
 * Replaces the database at `path` by a copy of `file`, in which `withdrawAccess` has ended what must not come back. The caller holds the server lock. The former database stays
 * beside it, with `keptSuffix` appended to its name, and with its write-ahead log where that is not part of the file. A
 * crash at any point leaves either the old or the new database at `path`, never one with the log of the other. If `path`
 * is a symbolic link, what it points to is replaced.
 */
export const restoreBackup = (
  file: string,
  { path, keptSuffix, schemaMax, keepSessions, by }: RestoreOptions,
): Result<Restored, RestoreProblem> => {
  const verified = verifyCopy(file, schemaMax);
  if (!verified.ok) return err({ kind: "backup", problem: verified.error });
  const changed = checksumProblem(file);
  if (changed !== null) return err({ kind: "backup", problem: changed });
  const isReplaced = existsSync(path);
  const target = isReplaced ? realpathSync(path) : path;
  const kept = isReplaced ? target + keptSuffix : null;
  let access: RestoredAccess | null = null;
  const copied = copyDatabase(file, target, (partial) => {
    giveToOwnerOf(isReplaced ? target : dirname(target), partial);
    const state = kept === null ? null : keepFormer(target, kept);
    if (state === "in_use") return ok(null);
    // SQLite would delete the logs of a damaged database if it were opened.
    access = withdrawAccess(partial, { former: state === "emptied" ? kept : null, keepSessions, by });
    for (const suffix of COMPANION_SUFFIXES) rmSync(target + suffix, { force: true });
    syncNames(target);
    renameSync(partial, target);
    syncNames(target);
    return ok(null);
  });
  if (!copied.ok) return err({ kind: "copy", problem: copied.error });
  if (access === null) return err({ kind: "in_use" });
  removeOldCopies(target, "restore");
  return ok({ ...copied.value, kept, hasChecksum: hasChecksum(file), access });
};

/** Gives the former database a second name, unless it is in use, and its logs a copy if they are not part of it. */
const keepFormer = (path: string, kept: string): LogState => {
  const logs = ["-wal", "-journal"].filter((suffix) => existsSync(path + suffix));
  // First, as copies: SQLite deletes a log that it cannot read.
  for (const suffix of logs) copyFileSync(path + suffix, kept + suffix);
  const state = emptyLog(path);
  if (state !== "damaged") for (const suffix of logs) rmSync(kept + suffix);
  if (state !== "in_use") linkSync(path, kept);
  return state;
};

/** `emptied`: the file alone is the whole database. `in_use`: another process has it open, which would go on writing to it. */
type LogState = "emptied" | "in_use" | "damaged";

/** Moves the logs of a database into its file. */
const emptyLog = (path: string): LogState => {
  try {
    const sqlite = new Sqlite(path, { readwrite: true, create: false });
    try {
      sqlite.run("PRAGMA locking_mode = EXCLUSIVE");
      sqlite.run("BEGIN EXCLUSIVE");
      sqlite.run("COMMIT");
      sqlite.run("PRAGMA wal_checkpoint(TRUNCATE)");
      return "emptied";
    } finally {
      sqlite.close();
    }
  } catch (error) {
    if (isBusy(error)) return "in_use";
    // A damaged database is the reason for most restores. It is kept with its logs, as it is.
    if (damageOf(error) !== null) return "damaged";
    throw error;
  }
};

/** An API key or a user, as the operator knows it. */
export interface NamedAccess {
  readonly id: string;
  readonly account: string;
  /** Of a key its name, of a user the address. */
  readonly name: string;
}

/** What a restore changed about access, and what has to be looked at. */
interface RestoredAccess {
  /** Sessions of the dashboard and set-up links (invitations and resets, too) that were ended. */
  readonly sessionsEnded: number;
  readonly linksEnded: number;
  /** Whether the former database could be read. If not, the lists below are empty. */
  readonly isCompared: boolean;
  /** Keys that were revoked since the backup: they are revoked in the restored database, too. */
  readonly keysRevoked: readonly NamedAccess[];
  /** Keys that were rotated since the backup: only their present secrets work. */
  readonly keysRotated: readonly NamedAccess[];
  /** Keys that were created since the backup: they are gone. */
  readonly keysGone: readonly NamedAccess[];
  /** Users who were removed since the backup: they are back, with their former passwords. */
  readonly usersBack: readonly NamedAccess[];
  /** Users who changed their password or second factor since the backup: the former ones work again. */
  readonly usersReset: readonly NamedAccess[];
}

/** Who restores, and when, for the audit log. */
interface RestoredBy {
  readonly atMs: number;
  readonly user: string;
  readonly host: string;
  readonly pid: number;
}

const NOTHING_COMPARED = {
  isCompared: false,
  keysRevoked: [],
  keysRotated: [],
  keysGone: [],
  usersBack: [],
  usersReset: [],
} satisfies Partial<RestoredAccess>;

const SECRET_COLUMNS = ["hash", "key_id", "ending", "valid_until_ms", "created_at_ms"];
/** Backups of older versions lack some tables and columns. */
const COLUMNS: Readonly<Record<string, readonly string[]>> = {
  accounts: ["id", "name"],
  api_keys: ["id", "account_id", "name", "revoked_at_ms"],
  key_secrets: SECRET_COLUMNS,
  users: ["id", "account_id", "email", "password_hash", "totp_secret"],
};

const hasTable = (sqlite: Sqlite, schema: string, table: string, columns: readonly string[] = []) => {
  const found = new Set(sqlite.query("SELECT name FROM pragma_table_info(?, ?)").values(table, schema).flat());
  return found.size > 0 && columns.every((column) => found.has(column));
};

const haveBoth = (sqlite: Sqlite, ...tables: readonly string[]) =>
  tables.every((table) => ["main", "former"].every((schema) => hasTable(sqlite, schema, table, COLUMNS[table])));

const named = (sqlite: Sqlite, sql: string) => sqlite.query<NamedAccess, []>(sql).all();

const REVOKED = "former.revoked_at_ms IS NOT NULL AND restored.revoked_at_ms IS NULL";
/** The secrets of a key, as a text that is equal for equal secrets. */
const secretsIn = (schema: string) =>
  `(SELECT group_concat(hash || ifnull(valid_until_ms, ''), ',') FROM (SELECT hash, valid_until_ms FROM ${schema}.key_secrets WHERE key_id = restored.id ORDER BY hash))`;
const KEY = "restored.id, accounts.name AS account, restored.name";
const KEYS_IN_BOTH =
  "main.api_keys restored JOIN former.api_keys former ON former.id = restored.id JOIN main.accounts ON accounts.id = restored.account_id";

/** The present state of keys counts: what was revoked stays revoked, and a replaced secret does not come back. */
const carryOverKeys = (sqlite: Sqlite) => {
  if (!haveBoth(sqlite, "accounts", "api_keys", "key_secrets"))
    return { keysRevoked: [], keysRotated: [], keysGone: [] };
  const keysRevoked = named(sqlite, `SELECT ${KEY} FROM ${KEYS_IN_BOTH} WHERE ${REVOKED} ORDER BY restored.id`);
  const keysRotated = named(
    sqlite,
    `SELECT ${KEY} FROM ${KEYS_IN_BOTH} WHERE former.revoked_at_ms IS NULL AND ${secretsIn("former")} IS NOT ${secretsIn("main")} ORDER BY restored.id`,
  );
  const keysGone = named(
    sqlite,
    `SELECT former.id, ifnull(accounts.name, '') AS account, former.name FROM former.api_keys former LEFT JOIN former.accounts ON accounts.id = former.account_id
     WHERE former.revoked_at_ms IS NULL AND former.id NOT IN (SELECT id FROM main.api_keys) ORDER BY former.id`,
  );
  sqlite.run(
    `UPDATE main.api_keys SET revoked_at_ms = (SELECT former.revoked_at_ms FROM former.api_keys former WHERE former.id = api_keys.id)
     WHERE revoked_at_ms IS NULL AND id IN (SELECT id FROM former.api_keys)`,
  );
  const inBoth = "SELECT id FROM main.api_keys INTERSECT SELECT id FROM former.api_keys";
  const columns = SECRET_COLUMNS.join(", ");
  sqlite.run(`DELETE FROM main.key_secrets WHERE key_id IN (${inBoth})`);
  sqlite.run(
    `INSERT INTO main.key_secrets (${columns}) SELECT ${columns} FROM former.key_secrets WHERE key_id IN (${inBoth})`,
  );
  return { keysRevoked, keysRotated, keysGone };
};

const compareUsers = (sqlite: Sqlite) => {
  if (!haveBoth(sqlite, "accounts", "users")) return { usersBack: [], usersReset: [] };
  const select = "SELECT restored.id, accounts.name AS account, restored.email AS name FROM main.users restored";
  const account = "JOIN main.accounts ON accounts.id = restored.account_id";
  return {
    usersBack: named(
      sqlite,
      `${select} ${account} WHERE restored.id NOT IN (SELECT id FROM former.users) ORDER BY restored.email`,
    ),
    usersReset: named(
      sqlite,
      `${select} JOIN former.users former ON former.id = restored.id ${account}
       WHERE former.password_hash IS NOT restored.password_hash OR former.totp_secret IS NOT restored.totp_secret ORDER BY restored.email`,
    ),
  };
};

const emptyTable = (sqlite: Sqlite, table: string) =>
  hasTable(sqlite, "main", table) ? sqlite.run(`DELETE FROM main.${table}`).changes : 0;

/** False where the former database cannot be read: it is damaged, or no database. */
const attach = (sqlite: Sqlite, former: string) => {
  try {
    sqlite.run("ATTACH DATABASE ? AS former", [former]);
    sqlite.query("SELECT count(*) FROM former.sqlite_master").get();
    return true;
  } catch (error) {
    if (damageOf(error) === null) throw error;
    return false;
  }
};

const AUDIT_COLUMNS = ["at_ms", "user", "host", "pid", "action", "account_id", "subject", "before", "after"];

/** Says in the audit log of the restored database that it is one. Backups of the first versions have no audit log. */
const appendEntry = (
  sqlite: Sqlite,
  { atMs, user, host, pid }: RestoredBy,
  { access, keepSessions }: { readonly access: RestoredAccess; readonly keepSessions: boolean },
) => {
  if (!hasTable(sqlite, "main", "audit_log", AUDIT_COLUMNS)) return;
  const after = {
    sessions_kept: keepSessions,
    sessions_ended: access.sessionsEnded,
    links_ended: access.linksEnded,
    compared: access.isCompared,
    keys_revoked: access.keysRevoked.length,
    keys_rotated: access.keysRotated.length,
    keys_gone: access.keysGone.length,
    users_back: access.usersBack.length,
    users_reset: access.usersReset.length,
  };
  sqlite
    .query("INSERT INTO main.audit_log (at_ms, user, host, pid, action, after) VALUES (?, ?, ?, ?, 'restore', ?)")
    .run(atMs, user, host, pid, JSON.stringify(after));
};

const compare = (sqlite: Sqlite, former: string | null): Omit<RestoredAccess, "sessionsEnded" | "linksEnded"> => {
  if (former === null || !attach(sqlite, former)) return NOTHING_COMPARED;
  const change = sqlite.transaction(() => ({ isCompared: true, ...carryOverKeys(sqlite), ...compareUsers(sqlite) }));
  try {
    return change.immediate();
  } catch (error) {
    if (damageOf(error) === null) throw error;
    return NOTHING_COMPARED;
  }
};

/**
 * Takes back the access that a backup would bring back, in the restored database `file`, which no process uses yet: sessions
 * and set-up links end (unless `keepSessions`), and keys are as in the database `former` that is replaced. Synced.
 */
export const withdrawAccess = (
  file: string,
  {
    former,
    keepSessions,
    by,
  }: { readonly former: string | null; readonly keepSessions: boolean; readonly by: RestoredBy },
): RestoredAccess => {
  const sqlite = new Sqlite(file, { readwrite: true, create: false });
  try {
    sqlite.run("PRAGMA secure_delete = ON");
    const compared = compare(sqlite, former);
    const end = (table: string) => (keepSessions ? 0 : emptyTable(sqlite, table));
    const access = { sessionsEnded: end("sessions"), linksEnded: end("setup_links"), ...compared };
    appendEntry(sqlite, by, { access, keepSessions });
    return access;
  } finally {
    sqlite.close();
    syncFile(file);
  }
};
