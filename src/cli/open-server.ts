import { SQLiteError } from "bun:sqlite";
import { AccountsSlice } from "../accounts/open.ts";
import { systemClock } from "../foundation/base/clock.ts";
import type { Log } from "../foundation/base/log.ts";
import { removeAbandonedCopies } from "../foundation/db/backup-directory.ts";
import { CheckpointThread } from "../foundation/db/checkpoint-thread.ts";
import { type Db, SERVER_BUSY_TIMEOUT_MS } from "../foundation/db/open.ts";
import { baseUrlOf, type Config } from "../service/config.ts";
import { databaseFailure, openDatabaseAt } from "./data-directory.ts";
import { showFirstKeys } from "./first-keys.ts";
import type { HttpListener } from "./http-listener.ts";
import type { Io } from "./io.ts";

export interface OpenOptions {
  /** The database file. */
  readonly path: string;
  readonly config: Config;
  readonly log: Log;
  readonly io: Io;
  readonly asJson: boolean;
  readonly http: HttpListener;
}

/** What a server has before the service is loaded. */
export interface OpenedServer {
  readonly db: Db;
  readonly http: HttpListener;
  /** Removes the file of the first keys if they were printed; a start that fails before prints them again. */
  readonly removeShownKeys: () => void;
}

/** Opens the database of the server, which holds the lock, logs what was migrated, and has checkpoints made in a thread. */
export const openServerDatabase = ({ path, config, log }: Pick<OpenOptions, "path" | "config" | "log">): Db => {
  removeAbandonedCopies(path);
  const failure = (error: unknown) => databaseFailure(path, error, config);
  const db = openDatabaseAt(path, { busyTimeoutMs: SERVER_BUSY_TIMEOUT_MS, failure });
  const { before, after, applied, copy } = db.migrated;
  db.checkpoints.use(new CheckpointThread(path, { log, clock: systemClock, program: Bun.main }));
  if (before > 0 && applied.length > 0) log.info("database migrated", { before, after, applied, copy });
  return db;
};

/** Opens the database of the server that listens, and prints the keys of a new account. Nothing awaits in between. */
export const openServer = (options: OpenOptions): OpenedServer => {
  const { config, path, io, asJson, http } = options;
  const db = openServerDatabase(options);
  try {
    const accounts = new AccountsSlice({ db, clock: systemClock });
    const firstKeys = { db, accounts, dataDir: config.dataDir, url: baseUrlOf(config, http.port) };
    return { db, http, removeShownKeys: showFirstKeys(firstKeys, { io, asJson }) };
  } catch (error) {
    db.close();
    throw error instanceof SQLiteError ? databaseFailure(path, error, config) : error;
  }
};
