import { describe, expect, spyOn, test } from "bun:test";
import { createBlocklistFixtures } from "../testing/blocklist-fixture.ts";

const newFixture = createBlocklistFixtures();
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const addressAt = (n: number) => `8.${Math.floor(n / 250) + 1}.4.${(n % 250) + 1}`;

describe("a pass", () => {
  test("checks what is due, and nothing that is paused or due later", async () => {
    const fixture = newFixture();
    const due = fixture.add("8.8.4.1");
    const paused = fixture.add("8.8.4.2", { monitoringEnabled: false });
    const later = fixture.add("8.8.4.3", { nextCheckAtMs: fixture.clock.nowMs() + 1 });
    await fixture.scheduler.checkDue();
    expect(fixture.find(due).status).toBe("clean");
    expect(fixture.find(paused).status).toBe("pending");
    expect(fixture.find(later).status).toBe("pending");
    expect(fixture.store.listChecks(due, { before: null, limit: 9 })).toMatchObject([{ trigger: "scheduled" }]);
  });

  test("works off more than it reads at a time", async () => {
    const fixture = newFixture();
    const ids = Array.from({ length: 450 }, (_, n) => fixture.add(addressAt(n)));
    await fixture.scheduler.checkDue();
    expect(ids.every((id) => fixture.find(id).status === "clean")).toBe(true);
    expect(fixture.store.countDue(fixture.clock.nowMs())).toBe(0);
  });

  test("goes on when one check ends in a bug, logs it, and leaves that target for its next time", async () => {
    const fixture = newFixture();
    const [bad, good] = [fixture.add("8.8.4.1"), fixture.add("8.8.4.2")];
    fixture.db.sqlite.run(
      `CREATE TRIGGER bug BEFORE INSERT ON blocklist_checks WHEN NEW.target_id = '${bad}' BEGIN SELECT RAISE(ABORT, 'bug'); END`,
    );
    await fixture.scheduler.checkDue();
    expect(fixture.find(good).status).toBe("clean");
    expect(fixture.find(bad)).toMatchObject({ status: "pending" });
    expect(fixture.find(bad).nextCheckAtMs).toBeGreaterThan(fixture.clock.nowMs() + 5 * HOUR_MS);
    expect(fixture.logged.join()).toContain("blocklist check failed");
  });

  test("ends when the service stops", async () => {
    const fixture = newFixture();
    const ids = Array.from({ length: 300 }, (_, n) => fixture.add(addressAt(n)));
    const passing = fixture.scheduler.checkDue();
    await fixture.monitor.stop();
    await passing;
    expect(ids.some((id) => fixture.find(id).status === "pending")).toBe(true);
  });
});

describe("a backlog after a long stop", () => {
  test("is spread over an hour, listed targets first, and next_check_at is accurate", async () => {
    const fixture = newFixture();
    const nowMs = fixture.clock.nowMs();
    const clean = Array.from({ length: 1_100 }, (_, n) =>
      fixture.add(addressAt(n), { status: "clean", nextCheckAtMs: nowMs - DAY_MS }),
    );
    const listed = fixture.add("9.9.9.9", { status: "listed", nextCheckAtMs: nowMs - DAY_MS });
    await fixture.scheduler.spreadBacklog();
    const times = clean.map((id) => fixture.find(id).nextCheckAtMs - nowMs);
    expect(Math.min(...times)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...times)).toBeLessThanOrEqual(HOUR_MS);
    expect(times.filter((time) => time < HOUR_MS / 2).length).toBeGreaterThan(400);
    expect(times.filter((time) => time > HOUR_MS / 2).length).toBeGreaterThan(400);
    expect(fixture.find(listed).nextCheckAtMs - nowMs).toBeLessThanOrEqual(HOUR_MS / 4);
  });

  test("of few targets, or of a few minutes, is checked at once", async () => {
    const fixture = newFixture();
    const nowMs = fixture.clock.nowMs();
    const few = Array.from({ length: 50 }, (_, n) => fixture.add(addressAt(n), { nextCheckAtMs: nowMs - DAY_MS }));
    await fixture.scheduler.spreadBacklog();
    expect(few.every((id) => fixture.find(id).nextCheckAtMs === nowMs - DAY_MS)).toBe(true);
    const fresh = Array.from({ length: 200 }, (_, n) =>
      fixture.add(addressAt(n + 500), { nextCheckAtMs: nowMs - MINUTE_MS }),
    );
    await fixture.scheduler.spreadBacklog();
    expect(fresh.every((id) => fixture.find(id).nextCheckAtMs === nowMs - MINUTE_MS)).toBe(true);
  });
});

