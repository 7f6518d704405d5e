/** Runs `serve` in a process that is killed at a moment of its first start: `before the commit` or `before the print`. */
import { Database as Sqlite } from "bun:sqlite";
import { runCli } from "../cli/cli.ts";
import { systemIo } from "../cli/io.ts";

const [moment] = process.argv.slice(2);
const kill = (): never => {
  process.kill(process.pid, "SIGKILL");
  throw new Error("still alive");
};

if (moment === "before the commit") {
  const { prepare } = Sqlite.prototype;
  let live = 0;
  // The second key is the last write of the transaction.
  Sqlite.prototype.prepare = function (this: Sqlite, ...args: Parameters<typeof prepare>) {
    if (args[0].startsWith('insert into "key_secrets"') && ++live === 2) kill();
    return prepare.apply(this, args);
  } as typeof prepare;
}
await runCli(["serve"], { ...systemIo, stdoutKind: "terminal", out: kill });
