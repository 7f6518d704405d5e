import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApps, type TestApp } from "../testing/app.ts";
import { startSmtpStub } from "../testing/smtp-stub.ts";

const TOKEN = "0123456789abcdef0123456789abcdef";
const start = createApps();

const startWithMetrics = (options: Parameters<typeof start>[0] = {}): TestApp =>
  start({ ...options, settings: { ...options.settings, METRICS_TOKEN: TOKEN } });

const scrape = async (app: TestApp): Promise<string> => {
  const response = await app.handle(
    new Request("http://localhost/metrics", { headers: { authorization: `Bearer ${TOKEN}` } }),
  );
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe("text/plain; version=0.0.4; charset=utf-8");
  return response.text();
};

describe("GET /metrics", () => {
  test("does not exist without POSTWARDEN_METRICS_TOKEN, whatever is sent", async () => {
    const app = start();
    const { status, body } = await app.request("GET", "/metrics", { key: TOKEN });
    expect([status, body.error]).toEqual([404, "not_found"]);
  });

  const refused = [
    ["no header", {}],
    ["another token", { authorization: `Bearer ${TOKEN.replace("0", "1")}` }],
    ["a part of the token", { authorization: `Bearer ${TOKEN.slice(0, -1)}` }],
    ["the token without a scheme", { authorization: TOKEN }],
    ["Basic authentication", { authorization: `Basic ${btoa(`:${TOKEN}`)}` }],
  ] as const;
  for (const [what, headers] of refused)
    test(`responds with 401 to ${what}`, async () => {
      const answer = await startWithMetrics().request("GET", "/metrics", { headers });
      expect([answer.status, answer.body.error]).toEqual([401, "unauthorized"]);
      expect(answer.headers.get("www-authenticate")).toBe('Bearer realm="postwarden metrics"');
    });

  test("an API key is not a metrics token, and the token is not an API key", async () => {
    const app = startWithMetrics();
    const answer = await app.request("GET", "/metrics", { key: app.newKey({ mode: "live" }) });
    expect(answer.status).toBe(401);
    expect((await app.request("GET", "/v1/account", { key: TOKEN })).status).toBe(401);
  });
});

test("the newest backup is shown once there is one", async () => {
  const directory = mkdtempSync(join(tmpdir(), "postwarden-metrics-"));
  try {
    const app = startWithMetrics({ settings: { BACKUP_DIR: directory }, path: join(directory, "source.db") });
    expect(await scrape(app)).not.toContain("backup_last_timestamp_seconds");
    expect(await scrape(app)).toMatch(/^postwarden_backup_enabled 1$/m);
    expect(await scrape(startWithMetrics())).toMatch(/^postwarden_backup_enabled 0$/m);
    await Bun.write(join(directory, "postwarden-2025-12-31T03-00-00Z.db"), "");
    await app.service.backups?.run();
    const [, seconds] = /^postwarden_backup_last_timestamp_seconds (\d+)$/m.exec(await scrape(app)) ?? [];
    expect(seconds).toBe(String(Date.UTC(2025, 11, 31, 3) / 1_000));
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
});

describe("what happens in the service is counted", () => {
  test("a verification by mode, with its credit, SMTP session and DNS queries, and without the address", async () => {
    const stub = startSmtpStub({ rcpt: () => "550 5.1.1 User unknown" });
    const zone = {
      "customer.example": { MX: [[10, "mx.customer.example"]] },
      "mx.customer.example": { A: ["127.0.0.1"] },
    } as const;
    const app = startWithMetrics({ zone, stub });
    const live = app.newKey({ mode: "live" });
    const done = await app.verify(live, "secret-person@customer.example");
    expect(done.body).toMatchObject({ result: { sub_status: "mailbox_not_found" } });
    await app.verify(app.newKey(), "someone@example.com");
    const text = await scrape(app);
    const single = 'source="single",verdict';
    expect(text).toContain(
      `postwarden_verifications_total{mode="live",${single}="undeliverable",sub_status="mailbox_not_found"} 1\n`,
    );
    expect(text).toContain(`postwarden_verifications_total{mode="test",${single}="deliverable"`);
    expect(text).toContain('postwarden_credits_total{move="hold"} 1\n');
    expect(text).toContain('postwarden_credits_total{move="settle"} 1\n');
    expect(text).toContain('postwarden_smtp_open_seconds_count{result="opened"}');
    expect(text).toContain('postwarden_smtp_replies_total{command="rcpt",class="5xx"}');
    expect(text).toContain('postwarden_dns_queries_total{type="MX",outcome="response",cached="false"} 1\n');
    expect(text).toMatch(/postwarden_credits_balance\{state="available"\} \d+/);
    expect(text).toContain("postwarden_ready 1\n");
    expect(text).not.toMatch(/secret-person|customer|127\.0\.0\.1|main|example/);
    stub.stop();
  });

  test("a syntax error, which is concluded at once, and the addresses of a list", async () => {
    const app = startWithMetrics();
    await app.verify(app.newKey({ mode: "live" }), "no-at-sign");
    app.service.bulk.jobs.start();
    const key = app.newKey();
    const body = { emails: ["a@example.com", "b@example.com", "a@example.com"] };
    const { id } = await app.request("POST", "/v1/bulk-verifications", { key, body });
    await app.advance(10_000);
    expect((await app.request("GET", `/v1/bulk-verifications/${id}`, { key })).body.status).toBe("completed");
    const text = await scrape(app);
    expect(text).toContain(
      'postwarden_verifications_total{mode="live",source="single",verdict="undeliverable",sub_status="invalid_syntax"} 1\n',
    );
    expect(text).toMatch(
      /postwarden_verifications_total\{mode="test",source="list",verdict="\w+",sub_status="\w+"\} 2\n/,
    );
  });

  test("an uploaded report by outcome, and a check of a blocklist target", async () => {
    const app = startWithMetrics();
    const key = app.newKey();
    await app.request("POST", "/v1/dmarc/reports", {
      key,
      body: "<feedback>",
      headers: { "content-type": "application/xml" },
    });
    const target = await app.request("POST", "/v1/blacklist/targets", { key, body: { target: "8.8.8.8" } });
    await app.request("POST", `/v1/blacklist/targets/${target.id}/check`, { key });
    const text = await scrape(app);
    expect(text).toMatch(/postwarden_reports_total\{mode="test",via="http",outcome="rejected",reason="\w+"\} 1\n/);
    expect(text).toMatch(/postwarden_blocklist_checks_total\{mode="test",trigger="manual",status="\w+"\} 1\n/);
  });

  test("requests by status, and a database that cannot be read leaves its gauges out", async () => {
    const app = startWithMetrics();
    await app.request("GET", "/nowhere");
    expect(await scrape(app)).toContain('postwarden_http_requests_total{method="GET",status="404"} 1\n');
    app.db.snapshot = () => {
      throw Object.assign(new Error("disk I/O error"), { code: "SQLITE_IOERR_READ" });
    };
    const text = await scrape(app);
    expect(text).not.toContain("postwarden_verifications_pending");
    expect(text).toContain("postwarden_smtp_connections 0\n");
    expect(app.logged.join()).toContain("metrics without the state of the database");
  });
});
