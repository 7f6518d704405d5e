import { describe, expect, test } from "bun:test";
import type { SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";

const start = createReportQueries();
const ALL = { fromDay: 0, toDay: 99_999 };
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const startWith = async (rows: readonly SampleRow[]) => {
  const harness = start();
  const domain = harness.enrol();
  await harness.give({ rows });
  const find = (key: string) => harness.sourcesOf(domain).find(key, ALL);
  const say = (key: string, classification: "authorized" | "threat", atMs: number): void =>
    harness.db.transact((tx) =>
      harness.store.setUserClassification(tx, domain.number, { key, classification, atMs, note: null }),
    );
  return { ...harness, domain, find, say };
};

describe("classifications from before sources were identified by service", () => {
  const row = { ...UNPROVEN, ip: "8.8.8.8", count: 3 };
  test.each<[string, SampleRow, string | null, string, string]>([
    ["of a signature", { ip: "8.8.8.8" }, "mx.example.com", "dkim:example.com", "own"],
    [
      "of an envelope",
      { ...row, spfResults: ["mail.shop.example pass"] },
      null,
      "spf:mail.shop.example",
      "org:shop.example",
    ],
    ["of a reverse name", row, "a.host.example", "ptr:host.example", "org:host.example"],
    ["of a network whose name was not known", row, "a.host.example", "net:8.8.8.0/24", "org:host.example"],
  ])("%s are kept", async (_, made, name, before, after) => {
    const { say, find, nameAddress, clock, sourcesOf, domain } = await startWith([made]);
    nameAddress("8.8.8.8", name);
    say(before, "threat", clock.nowMs());
    expect(find(after)).toMatchObject({ classification: "threat", classified_by: "user" });
    expect(sourcesOf(domain).classifiedKeysOf([after], ALL)).toEqual(new Set([after, before]));
    say(after, "authorized", clock.nowMs());
    expect(find(after)?.classification).toBe("authorized");
  });

  test("of a signature do not hold for a service that begins to sign later, but for one that grows", async () => {
    const { say, find, nameAddress, clock, give, db } = await startWith([{ ip: "8.8.8.8" }]);
    say("dkim:example.com", "authorized", clock.nowMs());
    await give({ rows: [{ ip: "9.9.9.9" }, { ip: "8.8.8.9" }] });
    db.sqlite.run("UPDATE dmarc_sources SET first_seen_at_ms = ? WHERE key NOT LIKE '8.8.8.8 %'", [clock.nowMs() + 1]);
    for (const ip of ["8.8.8.8", "8.8.8.9"]) nameAddress(ip, "mx.example.com");
    nameAddress("9.9.9.9", "o1.ptr1.sendgrid.net");
    expect(find("own")).toMatchObject({ messages: 2, classified_by: "user" });
    expect(find("service:sendgrid")?.classified_by).toBe("service");
  });

  test("hold only when they are the same for all of a source, and for addresses that were known", async () => {
    const { say, find, nameAddress, clock } = await startWith([row, { ...row, ip: "9.9.9.9" }]);
    for (const ip of ["8.8.8.8", "9.9.9.9"]) nameAddress(ip, "a.host.example");
    const classification = () => find("org:host.example")?.classification;
    say("net:8.8.8.0/24", "authorized", clock.nowMs());
    expect(classification()).toBe("unknown");
    say("net:9.9.9.0/24", "threat", clock.nowMs());
    expect(classification()).toBe("unknown");
    say("net:9.9.9.0/24", "authorized", clock.nowMs() - 1);
    expect(classification()).toBe("unknown");
    say("net:9.9.9.0/24", "authorized", clock.nowMs());
    expect(classification()).toBe("authorized");
  });
});
