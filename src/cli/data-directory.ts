import { errorText } from "../foundation/base/errors.ts";
import { SQLiteError } from "bun:sqlite";
import { describeUnknownAccount, NO_ACCOUNT_YET } from "../accounts/accounts.ts";
import { type Actor, actorOfProcess, type AuditedAction } from "../accounts/audit-store.ts";
import { systemClock } from "../foundation/base/clock.ts";
import { AccountsSlice } from "../accounts/open.ts";
import { type Account, AccountStore } from "../accounts/store.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import type { Config } from "../service/config.ts";
import { damageOf } from "../foundation/db/backup.ts";
import { describeMigrateProblem } from "../foundation/db/migrate.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import { accountOptions, type Surroundings } from "./command.ts";
import { CommandFailed, type Io, UsageError } from "./io.ts";
import { damagedDatabase } from "./newest-backup.ts";
import { loadConfig, prepareDatabase } from "./prepare-directory.ts";

/** What SQLite's failure to open or read the database at `path` is: damage, with the backup to restore, or its message. */
export const databaseFailure = (path: string, error: unknown, { backupDir }: Config): CommandFailed => {
  const damage = damageOf(error);
  return damage === null || !("detail" in damage)
    ? new CommandFailed(`Database error in ${path}: ${errorText(error)}`, "database")
    : damagedDatabase(path, damage.detail, { backupDir, nowMs: systemClock.nowMs() });
};

/** Opens the database of the data directory, migrated to the schema of this version. */
export const openDatabase = (io: Io, config: Config): Db =>
  openOwnDatabase(io, config, prepareDatabase(io, config, "fail"));

/** Opens the database of the data directory at its path, created if necessary, and says where a copy of it was made. */
const openOwnDatabase = (io: Io, config: Config, path: string): Db => {
  const db = openDatabaseAt(path, { failure: (error) => databaseFailure(path, error, config) });
  const { applied, copy } = db.migrated;
  if (copy !== null) io.err(`postwarden: Applied ${applied.join(", ")}. A copy of the former database: ${copy}`);
  return db;
};

interface OpenOptions {
  readonly busyTimeoutMs?: number;
  readonly failure?: (error: unknown) => CommandFailed;
}

/** Opens the database in a file, created if necessary. */
export const openDatabaseAt = (path: string, { busyTimeoutMs, failure }: OpenOptions = {}): Db => {
  try {
    const opened = openDb(path, busyTimeoutMs);
    if (opened.ok) return opened.value;
    throw new CommandFailed(`${path}: ${describeMigrateProblem(opened.error)}`, opened.error.kind);
  } catch (error) {
    if (error instanceof CommandFailed) throw error;
    throw failure?.(error) ?? new CommandFailed(`${path}: ${errorText(error)}`, "database");
  }
};

/** Runs `work` with the database of the data directory, and closes it. */
export const withDatabase = async <T>(
  io: Io,
  work: (db: Db, config: Config) => Promise<T>,
  missing: "create" | "fail" = "fail",
): Promise<T> => {
  const config = loadConfig(io);
  const path = prepareDatabase(io, config, missing);
  const db = openOwnDatabase(io, config, path);
  try {
    return await work(db, config);
  } catch (error) {
    throw error instanceof SQLiteError ? databaseFailure(path, error, config) : error;
  } finally {
    db.close();
  }
};

/** The accounts of the data directory and its database. */
export interface DatabaseContext extends AccountsSlice {
  readonly db: Db;
  readonly config: Config;
}

const openContext =
  (missing: "create" | "fail"): Surroundings<DatabaseContext>["open"] =>
  ({ io }, _, work) =>
    withDatabase(
      io,
      (db, config) => work({ ...new AccountsSlice({ db, clock: systemClock }, actorOf(io)), db, config }),
      missing,
    );

/** Commands on the database of the data directory, which must exist. */
export const inDatabase: Surroundings<DatabaseContext> = { options: {}, open: openContext("fail") };

/** The same; the database is created if necessary. */
export const inNewDatabase: Surroundings<DatabaseContext> = { options: {}, open: openContext("create") };

/** Commands on some things of an account, those of live or of test keys. */
export const inAccount = (
  things: string,
): Surroundings<DatabaseContext & { readonly owner: Owner }, ReturnType<typeof accountOptions>> => ({
  options: accountOptions(things),
  open: (terminal, { account, mode }, work) =>
    inDatabase.open(terminal, {}, (context) =>
      work({ ...context, owner: { accountId: accountIdOf(context.db, account), mode } }),
    ),
});

/** The account of this name. */
export const accountNamed = ({ store }: Pick<DatabaseContext, "store">, name: string): Account => {
  const account = store.findAccountByName(name);
  if (account === undefined) throw unknownAccount(name);
  return account;
};

/**
 * Performs an action in many transactions with its entry in the audit log, which the first of them that changes a row also
 * writes. The result is a second entry, with `.done` after its name.
 */
export const performInSteps = async <T>(io: Io, db: Db, { action, work, resultOf }: LongAction<T>): Promise<T> => {
  const { audit } = new AccountsSlice({ db, clock: systemClock }, actorOf(io));
  const value = await audit.perform({ action, work });
  const { before: _, ...done } = { ...action, action: `${action.action}.done`, after: resultOf(value) };
  db.transact((tx) => audit.append(tx, done));
  return value;
};

interface LongAction<T> {
  readonly action: AuditedAction;
  readonly work: () => Promise<T>;
  /** For the second entry: counts. */
  readonly resultOf: (value: T) => Readonly<Record<string, unknown>>;
}

/** Who runs this command. */
const actorOf = ({ environment }: Io): Actor => actorOfProcess(environment.SUDO_USER);

/** No account has this name. */
export const unknownAccount = (name: string): CommandFailed =>
  new CommandFailed(describeUnknownAccount(name), "unknown_account");

/** Id of the account of this name, or of the only account when no name is given. */
export const accountIdOf = (db: Db, name: string | undefined): string => {
  const store = new AccountStore(db);
  if (name !== undefined) {
    const account = store.findAccountByName(name);
    if (account !== undefined) return account.id;
    throw unknownAccount(name);
  }
  const [only, another] = store.listAccounts();
  if (only === undefined) throw new CommandFailed(NO_ACCOUNT_YET, "unknown_account");
  if (another !== undefined) throw new UsageError("There are several accounts. Name one with --account.", "account");
  return only.id;
};
