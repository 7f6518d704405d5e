import { runCli } from "./cli/cli.ts";
import { systemIo } from "./cli/io.ts";

process.stdout.on("error", (error) => {
  // A reader that has seen enough (`| head`) is no failure.
  if ("code" in error && error.code === "EPIPE") process.exit(0);
  systemIo.err(`postwarden: Standard output cannot be written: ${error.message}`);
  process.exit(1);
});
const status = await runCli(process.argv.slice(2), systemIo);
// What is left running (a timer, a connection that says good-bye) must not keep a finished command alive. Only `end`
// waits for what is still to be written: the callback of an empty write comes before it, and a long output was cut off.
process.stdout.end(() => process.exit(status));
