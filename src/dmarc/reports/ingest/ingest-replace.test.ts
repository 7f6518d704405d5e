import { describe, expect, test } from "bun:test";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { AuthenticationResults } from "../authentication/mail-authentication.ts";
import {
  SAMPLE_DAY_S,
  type SampleReport,
  type SampleRow,
  sampleReportMail,
  sampleReportXml,
} from "../../../testing/dmarc-reports.ts";
import { createTestClock } from "../../../testing/clock.ts";
import { createIngestHarness, INGEST_OWNER, type IngestHarness } from "../../../testing/ingest-harness.ts";
import { NAMES_MAX } from "./row-counter.ts";

const newHarness = createIngestHarness();

/** As the name of the sender says: `other` is authenticated as somebody else than the reporter. */
const verdictOf = (mailFrom: string | null): AuthenticationResults => {
  const word = mailFrom?.split("@")[0] ?? "";
  const isPass = word === "pass" || word === "other";
  const authenticity = isPass ? "pass" : word === "fail" ? "fail" : "unknown";
  const from = isPass ? (word === "pass" ? "mail.receiver.example" : "attacker.example") : null;
  return { authenticity, from, spf: null, dkim: [], dmarc: null, message: "made up", temporary: word === "later" };
};

const start = (change: Partial<DomainRow> = {}) => {
  const clock = createTestClock((SAMPLE_DAY_S + 2 * 86_400) * 1000);
  const harness = newHarness({ clock, authenticate: async ({ mailFrom }) => verdictOf(mailFrom) });
  harness.enrol("example.com", change);
  return harness;
};

const smtp = (from: string) =>
  ({ via: "smtp", client: "192.0.2.1", helo: "mx", mailFrom: `${from}@b.example` }) as const;
const made = (count: number, change: SampleReport = {}) =>
  sampleReportMail({ reportId: "r", rows: [{ count }], ...change });
const FORGED = 9_000;
const GENUINE = 7;
const messages = (harness: IngestHarness) =>
  harness.all<{ n: number | null }>("SELECT sum(messages) AS n FROM dmarc_daily")[0]?.n;

/** Everything is as if only one report had ever come. */
const expectOne = (harness: IngestHarness, count: number): void => {
  expect(messages(harness)).toBe(count);
  expect(harness.rollups()).toEqual(harness.recount());
  expect(harness.count("dmarc_reports")).toBe(1);
};

/** Messages by whether they rest on trusted reports. */
const counted = (harness: IngestHarness) =>
  Object.fromEntries(
    harness
      .all<{ t: number; n: number }>("SELECT is_trusted t, sum(messages) n FROM dmarc_daily GROUP BY 1")
      .map(({ t, n }) => [t > 0 ? "trusted" : "others", n]),
  );

