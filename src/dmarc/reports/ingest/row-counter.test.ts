import { DAY_MS } from "../../../foundation/base/days.ts";
import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../../testing/clock.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { SAMPLE_DAY_S, sampleReportMail, sampleReportXml } from "../../../testing/dmarc-reports.ts";
import type { AuthenticationResults } from "../authentication/mail-authentication.ts";
import {
  NAMES_MAX,
  OVERFLOW_SOURCES_MAX,
  QUEUED_PER_REPORT_MAX,
  SOURCES_MAX,
  UNPROVEN_PART,
  UNTRUSTED_PART,
  UNTRUSTED_SOURCES_PER_REPORT_MAX,
  WAITING_ADDRESSES_MAX,
} from "./row-counter.ts";
import { OVERFLOW_REST } from "./rollup.ts";

const newHarness = createIngestHarness();
const DAY = (SAMPLE_DAY_S * 1000) / DAY_MS;

const spoofOf = (at: number) =>
  ({ ip: `10.0.${Math.floor(at / 250)}.${at % 250}`, dkim: "fail", spf: "fail" }) as const;

const verdict = (authenticity: "pass" | "fail" | "unknown"): AuthenticationResults => ({
  ...{ authenticity, from: "receiver.example", spf: null, dkim: [], dmarc: null, message: "made up" },
});

