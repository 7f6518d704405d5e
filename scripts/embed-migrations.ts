/**
 * Writes `src/foundation/db/migrations.ts`: one text import for each file of `drizzle/`, so that the binary carries them; and
 * `src/foundation/db/new-database.gz`: the file that all of them make of an empty database.
 */
import { Database as Sqlite } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { INCREMENTAL } from "../src/foundation/db/free-pages.ts";
import { APPLICATION_ID, migrate } from "../src/foundation/db/migrate.ts";

const folder = new URL("../drizzle/", import.meta.url).pathname;
const target = new URL("../src/foundation/db/migrations.ts", import.meta.url).pathname;

const files = readdirSync(folder)
  .filter((name) => name.endsWith(".sql"))
  .toSorted();
const names = files.map((file) => `m${file.slice(0, 4)}`);

const source = [
  "// Written by `npm run migrations`. Do not edit.",
  ...files.map((file, at) => `import ${names[at]} from "../../../drizzle/${file}" with { type: "text" };`),
  "",
  "export interface Migration {",
  "  readonly name: string;",
  "  readonly sql: string;",
  "}",
  "",
  "/** Every migration in its order. The database's `user_version` counts how many of them it has. */",
  "export const MIGRATIONS: readonly Migration[] = [",
  ...files.map((file, at) => `  { name: "${file.replace(".sql", "")}", sql: ${names[at]} },`),
  "];",
  "",
].join("\n");

const migrated = new Sqlite(":memory:");
migrate(
  migrated,
  files.map((name) => ({ name, sql: readFileSync(`${folder}${name}`, "utf8") })),
);
// In the order in which they are in the database: what a statement needs comes before it.
const statements = migrated
  .query<{ sql: string }, []>(
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
  )
  .all();

// Without the free pages that migrations leave.
const image = new Sqlite(":memory:");
image.run(`PRAGMA auto_vacuum = ${INCREMENTAL}`);
for (const { sql } of statements) image.run(sql);
image.run(`PRAGMA application_id = ${APPLICATION_ID}`);
image.run(`PRAGMA user_version = ${files.length}`);
await Bun.write(
  new URL("../src/foundation/db/new-database.gz", import.meta.url),
  Bun.gzipSync(new Uint8Array(image.serialize()), { level: 9 }),
);
await Bun.write(target, source);
