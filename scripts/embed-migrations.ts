/**
 * Writes `src/foundation/db/migrations.ts`: one text import for each file of `drizzle/`, so that the binary carries them; and
 * `src/foundation/db/final-schema.sql`: what all of them make of an empty database.
 */
import { Database as Sqlite } from "bun:sqlite";
import { readdirSync, readFileSync } from "node:fs";
import { migrate } from "../src/foundation/db/migrate.ts";

const folder = new URL("../drizzle/", import.meta.url).pathname;
const target = new URL("../src/foundation/db/migrations.ts", import.meta.url).pathname;

const files = readdirSync(folder)
  .filter((name) => name.endsWith(".sql"))
  .toSorted();
const names = files.map((file) => `m${file.slice(0, 4)}`);

const source = [
  "// Written by `npm run migrations`. Do not edit.",
  ...files.map((file, at) => `import ${names[at]} from "../../../drizzle/${file}" with { type: "text" };`),
  'import finalSchema from "./final-schema.sql" with { type: "text" };',
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
  "/** Creates in an empty database what all migrations together would make of it. */",
  "export const FINAL_SCHEMA = finalSchema;",
  "",
].join("\n");

const sqlite = new Sqlite(":memory:");
migrate(
  sqlite,
  files.map((name) => ({ name, sql: readFileSync(`${folder}${name}`, "utf8") })),
);
// In the order in which they are in the database: what a statement needs comes before it.
const statements = sqlite
  .query<{ sql: string }, []>(
    "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' ORDER BY rowid",
  )
  .all();
const script = statements.map(({ sql }) => `${sql};\n`).join("");
await Bun.write(
  new URL("../src/foundation/db/final-schema.sql", import.meta.url),
  `-- Written by \`npm run migrations\`. Do not edit.\n${script}`,
);
await Bun.write(target, source);
