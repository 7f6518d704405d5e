import { expect, test } from "bun:test";
import { createReportQueries, MADE_DAY } from "../../../testing/report-queries.ts";
import { SAMPLE_DAY_S } from "../../../testing/dmarc-reports.ts";
import { createOwnAddressFinder } from "./own-addresses.ts";

const start = createReportQueries();

test("own servers of the last 30 days are found, those with the most messages first, for their account only", async () => {
  const harness = start();
  const domain = harness.enrol();
  const give = (day: number, ...rows: readonly { readonly ip: string; readonly count: number }[]) =>
    harness.give({ domain: "example.com", begin: SAMPLE_DAY_S + (day - MADE_DAY) * 86_400, rows: [...rows] });
  await give(MADE_DAY, { ip: "5.5.6.1", count: 3 }, { ip: "5.5.5.1", count: 9 });
  await give(MADE_DAY - 40, { ip: "5.5.7.1", count: 99 });
  const find = createOwnAddressFinder(harness.db, harness.clock);
  const owner = { accountId: domain.accountId, mode: "live" } as const;
  expect(await find(owner, "example.com")).toEqual(["5.5.5.1", "5.5.6.1"]);
  expect(await find(owner, "other.com")).toBeNull();
  expect(await find({ ...owner, accountId: "another" }, "example.com")).toBeNull();
  expect(await find({ ...owner, mode: "test" }, "example.com")).toBeNull();
});
