import { afterAll, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLog } from "../../foundation/base/log.ts";
import { createApps, ENDLESS, type TestApp } from "../../testing/app.ts";
import { BULK_PATH, postList, untilJobEnded } from "../../testing/bulk-requests.ts";
import { createTestClock } from "../../testing/clock.ts";
import { JobFollower } from "./runner.ts";

const start = createApps();
const folder = mkdtempSync(join(tmpdir(), "postwarden-follow-"));
afterAll(() => rmSync(folder, { recursive: true }));

const FOLLOWED_MS = 2_000;

/** A server, and the same database in a process that starts nothing, as a command does. */
const serverAndCommand = async (name: string, options: Parameters<typeof start>[0]) => {
  const path = join(folder, name);
  const server = start({ ...options, path });
  server.service.bulk.jobs.start();
  const command = start({ path });
  await command.service.bulk.jobs.stop();
  return { server, command };
};

const callerOf = (app: TestApp, mode: "live" | "test") => ({
  ...{ keyId: "", accountId: app.accountId(), mode, scopes: [], rate: { perSecond: 1, burst: 1 } },
});

test("a list that a command cancels is stopped by the server within seconds, with its credits released", async () => {
  const { server, command } = await serverAndCommand("cancel.db", ENDLESS);
  const key = server.newKey({ mode: "live" });
  const { id } = await postList(server, { key, body: { emails: ["a@example.com", "b@example.com"] } });
  await server.advance(100);
  const bulk = server.service.bulk.jobs;
  const job = bulk.find(callerOf(server, "live"), id);
  expect(job.status).toBe("running");
  await command.service.bulk.jobs.cancel(callerOf(command, "live"), id);
  expect(server.credits()).toEqual({ available: 100, held: 0 });
  expect(bulk.isWorkingOn(job.number)).toBe(true);
  await server.advance(FOLLOWED_MS);
  expect(bulk.isWorkingOn(job.number)).toBe(false);
  expect((await server.request("GET", `${BULK_PATH}/${id}`, { key })).body).toMatchObject({ status: "cancelled" });
});

test("a list that a command retries is verified by the server alone", async () => {
  const zone: Record<string, "servfail" | "nxdomain"> = { "broken.example": "servfail" };
  const { server, command } = await serverAndCommand("retry.db", { zone, settings: { GREYLIST_RETRIES_S: "1" } });
  const key = server.newKey({ mode: "live" });
  const { id } = await postList(server, { key, body: { emails: ["a@broken.example"] } });
  expect(await untilJobEnded(server, key, id)).toMatchObject({ sub_statuses: { dns_error: 1 } });
  zone["broken.example"] = "nxdomain";
  await command.service.bulk.jobs.retry(callerOf(command, "live"), id, null);
  await command.advance(10_000);
  expect((await server.request("GET", `${BULK_PATH}/${id}`, { key })).body).toMatchObject({ status: "queued" });
  await server.advance(FOLLOWED_MS);
  expect(await untilJobEnded(server, key, id)).toMatchObject({ sub_statuses: { domain_not_found: 1 } });
});

test("a server that was stopped follows nothing", async () => {
  const { server } = await serverAndCommand("stopped.db", ENDLESS);
  await server.service.bulk.jobs.stop();
  server.db.close();
  await server.advance(FOLLOWED_MS * 3);
  expect(server.logged).toEqual([]);
});

test("a read that fails is logged, and the next one follows", async () => {
  const clock = createTestClock();
  const logged: string[] = [];
  const log = createLog("error", clock, (line) => logged.push(line));
  let reads = 0;
  const resetting = () => {
    reads += 1;
    if (reads === 1) throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
    return [];
  };
  const jobs = { resetting, withStatus: () => [] };
  const runner = { add: () => undefined, drop: () => undefined, jobNumbers: () => [] };
  const follower = new JobFollower({ clock, log }, { jobs, runner, prepareRetries: () => undefined });
  follower.start();
  await clock.advance(FOLLOWED_MS);
  expect([reads, logged.length]).toEqual([1, 1]);
  await clock.advance(FOLLOWED_MS);
  expect([reads, logged.length]).toEqual([2, 1]);
  await follower.stop();
});
