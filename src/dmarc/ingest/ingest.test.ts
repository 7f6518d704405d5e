import { DAY_MS } from "../../base/days.ts";
import { describe, expect, test } from "bun:test";
import { createIngestWorlds } from "../../testing/ingest-world.ts";
import { MADE_DAY_S, type MadeRow, madeReportMail, madeReportXml } from "../../testing/dmarc-reports.ts";
import { RANK_STEP } from "./ingest-row.ts";

const newWorld = createIngestWorlds();
const DAY = (MADE_DAY_S * 1000) / DAY_MS;

describe("a report", () => {
  test("is stored with everything that it says", async () => {
    const world = newWorld();
    const domain = world.enrol("example.com");
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
    ] satisfies MadeRow[];
    const { row, findings } = await world.upload(madeReportMail({ org: "Big.Example", reportId: "a1", rows }));
    expect(row).toMatchObject({ status: "done", outcome: "stored", reason: null, via: "http", hasRaw: true });
    const [report] = world.all("SELECT * FROM dmarc_reports");
    expect(report).toMatchObject({
      ...{ id: findings[0]?.report_id, domain: domain.number, ingestion: row.id, org: "Big.Example" },
      ...{ email: "dmarc@receiver.example", report_id: "a1", begin_ms: MADE_DAY_S * 1000, day: DAY, rows: 2 },
      ...{ end_ms: (MADE_DAY_S + 86_399) * 1000, received_at_ms: world.clock.nowMs(), policy_domain: "example.com" },
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
    const records = world.all(
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
    expect(world.domains.findById(domain.id)).toMatchObject({
      isUnreviewed: true,
      lastReportAtMs: world.clock.nowMs(),
    });
    expect(world.rollups()).toEqual(world.recount());
    expect(world.all("SELECT name, first_day FROM dmarc_names ORDER BY 1")).toEqual([
      { name: "example.com", first_day: DAY },
      { name: "news.example.com", first_day: DAY },
    ]);
    expect(Buffer.from(world.store.findRaw(row.id) ?? []).toString()).toContain("Subject: Report Domain: example.com");
  });

  test("about a domain below the enrolled one counts for the nearest", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const nearer = world.enrol("mail.example.com");
    const { findings } = await world.upload(madeReportXml({ domain: "a.mail.example.com" }));
    expect(findings[0]).toMatchObject({ outcome: "stored", domain_id: nearer.id, domain: "a.mail.example.com" });
  });

  test("of a file is not judged for authenticity, and of a test key neither", async () => {
    const world = newWorld();
    world.enrol("example.com");
    world.enrol("example.com", { mode: "test" });
    await world.upload(madeReportXml());
    await world.upload(madeReportMail(), { mode: "test" });
    expect(world.all("SELECT authenticity FROM dmarc_reports")).toEqual([
      { authenticity: null },
      { authenticity: null },
    ]);
  });

  test("that comes twice is kept once, whoever brings it; with other rows that is logged", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const first = await world.upload(madeReportMail({ reportId: "r" }));
    const again = await world.upload(madeReportXml({ reportId: "r", org: "RECEIVER.example" }));
    expect(again.row).toMatchObject({ outcome: "duplicate", reason: null });
    expect(again.findings[0]?.report_id).toBe(String(first.findings[0]?.report_id));
    expect(world.logged).toEqual([]);
    const other = await world.upload(madeReportXml({ reportId: "r", rows: [{ count: 9 }] }));
    expect(other.row).toMatchObject({ outcome: "duplicate", reason: "duplicate_differs" });
    expect(world.logged.join()).toContain("came again with other rows");
    expect(world.count("dmarc_records")).toBe(1);
    expect(world.rollups()).toEqual(world.recount());
  });

  test("without an id is known by its rows", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const outcomes: (string | null)[] = [];
    for (const count of [1, 2, 1]) {
      outcomes.push((await world.upload(madeReportXml({ reportId: "", rows: [{ count }] }))).row.outcome);
    }
    expect(outcomes).toEqual(["stored", "stored", "duplicate"]);
  });

  test("without rows is empty, and tells that reports arrive", async () => {
    const world = newWorld();
    const domain = world.enrol("example.com");
    const { row, findings } = await world.upload(madeReportXml({ rows: [] }));
    expect(row).toMatchObject({ outcome: "empty", reason: "no_records" });
    expect(findings[0]).toMatchObject({ domain_id: domain.id, external_report_id: "1" });
    expect(world.domains.findById(domain.id)).toMatchObject({
      isUnreviewed: false,
      lastReportAtMs: world.clock.nowMs(),
    });
  });

  test("of a foreign domain waits in quarantine until the domain is enrolled and it is read again", async () => {
    const world = newWorld();
    world.enrol("example.com", { accountId: "other" });
    world.enrol("example.com", { mode: "test" });
    const { row, findings } = await world.upload(madeReportXml());
    expect(row).toMatchObject({ outcome: "quarantined", reason: "foreign_domain" });
    expect(findings[0]).toMatchObject({ domain: "example.com", domain_id: null, report_id: null });
    expect(world.count("dmarc_reports")).toBe(0);
    await world.clock.advance(60_000);
    world.enrol("example.com", { createdAtMs: world.clock.nowMs() });
    expect((await world.ingestions.retry({ accountId: "account", mode: "live" }, row.id)).status).toBe("pending");
    world.ingester.start();
    await world.ingester.idle();
    expect(world.find(row.id)).toMatchObject({ status: "done", outcome: "stored", reason: null });
    expect(world.rollups()).toEqual(world.recount());
  });

  test("that is read again by the ingestion that brought it stays stored; a twin beside it stays a duplicate", async () => {
    const world = newWorld();
    world.enrol("example.com");
    const xml = madeReportXml();
    const part = (text: string) => `--b\r\nContent-Type: application/xml; name="r.xml"\r\n\r\n${text}\r\n`;
    const mail = `From: a@b.example\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n${part(xml)}${part(xml)}--b--\r\n`;
    const { row, findings } = await world.upload(mail);
    expect(findings.map(({ outcome }) => outcome)).toEqual(["stored", "duplicate"]);
    await world.ingestions.retry({ accountId: "account", mode: "live" }, row.id);
    world.ingester.start();
    await world.ingester.idle();
    expect(JSON.parse(world.find(row.id).findings ?? "")).toEqual(findings);
    expect(world.find(row.id).outcome).toBe("stored");
    expect(world.count("dmarc_reports")).toBe(1);
  });
});

