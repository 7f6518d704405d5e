import { expect, test } from "bun:test";
import { DAY_MS } from "../../base/days.ts";
import { MADE_DAY_S, madeReportXml } from "../../testing/dmarc-reports.ts";
import { createTestClock } from "../../testing/clock.ts";
import { createIngestWorlds } from "../../testing/ingest-world.ts";
import { silentLog } from "../../testing/silent-log.ts";
import { possibleKeysOf } from "../sources/possible-keys.ts";
import { createRetention } from "./retention.ts";
import { createNameRetention } from "./retention-names.ts";
import { createNameRetentionStore } from "./retention-names-store.ts";
import { createRetentionStore } from "./retention-store.ts";

const newWorld = createIngestWorlds();

test("old data of one domain that cannot be removed keeps that of no other", async () => {
  const world = newWorld({ clock: createTestClock(MADE_DAY_S * 1000 + 2 * DAY_MS) });
  const { db, clock, domains } = world;
  const names = createNameRetention({ db, store: createNameRetentionStore(db), clock, keysOf: possibleKeysOf });
  const retention = createRetention({ db, store: createRetentionStore(db), names, domains, clock, log: silentLog });
  const first = world.enrol("one.example", { retentionDays: 30 });
  world.enrol("two.example", { retentionDays: 30 });
  for (const domain of ["one.example", "two.example"]) await world.upload(madeReportXml({ domain }));
  expect(world.count("dmarc_reports")).toBe(2);
  await clock.advance(40 * DAY_MS);
  const bug = `BEGIN SELECT RAISE(ABORT, 'bug'); END`;
  db.sqlite.run(`CREATE TRIGGER bug BEFORE DELETE ON dmarc_reports WHEN OLD.domain = ${first.number} ${bug}`);
  await retention.forgetReports();
  expect(world.all("SELECT domain FROM dmarc_reports")).toEqual([{ domain: first.number }]);
});
