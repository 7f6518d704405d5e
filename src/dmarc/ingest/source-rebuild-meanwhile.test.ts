import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import { MADE_DAY_S, madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { makeSourcesLegacy } from "../../testing/legacy-sources.ts";
import {
  BY_SMTP,
  COUNTED,
  createRebuildWorlds,
  fillRebuilt,
  isLegacyThere,
  REBUILT_ROWS,
  type RebuildWorld,
} from "../../testing/rebuild-world.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { possibleKeysOf } from "../sources/possible-keys.ts";
import { createNameRetention } from "./retention-names.ts";
import { createNameRetentionStore } from "./retention-names-store.ts";
import { createRetention } from "./retention.ts";
import { createRetentionStore } from "./retention-store.ts";

const newWorld = createRebuildWorlds();

describe("while sources are rebuilt", () => {
  test("reports come in", async () => {
    const [world, fresh] = [newWorld(), newWorld()];
    await fillRebuilt(world);
    await fillRebuilt(fresh);
    makeSourcesLegacy(world.db);
    const more = (at: number) =>
      madeReportXml({ reportId: `more ${at}`, begin: MADE_DAY_S, rows: REBUILT_ROWS.slice(at, at + 20) });
    let at = 0;
    await world.rebuild(async () => {
      await world.upload(more(at));
      await fresh.upload(more(at));
      at += 1;
      expect(world.rollups()).toEqual(world.recount());
    });
    expect(at).toBeGreaterThan(3);
    expect(world.all(COUNTED)).toEqual(fresh.all(COUNTED));
  });

  /** An untrusted report of many rows that was counted with the trusted ones or apart, and is replaced at every step. */
  test.each([
    [1, false],
    [2, false],
    [1, true],
    [2, true],
  ])("a report is replaced after step %i (counted with the trusted ones: %p)", async (when, isOld) => {
    const world = newWorld();
    world.enrol("example.com");
    const genuine = madeReportXml({ reportId: "r", rows: [{ count: 7 }] });
    await world.upload(madeReportMail({ reportId: "r", rows: REBUILT_ROWS }), BY_SMTP);
    if (isOld) {
      for (const table of ["dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"])
        world.db.sqlite.run(`UPDATE ${table} SET is_trusted = 1`);
      world.db.sqlite.run("UPDATE dmarc_daily_reporters SET author = ''");
    }
    makeSourcesLegacy(world.db);
    let steps = 0;
    await world.rebuild(async () => {
      steps += 1;
      if (steps === when) await world.upload(genuine);
    });
    expect(steps).toBeGreaterThanOrEqual(when);
    expect(world.all("SELECT sum(messages) n FROM dmarc_daily")).toEqual([{ n: 7 }]);
    expect(world.rollups()).toEqual(world.recount());
    expect(world.all("SELECT key FROM dmarc_sources")).toEqual([{ key: "192.0.2.1 example.com/s1 example.com -" }]);
  });

  const retentionOf = ({ db, clock, domains }: RebuildWorld) =>
    createRetention({
      ...{ db, domains, clock, log: silentLog, store: createRetentionStore(db) },
      names: createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf }),
    });

  test("old reports go", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    world.db.sqlite.run("UPDATE dmarc_domains SET retention_days = 30");
    makeSourcesLegacy(world.db);
    let steps = 0;
    await world.rebuild(async () => {
      steps += 1;
      if (steps !== 2) return;
      // The first day of two is over.
      await world.clock.advance(26 * DAY_MS);
      await retentionOf(world).forgetReports();
      expect(world.rollups()).toEqual(world.recount());
    });
    expect(world.count("dmarc_daily")).toBeGreaterThan(0);
    expect(world.rollups()).toEqual(world.recount());
    expect(isLegacyThere(world)).toBe(false);
    await world.clock.advance(2 * DAY_MS);
    await retentionOf(world).forgetReports();
    expect(world.count("dmarc_daily")).toBe(0);
    expect(world.count("dmarc_sources")).toBe(0);
  });

  test("a domain is deleted", async () => {
    const world = newWorld();
    await fillRebuilt(world);
    makeSourcesLegacy(world.db);
    let steps = 0;
    await world.rebuild(async () => {
      steps += 1;
      if (steps !== 2) return;
      world.db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1 WHERE domain = 'example.com'");
    });
    expect(isLegacyThere(world)).toBe(true);
    await retentionOf(world).purgeDeleted();
    expect(world.all("SELECT DISTINCT domain FROM dmarc_sources")).toEqual([{ domain: 2 }]);
    expect(world.all("SELECT DISTINCT domain FROM dmarc_daily")).toEqual([{ domain: 2 }]);
    await world.rebuild();
    expect(isLegacyThere(world)).toBe(false);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("rows of a report that is being removed do not count", async () => {
    const world = newWorld();
    world.enrol("example.com");
    await world.upload(madeReportXml({ reportId: "1", rows: [{ count: 3 }] }));
    makeSourcesLegacy(world.db);
    world.db.sqlite.run(
      "INSERT INTO dmarc_records SELECT 999, position, domain, day, source, source_ip, count, disposition, dkim, spf, is_aligned, is_forwarded, header_from, rank, body FROM dmarc_records",
    );
    await world.rebuild();
    expect(world.all("SELECT sum(messages) n FROM dmarc_daily")).toEqual([{ n: 3 }]);
    expect(isLegacyThere(world)).toBe(false);
  });
});
