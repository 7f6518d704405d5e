// Runs Bun with the given arguments, after making sure that the packages of the lock file are installed.
// Plain JavaScript, because this is the one script that Node has to run before Bun is there.
import { spawn, spawnSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
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
  if (status !== 0) throw new Error(`"${command} ${args.join(" ")}" failed${error ? `: ${error.message}` : ""}.`);
};

/** Only one process installs at a time: `npm ci` removes what another one has just written. Holds the id of that process. */
const installing = join(root, ".installing");
const WAIT_S_MAX = 600;
const waitASecond = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1_000);

const installer = () => {
  try {
    return Number(readFileSync(installing, "utf8"));
  } catch (error) {
    if (error.code === "ENOENT") return null;
    throw error;
  }
};

/** Also an id that this process now has. */
const isGone = (pid) => {
  try {
    process.kill(pid, 0);
    return pid === process.pid;
  } catch (error) {
    return error.code !== "EPERM";
  }
};

/** Whether this process may install now. What a process that is gone left is taken over: by the last one to write its id. */
const mayInstall = () => {
  const other = installer();
  if (other !== null && !isGone(other)) return false;
  try {
    if (other === null) {
      writeFileSync(installing, String(process.pid), { flag: "wx" });
      return true;
    }
    writeFileSync(`${installing}.${process.pid}`, String(process.pid));
    renameSync(`${installing}.${process.pid}`, installing);
    waitASecond();
    return installer() === process.pid;
  } catch (error) {
    if (error.code === "EEXIST") return false;
    throw error;
  }
};

const installOnce = () => {
  for (let seconds = 0; !mayInstall(); seconds += 1) {
    if (seconds === 0) console.error("Waiting for another process that installs packages …");
    if (seconds === WAIT_S_MAX)
      throw new Error(
        `Process ${installer()} has installed packages for ${WAIT_S_MAX} s. If it does not any more, remove ${installing}.`,
      );
    waitASecond();
    if (installer() === null && isCurrent()) return;
  }
  try {
    if (isCurrent()) return;
    console.error("Installing packages …");
    must("npm", ["ci", "--no-audit", "--no-fund", "--loglevel=error"]);
    // Where npm does not run install scripts, Bun's own has not put the binary into its place yet.
    if (!works()) must(process.execPath, [join(root, "node_modules", "bun", "install.js")]);
    writeFileSync(marker, lock);
  } finally {
    rmSync(installing, { force: true });
  }
};

try {
  if (!isCurrent()) installOnce();
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

/**
 * Tests and the simulated fleet keep the memory that they free and collect garbage on one thread: up to a quarter of their time on a
 * virtual machine, where page faults are dear. Tests end before the slowest compiler pays. Measured with `time npm test`, with and without.
 */
const FOR_FLEET = { MIMALLOC_PURGE_DELAY: "-1", BUN_JSC_numberOfGCMarkers: "1" };
const FOR_TESTS = { ...FOR_FLEET, BUN_JSC_useFTLJIT: "0" };
const args = process.argv.slice(2);
const more = args.includes("test") ? FOR_TESTS : args.includes("fleet") ? FOR_FLEET : {};

const child = spawn(bun, args, { stdio: "inherit", env: { ...more, ...process.env } });
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
// A supervisor that ends only npm would leave the server behind: when our parent is gone, it is to end too.
const parent = process.ppid;
setInterval(() => {
  if (process.ppid !== parent) child.kill("SIGTERM");
}, 1_000).unref();
child.on("exit", (code, signal) => process.exit(signal === null ? (code ?? 1) : 1));
