import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** A process has to be started: on a busy machine that takes its time. */
const PATIENCE_MS = 60_000;
const main = new URL("../main.ts", import.meta.url).pathname;

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

const folder = mkdtempSync(join(tmpdir(), "postwarden-main-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test(
  "SIGHUP does not end the service, not even while it starts, and only SIGTERM and SIGINT do",
  async () => {
    const settings = { DATA_DIR: join(folder, "data"), PORT: "0", DNS_SERVERS: "127.0.0.1:9", LOG_LEVEL: "debug" };
    const env = Object.fromEntries(Object.entries(settings).map(([name, value]) => [`POSTWARDEN_${name}`, value]));
    const child = Bun.spawn([process.execPath, "--no-env-file", main, "serve"], {
      stdout: "ignore",
      stderr: "pipe",
      env,
    });
    const decoder = new TextDecoder();
    let log = "";
    const reader = child.stderr.getReader();
    const until = async (text: string) => {
      while (!log.includes(text)) {
        const { value, done } = await reader.read();
        if (done) throw new Error(`no "${text}" in: ${log}`);
        log += decoder.decode(value);
      }
    };
    await until('"message":"starting"');
    child.kill("SIGHUP");
    await until('"message":"settings were reloaded"');
    expect(log.indexOf("listening")).toBeGreaterThan(0);
    expect(log.indexOf("settings were reloaded")).toBeGreaterThan(log.indexOf("listening"));
    const numbers = ["HUP", "USR1", "USR2", "QUIT", "PIPE", "ALRM", "VTALRM", "PROF", "IO", "PWR", "XCPU", "XFSZ"];
    const url = /"url":"([^"]+)"/.exec(log)?.[1] ?? "";
    for (const name of numbers) {
      child.kill(`SIG${name}` as NodeJS.Signals);
      expect([name, (await fetch(`${url}/healthz`)).status]).toEqual([name, 200]);
    }
    child.kill("SIGTERM");
    await until('"message":"stopped"');
    expect(await child.exited).toBe(0);
  },
  PATIENCE_MS,
);
