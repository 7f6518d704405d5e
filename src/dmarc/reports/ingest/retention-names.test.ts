import { silentLog } from "../../../testing/silent-log.ts";
import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { type SampleRow, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { possibleKeysOf } from "../../insight/sources/source-keys.ts";
import { NAMES_MAX } from "./row-counter.ts";
import { Retention, NameRetention } from "./retention.ts";
import { NameRetentionStore, RetentionStore } from "./retention-store.ts";

const newIngestHarness = createIngestHarness();
const UNPROVEN = { dkim: "fail", spf: "fail", dkimResults: [], spfResults: [] } as const;

const newHarness = (mode: "live" | "test" = "live") => {
  const harness = newIngestHarness();
  const { db, domains, clock } = harness;
  const names = new NameRetention({ db, clock }, { store: new NameRetentionStore(db), keysOf: possibleKeysOf });
  const retention = new Retention({ db, clock, log: silentLog }, { store: new RetentionStore(db), names, domains });
  const { number } = harness.enrol("example.com", { retentionDays: 30, mode });
  let serial = 0;
  return {
    ...harness,
    number,
    /** A report of yesterday. */
    tell: (rows: readonly SampleRow[]) => {
      serial += 1;
      const begin = Math.floor(clock.nowMs() / 1000) - 86_400;
      return harness.upload(sampleReportXml({ reportId: String(serial), begin, rows }), { mode });
    },
    async pass(days: number): Promise<void> {
      await clock.advance(days * DAY_MS);
      await retention.expireReports();
    },
    say: (key: string) =>
      db.sqlite.run("INSERT INTO dmarc_source_words VALUES (?, ?, 'authorized', ?, NULL)", [
        number,
        key,
        clock.nowMs(),
      ]),
    words: () => harness.all<{ key: string }>("SELECT key FROM dmarc_source_words ORDER BY key").map(({ key }) => key),
    /** As the DNS said of an address; null for no name. */
    answer: (ip: string, name: string | null) =>
      db.sqlite.run(
        "UPDATE dmarc_reverse_names SET name = ?, is_confirmed = ?, asked_at_ms = ?, due_at_ms = ? WHERE ip = ?",
        [name, name === null ? 0 : 1, clock.nowMs(), clock.nowMs() + 30 * DAY_MS, ip],
      ),
    reverseNames: () =>
      harness.all<{ ip: string }>("SELECT ip FROM dmarc_reverse_names ORDER BY ip").map(({ ip }) => ip),
  };
};

describe("names", () => {
  test("expire with their counts, so that forged ones do not use up the limit for ever", async () => {
    const harness = newHarness();
    await harness.tell(
      Array.from({ length: NAMES_MAX + 100 }, (_, n) => ({ ...UNPROVEN, headerFrom: `r${n}.example.com` })),
    );
    expect(harness.count("dmarc_names")).toBe(NAMES_MAX + 1);
    await harness.pass(60);
    expect(harness.count("dmarc_names")).toBe(0);
    await harness.tell([{ headerFrom: "shop.example.com", count: 500 }]);
    expect(harness.all("SELECT name, messages FROM dmarc_daily_names")).toEqual([
      { name: "shop.example.com", messages: 500 },
    ]);
  });

  test("are kept, with their first day, while anything is counted under them", async () => {
    const harness = newHarness();
    for (let day = 0; day < 60; day += 20) {
      await harness.tell([{ headerFrom: "shop.example.com" }]);
      if (day === 0) await harness.tell([{ headerFrom: "once.example.com" }]);
      await harness.pass(20);
    }
    const [first] = harness.all<{ day: number }>("SELECT min(first_day) AS day FROM dmarc_names");
    expect(harness.all("SELECT name, first_day FROM dmarc_names")).toEqual([
      { name: "shop.example.com", first_day: first?.day },
    ]);
    expect(first?.day).toBeLessThan(harness.clock.nowMs() / DAY_MS - 40);
  });
});

describe("the user's classification", () => {
  test("of a network expires when none of its addresses was a source for the retention time", async () => {
    const harness = newHarness();
    await harness.tell([
      { ...UNPROVEN, ip: "9.9.9.9" },
      { ...UNPROVEN, ip: "8.8.8.8" },
    ]);
    for (const key of ["net:9.9.9.0/24", "net:8.8.8.0/24", "ptr:google.example"]) harness.say(key);
    await harness.pass(29);
    await harness.tell([{ ...UNPROVEN, ip: "8.8.8.7" }]);
    expect(harness.words()).toHaveLength(3);
    await harness.pass(3);
    harness.answer("8.8.8.7", "mail.other.example");
    expect(harness.words()).toEqual(["net:8.8.8.0/24", "ptr:google.example"]);
    await harness.pass(0);
    expect(harness.words()).toEqual(["net:8.8.8.0/24"]);
    await harness.pass(60);
    expect(harness.words()).toEqual([]);
  });

  test("of a reverse name survives temporary DNS failures", async () => {
    const harness = newHarness();
    await harness.tell([{ ...UNPROVEN, ip: "8.8.8.8" }]);
    harness.say("ptr:google.example");
    await harness.pass(29);
    await harness.tell([{ ...UNPROVEN, ip: "8.8.8.8" }]);
    harness.answer("8.8.8.8", null);
    await harness.pass(3);
    expect(harness.words()).toEqual(["ptr:google.example"]);
    harness.answer("8.8.8.8", "dns.google.example");
    await harness.pass(0);
    expect(harness.words()).toEqual(["ptr:google.example"]);
  });

  test("that is recent is kept", async () => {
    const harness = newHarness();
    harness.say("net:9.9.9.0/24");
    await harness.pass(1);
    expect(harness.words()).toEqual(["net:9.9.9.0/24"]);
  });
});

test("reverse names expire before they would be looked up again, unless a source has their address", async () => {
  const harness = newHarness();
  await harness.tell([{ ip: "1.1.1.1" }, { ...UNPROVEN, ip: "9.9.9.9" }, { ...UNPROVEN, ip: "8.8.8.8" }]);
  for (const ip of harness.reverseNames()) harness.answer(ip, "mail.example");
  await harness.pass(29);
  await harness.tell([{ ip: "1.1.1.1" }, { ...UNPROVEN, ip: "8.8.8.8" }]);
  await harness.pass(3);
  expect(harness.reverseNames()).toEqual(["1.1.1.1", "8.8.8.8"]);
  await harness.pass(60);
  expect(harness.reverseNames()).toEqual([]);
});
