import { DAY_MS } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createIngestWorlds } from "../../testing/ingest-world.ts";
import { MADE_DAY_S, madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import type { AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import {
  NAMES_MAX,
  OVERFLOW_SOURCES_MAX,
  QUEUED_PER_REPORT_MAX,
  SOURCES_MAX,
  UNPROVEN_PART,
  UNTRUSTED_PART,
  UNTRUSTED_SOURCES_PER_REPORT_MAX,
  WAITING_ADDRESSES_MAX,
} from "./ingest-count.ts";
import { OVERFLOW_REST } from "./source-key.ts";

const newWorld = createIngestWorlds();
const DAY = (MADE_DAY_S * 1000) / DAY_MS;

const spoofOf = (at: number) =>
  ({ ip: `10.0.${Math.floor(at / 250)}.${at % 250}`, dkim: "fail", spf: "fail" }) as const;

const verdict = (authenticity: "pass" | "fail" | "unknown"): AuthenticityFinding => ({
  ...{ authenticity, from: "receiver.example", spf: null, dkim: [], dmarc: null, message: "made up" },
});

describe("sources and names", () => {
  test("a source is an address and what authenticated there; its address is queued for the DNS", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const spoof = { ip: "198.51.100.1", dkim: "fail", spf: "fail" } as const;
    await world.upload(madeReportXml({ reportId: "1", rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    const second = [{ ip: "192.0.2.1" }, { ip: "192.0.2.1", spf: "fail" as const }, spoof];
    await world.upload(madeReportXml({ reportId: "2", begin: MADE_DAY_S + 86_400, rows: second }));
    expect(world.all("SELECT key, first_day, last_day FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "192.0.2.1 example.com/s1 - -", first_day: DAY + 1, last_day: DAY + 1 },
      { key: "192.0.2.1 example.com/s1 example.com -", first_day: DAY, last_day: DAY + 1 },
      { key: "192.0.2.2 example.com/s1 example.com -", first_day: DAY, last_day: DAY },
      { key: "198.51.100.1 -/- - -", first_day: DAY + 1, last_day: DAY + 1 },
    ]);
    const queued = world.all(
      "SELECT ip, name, due_at_ms, asked_at_ms, network_due_at_ms FROM dmarc_reverse_names ORDER BY ip",
    );
    const waiting = { name: null, due_at_ms: world.clock.nowMs(), asked_at_ms: null, network_due_at_ms: 0 };
    expect(queued).toEqual(["192.0.2.1", "192.0.2.2", "198.51.100.1"].map((ip) => ({ ip, ...waiting })));
    expect(world.rollups()).toEqual(world.recount());
  });

  test("one report has the DNS asked for so many addresses only; the rest has its turn the next day", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const rows = Array.from({ length: QUEUED_PER_REPORT_MAX + 9 }, (_, at) => ({
      ...{ ip: `198.51.${100 + Math.floor(at / 200)}.${at % 200}`, dkim: "fail" as const, spf: "fail" as const },
    }));
    await world.upload(madeReportXml({ reportId: "1", rows }));
    expect(world.count("dmarc_reverse_names")).toBe(QUEUED_PER_REPORT_MAX);
    await world.upload(madeReportXml({ reportId: "2", begin: MADE_DAY_S + 86_400, rows: rows.slice(-9) }));
    expect(world.count("dmarc_reverse_names")).toBe(rows.length);
  });

  test("of a report with more addresses those with the most messages are queued, and known ones cost nothing", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const known = Array.from({ length: QUEUED_PER_REPORT_MAX }, (_, at) => ({ ...spoofOf(at), count: 1_000 }));
    await world.upload(madeReportXml({ reportId: "1", rows: known }));
    const fresh = known.map((row, at) => ({ ...row, ...spoofOf(at + 500), count: at + 1 }));
    const heavy = { ...spoofOf(999), count: 500 };
    const rows = [...fresh, ...known, heavy];
    await world.upload(madeReportXml({ reportId: "2", begin: MADE_DAY_S + 86_400, rows }));
    const ips = new Set(world.all<{ ip: string }>("SELECT ip FROM dmarc_reverse_names").map(({ ip }) => ip));
    expect(ips.size).toBe(2 * QUEUED_PER_REPORT_MAX);
    expect(ips.has(heavy.ip)).toBe(true);
    expect(ips.has(spoofOf(500).ip)).toBe(false);
  });

  test("first and last days are right in whatever order the reports come, in one batch or several", async () => {
    const days = [5, 9, 2, 7];
    const made = (day: number) => madeReportXml({ reportId: String(day), begin: MADE_DAY_S + 86_400 * day });
    const clock = createTestClock((MADE_DAY_S + 10 * 86_400) * 1000);
    const worlds = [newWorld({ clock }), newWorld({ clock })] as const;
    for (const world of worlds) world.enrol("example.com");
    await worlds[0].ingestions.ingestFiles(days.map((day) => worlds[0].incoming(made(day))));
    for (const day of days) await worlds[1].upload(made(day));
    for (const { all } of worlds) {
      expect(all("SELECT first_day, last_day FROM dmarc_sources")).toEqual([{ first_day: DAY + 2, last_day: DAY + 9 }]);
      expect(all("SELECT first_day FROM dmarc_names")).toEqual([{ first_day: DAY + 2 }]);
    }
  });

  test("no name is asked for test keys", async () => {
    const world = newWorld();
    world.enrol("example.com", { mode: "test" });
    expect((await world.upload(madeReportXml(), { mode: "test" })).row.outcome).toBe("stored");
    expect(world.count("dmarc_reverse_names")).toBe(0);
  });

  test("names beyond the ceiling are folded into one", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const rows = Array.from({ length: NAMES_MAX + 5 }, (_, at) => ({ headerFrom: `n${at}.example.com` }));
    await world.upload(
      madeReportXml({ rows: [...rows, { headerFrom: "example.com" }, { headerFrom: "n3.example.com" }] }),
    );
    expect(world.count("dmarc_names")).toBe(NAMES_MAX + 2);
    expect(
      world.all(
        "SELECT name, messages FROM dmarc_daily_names WHERE name IN ('*.example.com', 'n3.example.com') ORDER BY 1",
      ),
    ).toEqual([
      { name: "*.example.com", messages: 5 },
      { name: "n3.example.com", messages: 2 },
    ]);
  });

  test("what is counted does not depend on the order of trusted reports, however many sources they bring", async () => {
    const rows = Array.from({ length: 3_000 }, (_, at) => spoofOf(at));
    const reports = [
      madeReportXml({ reportId: "1", rows }),
      madeReportXml({ reportId: "2", rows: [...rows.slice(-9), {}] }),
      madeReportXml({ reportId: "3", begin: MADE_DAY_S + 86_400, rows: rows.slice(1_000, 1_009) }),
    ] as const;
    const orders = [
      [0, 1, 2],
      [2, 1, 0],
      [1, 2, 0],
    ] as const;
    const counted: unknown[] = [];
    for (const order of orders) {
      const world = newWorld({ clock: createTestClock((MADE_DAY_S + 3 * 86_400) * 1000) });
      world.enrol("example.com");
      for (const at of order) await world.upload(reports[at]);
      expect(world.rollups()).toEqual(world.recount());
      counted.push(
        world.all(
          `SELECT s.key, s.first_day, s.last_day, d.* FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source
            ORDER BY s.key, d.day`,
        ),
      );
      expect(world.count("dmarc_sources")).toBe(3_001);
    }
    const withoutNumbers = counted.map((all) => JSON.stringify(all).replaceAll(/"source":\d+,/g, ""));
    expect(withoutNumbers[1]).toBe(withoutNumbers[0] ?? "");
    expect(withoutNumbers[2]).toBe(withoutNumbers[0] ?? "");
  });

  const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" } as const;
  const newOpenWorld = () => {
    const world = newWorld({ authenticate: async () => verdict("unknown") });
    world.enrol("example.com");
    return world;
  };
  const fill = (world: ReturnType<typeof newWorld>, count: number, key: string): void =>
    void world.db.sqlite.run(
      `WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < ${count})
        INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms) SELECT 1, ${key}, 0, 0, 0 FROM s`,
    );
  const keys = (world: ReturnType<typeof newWorld>) =>
    world
      .all<{ key: string }>("SELECT key FROM dmarc_sources WHERE key NOT LIKE '% filled' ORDER BY key")
      .map(({ key }) => key);

  test("a report that is not trusted adds so many sources, those with the most messages first", async () => {
    const world = newOpenWorld();
    const rows = Array.from({ length: UNTRUSTED_SOURCES_PER_REPORT_MAX + 5 }, (_, at) => ({
      ...spoofOf(at),
      count: at + 1,
    }));
    await world.upload(madeReportMail({ rows }), smtp);
    expect(world.count("dmarc_sources")).toBe(UNTRUSTED_SOURCES_PER_REPORT_MAX + 1);
    const sent = "SELECT s.key, d.messages FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source";
    expect(world.all(`${sent} WHERE d.messages = 6 OR s.key LIKE '*%' ORDER BY s.key`)).toEqual([
      { key: OVERFLOW_REST, messages: 1 + 2 + 3 + 4 + 5 },
      { key: `${spoofOf(5).ip} -/- - -`, messages: 6 },
    ]);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("reports that are not trusted add none to a domain that has many, trusted ones do", async () => {
    const world = newOpenWorld();
    fill(world, SOURCES_MAX * UNPROVEN_PART * UNTRUSTED_PART - 1, "value || ' -/- - filled'");
    const rows = [{ ...spoofOf(0), count: 2 }, spoofOf(1)];
    await world.upload(madeReportMail({ reportId: "1", rows }), smtp);
    const [first, second] = ["10.0.0.0 -/- - -", "10.0.0.1 -/- - -"];
    expect(keys(world)).toEqual([OVERFLOW_REST, first]);
    await world.upload(madeReportXml({ reportId: "2", rows }));
    expect(keys(world)).toEqual([OVERFLOW_REST, first, second]);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("a flood of forged mail leaves room for senders that prove something", async () => {
    const world = newWorld();
    world.enrol("example.com");
    fill(world, SOURCES_MAX * UNPROVEN_PART, "value || ' -/- - filled'");
    await world.upload(madeReportXml({ reportId: "1", rows: [spoofOf(0), { ip: "192.0.2.1" }] }));
    expect(keys(world)).toEqual([OVERFLOW_REST, "192.0.2.1 example.com/s1 example.com -"]);
  });

  test("a source is vouched for as soon as a trusted report names it", async () => {
    const world = newOpenWorld();
    const vouched = () => world.all("SELECT is_vouched v FROM dmarc_sources ORDER BY number").map(({ v }) => v);
    await world.upload(madeReportMail({ reportId: "1", rows: [{ ip: "192.0.2.1" }] }), smtp);
    expect(vouched()).toEqual([0]);
    await world.upload(madeReportXml({ reportId: "2", rows: [{ ip: "192.0.2.1" }, { ip: "192.0.2.2" }] }));
    expect(vouched()).toEqual([1, 1]);
    await world.upload(madeReportMail({ reportId: "3", rows: [{ ip: "192.0.2.1" }] }), smtp);
    expect(vouched()).toEqual([1, 1]);
  });

  test("a domain has so many sources at most; beyond them who signed is told apart, and so many of those", async () => {
    const world = newWorld();
    world.enrol("example.com");
    fill(world, SOURCES_MAX, "value || ' -/- - filled'");
    const signed = (name: string) => ({ dkimResults: [`${name} pass s`], spf: "fail", spfResults: [] }) as const;
    await world.upload(madeReportXml({ reportId: "1", rows: [spoofOf(0), signed("a.example.com")] }));
    expect(keys(world)).toEqual([OVERFLOW_REST, "* a.example.com/s - -"]);
    fill(world, OVERFLOW_SOURCES_MAX - 2, "'* n' || value || '.example.com/- - filled'");
    await world.upload(madeReportXml({ reportId: "2", rows: [signed("b.example.com"), signed("a.example.com")] }));
    expect(keys(world)).toEqual([OVERFLOW_REST, "* a.example.com/s - -"]);
    const sent = "SELECT s.key, sum(d.messages) n FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source";
    expect(world.all(`${sent} GROUP BY s.key ORDER BY s.key`)).toEqual([
      { key: OVERFLOW_REST, n: 2 },
      { key: "* a.example.com/s - -", n: 2 },
    ]);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("while many addresses wait for the DNS no more are put on its list", async () => {
    const world = newWorld();
    world.enrol("example.com");
    world.db.sqlite.run(
      `WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < ${WAITING_ADDRESSES_MAX - 1})
        INSERT INTO dmarc_reverse_names (ip, is_confirmed, due_at_ms) SELECT value, 0, 0 FROM s`,
    );
    await world.upload(madeReportXml({ rows: [0, 1, 2].map(spoofOf) }));
    expect(world.count("dmarc_reverse_names")).toBe(WAITING_ADDRESSES_MAX);
  });

  test("rows without or with a foreign From are counted under no name", async () => {
    const world = newWorld();
    world.enrol("example.com");
    await world.upload(madeReportXml({ rows: [{ headerFrom: "" }, { headerFrom: "notexample.com" }] }));
    expect(world.all("SELECT name, messages FROM dmarc_daily_names")).toEqual([{ name: "", messages: 2 }]);
    expect(world.count("dmarc_names")).toBe(0);
  });
});

describe("a domain that wants authentic reports only", () => {
  const smtp = { via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" } as const;
  const run = async (
    authenticity: "pass" | "fail" | "unknown",
    change: Parameters<ReturnType<typeof newWorld>["incoming"]>[1] = smtp,
  ) => {
    const asked: unknown[] = [];
    const world = newWorld({
      authenticate: async ({ client, helo, mailFrom }) => {
        asked.push({ client, helo, mailFrom });
        return verdict(authenticity);
      },
    });
    world.enrol("example.com", { requireAuthenticReports: true });
    const { row } = await world.upload(madeReportMail(), change);
    return { world, row, asked };
  };

  test("takes one that is authentic", async () => {
    const { world, row, asked } = await run("pass");
    expect(row.outcome).toBe("stored");
    expect(asked).toEqual([{ client: "192.0.2.1", helo: "mx", mailFrom: "a@b.example" }]);
    const [report] = world.all("SELECT authenticity, authenticity_body FROM dmarc_reports");
    expect(report?.authenticity).toBe("pass");
    expect(JSON.parse(String(report?.authenticity_body))).toEqual(verdict("pass"));
  });

  test.each([
    ["fail", "not_authentic"],
    ["unknown", "authenticity_unknown"],
  ] as const)("keeps one that is %s in quarantine", async (authenticity, reason) => {
    const { world, row } = await run(authenticity);
    expect(row).toMatchObject({ outcome: "quarantined", reason });
    expect(world.count("dmarc_reports")).toBe(0);
    expect(world.store.findRaw(row.id)).toBeDefined();
  });

  test("asks nothing about uploads", async () => {
    const { world, row, asked } = await run("fail", { via: "http" });
    expect(row.outcome).toBe("stored");
    expect(asked).toEqual([]);
    expect(world.all("SELECT authenticity FROM dmarc_reports")).toEqual([{ authenticity: "pending" }]);
  });
});