test("lists are tested only while a target of a live key is monitored", async () => {
  const fixture = newFixture();
  fixture.add("8.8.4.2", { monitoringEnabled: false });
  fixture.add("8.8.4.3", { mode: "test" });
  await fixture.scheduler.testLists();
  expect(fixture.resolver.queries).toEqual([]);
  fixture.add("8.8.4.4");
  await fixture.scheduler.testLists();
  expect(fixture.resolver.countQueries("2.0.0.127.bl.spamcop.net", "A")).toBe(1);
});

test("checks are deleted after 90 days, those with a change after 400", async () => {
  const fixture = newFixture();
  const id = fixture.add("8.8.4.4");
  fixture.spamcop("8.8.4.4", { A: ["127.0.0.2"] });
  await fixture.check(id);
  await fixture.check(id);
  const kept = () => fixture.store.listChecks(id, { before: null, limit: 9 }).map(({ isChange }) => isChange);
  await fixture.clock.advance(90 * DAY_MS);
  await fixture.scheduler.purgeOldChecks();
  expect(kept()).toEqual([false, true]);
  await fixture.clock.advance(1);
  await fixture.scheduler.purgeOldChecks();
  expect(kept()).toEqual([true]);
  await fixture.clock.advance(310 * DAY_MS);
  await fixture.scheduler.purgeOldChecks();
  expect(kept()).toEqual([]);
});

test.each([
  { retentionDays: 7, unchangedDays: 7, changedDays: 400 },
  { retentionDays: 1_000, unchangedDays: 1_000, changedDays: 1_000 },
])(
  "kept for $retentionDays days by setting: checks as before $unchangedDays days, changes $changedDays days",
  async ({ retentionDays, unchangedDays, changedDays }) => {
    const fixture = newFixture({ retentionDays });
    const id = fixture.add("8.8.4.4");
    fixture.spamcop("8.8.4.4", { A: ["127.0.0.2"] });
    await fixture.check(id);
    await fixture.check(id);
    const begunMs = fixture.clock.nowMs();
    const keptAt = async (days: number, moreMs: number) => {
      await fixture.clock.advance(begunMs + days * DAY_MS + moreMs - fixture.clock.nowMs());
      await fixture.scheduler.purgeOldChecks();
      return fixture.store.listChecks(id, { before: null, limit: 9 }).map(({ isChange }) => isChange);
    };
    expect(await keptAt(unchangedDays, 0)).toEqual([false, true]);
    const isOnlyOneTime = unchangedDays === changedDays;
    expect(await keptAt(unchangedDays, 1)).toEqual(isOnlyOneTime ? [] : [true]);
    if (!isOnlyOneTime) expect(await keptAt(changedDays, 0)).toEqual([true]);
    expect(await keptAt(changedDays, 1)).toEqual([]);
  },
);

test("the purge reads no check that it keeps", async () => {
  const fixture = newFixture();
  const { sqlite } = fixture.db;
  const query = spyOn(sqlite, "query");
  await fixture.scheduler.purgeOldChecks();
  const purges = query.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes("blocklist_checks"));
  query.mockRestore();
  expect(purges).toHaveLength(2);
  for (const sql of purges) {
    const plan = sqlite.query<{ detail: string }, []>(`EXPLAIN QUERY PLAN ${sql.replaceAll("?", "5")}`).all();
    expect(plan.map(({ detail }) => detail).join()).toContain(
      "COVERING INDEX blocklist_checks_by_change_and_age (is_change=? AND finished_at_ms<?)",
    );
  }
});
