import { expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createZoneResolver } from "../../../testing/dns-zone.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { RecordStore } from "../queries/record-store.ts";
import { RollupStore } from "../sources/rollup-store.ts";
import { createAdvisor } from "./advisor.ts";

const newHarness = createIngestHarness();
const NOW_MS = Date.parse("2026-03-20T12:00:00Z");
const RECORD = "v=DMARC1; p=none; rua=mailto:k@r.example";
const TAGS = { p: "none", sp: "none", np: "none", adkim: "r", aspf: "r", t: "n", pct: 100 };
const STATE = JSON.stringify({
  believed: { records: [RECORD], holds_ours: true, policy: { ...TAGS, own: true, inherited_from: null } },
  doubt: null,
});

test("reports from before the enrolment that found the present policy count with their mail and reporters", async () => {
  const clock = createTestClock(NOW_MS);
  const harness = newHarness({ clock });
  const domain = harness.enrol("example.com", { state: STATE, createdAtMs: NOW_MS, updatedAtMs: NOW_MS });
  for (const daysAgo of [4, 3])
    for (const org of ["google.com", "yahoo.com"]) {
      const begin = (NOW_MS - (NOW_MS % DAY_MS) - daysAgo * DAY_MS) / 1000;
      await harness.upload(sampleReportMail({ org, reportId: `${org} ${daysAgo}`, begin, rows: [{ count: 3 }] }));
    }
  const advise = createAdvisor({
    ...{ reading: new RollupStore(harness.db, { trustedOnly: true }), clock, resolver: createZoneResolver({}) },
    records: new RecordStore(harness.db),
  });
  const { requirements } = await advise(domain);
  const observed = Object.fromEntries(requirements.map((one) => [one.code, one.observed]));
  expect(observed).toMatchObject({ reported_days: 2, messages: 12, reporters: 2 });
});
