import { beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { DAY_MS } from "../foundation/base/days.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { sampleReportXml } from "../testing/dmarc-reports.ts";

const { dataDir, run: runCommand } = createCommandLine();
// No name server responds there.
const settings = { REPORT_HOST: "reports.example.net", DNS_SERVERS: "127.0.0.1:9" };
const run = (args: readonly string[]) => runCommand(args, { settings });
const TODAY_S = Math.floor(Date.now() / DAY_MS) * 86_400;
const TLS_REPORT = {
  "organization-name": "Sender",
  "date-range": { "start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z" },
  "report-id": "1",
  policies: [
    {
      policy: { "policy-type": "sts", "policy-domain": "example.com" },
      summary: { "total-successful-session-count": 40, "total-failure-session-count": 2 },
      "failure-details": [{ "result-type": "certificate-expired", "failed-session-count": 2 }],
    },
  ],
};

beforeAll(async () => {
  await run(["migrate"]);
  await run(["accounts", "create", "acme"]);
  await run(["dmarc", "domains", "add", "example.com"]);
  await run(["dmarc", "domains", "update", "example.com", "--tag", "client-a"]);
  const rows = [{ ip: "192.0.2.1", count: 7, dkim: "fail", spf: "fail" } as const, { ip: "192.0.2.2", count: 90 }];
  const reports = join(dataDir, "report.xml");
  await Bun.write(reports, sampleReportXml({ domain: "example.com", begin: TODAY_S - 2 * 86_400, rows }));
  await Bun.write(join(dataDir, "tls.json"), JSON.stringify(TLS_REPORT));
  for (const file of [reports, join(dataDir, "tls.json")]) await run(["dmarc", "import", file]);
});

describe("links to a report", () => {
  test("are created with an end, listed without their secret, and revoked", async () => {
    const until = new Date(Date.now() + DAY_MS).toISOString();
    const { out } = await run(["dmarc", "links", "create", "example.com", "--until", until, "--note", "the board"]);
    expect(out).toMatch(/^http:\/\/127\.0\.0\.1:8080\/r\/[\w-]{20,}$/);
    const { json } = await run(["dmarc", "links", "list", "example.com", "--json"]);
    const [link] = json.report_links as Array<{ id: string }>;
    expect(link).toMatchObject({ note: "the board", expires_at: until, revoked_at: null });
    expect(JSON.stringify(json)).not.toContain(out.split("/r/")[1] ?? "");
    expect((await run(["dmarc", "links", "revoke", "example.com", link?.id ?? ""])).out).toContain("revoked");
    expect((await run(["dmarc", "links", "list", "example.com"])).out).toContain("revoked");
    const late = await run(["dmarc", "links", "create", "example.com", "--until", "2001-01-01T00:00:00Z"]);
    expect([late.status, late.err]).toEqual([1, expect.stringContaining("Must be in the future")]);
  });
});

describe("what reports say", () => {
  test("TLS reports are listed with their failures", async () => {
    const { json } = await run(["dmarc", "tls-reports", "example.com", "--json"]);
    expect(json.tls_reports).toMatchObject([{ org_name: "Sender", successful_sessions: 40, failed_sessions: 2 }]);
    expect((await run(["dmarc", "tls-reports", "example.com"])).out).toContain("certificate-expired");
    const none = await run([
      "dmarc",
      "tls-reports",
      "example.com",
      "--from",
      "2026-02-01",
      "--to",
      "2026-02-02",
      "--json",
    ]);
    expect(none.json).toEqual({ tls_reports: [] });
  });

  test("the failing addresses of a source are listed, and written as CSV", async () => {
    const { json } = await run(["dmarc", "sources", "example.com", "--json"]);
    const failing = (json.sources as Array<{ key: string; failing: number }>).find((source) => source.failing > 0);
    const args = ["dmarc", "addresses", "example.com", failing?.key ?? "", "--failing"];
    expect((await run([...args, "--json"])).json.addresses).toMatchObject([{ ip: "192.0.2.1", failing: 7 }]);
    expect((await run([...args, "--csv"])).out).toMatch(/^ip,reverse_name,.*\n192\.0\.2\.1,/);
    expect((await run(["dmarc", "addresses", "example.com", "org:nobody.example"])).err).toContain("No report names");
  });

  test("tags have their figures, and no digest without a relay", async () => {
    expect((await run(["dmarc", "tags", "list", "--json"])).json).toMatchObject({
      tags: [{ tag: "client-a", domains: 1 }],
    });
    expect((await run(["dmarc", "tags", "list"])).out).toContain("client-a");
    const digest = await run(["dmarc", "tags", "digest", "client-a", "--period", "weekly"]);
    expect([digest.status, digest.err]).toEqual([1, expect.stringContaining("does not send mail")]);
    expect((await run(["dmarc", "tags", "digest", "client-a"])).err).toContain("at least one setting");
  });
});
