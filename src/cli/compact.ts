import { SQLiteError } from "bun:sqlite";
import { compactDatabase } from "../foundation/db/free-pages.ts";
import { command } from "./command.ts";
import { openDatabaseAt } from "./data-directory.ts";
import { loadConfig, lockDatabase, prepareDatabase } from "./prepare-directory.ts";
import { CommandFailed } from "./io.ts";

const inMegabytes = (bytes: number): string => `${(bytes / 1e6).toFixed(1)} MB`;

const COMPACT = command({
  description: "Rewrite the database without unused space. The server must be stopped.",
  example: "compact",
  run({ io, print }) {
    const path = prepareDatabase(io, loadConfig(io), "fail");
    const lock = lockDatabase(path);
    const db = openDatabaseAt(path);
    try {
      const compacted = compactDatabase(db, path);
      if (!compacted.ok) {
        const { required, available } = compacted.error;
        throw new CommandFailed(
          `The disk of ${path} has ${inMegabytes(available)} free; ${inMegabytes(required)} are required. Nothing was changed.`,
          "disk_space",
        );
      }
      const { before, after } = compacted.value;
      print(
        { database: path, bytes_before: before, bytes_after: after },
        () => `${path}: ${inMegabytes(after)}, was ${inMegabytes(before)}.`,
      );
    } catch (error) {
      if (!(error instanceof SQLiteError)) throw error;
      throw new CommandFailed(`Database error in ${path}: ${error.message}`, "database");
    } finally {
      db.close();
      lock.release();
    }
  },
});

export const COMPACT_COMMANDS = { compact: COMPACT };
