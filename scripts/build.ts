/** Compiles `dist/postwarden`, or `--outfile PATH`. `--target=bun-linux-arm64` and the like build for another machine. */
import { mkdirSync, readdirSync, rmSync } from "node:fs";
import { dirname, join } from "node:path";
import { COMPILE_FLAGS } from "./compile-flags.ts";
import { readOptions } from "./harness/options.ts";

const { values } = readOptions(import.meta.path, {
  options: { target: { type: "string" }, outfile: { type: "string" } },
});
const root = new URL("..", import.meta.url).pathname;
const outfile = values.outfile ?? `${root}dist/postwarden`;
mkdirSync(`${root}dist`, { recursive: true });

const flags = [...COMPILE_FLAGS];
const git = (...args: string[]): string | null => {
  const { success, stdout } = Bun.spawnSync(["git", "-C", root, ...args], { stderr: "ignore" });
  return success ? stdout.toString().trim() : null;
};
const commit = git("rev-parse", "--short=12", "HEAD");
const isModified = git("status", "--porcelain", "--untracked-files=no") !== "";
if (commit !== null)
  flags.push(`--define=POSTWARDEN_COMMIT=${JSON.stringify(commit + (isModified ? "-modified" : ""))}`);
const target = values.target === undefined ? [] : [`--target=${values.target}`];
const build = Bun.spawnSync(
  [process.execPath, "build", ...flags, ...target, `${root}src/main.ts`, `--outfile=${outfile}`],
  {
    stdio: ["ignore", "inherit", "inherit"],
  },
);
// The executable carries its source maps; those beside it are of no use.
const folder = dirname(outfile);
for (const name of readdirSync(folder)) if (name.endsWith(".map")) rmSync(join(folder, name));
process.exit(build.exitCode);
