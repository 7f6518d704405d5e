import { expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { isServerLocked, takeServerLock } from "../foundation/db/database-files.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();

test("one screen, and exit status 1, while the service is stopped", async () => {
  await run(["accounts", "create", "acme"]);
  const { status, out, err } = await run(["status"]);
  expect(out.split("\n").length).toBeLessThanOrEqual(40);
  expect(Math.max(...out.split("\n").map((line) => line.length))).toBeLessThanOrEqual(80);
  expect(out).toContain("! Service   stopped.");
  expect(out).toContain("no forecast yet");
  expect([status, err.startsWith("postwarden: Needs action: service")]).toEqual([1, true]);
  const { json } = await run(["status", "--json"]);
  expect(json).toMatchObject({
    service: { state: "stopped", since: null, version: null, ready: false },
    queues: { verifications: 0, report_mails: 0, lists: [] },
    backup: { directory: null, last_at: null },
    ...{ forecast: null, listings: [], alerts: [], low_credits: [] },
  });
});

test("a directory that is locked by what does not respond is said to be so, and since when", async () => {
  mkdirSync(dataDir, { recursive: true });
  const path = join(dataDir, "server.lock");
  const lock = takeServerLock(path);
  expect(isServerLocked(path)).toBe(true);
  const { json } = await run(["status", "--json"], { settings: { PORT: "9", HOST: "127.0.0.1" } });
  expect(json).toMatchObject({ service: { state: "unresponsive", since: expect.stringMatching(/^20/) } });
  lock?.release();
  expect(isServerLocked(path)).toBe(false);
  expect(isServerLocked(`${path}.none`)).toBe(false);
});
