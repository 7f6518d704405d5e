import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { SAMPLE_DAY_S, sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { makeSourcesLegacy } from "../../../testing/legacy-sources.ts";
import {
  BY_SMTP,
  COUNTED,
  createRebuildHarness,
  fillRebuilt,
  isLegacyThere,
  REBUILT_ROWS,
  type RebuildHarness,
} from "../../../testing/rebuild-harness.ts";
import { silentLog } from "../../../testing/silent-log.ts";
import { possibleKeysOf } from "../../insight/sources/source-keys.ts";
import { NameRetention, Retention } from "./retention.ts";
import { NameRetentionStore, RetentionStore } from "./retention-store.ts";

const newHarness = createRebuildHarness();

describe("while sources are rebuilt", () => {
  test("reports arrive", async () => {
    const [harness, fresh] = [newHarness(), newHarness()];
    await fillRebuilt(harness);
    await fillRebuilt(fresh);
    makeSourcesLegacy(harness.db);
    const more = (at: number) =>
      sampleReportXml({ reportId: `more ${at}`, begin: SAMPLE_DAY_S, rows: REBUILT_ROWS.slice(at, at + 20) });
    let at = 0;
    await harness.rebuild(async () => {
      await harness.upload(more(at));
      await fresh.upload(more(at));
      at += 1;
      expect(harness.rollups()).toEqual(harness.recount());
    });
    expect(at).toBeGreaterThan(3);
    expect(harness.all(COUNTED)).toEqual(fresh.all(COUNTED));
  });

  /** An untrusted report of many rows that was counted with the trusted ones or apart, and is replaced at every step. */
  test.each([
    [1, false],
    [2, false],
    [1, true],
    [2, true],
  ])("a report is replaced after step %i (counted with the trusted ones: %p)", async (when, isOld) => {
    const harness = newHarness();
    harness.enrol("example.com");
    const genuine = sampleReportXml({ reportId: "r", rows: [{ count: 7 }] });
    await harness.upload(sampleReportMail({ reportId: "r", rows: REBUILT_ROWS }), BY_SMTP);
    if (isOld) {
      for (const table of ["dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"])
        harness.db.sqlite.run(`UPDATE ${table} SET is_trusted = 1`);
      harness.db.sqlite.run("UPDATE dmarc_daily_reporters SET author = ''");
    }
    makeSourcesLegacy(harness.db);
    let steps = 0;
    await harness.rebuild(async () => {
      steps += 1;
      if (steps === when) await harness.upload(genuine);
    });
    expect(steps).toBeGreaterThanOrEqual(when);
    expect(harness.all("SELECT sum(messages) n FROM dmarc_daily")).toEqual([{ n: 7 }]);
    expect(harness.rollups()).toEqual(harness.recount());
    expect(harness.all("SELECT key FROM dmarc_sources")).toEqual([{ key: "192.0.2.1 example.com/s1 example.com -" }]);
  });

  const retentionOf = ({ db, clock, domains }: RebuildHarness) =>
    new Retention(
      { db, clock, log: silentLog },
      {
        ...{ domains, store: new RetentionStore(db) },
        names: new NameRetention({ db, clock }, { store: new NameRetentionStore(db), keysOf: possibleKeysOf }),
      },
    );

  test("old reports expire", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    harness.db.sqlite.run("UPDATE dmarc_domains SET retention_days = 30");
    makeSourcesLegacy(harness.db);
    let steps = 0;
    await harness.rebuild(async () => {
      steps += 1;
      if (steps !== 2) return;
      // The first day of two is over.
      await harness.clock.advance(26 * DAY_MS);
      await retentionOf(harness).expireReports();
      expect(harness.rollups()).toEqual(harness.recount());
    });
    expect(harness.count("dmarc_daily")).toBeGreaterThan(0);
    expect(harness.rollups()).toEqual(harness.recount());
    expect(isLegacyThere(harness)).toBe(false);
    await harness.clock.advance(2 * DAY_MS);
    await retentionOf(harness).expireReports();
    expect(harness.count("dmarc_daily")).toBe(0);
    expect(harness.count("dmarc_sources")).toBe(0);
  });

  test("a domain is deleted", async () => {
    const harness = newHarness();
    await fillRebuilt(harness);
    makeSourcesLegacy(harness.db);
    let steps = 0;
    await harness.rebuild(async () => {
      steps += 1;
      if (steps !== 2) return;
      harness.db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1 WHERE domain = 'example.com'");
    });
    expect(isLegacyThere(harness)).toBe(true);
    await retentionOf(harness).purgeDeleted();
    expect(harness.all("SELECT DISTINCT domain FROM dmarc_sources")).toEqual([{ domain: 2 }]);
    expect(harness.all("SELECT DISTINCT domain FROM dmarc_daily")).toEqual([{ domain: 2 }]);
    await harness.rebuild();
    expect(isLegacyThere(harness)).toBe(false);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("rows of a report that is being removed do not count", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    await harness.upload(sampleReportXml({ reportId: "1", rows: [{ count: 3 }] }));
    makeSourcesLegacy(harness.db);
    harness.db.sqlite.run(
      "INSERT INTO dmarc_records SELECT 999, position, domain, day, source, source_ip, count, disposition, dkim, spf, is_aligned, is_forwarded, header_from, rank, body FROM dmarc_records",
    );
    await harness.rebuild();
    expect(harness.all("SELECT sum(messages) n FROM dmarc_daily")).toEqual([{ n: 3 }]);
    expect(isLegacyThere(harness)).toBe(false);
  });
});
