import { expect, test } from "bun:test";
import type { Caller } from "../../../foundation/http/guard.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { fillReportQueries } from "../../../testing/report-queries-filled.ts";
import { SourceReader } from "./source-reader.ts";

const newQueries = createReportQueries();
const CALLER = { accountId: "account", mode: "live" } as Caller;

test.each([
  ["", 4],
  ["  SENDGRID ", 1],
  ["9.9.9", 1],
  ["absent", 0],
])("sources with %p in a name, a domain or an address", async (text, count) => {
  const { db, clock, store, domain } = await fillReportQueries(newQueries());
  const reader = new SourceReader({ db, clock, rollups: store, findDomain: () => domain });
  expect(reader.list(CALLER, domain.id, { text }).sources).toHaveLength(count);
});
