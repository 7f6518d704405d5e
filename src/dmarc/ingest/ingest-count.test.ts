import { DAY_MS } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { createTestClock } from "../../testing/clock.ts";
import { createIngestWorlds } from "../../testing/ingest-world.ts";
import { MADE_DAY_S, madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import type { AuthenticityFinding } from "../authenticity/authenticity-verdict.ts";
import {
  NAMES_MAX,
  NEW_SOURCES_PER_REPORT_MAX,
  QUEUED_PER_REPORT_MAX,
  SOURCE_ADDRESSES_MAX,
  SOURCES_MAX,
  WAITING_ADDRESSES_MAX,
} from "./ingest-count.ts";
import { OTHER_SOURCES } from "./source-key.ts";

const newWorld = createIngestWorlds();
const DAY = (MADE_DAY_S * 1000) / DAY_MS;

const spoofOf = (at: number) =>
  ({ ip: `10.0.${Math.floor(at / 250)}.${at % 250}`, dkim: "fail", spf: "fail" }) as const;

const verdict = (authenticity: "pass" | "fail" | "unknown"): AuthenticityFinding => ({
  ...{ authenticity, from: "receiver.example", spf: null, dkim: [], dmarc: null, message: "made up" },
});

describe("sources and names", () => {
  test("addresses of a source are the most recent ones, and are put on the list of the DNS", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const ips = Array.from({ length: SOURCE_ADDRESSES_MAX + 4 }, (_, at) => `192.0.2.${at + 1}`);
    await world.upload(madeReportXml({ reportId: "1", rows: ips.map((ip) => ({ ip })) }));
    const kept = () =>
      world.all<{ ip: string }>("SELECT ip FROM dmarc_source_addresses ORDER BY last_day, rowid").map(({ ip }) => ip);
    expect(kept()).toEqual(ips.slice(0, SOURCE_ADDRESSES_MAX));
    expect(world.count("dmarc_reverse_names")).toBe(SOURCE_ADDRESSES_MAX);
    const spoof = { ip: "198.51.100.1", dkim: "fail", spf: "fail" } as const;
    await world.upload(
      madeReportXml({ reportId: "2", begin: MADE_DAY_S + 86_400, rows: [{ ip: "203.0.113.1" }, spoof] }),
    );
    expect(kept()).toHaveLength(SOURCE_ADDRESSES_MAX);
    expect(kept().at(-1)).toBe("203.0.113.1");
    expect(world.all("SELECT key, first_day, last_day FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "dkim:example.com", first_day: DAY, last_day: DAY + 1 },
      { key: "ip:198.51.100.1", first_day: DAY + 1, last_day: DAY + 1 },
    ]);
    expect(
      world.all(
        "SELECT name, is_confirmed, due_at_ms, asked_at_ms, network_due_at_ms FROM dmarc_reverse_names WHERE ip = '198.51.100.1'",
      ),
    ).toEqual([
      { name: null, is_confirmed: 0, due_at_ms: world.clock.nowMs(), asked_at_ms: null, network_due_at_ms: 0 },
    ]);
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

  test("so many new sources of one report are told apart; the others are counted together", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const rows = Array.from({ length: NEW_SOURCES_PER_REPORT_MAX + 5 }, (_, at) => spoofOf(at));
    await world.upload(madeReportXml({ reportId: "1", rows: [...rows, spoofOf(3)] }));
    expect(world.count("dmarc_sources")).toBe(NEW_SOURCES_PER_REPORT_MAX + 1);
    const sent = "SELECT s.key, d.messages FROM dmarc_daily d JOIN dmarc_sources s ON s.number = d.source";
    expect(world.all(`${sent} WHERE s.key = 'other' OR d.messages > 1`)).toEqual([
      { key: "ip:10.0.0.3", messages: 2 },
      { key: OTHER_SOURCES, messages: 5 },
    ]);
    expect(world.rollups()).toEqual(world.recount());
    await world.upload(madeReportXml({ reportId: "2", rows: rows.slice(-5) }));
    expect(world.count("dmarc_sources")).toBe(NEW_SOURCES_PER_REPORT_MAX + 6);
  });

  test("a domain has so many sources at most, whatever comes", async () => {
    const world = newWorld();
    world.enrol("example.com");
    world.db.sqlite.run(
      `WITH RECURSIVE s (value) AS (SELECT 1 UNION ALL SELECT value + 1 FROM s WHERE value < ${SOURCES_MAX - 1})
        INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms) SELECT 1, 'spf:' || value, 0, 0, 0 FROM s`,
    );
    await world.upload(madeReportXml({ rows: [0, 1, 2].map(spoofOf) }));
    expect(world.all("SELECT key FROM dmarc_sources WHERE key NOT LIKE 'spf:%' ORDER BY key")).toEqual([
      { key: "ip:10.0.0.0" },
      { key: OTHER_SOURCES },
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
