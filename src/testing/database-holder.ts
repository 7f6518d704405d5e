/** Takes the database to itself, says so, and lets it go once the process with this id has opened it, too, and sleeps: it waits. */
const SCRIPT = `
  const { readdirSync, readFileSync, readlinkSync } = require("node:fs");
  const [path, waiter, mode] = process.argv.slice(-3);
  const linkOf = (fd) => { try { return readlinkSync("/proc/" + waiter + "/fd/" + fd); } catch (error) { return error.code; } };
  const isOpenThere = () => readdirSync("/proc/" + waiter + "/fd").some((fd) => linkOf(fd) === path);
  const isAsleep = () => readFileSync("/proc/" + waiter + "/stat", "utf8").split(") ")[1].startsWith("S");
  const d = new (require("bun:sqlite").Database)(path);
  d.run("PRAGMA locking_mode = " + mode);
  d.run("BEGIN EXCLUSIVE");
  console.log("held");
  while (!isOpenThere() || !isAsleep());
  d.run("COMMIT");
  process.exit(0);`;

/**
 * Starts a process that has the database at `path` to itself until this one waits for it. Resolves when it has; `exited` is its
 * exit status. `EXCLUSIVE`: it keeps readers out between transactions, too.
 */
export const holdUntilWaitedFor = async (
  path: string,
  mode: "NORMAL" | "EXCLUSIVE" = "NORMAL",
): Promise<{ readonly exited: Promise<number> }> => {
  const argv = [process.execPath, "-e", SCRIPT, path, String(process.pid), mode];
  const holder = Bun.spawn(argv, { stdout: "pipe" });
  for await (const _ of holder.stdout) break;
  return holder;
};
