/** Databases of earlier versions, migrated by a process that is killed at random moments. */
import { Database } from "bun:sqlite";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { newId } from "../../src/foundation/base/secrets.ts";
import { migrate } from "../../src/foundation/db/migrate.ts";
import { MIGRATIONS } from "../../src/foundation/db/migrations.ts";
import { BINARY, command } from "../harness/binary.ts";
import { chance, type Claim, count, integrityClaims, openDatabase } from "./claims.ts";

const ROWS = 20_000;
const KILLS_PER_DATABASE = 4;
const UP_MS_MAX = 250;

/** A database as an earlier version left it: with the first migrations, and checks in it. */
const writeOldDatabase = (folder: string, migrations: number): void => {
  const sqlite = new Database(join(folder, "postwarden.db"), { create: true });
  sqlite.run("PRAGMA journal_mode = WAL");
  migrate(sqlite, MIGRATIONS.slice(0, migrations));
  sqlite.run("INSERT INTO accounts (id, name, plan, created_at_ms) VALUES ('a', 'old', 'scale', 0)");
  const insert = sqlite.prepare(
    "INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, status, created_at_ms) VALUES (?, 'a', 'k', 'live', ?, ?, 'completed', 0)",
  );
  sqlite.transaction(() => {
    for (let n = 0; n < ROWS; n++) insert.run(newId(), `a${n}@example.com`, `a${n}@example.com`);
  })();
  sqlite.close();
};

const schemaOf = (db: Database): string =>
  JSON.stringify(db.query("SELECT type, name, sql FROM sqlite_master ORDER BY type, name").all());

const currentSchema = (): string => {
  const sqlite = new Database(":memory:");
  migrate(sqlite, MIGRATIONS);
  const schema = schemaOf(sqlite);
  sqlite.close();
  return schema;
};

/** Kills `migrate` this many times, on databases of random earlier versions. */
export const killMigrations = async (directory: string, kills: number): Promise<readonly Claim[]> => {
  const expected = currentSchema();
  const wrong = { rows: 0, schema: 0, integrity: 0 };
  for (let done = 0, at = 0; done < kills; at++) {
    const folder = join(directory, `old-${at}`);
    mkdirSync(folder, { mode: 0o700 });
    writeOldDatabase(folder, 1 + chance(MIGRATIONS.length - 1));
    const env = { POSTWARDEN_DATA_DIR: folder };
    for (let n = 0; n < KILLS_PER_DATABASE && done < kills; n++, done++) {
      const process = Bun.spawn([BINARY, "migrate"], { env, stdin: "ignore", stdout: "ignore", stderr: "ignore" });
      await Bun.sleep(chance(UP_MS_MAX));
      process.kill("SIGKILL");
      await process.exited;
    }
    command(["migrate"], env);
    const db = openDatabase(folder);
    if (count(db, "verifications") !== ROWS) wrong.rows++;
    if (schemaOf(db) !== expected) wrong.schema++;
    wrong.integrity += integrityClaims(db).filter(([, times]) => times > 0).length;
    db.close();
  }
  return [
    ["migrated databases that lost rows", wrong.rows],
    ["migrated databases with another schema than a new one", wrong.schema],
    ["migrated databases that are damaged", wrong.integrity],
  ];
};