describe("sources and names", () => {
  test("a source is an address and what authenticated there; its address is queued for DNS lookups", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const spoof = { ip: "198.51.100.1", dkim: "fail", spf: "fail" } as const;
    await harness.upload(sampleReportXml({ reportId: "1", rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    const second = [{ ip: "192.0.2.1" }, { ip: "192.0.2.1", spf: "fail" as const }, spoof];
    await harness.upload(sampleReportXml({ reportId: "2", begin: SAMPLE_DAY_S + 86_400, rows: second }));
    expect(harness.all("SELECT key, first_day, last_day FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "192.0.2.1 example.com/s1 - -", first_day: DAY + 1, last_day: DAY + 1 },
      { key: "192.0.2.1 example.com/s1 example.com -", first_day: DAY, last_day: DAY + 1 },
      { key: "192.0.2.2 example.com/s1 example.com -", first_day: DAY, last_day: DAY },
      { key: "198.51.100.1 -/- - -", first_day: DAY + 1, last_day: DAY + 1 },
    ]);
    const queued = harness.all(
      "SELECT ip, name, due_at_ms, asked_at_ms, network_due_at_ms FROM dmarc_reverse_names ORDER BY ip",
    );
    const waiting = { name: null, due_at_ms: harness.clock.nowMs(), asked_at_ms: null, network_due_at_ms: 0 };
    expect(queued).toEqual(["192.0.2.1", "192.0.2.2", "198.51.100.1"].map((ip) => ({ ip, ...waiting })));
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("one report queues a limited number of addresses; the others are queued the next day", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const rows = Array.from({ length: QUEUED_PER_REPORT_MAX + 9 }, (_, at) => ({
      ...{ ip: `198.51.${100 + Math.floor(at / 200)}.${at % 200}`, dkim: "fail" as const, spf: "fail" as const },
    }));
    await harness.upload(sampleReportXml({ reportId: "1", rows }));
    expect(harness.count("dmarc_reverse_names")).toBe(QUEUED_PER_REPORT_MAX);
    await harness.upload(sampleReportXml({ reportId: "2", begin: SAMPLE_DAY_S + 86_400, rows: rows.slice(-9) }));
    expect(harness.count("dmarc_reverse_names")).toBe(rows.length);
  });

  test("of a report with more addresses those with the most messages are queued; known ones do not count", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const known = Array.from({ length: QUEUED_PER_REPORT_MAX }, (_, at) => ({ ...spoofOf(at), count: 1_000 }));
    await harness.upload(sampleReportXml({ reportId: "1", rows: known }));
    const fresh = known.map((row, at) => ({ ...row, ...spoofOf(at + 500), count: at + 1 }));
    const heavy = { ...spoofOf(999), count: 500 };
    const rows = [...fresh, ...known, heavy];
    await harness.upload(sampleReportXml({ reportId: "2", begin: SAMPLE_DAY_S + 86_400, rows }));
    const ips = new Set(harness.all<{ ip: string }>("SELECT ip FROM dmarc_reverse_names").map(({ ip }) => ip));
    expect(ips.size).toBe(2 * QUEUED_PER_REPORT_MAX);
    expect(ips.has(heavy.ip)).toBe(true);
    expect(ips.has(spoofOf(500).ip)).toBe(false);
  });

  test("first and last days are right in whatever order the reports come, in one batch or several", async () => {
    const days = [5, 9, 2, 7];
    const made = (day: number) => sampleReportXml({ reportId: String(day), begin: SAMPLE_DAY_S + 86_400 * day });
    const clock = createTestClock((SAMPLE_DAY_S + 10 * 86_400) * 1000);
    const harnesses = [newHarness({ clock }), newHarness({ clock })] as const;
    for (const harness of harnesses) harness.enrol("example.com");
    await harnesses[0].ingestions.ingestFiles(days.map((day) => harnesses[0].incoming(made(day))));
    for (const day of days) await harnesses[1].upload(made(day));
    for (const { all } of harnesses) {
      expect(all("SELECT first_day, last_day FROM dmarc_sources")).toEqual([{ first_day: DAY + 2, last_day: DAY + 9 }]);
      expect(all("SELECT first_day FROM dmarc_names")).toEqual([{ first_day: DAY + 2 }]);
    }
  });

  test("no DNS lookups for test keys", async () => {
    const harness = newHarness();
    harness.enrol("example.com", { mode: "test" });
    expect((await harness.upload(sampleReportXml(), { mode: "test" })).row.outcome).toBe("stored");
    expect(harness.count("dmarc_reverse_names")).toBe(0);
  });

  test("names beyond the limit are counted under one", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const rows = Array.from({ length: NAMES_MAX + 5 }, (_, at) => ({ headerFrom: `n${at}.example.com` }));
    await harness.upload(
      sampleReportXml({ rows: [...rows, { headerFrom: "example.com" }, { headerFrom: "n3.example.com" }] }),
    );
    expect(harness.count("dmarc_names")).toBe(NAMES_MAX + 2);
    expect(
      harness.all(
        "SELECT name, messages FROM dmarc_daily_names WHERE name IN ('*.example.com', 'n3.example.com') ORDER BY 1",
      ),
    ).toEqual([
      { name: "*.example.com", messages: 5 },
      { name: "n3.example.com", messages: 2 },
    ]);
  });

  test("the counts do not depend on the order of trusted reports, however many sources they have", async () => {
    const rows = Array.from({ length: 3_000 }, (_, at) => spoofOf(at));
    const reports = [
      sampleReportXml({ reportId: "1", rows }),
      sampleReportXml({ reportId: "2", rows: [...rows.slice(-9), {}] }),
      sampleReportXml({ reportId: "3", begin: SAMPLE_DAY_S + 86_400, rows: rows.slice(1_000, 1_009) }),
    ] as const;
    const orders = [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ] as const;
    const counted: unknown[] = [];
    for (const order of orders) {
      const harness = newHarness({ clock: createTestClock((SAMPLE_DAY_S + 3 * 86_400) * 1000) });
      harness.enrol("example.com");
      for (const at of order) await harness.upload(reports[at]);
      expect(harness.rollups()).toEqual(harness.recount());
      counted.push(
        harness.all(
          `SELECT s.key, s.first_day, s.last_day, d.* FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source
            ORDER BY s.key, d.day`,
        ),
      );
      expect(harness.count("dmarc_sources")).toBe(3_001);
    }
    const withoutNumbers = counted.map((all) => JSON.stringify(all).replaceAll(/"source":\d+,/g, ""));
    expect(withoutNumbers[1]).toBe(withoutNumbers[0] ?? "");
    expect(withoutNumbers[2]).toBe(withoutNumbers[0] ?? "");
  });

  const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" } as const;
  const newOpenHarness = () => {
    const harness = newHarness({ authenticate: async () => verdict("unknown") });
    harness.enrol("example.com");
    return harness;
  };
  const fill = (harness: ReturnType<typeof newHarness>, count: number, key: string): void =>
    void harness.db.sqlite.run(
      `WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < ${count})
        INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms) SELECT 1, ${key}, 0, 0, 0 FROM s`,
    );
  const keys = (harness: ReturnType<typeof newHarness>) =>
    harness
      .all<{ key: string }>("SELECT key FROM dmarc_sources WHERE key NOT LIKE '% filled' ORDER BY key")
      .map(({ key }) => key);

  test("an untrusted report adds a limited number of sources, those with the most messages first", async () => {
    const harness = newOpenHarness();
    const rows = Array.from({ length: UNTRUSTED_SOURCES_PER_REPORT_MAX + 5 }, (_, at) => ({
      ...spoofOf(at),
      count: at + 1,
    }));
    await harness.upload(sampleReportMail({ rows }), smtp);
    expect(harness.count("dmarc_sources")).toBe(UNTRUSTED_SOURCES_PER_REPORT_MAX + 1);
    const sent = "SELECT s.key, d.messages FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source";
    expect(harness.all(`${sent} WHERE d.messages = 6 OR s.key LIKE '*%' ORDER BY s.key`)).toEqual([
      { key: OVERFLOW_REST, messages: 1 + 2 + 3 + 4 + 5 },
      { key: `${spoofOf(5).ip} -/- - -`, messages: 6 },
    ]);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("untrusted reports add no source to a domain that has many, trusted ones do", async () => {
    const harness = newOpenHarness();
    fill(harness, SOURCES_MAX * UNPROVEN_PART * UNTRUSTED_PART - 1, "value || ' -/- - filled'");
    const rows = [{ ...spoofOf(0), count: 2 }, spoofOf(1)];
    await harness.upload(sampleReportMail({ reportId: "1", rows }), smtp);
    const [first, second] = ["10.0.0.0 -/- - -", "10.0.0.1 -/- - -"];
    expect(keys(harness)).toEqual([OVERFLOW_REST, first]);
    await harness.upload(sampleReportXml({ reportId: "2", rows }));
    expect(keys(harness)).toEqual([OVERFLOW_REST, first, second]);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("a flood of forged mail leaves room for authenticated senders", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    fill(harness, SOURCES_MAX * UNPROVEN_PART, "value || ' -/- - filled'");
    await harness.upload(sampleReportXml({ reportId: "1", rows: [spoofOf(0), { ip: "192.0.2.1" }] }));
    expect(keys(harness)).toEqual([OVERFLOW_REST, "192.0.2.1 example.com/s1 example.com -"]);
  });

  test("a source is vouched for as soon as a trusted report names it", async () => {
    const harness = newOpenHarness();
    const vouched = () => harness.all("SELECT is_vouched v FROM dmarc_sources ORDER BY number").map(({ v }) => v);
    await harness.upload(sampleReportMail({ reportId: "1", rows: [{ ip: "192.0.2.1" }] }), smtp);
    expect(vouched()).toEqual([0]);
    await harness.upload(sampleReportXml({ reportId: "2", rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    expect(vouched()).toEqual([1, 1]);
    await harness.upload(sampleReportMail({ reportId: "3", rows: [{ ip: "192.0.2.1" }] }), smtp);
    expect(vouched()).toEqual([1, 1]);
  });

  test("a domain has a limited number of sources; beyond it signers are counted apart, also up to a limit", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    fill(harness, SOURCES_MAX, "value || ' -/- - filled'");
    const signed = (name: string) => ({ dkimResults: [`${name} pass s`], spf: "fail", spfResults: [] }) as const;
    await harness.upload(sampleReportXml({ reportId: "1", rows: [spoofOf(0), signed("a.example.com")] }));
    expect(keys(harness)).toEqual([OVERFLOW_REST, "* a.example.com/s - -"]);
    fill(harness, OVERFLOW_SOURCES_MAX - 2, "'* n' || value || '.example.com/- - filled'");
    await harness.upload(sampleReportXml({ reportId: "2", rows: [signed("b.example.com"), signed("a.example.com")] }));
    expect(keys(harness)).toEqual([OVERFLOW_REST, "* a.example.com/s - -"]);
    const sent = "SELECT s.key, sum(d.messages) n FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source";
    expect(harness.all(`${sent} GROUP BY s.key ORDER BY s.key`)).toEqual([
      { key: OVERFLOW_REST, n: 2 },
      { key: "* a.example.com/s - -", n: 2 },
    ]);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("while many addresses wait for DNS lookups, no more are queued", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    harness.db.sqlite.run(
      `WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < ${WAITING_ADDRESSES_MAX - 1})
        INSERT INTO dmarc_reverse_names (ip, is_confirmed, due_at_ms) SELECT value, 0, 0 FROM s`,
    );
    await harness.upload(sampleReportXml({ rows: [0, 1, 2].map(spoofOf) }));
    expect(harness.count("dmarc_reverse_names")).toBe(WAITING_ADDRESSES_MAX);
  });

  test("rows without or with a foreign From are counted under no name", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    await harness.upload(sampleReportXml({ rows: [{ headerFrom: "" }, { headerFrom: "notexample.com" }] }));
    expect(harness.all("SELECT name, messages FROM dmarc_daily_names")).toEqual([{ name: "", messages: 2 }]);
    expect(harness.count("dmarc_names")).toBe(0);
  });
});

describe("a domain that requires authenticated reports", () => {
  const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" } as const;
  const run = async (
    authenticity: "pass" | "fail" | "unknown",
    change: Parameters<ReturnType<typeof newHarness>["incoming"]>[1] = smtp,
  ) => {
    const asked: unknown[] = [];
    const harness = newHarness({
      authenticate: async ({ client, helo, mailFrom }) => {
        asked.push({ client, helo, mailFrom });
        return verdict(authenticity);
      },
    });
    harness.enrol("example.com", { requireAuthenticReports: true });
    const { row } = await harness.upload(sampleReportMail(), change);
    return { harness, row, asked };
  };

  test("accepts an authenticated one", async () => {
    const { harness, row, asked } = await run("pass");
    expect(row.outcome).toBe("stored");
    expect(asked).toEqual([{ client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" }]);
    const [report] = harness.all("SELECT authenticity, authenticity_body FROM dmarc_reports");
    expect(report?.authenticity).toBe("pass");
    expect(JSON.parse(String(report?.authenticity_body))).toEqual(verdict("pass"));
  });

  test.each([
    ["fail", "not_authentic"],
    ["unknown", "authenticity_unknown"],
  ] as const)("keeps one that is %s in quarantine", async (authenticity, reason) => {
    const { harness, row } = await run(authenticity);
    expect(row).toMatchObject({ outcome: "quarantined", reason });
    expect(harness.count("dmarc_reports")).toBe(0);
    expect(await harness.store.raw.find(row.id)).toBeDefined();
  });

  test("does not authenticate uploads", async () => {
    const { harness, row, asked } = await run("fail", { via: "http" });
    expect(row.outcome).toBe("stored");
    expect(asked).toEqual([]);
    expect(harness.all("SELECT authenticity FROM dmarc_reports")).toEqual([{ authenticity: "pending" }]);
  });
});