describe("the trust in a report mail", () => {
  test.each<[string, Record<string, number>, string, string | null]>([
    ["pass", { trusted: GENUINE }, "stored", null],
    ["unknown", { others: GENUINE }, "stored", null],
    ["other", { others: GENUINE }, "stored", null],
    ["fail", {}, "quarantined", "not_authentic"],
    ["later", {}, "quarantined", "authenticity_unknown"],
  ])("%s: %p are counted", async (word, counts, outcome, reason) => {
    const harness = start();
    const { row } = await harness.upload(made(GENUINE), smtp(word));
    expect(counted(harness)).toEqual(counts);
    expect(row).toMatchObject({ outcome, reason });
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test.each<[string, string, string | null]>([
    ["pass", "stored", null],
    ["unknown", "quarantined", "authenticity_unknown"],
    ["other", "quarantined", "other_author"],
    ["fail", "quarantined", "not_authentic"],
  ])("%s, for a domain that accepts authenticated reports only: %s %s", async (word, outcome, reason) => {
    const harness = start({ requireAuthenticReports: true });
    expect((await harness.upload(made(GENUINE), smtp(word))).row).toMatchObject({ outcome, reason });
  });

  test("with a temporary authentication error is authenticated again, and counts as untrusted in the end", async () => {
    const harness = start();
    const id = await harness.queue.add(harness.incoming(made(GENUINE), smtp("later")));
    harness.ingester.start();
    await harness.ingester.idle();
    expect(harness.find(id)).toMatchObject({ outcome: "quarantined", reason: "authenticity_unknown" });
    await harness.clock.advance(13 * 3_600_000);
    await harness.ingester.idle();
    expect(harness.find(id)).toMatchObject({ outcome: "stored", reason: null });
    expect(counted(harness)).toEqual({ others: GENUINE });
    await harness.ingester.stop();
  });

  test("with a temporary authentication error counts at once if its bytes are not kept", async () => {
    const harness = start({ rawRetentionDays: 0 });
    await harness.upload(made(GENUINE), smtp("later"));
    expect(counted(harness)).toEqual({ others: GENUINE });
  });

  test("a TLS report of another author does not block the reporter's", async () => {
    const harness = start();
    const tls = JSON.stringify({
      "organization-name": "receiver.example",
      "report-id": "t",
      policies: [{ policy: { "policy-type": "sts", "policy-domain": "example.com" }, summary: {} }],
    });
    const mail = `From: a@receiver.example\r\nContent-Type: application/tlsrpt+json\r\n\r\n${tls}`;
    const outcomes: (string | null)[] = [];
    for (const word of ["unknown", "pass", "other"])
      outcomes.push((await harness.upload(mail, smtp(word))).row.outcome);
    expect(outcomes).toEqual(["stored", "stored", "duplicate"]);
    expect((await harness.upload(mail, smtp("fail"))).row.reason).toBe("not_authentic");
  });
});

describe("the same report with other rows, by mail", () => {
  test.each(["unknown", "other"])("the first %s: the reporter's own counts, whichever comes first", async (word) => {
    const harness = start();
    const forged = await harness.upload(made(FORGED), smtp(word));
    expect(counted(harness)).toEqual({ others: FORGED });
    const genuine = await harness.upload(made(GENUINE), smtp("pass"));
    expectOne(harness, GENUINE);
    expect(counted(harness)).toEqual({ trusted: GENUINE });
    expect(genuine.row).toMatchObject({ outcome: "stored", reason: null });
    expect(harness.find(forged.row.id)).toMatchObject({ outcome: "quarantined", reason: "replaced" });
    const late = await harness.upload(made(FORGED), smtp(word));
    expect(late.row).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expectOne(harness, GENUINE);
    expect(harness.logged.join()).toContain("received again with different records");
  });

  test("is replaced by what the owner uploads", async () => {
    const harness = start();
    await harness.upload(made(FORGED), smtp("unknown"));
    expect((await harness.upload(sampleReportXml({ reportId: "r", rows: [{ count: 3 }] }))).row.outcome).toBe("stored");
    expectOne(harness, 3);
    expect((await harness.upload(made(GENUINE), smtp("pass"))).row.reason).toBe("duplicate_differs");
    expectOne(harness, 3);
  });

  test("of two other authors is counted for both; of the same author the first is kept", async () => {
    const harness = start();
    await harness.upload(made(1), smtp("unknown"));
    expect((await harness.upload(made(2), smtp("unknown"))).row.reason).toBe("duplicate_differs");
    await harness.upload(made(4), smtp("other"));
    expect(counted(harness)).toEqual({ others: 5 });
    await harness.upload(made(GENUINE), smtp("pass"));
    expectOne(harness, GENUINE);
  });

  test.each([[["unknown", "pass"]], [["other", "unknown", "pass", "fail"]], [["pass", "unknown"]]] as const)(
    "is handled in the same way when all arrive together (%p)",
    async (words) => {
      const harness = start();
      const files = words.map((word) =>
        harness.incoming(made(word === "pass" ? GENUINE : FORGED + word.length), smtp(word)),
      );
      await harness.ingestions.ingestFiles(files);
      expectOne(harness, GENUINE);
    },
  );

  test("subtracts whatever only the forged one reported, and nothing else", async () => {
    const harness = start();
    const spoof = (ip: string, change: SampleRow = {}) => ({ ip, dkim: "fail", spf: "fail", ...change }) as const;
    await harness.upload(
      made(1, { reportId: "other", rows: [spoof("192.0.2.8"), { headerFrom: "real.example.com" }] }),
    );
    const rows = [
      spoof("192.0.2.8"),
      spoof("192.0.2.9", { headerFrom: "made.example.com" }),
      { headerFrom: "real.example.com" },
    ];
    await harness.upload(made(1, { rows, begin: SAMPLE_DAY_S }), smtp("unknown"));
    expect(harness.count("dmarc_sources")).toBe(3);
    await harness.upload(made(GENUINE), smtp("pass"));
    expect(harness.all("SELECT key FROM dmarc_sources ORDER BY key")).toEqual([
      { key: "192.0.2.1 example.com/s1 example.com -" },
      { key: "192.0.2.8 -/- - -" },
    ]);
    expect(harness.all("SELECT name FROM dmarc_names ORDER BY name")).toEqual([
      { name: "example.com" },
      { name: "real.example.com" },
    ]);
    expect(harness.count("dmarc_records")).toBe(3);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("is subtracted from the name for all others, where it was counted, although its own name has room now", async () => {
    const harness = start();
    const others = Array.from({ length: NAMES_MAX }, (_, at) => ({ headerFrom: `n${at}.example.com` }));
    const late = [{ headerFrom: "late.example.com", count: 5 }];
    await harness.upload(made(1, { reportId: "other", rows: others }));
    await harness.upload(made(1, { rows: late }), smtp("unknown"));
    const lateNames = `SELECT name, is_trusted FROM dmarc_daily_names WHERE name NOT LIKE 'n%'`;
    expect(harness.all(lateNames)).toEqual([{ name: "*.example.com", is_trusted: 0 }]);
    harness.all("DELETE FROM dmarc_names WHERE name LIKE 'n1%'");
    await harness.upload(made(1, { rows: late }), smtp("pass"));
    expect(harness.all(lateNames)).toEqual([{ name: "late.example.com", is_trusted: expect.any(Number) }]);
  });

  test("leaves nothing of a large forged one", async () => {
    const harness = start();
    const rows = (from: string) =>
      Array.from({ length: 2_100 }, (_, at) => ({
        ...{ ip: `198.51.${at % 200}.${at % 50}`, headerFrom: `${from}${at % 20}.example.com` },
      }));
    await harness.upload(made(1, { rows: [...rows("a"), ...rows("b")] }), smtp("unknown"));
    await harness.upload(made(1, { rows: rows("b") }), smtp("pass"));
    expectOne(harness, 2_100);
    expect(harness.count("dmarc_records")).toBe(2_100);
    expect(harness.count("dmarc_names")).toBe(20);
  });

  test("that was replaced can be retried and stays replaced", async () => {
    const harness = start();
    const forged = await harness.upload(made(FORGED), smtp("unknown"));
    await harness.upload(made(GENUINE), smtp("pass"));
    expect(await harness.ingestions.readAgain(INGEST_OWNER, [forged.row.id])).toBe(1);
    expect(harness.find(forged.row.id)).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expectOne(harness, GENUINE);
  });
});

describe("mail to a revoked address", () => {
  test("does not count for a domain that was enrolled after it arrived", async () => {
    const harness = start();
    const old = harness.enrol("again.example");
    const incoming = harness.incoming(sampleReportMail({ domain: "again.example" }), {
      ...smtp("pass"),
      domain: old.number,
    });
    const id = await harness.queue.add(incoming);
    harness.db.transact((tx) => harness.domains.markDeleted(tx, old.number, harness.clock.nowMs()));
    await harness.clock.advance(1_000);
    harness.enrol("again.example", { createdAtMs: harness.clock.nowMs() });
    harness.ingester.start();
    await harness.ingester.idle();
    expect(harness.find(id)).toMatchObject({ outcome: "quarantined", reason: "foreign_domain" });
    expect(harness.count("dmarc_reports")).toBe(0);
    await harness.ingester.stop();
  });

  test("counts for a domain that was enrolled before it arrived; mail to a valid address also for one enrolled later", async () => {
    const harness = start();
    const old = harness.enrol("gone.example");
    const to = { ...smtp("pass"), domain: old.number };
    const later = await harness.upload(sampleReportMail({ domain: "later.example" }), to);
    await harness.clock.advance(1_000);
    harness.enrol("later.example", { createdAtMs: harness.clock.nowMs() });
    await harness.ingestions.readAgain(INGEST_OWNER, [later.row.id]);
    expect(harness.find(later.row.id).outcome).toBe("stored");
    harness.db.transact((tx) => harness.domains.markDeleted(tx, old.number, harness.clock.nowMs()));
    expect((await harness.upload(sampleReportMail(), to)).row.outcome).toBe("stored");
  });
});

test("a report that an earlier version counted as trusted is subtracted from the trusted counts", async () => {
  const harness = start();
  await harness.upload(made(FORGED), smtp("unknown"));
  for (const table of ["dmarc_daily", "dmarc_daily_names", "dmarc_daily_reporters"])
    harness.db.sqlite.run(`UPDATE ${table} SET is_trusted = 1`);
  harness.db.sqlite.run("UPDATE dmarc_daily_reporters SET author = ''");
  await harness.upload(made(GENUINE), smtp("pass"));
  expectOne(harness, GENUINE);
  expect(counted(harness)).toEqual({ trusted: GENUINE });
});
