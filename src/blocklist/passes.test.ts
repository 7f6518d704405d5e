import { describe, expect, test } from "bun:test";
import { createBlocklistWorlds } from "../testing/blocklist-world.ts";

const newWorld = createBlocklistWorlds();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const addressAt = (n: number) => `8.${Math.floor(n / 250) + 1}.4.${(n % 250) + 1}`;

describe("a pass", () => {
  test("checks what is due, and nothing that is paused or due later", async () => {
    const world = newWorld();
    const due = world.add("8.8.4.1");
    const paused = world.add("8.8.4.2", { monitoringEnabled: false });
    const later = world.add("8.8.4.3", { nextCheckAtMs: world.clock.nowMs() + 1 });
    await world.passes.run();
    expect(world.find(due).status).toBe("clean");
    expect(world.find(paused).status).toBe("pending");
    expect(world.find(later).status).toBe("pending");
    expect(world.store.listChecks(due, { before: null, limit: 9 })).toMatchObject([{ trigger: "scheduled" }]);
  });

  test("works off more than it reads at a time", async () => {
    const world = newWorld();
    const ids = Array.from({ length: 450 }, (_, n) => world.add(addressAt(n)));
    await world.passes.run();
    expect(ids.every((id) => world.find(id).status === "clean")).toBe(true);
    expect(world.store.countDue(world.clock.nowMs())).toBe(0);
  });

  test("goes on when one check ends in a bug, logs it, and leaves that target for its next time", async () => {
    const world = newWorld();
    const [bad, good] = [world.add("8.8.4.1"), world.add("8.8.4.2")];
    world.db.sqlite.run(
      `CREATE TRIGGER bug BEFORE INSERT ON blocklist_checks WHEN NEW.target_id = '${bad}' BEGIN SELECT RAISE(ABORT, 'bug'); END`,
    );
    await world.passes.run();
    expect(world.find(good).status).toBe("clean");
    expect(world.find(bad)).toMatchObject({ status: "pending" });
    expect(world.find(bad).nextCheckAtMs).toBeGreaterThan(world.clock.nowMs() + 5 * HOUR_MS);
    expect(world.logged.join()).toContain("a blocklist check failed");
  });

  test("ends when the service stops", async () => {
    const world = newWorld();
    const ids = Array.from({ length: 300 }, (_, n) => world.add(addressAt(n)));
    const passing = world.passes.run();
    await world.monitor.stop();
    await passing;
    expect(ids.some((id) => world.find(id).status === "pending")).toBe(true);
  });
});

describe("a backlog after a long stop", () => {
  test("is spread over an hour, listed targets first, and next_check_at stays true", async () => {
    const world = newWorld();
    const nowMs = world.clock.nowMs();
    const clean = Array.from({ length: 1_100 }, (_, n) =>
      world.add(addressAt(n), { status: "clean", nextCheckAtMs: nowMs - DAY_MS }),
    );
    const listed = world.add("9.9.9.9", { status: "listed", nextCheckAtMs: nowMs - DAY_MS });
    await world.passes.spreadBacklog();
    const times = clean.map((id) => world.find(id).nextCheckAtMs - nowMs);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...times)).toBeLessThanOrEqual(HOUR_MS);
    expect(times.filter((time) => time < HOUR_MS / 2).length).toBeGreaterThan(400);
    expect(times.filter((time) => time > HOUR_MS / 2).length).toBeGreaterThan(400);
    expect(world.find(listed).nextCheckAtMs - nowMs).toBeLessThanOrEqual(HOUR_MS / 4);
  });

  test("of a few targets, or of a few minutes, is worked off at once", async () => {
    const world = newWorld();
    const nowMs = world.clock.nowMs();
    const few = Array.from({ length: 50 }, (_, n) => world.add(addressAt(n), { nextCheckAtMs: nowMs - DAY_MS }));
    await world.passes.spreadBacklog();
    expect(few.every((id) => world.find(id).nextCheckAtMs === nowMs - DAY_MS)).toBe(true);
    const fresh = Array.from({ length: 200 }, (_, n) =>
      world.add(addressAt(n + 500), { nextCheckAtMs: nowMs - MINUTE_MS }),
    );
    await world.passes.spreadBacklog();
    expect(fresh.every((id) => world.find(id).nextCheckAtMs === nowMs - MINUTE_MS)).toBe(true);
  });
});

test("lists are tested when somebody watches, and left alone when nobody does", async () => {
  const world = newWorld();
  await world.passes.testLists();
  expect(world.resolver.queries).toEqual([]);
  world.add("8.8.4.4");
  await world.passes.testLists();
  expect(world.resolver.countQueries("2.0.0.127.bl.spamcop.net", "A")).toBe(1);
});

test("checks are forgotten after 90 days, those in which something came or went after 400", async () => {
  const world = newWorld();
  const id = world.add("8.8.4.4");
  world.spamcop("8.8.4.4", { A: ["127.0.0.2"] });
  await world.check(id);
  await world.check(id);
  const kept = () => world.store.listChecks(id, { before: null, limit: 9 }).map(({ isChange }) => isChange);
  await world.clock.advance(90 * DAY_MS);
  await world.passes.forgetOld();
  expect(kept()).toEqual([false, true]);
  await world.clock.advance(1);
  await world.passes.forgetOld();
  expect(kept()).toEqual([true]);
  await world.clock.advance(310 * DAY_MS);
  await world.passes.forgetOld();
  expect(kept()).toEqual([]);
});

test.each([
  { retentionDays: 7, unchangedDays: 7, changedDays: 400 },
  { retentionDays: 1_000, unchangedDays: 1_000, changedDays: 1_000 },
])(
  "kept for $retentionDays days by setting: checks as before $unchangedDays days, changes $changedDays days",
  async ({ retentionDays, unchangedDays, changedDays }) => {
    const world = newWorld({ retentionDays });
    const id = world.add("8.8.4.4");
    world.spamcop("8.8.4.4", { A: ["127.0.0.2"] });
    await world.check(id);
    await world.check(id);
    const begunMs = world.clock.nowMs();
    const keptAt = async (days: number, moreMs: number) => {
      await world.clock.advance(begunMs + days * DAY_MS + moreMs - world.clock.nowMs());
      await world.passes.forgetOld();
      return world.store.listChecks(id, { before: null, limit: 9 }).map(({ isChange }) => isChange);
    };
    expect(await keptAt(unchangedDays, 0)).toEqual([false, true]);
    const isOnlyOneTime = unchangedDays === changedDays;
    expect(await keptAt(unchangedDays, 1)).toEqual(isOnlyOneTime ? [] : [true]);
    if (!isOnlyOneTime) expect(await keptAt(changedDays, 0)).toEqual([true]);
    expect(await keptAt(changedDays, 1)).toEqual([]);
  },
);
