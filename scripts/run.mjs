// Runs Bun with the given arguments, after making sure that the packages of the lock file are installed.
// Plain JavaScript, because this is the one script that Node has to run before Bun is there.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createHash } from "node:crypto";
import { fileURLToPath } from "node:url";
import { join } from "node:path";

const root = fileURLToPath(new URL("..", import.meta.url));
const bun = join(root, "node_modules", ".bin", "bun");
const marker = join(root, "node_modules", ".installed-from");
const lock = createHash("sha256")
  .update(readFileSync(join(root, "package-lock.json")))
  .digest("hex");

const works = () => existsSync(bun) && spawnSync(bun, ["--version"], { stdio: "ignore" }).status === 0;
const isCurrent = () => existsSync(marker) && readFileSync(marker, "utf8") === lock && works();

const must = (command, args) => {
  const { status, error } = spawnSync(command, args, { cwd: root, stdio: ["ignore", 2, 2] });
  if (status === 0) return;
  console.error(`"${command} ${args.join(" ")}" failed${error ? `: ${error.message}` : ""}.`);
  process.exit(1);
};

if (!isCurrent()) {
  console.error("Installing packages …");
  must("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
  // Where npm does not run install scripts, Bun's own has not put the binary into its place yet.
  if (!works()) must(process.execPath, [join(root, "node_modules", "bun", "install.js")]);
  writeFileSync(marker, lock);
}

const child = spawn(bun, process.argv.slice(2), { stdio: "inherit" });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// A supervisor that ends only npm would leave the server behind: when our parent is gone, it is to end too.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) child.kill("SIGTERM");
}, 1_000).unref();
child.on("exit", (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
