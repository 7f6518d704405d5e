import { runCli } from "./cli/cli.ts";
import { systemIo } from "./cli/io.ts";

process.stdout.on("error", (error) => {
  // A reader that closes the pipe early (`| head`) is not a failure.
  if ("code" in error && error.code === "EPIPE") process.exit(0);
  systemIo.err(`postwarden: Cannot write to standard output: ${error.message}`);
  process.exit(1);
});
const status = await runCli(process.argv.slice(2), systemIo);
// Timers and closing connections must not keep a finished command alive. Only the callback of `end` runs after everything
// is written; that of an empty write runs earlier and would cut off long output.
process.stdout.end(() => process.exit(status));
