import { summaryNow } from "../../../testing/report-queries.ts";
import { expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { SAMPLE_DAY_S, sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { RollupStore } from "../sources/rollup-store.ts";
import { RecordStore } from "../queries/record-store.ts";
import { createAdvisor } from "./advisor.ts";

const newWorld = createIngestHarness();

test("forged reports change nothing in advice, which says how much it leaves out, as the summary does", async () => {
  const clock = createTestClock(SAMPLE_DAY_S * 1000 + 2 * DAY_MS);
  const world = newWorld({
    clock,
    authenticate: async () => ({
      ...{ authenticity: "unknown", from: "google.com", spf: null, dkim: [], dmarc: null, message: "made up" },
    }),
  });
  const domain = world.enrol("example.com");
  const advise = (): ReturnType<ReturnType<typeof createAdvisor>> => {
    const reading = new RollupStore(world.db, { trustedOnly: true });
    return createAdvisor({ reading, clock, resolver: createZoneResolver({}), records: new RecordStore(world.db) })(
      domain,
    );
  };
  const genuine = [{ count: 60 }, { count: 40, dkim: "fail", spf: "fail", ip: "192.0.2.9" }] as const;
  await world.upload(sampleReportMail({ reportId: "genuine", rows: genuine }));
  const before = await advise();
  expect(before.unauthenticated_percent).toBe(0);
  for (let at = 0; at < 5; at += 1) {
    const forged = sampleReportMail({ org: `google${at}.com`, reportId: `f${at}`, rows: [{ count: 180 }] });
    const { row } = await world.upload(forged, {
      via: "smtp",
      client: "192.0.2.1",
      helo: "x",
      mailFrom: "a@b.example",
    });
    expect(row.outcome).toBe("stored");
  }
  const { notes, unauthenticated_percent, ...after } = await advise();
  expect({ ...before, ...after }).toEqual(before);
  expect(unauthenticated_percent).toBe(90);
  expect(notes.map(({ code }) => code)).toContain("unauthenticated_reports");
  const store = new RollupStore(world.db);
  const day = Math.floor((SAMPLE_DAY_S * 1000) / DAY_MS);
  expect(summaryNow(store, domain, { fromDay: day, toDay: day })).toMatchObject({
    ...{ messages: 1_000, unauthenticated_messages: 900, unauthenticated_percent: 90 },
  });
});