describe("other things that come in", () => {
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

  test("a TLS report is stored once, with the policies of the domain alone", async () => {
    const world = newWorld();
    const domain = world.enrol("example.com");
    const { row, findings } = await world.upload(tls("example.com"));
    expect(row).toMatchObject({ outcome: "stored", reason: "tls_report" });
    const [stored] = world.all("SELECT * FROM dmarc_tls_reports");
    expect(stored).toMatchObject({
      successful_sessions: 5,
      failed_sessions: 2,
      org: "Big",
      report_id: "t1",
      id: findings[0]?.report_id,
    });
    expect(JSON.parse(String(stored?.body)).policies).toHaveLength(1);
    expect(findings[0]).toMatchObject({ domain_id: domain.id, domain: "example.com", external_report_id: "t1" });
    expect((await world.upload(tls("example.com"))).row).toMatchObject({ outcome: "duplicate", reason: "tls_report" });
    expect((await world.upload(tls("other.example"))).row).toMatchObject({
      outcome: "quarantined",
      reason: "foreign_domain",
    });
    expect(world.count("dmarc_tls_reports")).toBe(1);
  });

  test("what is no report is rejected, and kept", async () => {
    const world = newWorld();
    const { row, findings } = await world.upload("hello", { name: "a.txt" });
    expect(row).toMatchObject({ outcome: "rejected", reason: "no_report", name: "a.txt", bytes: 5 });
    expect(findings).toHaveLength(1);
    expect(Buffer.from(world.store.findRaw(row.id) ?? []).toString()).toBe("hello");
  });
});
