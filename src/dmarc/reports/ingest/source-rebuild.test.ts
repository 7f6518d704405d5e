import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { SAMPLE_DAY_S, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { makeSourcesLegacy } from "../../../testing/legacy-sources.ts";
import { COUNTED, createRebuildHarness, fillRebuilt, isLegacyThere, SUMS } from "../../../testing/rebuild-harness.ts";
import { paceOf } from "./source-rebuild.ts";

const newHarness = createRebuildHarness();
const DAY = (SAMPLE_DAY_S * 1000) / DAY_MS;
const SOURCES =
  "SELECT domain, key, first_day, last_day, first_seen_at_ms, is_reviewed FROM dmarc_sources ORDER BY 1, 2";

describe("rebuilt sources", () => {
  test("are those that the same reports create now, and all sums are the same at any moment", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const [counted, sources, sums] = [harness.all(COUNTED), harness.all(SOURCES), harness.all(SUMS)];
    makeSourcesLegacy(harness.db);
    expect(harness.all(SUMS)).toEqual(sums);
    let steps = 0;
    await harness.rebuild(async () => {
      steps += 1;
      await harness.clock.advance(10_000);
      expect(harness.all(SUMS)).toEqual(sums);
      expect(harness.rollups()).toEqual(harness.recount());
    });
    expect(steps).toBeGreaterThan(3);
    expect(harness.all(COUNTED)).toEqual(counted);
    expect(harness.all(SOURCES)).toEqual(sources);
    expect(harness.rollups()).toEqual(harness.recount());
    expect(harness.logged.map((line) => JSON.parse(line))).toMatchObject([
      { message: "rebuilding DMARC sources by address" },
      { message: "rebuilt DMARC sources by address", seconds: 10 * steps },
    ]);
  });

  test("are complete after an interruption at any step", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const counted = harness.all(COUNTED);
    makeSourcesLegacy(harness.db);
    let starts = 0;
    for (; isLegacyThere(harness); starts += 1) await harness.rebuild(async () => false);
    expect(starts).toBeGreaterThan(3);
    expect(harness.all(COUNTED)).toEqual(counted);
  });

  test("keep nothing of a failed step", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const sums = harness.all(SUMS);
    makeSourcesLegacy(harness.db);
    const legacy = harness.rollups();
    const broken: Db = {
      ...harness.db,
      transactUnsynced: (work) =>
        harness.db.transactUnsynced((tx) => {
          work(tx);
          throw new Error("disk full");
        }),
    };
    await expect(harness.rebuild(undefined, broken)).rejects.toThrow("disk full");
    expect(harness.rollups()).toEqual(legacy);
    await harness.rebuild();
    expect(harness.all(SUMS)).toEqual(sums);
    expect(isLegacyThere(harness)).toBe(false);
  });

  test("wait while another process holds the database", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    makeSourcesLegacy(harness.db);
    let attempts = 0;
    const busy: Db = {
      ...harness.db,
      transactUnsynced: (work) => {
        attempts += 1;
        if (attempts % 2 === 1) throw Object.assign(new Error("database is locked"), { code: "SQLITE_BUSY" });
        return harness.db.transactUnsynced(work);
      },
    };
    await harness.rebuild(undefined, busy);
    expect(isLegacyThere(harness)).toBe(false);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("need no work when there are no legacy ones", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const silent: Db = {
      ...harness.db,
      transactUnsynced: () => {
        throw new Error("a write");
      },
    };
    await harness.rebuild(undefined, silent);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("keep the first sighting and the review of the legacy ones", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    await harness.upload(sampleReportXml({ reportId: "1" }));
    harness.db.sqlite.run("UPDATE dmarc_sources SET is_reviewed = 1, first_seen_at_ms = 7");
    makeSourcesLegacy(harness.db);
    // Before the rebuild comes to it: an address that is known, and one that is new below a signature that is known.
    await harness.upload(sampleReportXml({ reportId: "2", rows: [{}, { ip: "192.0.2.2" }] }));
    const [spoof] = [{ ip: "192.0.2.3", dkim: "fail", spf: "fail" } as const];
    await harness.upload(sampleReportXml({ reportId: "3", rows: [spoof] }));
    const known = { first_seen_at_ms: 7, is_reviewed: 1 };
    const seen = () => harness.all("SELECT key, first_seen_at_ms, is_reviewed FROM dmarc_sources ORDER BY key");
    const rest = [
      { key: "192.0.2.1 example.com/s1 example.com -", ...known },
      { key: "192.0.2.2 example.com/s1 example.com -", ...known },
      { key: "192.0.2.3 -/- - -", first_seen_at_ms: harness.clock.nowMs(), is_reviewed: 0 },
    ];
    expect(seen()).toEqual([...rest, { key: "dkim:example.com", ...known }]);
    await harness.rebuild();
    expect(seen()).toEqual(rest);
  });

  test("leave the counts of removed records where they are", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const sums = harness.all(SUMS);
    makeSourcesLegacy(harness.db);
    harness.db.sqlite.run(`DELETE FROM dmarc_records WHERE day = ${DAY} AND domain = 1`);
    await harness.rebuild();
    expect(harness.all(SUMS)).toEqual(sums);
    const legacy = harness.all("SELECT DISTINCT first_day, last_day FROM dmarc_sources WHERE key NOT LIKE '% %'");
    expect(legacy).toContainEqual({ first_day: DAY, last_day: DAY });
    expect(harness.all(`SELECT key FROM dmarc_sources WHERE domain = 2 AND key NOT LIKE '% %'`)).toEqual([]);
    const days = harness.all(
      "SELECT DISTINCT day FROM dmarc_daily WHERE source IN (SELECT number FROM dmarc_sources WHERE domain = 1 AND key LIKE '% %')",
    );
    expect(days).toEqual([{ day: DAY + 1 }]);
  });

  test("do without records whose body cannot be read, and say how many there are", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    const sums = harness.all(SUMS);
    makeSourcesLegacy(harness.db);
    const [{ first }] = harness.all("SELECT min(rowid) AS first FROM dmarc_records") as [{ first: number }];
    harness.db.sqlite.run("UPDATE dmarc_records SET body = '{}' WHERE rowid = ?", [first]);
    harness.db.sqlite.run("UPDATE dmarc_records SET body = 'not JSON' WHERE rowid = ?", [first + 1]);
    await harness.rebuild();
    expect(harness.all(SUMS)).toEqual(sums);
    expect(harness.count("dmarc_records WHERE source = 0")).toBe(2);
    expect(harness.count("dmarc_records")).toBeGreaterThan(500);
    const logged = harness.logged.map((line) => JSON.parse(line));
    expect(logged).toContainEqual(
      expect.objectContaining({ level: "warn", message: expect.stringContaining("cannot be read"), records: 2 }),
    );
    expect(logged.at(-1)).toMatchObject({ message: "rebuilt DMARC sources by address" });
  });

  test("never get more than was counted, even if the counts are wrong", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    makeSourcesLegacy(harness.db);
    harness.db.sqlite.run(
      "UPDATE dmarc_daily SET messages = max(1, messages / 2), aligned = aligned / 3, forwarded = forwarded * 2",
    );
    const sums = harness.all(SUMS);
    await harness.rebuild(async () => expect(harness.all(SUMS)).toEqual(sums));
    expect(harness.all(SUMS)).toEqual(sums);
    expect(
      harness.count("dmarc_daily WHERE messages <= 0 OR min(aligned, aligned_dkim, aligned_spf, forwarded) < 0"),
    ).toBe(0);
  });

  test("queue the addresses of domains that are live", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    await harness.upload(sampleReportXml({ rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    makeSourcesLegacy(harness.db);
    harness.db.sqlite.run("DELETE FROM dmarc_reverse_names");
    await harness.rebuild();
    expect(harness.count("dmarc_reverse_names")).toBe(2);
  });
});

test("the pause is three times as long as a step took, up to a limit", async () => {
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
