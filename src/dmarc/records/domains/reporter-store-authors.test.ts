import { expect, test } from "bun:test";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { SAMPLE_DAY_S, sampleReportMail } from "../../../testing/dmarc-reports.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { AUTHORS_MAX, ReportAuthorStore } from "./reporter-store.ts";

const newHarness = createIngestHarness();

test("so many authors are remembered, and of those from whom nothing comes any more others take the place", () => {
  const { db } = newHarness();
  const store = new ReportAuthorStore(db);
  const add = (author: string, day: number) => db.transact((tx) => store.add(tx, 1, author, { day, bytes: 10 }));
  for (let at = 0; at < AUTHORS_MAX; at += 1) add(`${at}.example`, at === 0 ? 100 : 150);
  add("new.example", 190);
  expect([store.find(1, "new.example"), store.find(2, "1.example")]).toEqual([null, null]);
  add("1.example", 190);
  add("1.example", 190);
  expect(store.find(1, "1.example")).toEqual({ firstDay: 150, usageDay: 190, usageBytes: 20 });
  add("new.example", 191);
  expect([store.find(1, "0.example"), store.find(1, "new.example")?.usageBytes]).toEqual([null, 10]);
  expect([store.hasKnown(1, 150), store.hasKnown(1, 151), store.hasKnown(2, 151)]).toEqual([false, true, false]);
});

test("an author is who brought a trusted report by mail: no forger, and no file", async () => {
  const harness = newHarness({
    clock: createTestClock((SAMPLE_DAY_S + 2 * 86_400) * 1000),
    authenticate: async ({ mailFrom }) => ({
      ...{ authenticity: "pass", from: mailFrom?.split("@")[1] ?? null, spf: null, dkim: [], dmarc: null, message: "" },
    }),
  });
  const { number } = harness.enrol("example.com");
  const mail = sampleReportMail();
  for (const from of ["a@attacker.example", "a@mx.receiver.example"]) {
    const came = { via: "smtp", domain: number, client: "192.0.2.1", helo: "x", mailFrom: from } as const;
    await harness.upload(mail, came);
  }
  await harness.upload(sampleReportMail({ org: "file.example", reportId: "2" }));
  const [author, ...others] = harness.all<{ author: string; usage_bytes: number }>(
    "SELECT * FROM dmarc_report_authors",
  );
  expect([author?.author, others]).toEqual(["receiver.example", []]);
  expect(author?.usage_bytes).toBeGreaterThan(mail.byteLength);
});
