import { expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { SAMPLE_DAY_S, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { silentLog } from "../../../testing/silent-log.ts";
import { possibleKeysOf } from "../../insight/sources/source-keys.ts";
import { Retention, NameRetention } from "./retention.ts";
import { NameRetentionStore, RetentionStore } from "./retention-store.ts";

const newHarness = createIngestHarness();

test("a failure to expire the data of one domain does not affect the others", async () => {
  const harness = newHarness({ clock: createTestClock(SAMPLE_DAY_S * 1000 + 2 * DAY_MS) });
  const { db, clock, domains } = harness;
  const names = new NameRetention({ db, clock }, { store: new NameRetentionStore(db), keysOf: possibleKeysOf });
  const retention = new Retention({ db, clock, log: silentLog }, { store: new RetentionStore(db), names, domains });
  const first = harness.enrol("one.example", { retentionDays: 30 });
  harness.enrol("two.example", { retentionDays: 30 });
  for (const domain of ["one.example", "two.example"]) await harness.upload(sampleReportXml({ domain }));
  expect(harness.count("dmarc_reports")).toBe(2);
  await clock.advance(40 * DAY_MS);
  const bug = `BEGIN SELECT RAISE(ABORT, 'bug'); END`;
  db.sqlite.run(`CREATE TRIGGER bug BEFORE DELETE ON dmarc_reports WHEN OLD.domain = ${first.number} ${bug}`);
  await retention.expireReports();
  expect(harness.all("SELECT domain FROM dmarc_reports")).toEqual([{ domain: first.number }]);
});
