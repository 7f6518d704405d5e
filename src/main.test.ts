import { expect, test } from "bun:test";

/** A process has to be started: on a busy machine that takes its time. */
const PATIENCE_MS = 60_000;
const main = new URL("main.ts", import.meta.url).pathname;

test(
  "a long output reaches a slow reader whole, and the exit status is the command's",
  async () => {
    const long = "a".repeat(1_000_000);
    const command = [process.execPath, "--no-env-file", main, "inspect", "address"];
    const child = Bun.spawn(command, { stdin: Buffer.from(long), stdout: "pipe", stderr: "pipe", env: {} });
    const out = await new Response(child.stdout).text();
    expect(JSON.parse(out)).toMatchObject({ input: long, valid: false });
    expect(await child.exited).toBe(0);
  },
  PATIENCE_MS,
);

test(
  "wrong usage ends the process with 2",
  async () => {
    const child = Bun.spawn([process.execPath, "--no-env-file", main, "nothing"], {
      stdout: "pipe",
      stderr: "pipe",
      env: {},
    });
    expect(await new Response(child.stderr).text()).toContain("unknown command 'nothing'");
    expect(await child.exited).toBe(2);
  },
  PATIENCE_MS,
);
