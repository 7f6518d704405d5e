import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { createApps } from "../../../testing/app.ts";
import { createIngestHarness } from "../../../testing/ingest-harness.ts";
import { failureReportsSchema } from "../../insight/queries/query-routes.ts";
import { failureReportDetailSchema } from "../../insight/queries/report-reader.ts";
import { findingViews } from "./ingestion-schemas.ts";
import { FAILURE_REPORTS_PER_DAY_MAX } from "./ingest-write.ts";

const newHarness = createIngestHarness();
const start = createApps();

const mailOf = ({ domain = "example.com", to = "bob@b.example" } = {}): string =>
  [
    "From: reports@reporter.example",
    "Subject: DMARC failure report",
    "Content-Type: multipart/report; report-type=feedback-report; boundary=o",
    "",
    "--o",
    "Content-Type: message/feedback-report",
    "",
    "Feedback-Type: auth-failure",
    "Auth-Failure: dmarc",
    `Reported-Domain: ${domain}`,
    "Source-IP: 192.0.2.66",
    `Original-Rcpt-To: <${to}>`,
    "--o",
    "Content-Type: message/rfc822",
    "",
    `From: Ann <ann@${domain}>`,
    "Subject: Your bill",
    "",
    "Dear Bob, your secret is 42.",
    "--o--",
    "",
  ].join("\r\n");

const STORING = { storeFailureReports: true };

describe("a failure report", () => {
  test("is quarantined and not stored, unless its domain stores failure reports", async () => {
    const harness = newHarness();
    harness.enrol("example.com");
    for (const domain of ["example.com", "stranger.example"]) {
      const { row } = await harness.upload(mailOf({ domain }));
      expect(row).toMatchObject({ outcome: "quarantined", reason: "failure_report" });
    }
    expect(harness.count("dmarc_failure_reports")).toBe(0);
  });

  test.each([
    [false, "auth-failure", "A failure report about a single message; it is not counted. With `store_failure_reports`"],
    [true, "auth-failure", "The failure report about a single message is stored. It is not counted."],
    [false, "abuse", "A complaint of a recipient about a message (`Feedback-Type: abuse`), not a DMARC report."],
    [true, "abuse", "It is stored with the failure reports of the domain."],
  ])("says what it is where reports are stored: %p, of type %s", async (storeFailureReports, type, text) => {
    const harness = newHarness();
    harness.enrol("example.com", { storeFailureReports });
    const { row } = await harness.upload(mailOf().replace("auth-failure", type));
    const [view] = findingViews(row);
    expect(view?.message).toContain(text);
    expect(view).not.toHaveProperty("complaint");
  });

  test("is stored once, without personal data, for its domain or one below it", async () => {
    const harness = newHarness();
    const domain = harness.enrol("example.com", STORING);
    const { row, findings } = await harness.upload(mailOf({ domain: "news.example.com" }));
    expect(row).toMatchObject({ outcome: "stored", reason: "failure_report" });
    const [stored] = harness.all("SELECT * FROM dmarc_failure_reports");
    expect(stored).toMatchObject({
      id: findings[0]?.report_id,
      domain: domain.number,
      ingestion: row.id,
      is_redacted: 1,
    });
    expect(String(stored?.body)).not.toMatch(/ann|bob|bill|secret/i);
    const again = await harness.upload(mailOf({ domain: "news.example.com" }));
    expect(again.row.outcome).toBe("duplicate");
    expect(again.findings[0]?.report_id).toBe(findings[0]?.report_id ?? "");
    expect(harness.count("dmarc_failure_reports")).toBe(1);
  });

  test("is stored with its header if the domain wants it complete, and never with its body", async () => {
    const harness = newHarness();
    harness.enrol("example.com", { ...STORING, failureReportsRedact: false });
    await harness.upload(mailOf());
    const [stored] = harness.all("SELECT * FROM dmarc_failure_reports");
    expect(stored).toMatchObject({ is_redacted: 0 });
    expect(String(stored?.body)).toContain("Ann <ann@example.com>");
    expect(String(stored?.body)).toContain("Your bill");
    expect(String(stored?.body)).not.toContain("secret");
  });

  test("that is retried stays the same stored report", async () => {
    const harness = newHarness();
    harness.enrol("example.com", STORING);
    const { row } = await harness.upload(mailOf());
    await harness.ingestions.readAgain({ accountId: row.accountId, mode: "live" }, [row.id], () => undefined);
    expect(harness.find(row.id).outcome).toBe("stored");
    expect(harness.count("dmarc_failure_reports")).toBe(1);
  });

  test("is stored up to a daily limit", async () => {
    const harness = newHarness();
    const { number } = harness.enrol("example.com", STORING);
    for (let n = 0; n < FAILURE_REPORTS_PER_DAY_MAX; n++) {
      harness.db.sqlite.run("INSERT INTO dmarc_failure_reports VALUES (?, ?, '', ?, 1, '{}', ?)", [
        ...[newId(), number, harness.clock.nowMs(), String(n)],
      ]);
    }
    const { row } = await harness.upload(mailOf());
    expect(row).toMatchObject({ outcome: "quarantined", reason: "failure_reports_limit" });
    await harness.clock.advance(DAY_MS);
    expect((await harness.upload(mailOf())).row.outcome).toBe("stored");
  });

  test.each(["fail", "pass"] as const)("that came by mail counts by its authentication: %s", async (authenticity) => {
    const message = "by the test";
    const authenticate = async () => ({
      ...{ authenticity, from: "reporter.example", spf: null, dkim: [], dmarc: null, message, temporary: false },
    });
    const harness = newHarness({ authenticate });
    const domain = harness.enrol("example.com", { ...STORING, requireAuthenticReports: true });
    const via = {
      via: "smtp",
      domain: domain.number,
      client: "192.0.2.1",
      mailFrom: "reports@reporter.example",
    } as const;
    const { row } = await harness.upload(mailOf(), via);
    expect([row.outcome, row.reason]).toEqual(
      authenticity === "pass" ? ["stored", "failure_report"] : ["quarantined", "not_authentic"],
    );
  });
});

