import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import type { Db } from "../../db/open.ts";
import { createTestClock } from "../../testing/clock.ts";
import { MADE_DAY_S, madeReportXml } from "../../testing/dmarc-reports.ts";
import { makeSourcesLegacy } from "../../testing/legacy-sources.ts";
import { COUNTED, createRebuildWorlds, fillRebuilt, isLegacyThere, SUMS } from "../../testing/rebuild-world.ts";
import { paceOf } from "./source-rebuild.ts";

const newWorld = createRebuildWorlds();
const DAY = (MADE_DAY_S * 1000) / DAY_MS;
const SOURCES =
  "SELECT domain, key, first_day, last_day, first_seen_at_ms, is_reviewed FROM dmarc_sources ORDER BY 1, 2";

describe("rebuilt sources", () => {
  test("are those that the same reports bring by themselves, and no sum differs at any moment", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    const [counted, sources, sums] = [world.all(COUNTED), world.all(SOURCES), world.all(SUMS)];
    makeSourcesLegacy(world.db);
    expect(world.all(SUMS)).toEqual(sums);
    let steps = 0;
    await world.rebuild(async () => {
      steps += 1;
      expect(world.all(SUMS)).toEqual(sums);
      expect(world.rollups()).toEqual(world.recount());
    });
    expect(steps).toBeGreaterThan(3);
    expect(world.all(COUNTED)).toEqual(counted);
    expect(world.all(SOURCES)).toEqual(sources);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("are complete after an end at any step", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    const counted = world.all(COUNTED);
    makeSourcesLegacy(world.db);
    let starts = 0;
    for (; isLegacyThere(world); starts += 1) await world.rebuild(async () => false);
    expect(starts).toBeGreaterThan(3);
    expect(world.all(COUNTED)).toEqual(counted);
  });

  test("take nothing over from a step that fails", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    const sums = world.all(SUMS);
    makeSourcesLegacy(world.db);
    const legacy = world.rollups();
    const broken: Db = {
      ...world.db,
      transactUnsynced: (work) =>
        world.db.transactUnsynced((tx) => {
          work(tx);
          throw new Error("disk full");
        }),
    };
    await expect(world.rebuild(undefined, broken)).rejects.toThrow("disk full");
    expect(world.rollups()).toEqual(legacy);
    await world.rebuild();
    expect(world.all(SUMS)).toEqual(sums);
    expect(isLegacyThere(world)).toBe(false);
  });

  test("wait while another process holds the database", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    makeSourcesLegacy(world.db);
    let attempts = 0;
    const busy: Db = {
      ...world.db,
      transactUnsynced: (work) => {
        attempts += 1;
        if (attempts % 2 === 1) throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
        return world.db.transactUnsynced(work);
      },
    };
    await world.rebuild(undefined, busy);
    expect(isLegacyThere(world)).toBe(false);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("cost nothing when there are none of old", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    const silent: Db = {
      ...world.db,
      transactUnsynced: () => {
        throw new Error("a write");
      },
    };
    await world.rebuild(undefined, silent);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("are as old and as well known as those they come from", async () => {
    const world = newWorld();
    world.enrol("example.com");
    await world.upload(madeReportXml({ reportId: "1" }));
    world.db.sqlite.run("UPDATE dmarc_sources SET is_reviewed = 1, first_seen_at_ms = 7");
    makeSourcesLegacy(world.db);
    // Before the rebuild comes to it: an address that is known, and one that is new below a signature that is known.
    await world.upload(madeReportXml({ reportId: "2", rows: [{}, { ip: "192.0.2.2" }] }));
    const [spoof] = [{ ip: "192.0.2.3", dkim: "fail", spf: "fail" } as const];
    await world.upload(madeReportXml({ reportId: "3", rows: [spoof] }));
    const known = { first_seen_at_ms: 7, is_reviewed: 1 };
    const seen = () => world.all("SELECT key, first_seen_at_ms, is_reviewed FROM dmarc_sources ORDER BY key");
    const rest = [
      { key: "192.0.2.1 example.com/s1 example.com -", ...known },
      { key: "192.0.2.2 example.com/s1 example.com -", ...known },
      { key: "192.0.2.3 -/- - -", first_seen_at_ms: world.clock.nowMs(), is_reviewed: 0 },
    ];
    expect(seen()).toEqual([...rest, { key: "dkim:example.com", ...known }]);
    await world.rebuild();
    expect(seen()).toEqual(rest);
  });

  test("leave what is counted of records that are gone where it is", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    const sums = world.all(SUMS);
    makeSourcesLegacy(world.db);
    world.db.sqlite.run(`DELETE FROM dmarc_records WHERE day = ${DAY} AND domain = 1`);
    await world.rebuild();
    expect(world.all(SUMS)).toEqual(sums);
    const legacy = world.all("SELECT DISTINCT first_day, last_day FROM dmarc_sources WHERE key NOT LIKE '% %'");
    expect(legacy).toContainEqual({ first_day: DAY, last_day: DAY });
    expect(world.all(`SELECT key FROM dmarc_sources WHERE domain = 2 AND key NOT LIKE '% %'`)).toEqual([]);
    const days = world.all(
      "SELECT DISTINCT day FROM dmarc_daily WHERE source IN (SELECT number FROM dmarc_sources WHERE domain = 1 AND key LIKE '% %')",
    );
    expect(days).toEqual([{ day: DAY + 1 }]);
  });

  test("never have more than is counted, whatever is wrong with it", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    makeSourcesLegacy(world.db);
    world.db.sqlite.run(
      "UPDATE dmarc_daily SET messages = max(1, messages / 2), aligned = aligned / 3, forwarded = forwarded * 2",
    );
    const sums = world.all(SUMS);
    await world.rebuild(async () => expect(world.all(SUMS)).toEqual(sums));
    expect(world.all(SUMS)).toEqual(sums);
    expect(
      world.count("dmarc_daily WHERE messages <= 0 OR min(aligned, aligned_dkim, aligned_spf, forwarded) < 0"),
    ).toBe(0);
  });

  test("queue the addresses of domains that are live", async () => {
    const world = newWorld();
    world.enrol("example.com");
    await world.upload(madeReportXml({ rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    makeSourcesLegacy(world.db);
    world.db.sqlite.run("DELETE FROM dmarc_reverse_names");
    await world.rebuild();
    expect(world.count("dmarc_reverse_names")).toBe(2);
  });
});

test("the pace leaves three times as long as a step took, and never waits for long", async () => {
  const clock = createTestClock();
  const pause = paceOf(clock);
  for (const [tookMs, waitMs] of [
    [4, 12],
    [5_000, 100],
  ] as const) {
    let isOver = false;
    const waiting = pause(tookMs).then(() => {
      isOver = true;
    });
    await clock.advance(waitMs - 1);
    expect(isOver).toBe(false);
    await clock.advance(1);
    await waiting;
    expect(isOver).toBe(true);
  }
});
