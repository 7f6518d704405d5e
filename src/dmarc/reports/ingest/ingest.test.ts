import { DAY_MS } from "../../../foundation/base/days.ts";
import { describe, expect, test } from "bun:test";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { SAMPLE_DAY_S, sampleReportMail, sampleReportXml, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { RANK_STEP } from "./rollup.ts";

const newHarness = createIngestHarness();
const DAY = (SAMPLE_DAY_S * 1000) / DAY_MS;

describe("a report", () => {
  test("is stored with all its data", async () => {
    const harness = newHarness();
    const domain = harness.enrol("example.com");
    const rows = [
      { ip: "192.0.2.7", count: 5 },
      {
        ...{
          ip: "2001:db8::1",
          count: 2,
          disposition: "reject",
          dkim: "fail",
          spf: "fail",
          headerFrom: "news.example.com",
        },
        ...{
          dkimResults: ["esp.net pass s9"],
          spfResults: ["bounce.esp.net pass"],
          reasons: ["local_policy arc=pass"],
        },
      },
    ] satisfies SampleRow[];
    const { row, findings } = await harness.upload(sampleReportMail({ org: "Big.Example", reportId: "a1", rows }));
    expect(row).toMatchObject({ status: "done", outcome: "stored", reason: null, via: "http", hasRaw: true });
    const [report] = harness.all("SELECT * FROM dmarc_reports");
    expect(report).toMatchObject({
      ...{ id: findings[0]?.report_id, domain: domain.number, ingestion: row.id, org: "Big.Example" },
      ...{ email: "dmarc@receiver.example", report_id: "a1", begin_ms: SAMPLE_DAY_S * 1000, day: DAY, rows: 2 },
      ...{
        end_ms: (SAMPLE_DAY_S + 86_399) * 1000,
        received_at_ms: harness.clock.nowMs(),
        policy_domain: "example.com",
      },
      ...{ messages: 7, aligned: 5, authenticity: "pending", authenticity_body: null, is_complete: 1 },
    });
    expect(JSON.parse(String(report?.policy))).toMatchObject({
      domain: "example.com",
      p: "none",
      adkim: "r",
      pct: 100,
    });
    expect(JSON.parse(String(report?.body))).toMatchObject({
      version: "1.0",
      errors: [],
      notices: [],
      skippedRows: [],
    });
    const records = harness.all(
      "SELECT r.*, s.key FROM dmarc_records r JOIN dmarc_sources s ON s.number = r.source ORDER BY position",
    );
    expect(records).toMatchObject([
      {
        ...{
          position: 0,
          domain: domain.number,
          day: DAY,
          source_ip: "192.0.2.7",
          count: 5,
          disposition: "none",
          dkim: "pass",
        },
        ...{
          spf: "pass",
          is_aligned: 1,
          is_forwarded: 0,
          header_from: "example.com",
          rank: 5,
          key: "192.0.2.7 example.com/s1 example.com -",
        },
      },
      {
        ...{
          position: 1,
          source_ip: "2001:db8::1",
          count: 2,
          disposition: "reject",
          dkim: "fail",
          spf: "fail",
          is_aligned: 0,
        },
        ...{
          is_forwarded: 1,
          header_from: "news.example.com",
          rank: RANK_STEP + 2,
          key: "2001:db8::1 -/- bounce.esp.net esp.net",
        },
      },
    ]);
    expect(JSON.parse(String(records[1]?.body))).toEqual({
      envelopeFrom: null,
      envelopeTo: null,
      reasons: [{ type: "local_policy", comment: "arc=pass" }],
      dkimResults: [{ domain: "esp.net", selector: "s9", result: "pass", humanResult: null }],
      spfResults: [{ domain: "bounce.esp.net", scope: "mfrom", result: "pass", humanResult: null }],
    });
    expect(findings).toEqual([
      {
        ...{
          outcome: "stored",
          reason: null,
          name: "Big.Example!example.com!1!2.xml.gz",
          report_id: String(report?.id),
        },
        ...{ domain_id: domain.id, domain: "example.com", org_name: "Big.Example", external_report_id: "a1" },
      },
    ]);
    expect(harness.domains.findById(domain.id)).toMatchObject({
      isUnreviewed: true,
      lastReportAtMs: harness.clock.nowMs(),
    });
    expect(harness.rollups()).toEqual(harness.recount());
    expect(harness.all("SELECT name, first_day FROM dmarc_names ORDER BY 1")).toEqual([
      { name: "example.com", first_day: DAY },
      { name: "news.example.com", first_day: DAY },
    ]);
    expect(Buffer.from((await harness.store.raw.find(row.id)) ?? []).toString()).toContain(
      "Subject: Report Domain: example.com",
    );
  });

  test("plans a health check soon after the first report, which names selectors, and leaves it alone afterwards", async () => {
    const harness = newHarness();
    const [domain, other] = [harness.enrol("example.com"), harness.enrol("example.net")];
    const dueAtMs = () =>
      harness.all("SELECT due_at_ms FROM dmarc_health ORDER BY domain").map(({ due_at_ms }) => due_at_ms);
    const nowMs = harness.clock.nowMs();
    for (const { number } of [domain, other])
      harness.all(`INSERT INTO dmarc_health (domain, due_at_ms) VALUES (${number}, ${nowMs + DAY_MS})`);
    await harness.upload(sampleReportXml({ domain: "example.com" }));
    expect(dueAtMs()).toEqual([nowMs + 300_000, nowMs + DAY_MS]);
    harness.all(`UPDATE dmarc_health SET due_at_ms = ${nowMs + DAY_MS}`);
    await harness.upload(sampleReportXml({ domain: "example.com", reportId: "2" }));
    expect(dueAtMs()).toEqual([nowMs + DAY_MS, nowMs + DAY_MS]);
  });

  test("about a domain below enrolled ones counts for the nearest", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const nearer = harness.enrol("mail.example.com");
    const { findings } = await harness.upload(sampleReportXml({ domain: "a.mail.example.com" }));
    expect(findings[0]).toMatchObject({ outcome: "stored", domain_id: nearer.id, domain: "a.mail.example.com" });
  });

  test("from a file, or for a test key, is not authenticated", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    harness.enrol("example.com", { mode: "test" });
    await harness.upload(sampleReportXml());
    await harness.upload(sampleReportMail(), { mode: "test" });
    expect(harness.all("SELECT authenticity FROM dmarc_reports")).toEqual([
      { authenticity: null },
      { authenticity: null },
    ]);
  });

  test("that arrives twice is stored once, however it arrives; with other records that is logged", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const first = await harness.upload(sampleReportMail({ reportId: "r" }));
    const again = await harness.upload(sampleReportXml({ reportId: "r", org: "RECEIVER.example" }));
    expect(again.row).toMatchObject({ outcome: "duplicate", reason: null });
    expect(again.findings[0]?.report_id).toBe(String(first.findings[0]?.report_id));
    expect(harness.logged).toEqual([]);
    const other = await harness.upload(sampleReportXml({ reportId: "r", rows: [{ count: 9 }] }));
    expect(other.row).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expect(harness.logged.join()).toContain("received again with different records");
    expect(harness.count("dmarc_records")).toBe(1);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("with another id and the same rows is stored once; with other rows, another period or few messages both count", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const rows = [{ count: 7 }, { ip: "192.0.2.9", count: 4 }];
    const outcomes: unknown[] = [];
    for (const report of [
      { reportId: "a", rows },
      { reportId: "b", rows },
      { reportId: "c", rows: [{ count: 7 }, { ip: "192.0.2.9", count: 5 }] },
      { reportId: "d", rows, begin: SAMPLE_DAY_S + 3_600 },
      { reportId: "e", rows, org: "another.example" },
      { reportId: "f", rows: [{ count: 1 }, { ip: "192.0.2.9", count: 1 }] },
      { reportId: "g", rows: [{ count: 1 }, { ip: "192.0.2.9", count: 1 }] },
    ]) {
      const { row } = await harness.upload(sampleReportXml(report));
      outcomes.push(`${report.reportId} ${row.outcome} ${row.reason}`);
    }
    expect(outcomes).toEqual([
      "a stored null",
      "b duplicate other_report_id",
      ...["c", "d", "e", "f", "g"].map((id) => `${id} stored null`),
    ]);
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("without an id is identified by its rows", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const outcomes: (string | null)[] = [];
    for (const count of [1, 2, 1]) {
      outcomes.push((await harness.upload(sampleReportXml({ reportId: "", rows: [{ count }] }))).row.outcome);
    }
    expect(outcomes).toEqual(["stored", "stored", "duplicate"]);
  });

  test("without rows is empty, and shows that reports arrive", async () => {
    const harness = newHarness();
    const domain = harness.enrol("example.com");
    const { row, findings } = await harness.upload(sampleReportXml({ rows: [] }));
    expect(row).toMatchObject({ outcome: "empty", reason: "no_records" });
    expect(findings[0]).toMatchObject({ domain_id: domain.id, external_report_id: "1" });
    expect(harness.domains.findById(domain.id)).toMatchObject({
      isUnreviewed: false,
      lastReportAtMs: harness.clock.nowMs(),
    });
  });

  test("about a foreign domain is quarantined until the domain is enrolled and the ingestion retried", async () => {
    const harness = newHarness();
    harness.enrol("example.com", { accountId: "other" });
    harness.enrol("example.com", { mode: "test" });
    const { row, findings } = await harness.upload(sampleReportXml());
    expect(row).toMatchObject({ outcome: "quarantined", reason: "foreign_domain" });
    expect(findings[0]).toMatchObject({ domain: "example.com", domain_id: null, report_id: null });
    expect(harness.count("dmarc_reports")).toBe(0);
    await harness.clock.advance(60_000);
    harness.enrol("example.com", { createdAtMs: harness.clock.nowMs() });
    expect((await harness.ingestions.retry({ accountId: "account", mode: "live" }, row.id)).status).toBe("pending");
    harness.ingester.start();
    await harness.ingester.idle();
    expect(harness.find(row.id)).toMatchObject({ status: "done", outcome: "stored", reason: null });
    expect(harness.rollups()).toEqual(harness.recount());
  });

  test("stays stored when its ingestion is retried; a second copy in it stays a duplicate", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    const xml = sampleReportXml();
    const part = (text: string) => `--b\r\nContent-Type: application/xml; name="r.xml"\r\n\r\n${text}\r\n`;
    const mail = `From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part(xml)}${part(xml)}--b--\r\n`;
    const { row, findings } = await harness.upload(mail);
    expect(findings.map(({ outcome }) => outcome)).toEqual(["stored", "duplicate"]);
    await harness.ingestions.retry({ accountId: "account", mode: "live" }, row.id);
    harness.ingester.start();
    await harness.ingester.idle();
    expect(JSON.parse(harness.find(row.id).findings ?? "")).toEqual(findings);
    expect(harness.find(row.id).outcome).toBe("stored");
    expect(harness.count("dmarc_reports")).toBe(1);
  });
});

