import { runCli } from "./cli/cli.ts";
import { systemIo } from "./cli/io.ts";

const status = await runCli(process.argv.slice(2), systemIo);
// What is left running (a timer, a connection that says good-bye) must not keep a finished command alive.
process.stdout.write("", () => process.exit(status));