describe("through the interface", () => {
  const startFilled = async () => {
    const app = start();
    const key = app.newKey();
    const call = (method: string, path: string, body?: unknown) =>
      app.request(method, path, { key, ...(body === undefined ? {} : { body }) });
    const { body } = await call("POST", "/v1/dmarc/domains", { domain: "shop.example" });
    const path = `/v1/dmarc/domains/${(body.domain as { id: string }).id}`;
    await call("PATCH", path, { store_failure_reports: true });
    for (const to of ["a@b.example", "a@c.example"]) {
      await call("POST", "/v1/dmarc/reports", mailOf({ domain: "shop.example", to }));
    }
    return { app, call, path };
  };

  test("failure reports are listed by pages, shown, and removed with the bytes", async () => {
    const { app, call, path } = await startFilled();
    const first = failureReportsSchema.parse((await call("GET", `${path}/failure-reports?limit=1`)).body);
    expect(first.failure_reports).toMatchObject([{ original_rcpt_to: "redacted@c.example", redacted: true }]);
    const rest = await call("GET", `${path}/failure-reports?cursor=${first.next_cursor}`);
    const { failure_reports, next_cursor } = failureReportsSchema.parse(rest.body);
    expect([failure_reports.map(({ original_rcpt_to }) => original_rcpt_to), next_cursor]).toEqual([
      ["redacted@b.example"],
      null,
    ]);
    const detail = await call("GET", `${path}/failure-reports/${failure_reports[0]?.id}`);
    expect(failureReportDetailSchema.parse(detail.body).headers).toEqual([
      { name: "From", value: "redacted@shop.example" },
    ]);
    await app.clock.advance(91 * DAY_MS);
    await app.service.dmarc.jobs.expireReports();
    expect((await call("GET", `${path}/failure-reports`)).body).toMatchObject({ failure_reports: [] });
  });

  test("they are visible to their owner and their domain only", async () => {
    const { app, call, path } = await startFilled();
    const { body } = await call("GET", `${path}/failure-reports`);
    const [one] = failureReportsSchema.parse(body).failure_reports;
    const stranger = app.newKey({ account: "stranger" });
    for (const at of ["", `/${one?.id}`]) {
      expect((await app.request("GET", `${path}/failure-reports${at}`, { key: stranger })).status).toBe(404);
    }
    const { body: other } = await call("POST", "/v1/dmarc/domains", { domain: "other.example" });
    const { id } = other.domain as { id: string };
    expect((await call("GET", `/v1/dmarc/domains/${id}/failure-reports/${one?.id}`)).status).toBe(404);
    expect((await call("GET", `${path}/failure-reports/x`)).status).toBe(404);
    expect((await call("GET", `${path}/failure-reports?status=x`)).status).toBe(400);
  });

  test("they are purged with their domain", async () => {
    const { app, call, path } = await startFilled();
    await call("DELETE", path);
    await app.service.dmarc.jobs.purgeDeletedDomains();
    expect(app.db.sqlite.query("SELECT count(*) n FROM dmarc_failure_reports").get()).toEqual({ n: 0 });
  });
});