describe("other files", () => {
  const tls = (domain: string, id: string | null = "t1") =>
    JSON.stringify({
      "organization-name": "Big",
      "report-id": id,
      policies: [
        {
          policy: { "policy-type": "sts", "policy-domain": domain },
          summary: { "total-successful-session-count": 5, "total-failure-session-count": 2 },
        },
        { policy: { "policy-type": "sts", "policy-domain": "stranger.example" }, summary: {} },
      ],
    });

  test("a TLS report is stored once, with the policies of the domain only", async () => {
    const harness = newHarness();
    const domain = harness.enrol("example.com");
    const { row, findings } = await harness.upload(tls("example.com"));
    expect(row).toMatchObject({ outcome: "stored", reason: "tls_report" });
    const [stored] = harness.all("SELECT * FROM dmarc_tls_reports");
    expect(stored).toMatchObject({
      successful_sessions: 5,
      failed_sessions: 2,
      org: "Big",
      report_id: "t1",
      id: findings[0]?.report_id,
    });
    expect(JSON.parse(String(stored?.body)).policies).toHaveLength(1);
    expect(findings[0]).toMatchObject({ domain_id: domain.id, domain: "example.com", external_report_id: "t1" });
    expect((await harness.upload(tls("example.com"))).row).toMatchObject({
      outcome: "duplicate",
      reason: "tls_report",
    });
    expect((await harness.upload(tls("other.example"))).row).toMatchObject({
      outcome: "quarantined",
      reason: "foreign_domain",
    });
    expect(harness.count("dmarc_tls_reports")).toBe(1);
  });

  test("what is not a report is rejected and kept", async () => {
    const harness = newHarness();
    const { row, findings } = await harness.upload("hello", { name: "a.txt" });
    expect(row).toMatchObject({ outcome: "rejected", reason: "no_report", name: "a.txt", bytes: 5 });
    expect(findings).toHaveLength(1);
    expect(Buffer.from((await harness.store.raw.find(row.id)) ?? []).toString()).toBe("hello");
  });
});
