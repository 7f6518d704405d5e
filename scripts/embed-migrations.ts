/** Writes `src/db/migrations.ts`: one text import for each file of `drizzle/`, so that the binary carries them. */
import { readdirSync } from "node:fs";

const folder = new URL("../drizzle/", import.meta.url).pathname;
const target = new URL("../src/db/migrations.ts", import.meta.url).pathname;

const files = readdirSync(folder)
  .filter((name) => name.endsWith(".sql"))
  .toSorted();
const names = files.map((file) => `m${file.slice(0, 4)}`);

const source = [
  "// Written by `npm run migrations`. Do not edit.",
  ...files.map((file, at) => `import ${names[at]} from "../../drizzle/${file}" with { type: "text" };`),
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

await Bun.write(target, source);
