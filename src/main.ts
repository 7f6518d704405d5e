import { isMainThread } from "node:worker_threads";

const runCommand = async (): Promise<void> => {
  const [{ runCli }, { systemIo }] = await Promise.all([import("./cli/cli.ts"), import("./cli/io.ts")]);
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
};

// Threads are started from this file, because a compiled binary has no other.
if (isMainThread) await runCommand();
else await (await import("./cli/worker.ts")).runWorker();
