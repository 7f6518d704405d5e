import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { SAMPLE_DAY_S, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import type { DomainOwner } from "../../records/domains/domain-store.ts";

const newHarness = createIngestHarness();
const A: DomainOwner = { accountId: "a", mode: "live" };

/** Uploads of several owners that are ingested in one batch: each about the same domain, with as many messages as its place says. */
const ingestTogether = async (owners: readonly DomainOwner[]) => {
  const harness = newHarness({ clock: createTestClock((SAMPLE_DAY_S + 86_400) * 1000) });
  const domains = owners.map((owner) => harness.enrol("example.com", owner));
  const reports = owners.map((owner, at) =>
    harness.incoming(sampleReportXml({ reportId: `${at}`, rows: [{ count: at + 1 }] }), owner),
  );
  await harness.ingestions.ingestFiles(reports);
  const booked = harness.all<{ domain: number; messages: number }>(
    "SELECT domain, messages FROM dmarc_daily ORDER BY 1",
  );
  return { domains, booked };
};

describe("a report about a domain that several have enrolled, in one batch with theirs", () => {
  test.each<[string, DomainOwner]>([
    ["account", { accountId: "b", mode: "live" }],
    ["mode", { accountId: "a", mode: "test" }],
  ])("is booked to the domain of its own %s, and no other one changes", async (_, other) => {
    for (const owners of [
      [A, other],
      [other, A],
    ]) {
      const { domains, booked } = await ingestTogether(owners);
      expect(booked).toEqual(domains.map(({ number }, at) => ({ domain: number, messages: at + 1 })));
    }
  });
});
