import { expect, test } from "bun:test";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { createReportQueries, MADE_DAY, summaryNow } from "../../../testing/report-queries.ts";

const start = createReportQueries();
const DAY_S = 86_400;

const named = (harness: ReturnType<typeof start>, domain: ReturnType<typeof harness.enrol>) =>
  summaryNow(harness.store, domain, { fromDay: MADE_DAY - 30, toDay: MADE_DAY }).top_reporters.map(
    ({ org_name, reports }) => `${org_name} ${reports}`,
  );

test("a summary names reporters as they last wrote their names, however they wrote them before", async () => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ org: "YAHOO", begin: SAMPLE_DAY_S - 2 * DAY_S, rows: [{ count: 9 }] });
  await harness.give({ org: "Yahoo", begin: SAMPLE_DAY_S - DAY_S, rows: [{ count: 9 }] });
  await harness.give({ org: "Élan GmbH", rows: [{ count: 5 }] });
  await harness.give({ org: "gmx.net", rows: [{ count: 4 }] });
  expect(named(harness, domain)).toEqual(["Yahoo 2", "Élan GmbH 1", "gmx.net 1"]);
});

test("a name whose reports are gone is shown in lower case", async () => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ org: "Yahoo" });
  harness.db.sqlite.run("DELETE FROM dmarc_reports");
  expect(named(harness, domain)).toEqual(["yahoo 1"]);
});

test("a report that is still being written names nobody", async () => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ org: "Yahoo" });
  await harness.give({ org: "YAHOO" });
  harness.db.sqlite.run("UPDATE dmarc_reports SET is_complete = 0 WHERE org = 'YAHOO'");
  expect(named(harness, domain)).toEqual(["Yahoo 2"]);
});
