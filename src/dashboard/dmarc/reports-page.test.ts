import { describe, expect, test } from "bun:test";
import { SAMPLE_DAY_S, sampleReportXml, type SampleReport } from "../../testing/dmarc-reports.ts";
import { createDmarcPages } from "../../testing/dmarc-pages.ts";

const start = createDmarcPages();
const DAY_S = 86_400;
const DOMAIN = "acme-shop.com";

const startFilled = async (reports: readonly SampleReport[]) => {
  const pages = await start();
  const domain = await pages.enrol(DOMAIN);
  await pages.upload(
    reports.map((report, n) => [`${n}.xml`, sampleReportXml({ domain: DOMAIN, reportId: `${n}`, ...report })] as const),
  );
  const path = `/dmarc/${domain.id}/reports`;
  const pathOfFirst = async () =>
    /href="([^"]+\/reports\/[0-9a-f-]{36})"/.exec((await pages.get(path)).html)?.[1] ?? "";
  return { ...pages, domain, path, pathOfFirst };
};

describe("the list of reports", () => {
  test("shows who reported, how much passed, and filters", async () => {
    const { get, path } = await startFilled([
      { org: "google.com", rows: [{ count: 30 }, { count: 10, dkim: "fail", spf: "fail" }] },
      { org: "Yahoo", begin: SAMPLE_DAY_S - DAY_S },
    ]);
    const { text } = await get(path);
    expect(text).toContain("1 Jan google.com 40 75 % 2 Uploaded");
    expect(text).toContain("31 Dec 2025 Yahoo 1 100 %");
    expect((await get(`${path}?reporter=GOOGLE.com`)).text).not.toContain("Yahoo");
    expect((await get(`${path}?from=2026-01-01&to=2026-01-01`)).text).not.toContain("Yahoo");
    expect((await get(`${path}?trusted=false`)).text).toContain("No report matches");
    expect((await get(`${path}?authenticity=pass`)).text).toContain("No report matches");
  });

  test.each([
    "?from=x",
    "?from=2026-02-01&to=2026-01-01",
    "?from=2999-01-01",
    "?from=1970-01-01&to=2026-01-01",
    "?cursor=x",
    "?trusted=x",
  ])("ignores what is no filter: %s", async (query) => {
    const { get, path } = await startFilled([{ org: "google.com" }]);
    const { status, text } = await get(`${path}${query}`);
    expect([status, text.includes("google.com 1 100 %")]).toEqual([200, true]);
    expect((await get(`${path}.csv${query}`)).status).toBe(200);
  });

  test("is taken away as CSV, with its filters, formulas defused", async () => {
    const { get, path } = await startFilled([{ org: "=cmd()" }, { org: "Yahoo" }]);
    const { html, headers } = await get(`${path}.csv?reporter=%3Dcmd()`);
    expect(headers.get("content-disposition")).toContain("reports-acme-shop.com-");
    const [columns, ...rows] = html.trim().split("\r\n");
    expect(columns).toStartWith("id,date,begin,end,received_at,reporter,");
    expect(rows).toHaveLength(1);
    expect(rows[0]).toContain("'=cmd()");
  });

  test("has pages", async () => {
    const { get, path } = await startFilled(Array.from({ length: 60 }, (_, n) => ({ org: `r${n}` })));
    const first = await get(path);
    expect(first.text).not.toContain(" r9 ");
    const next = /href="([^"]+cursor=[^"]+)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await get(next)).text).toContain(" r9 ");
  });

  test("says when there are reports, but none in its days", async () => {
    const { get, path } = await startFilled([{ begin: SAMPLE_DAY_S - 90 * DAY_S }]);
    expect((await get(path)).text).toContain("No report matches");
  });

  test("teaches when it is empty", async () => {
    const { get, path } = await startFilled([]);
    expect((await get(path)).text).toContain("beginning 24 to 48 hours after the record is published");
  });
});

describe("a report", () => {
  test("says what it found, with its records in words", async () => {
    const { get, pathOfFirst, domain } = await startFilled([
      {
        org: "google.com",
        rows: [
          { ip: "192.0.2.1", count: 5 },
          {
            ...{ ip: "198.51.100.7", count: 3, disposition: "quarantine", dkim: "fail", spf: "fail" },
            ...{
              dkimResults: ["x.example fail s9"],
              spfResults: ["y.example softfail"],
              reasons: ["mailing_list a list"],
            },
          },
        ],
      },
    ]);
    const { text, html } = await get(await pathOfFirst());
    expect(text).toContain("3 of 8 messages in the name of acme-shop.com failed DMARC 62.5 % passed");
    expect(text).toContain("p=none; sp=none; adkim=r; aspf=r; pct=100");
    expect(text).toContain("SPF softfail y.example DKIM fail x.example (s9) aligned: SPF fail, DKIM fail");
    expect(text).toContain("Quarantined because of a mailing list (a list)");
    expect(text).toContain("It was uploaded or imported by you");
    expect(html).toContain(`href="/dmarc/${domain.id}/sources/`);
    expect(text.indexOf("198.51.100.7")).toBeLessThan(text.indexOf("192.0.2.1"));
  });

  test("has pages of records", async () => {
    const rows = Array.from({ length: 80 }, (_, n) => ({ ip: `192.0.2.${n + 1}`, count: 80 - n }));
    const { get, pathOfFirst } = await startFilled([{ rows }]);
    const first = await get(await pathOfFirst());
    expect(first.text).not.toContain("192.0.2.80");
    const next = /href="([^"]+cursor=[^"]+)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await get(next)).text).toContain("192.0.2.80");
  });

  test("gives its records as CSV", async () => {
    const { get, pathOfFirst } = await startFilled([
      { org: "google.com", rows: [{ count: 5 }, { count: 7, dkim: "fail", spf: "fail" }] },
    ]);
    const { html, headers } = await get(`${await pathOfFirst()}/records.csv`);
    expect(headers.get("content-disposition")).toContain("report-acme-shop.com-2026-01-01-2026-01-01.csv");
    const [columns, ...rows] = html.trim().split("\r\n");
    expect(columns).toStartWith("date,source_ip,");
    expect(rows.map((row) => /,(\d+),(true|false),/.exec(row)?.slice(1))).toEqual([
      ["7", "false"],
      ["5", "true"],
    ]);
  });

  test("about several days shows its period in the list", async () => {
    const { get, path } = await startFilled([{ begin: SAMPLE_DAY_S - 4 * DAY_S, end: SAMPLE_DAY_S - DAY_S }]);
    expect((await get(path)).text).toContain("29 Dec 2025 28 Dec 2025 to 31 Dec 2025 receiver.example");
  });

  test("can be downloaded as it came, while it is kept", async () => {
    const { get, pathOfFirst, app } = await startFilled([{ org: "google.com" }]);
    const path = await pathOfFirst();
    const raw = await get(`${path}/raw`);
    expect(raw.html).toContain("<org_name>google.com</org_name>");
    expect(raw.headers.get("content-disposition")).toContain('filename="0.xml"');
    expect(raw.headers.get("x-content-type-options")).toBe("nosniff");
    app.db.sqlite.run("DELETE FROM dmarc_raw");
    expect((await get(path)).text).not.toContain("Original file");
    expect((await get(`${path}/raw`)).status).toBe(404);
  });

  test("explains the authentication of its mail", async () => {
    const { get, pathOfFirst, app } = await startFilled([{}]);
    const body = {
      ...{ from: "receiver.example", spf: { result: "softfail", domain: "bounce.receiver.example" } },
      dkim: [{ domain: "esp.example", selector: "k1", result: "pass", aligned: false }],
      ...{ dmarc: { result: "fail", policy: "reject" }, message: "Nothing is aligned.", temporary: false },
    };
    app.db.sqlite
      .query("UPDATE dmarc_reports SET authenticity = 'fail', authenticity_body = ?")
      .run(JSON.stringify(body));
    const { text } = await get(await pathOfFirst());
    expect(text).toContain("Nothing is aligned.");
    expect(text).toContain(
      "SPF softfail The server that delivered the mail probably may not send for bounce.receiver.example.",
    );
    expect(text).toContain("DKIM pass Signed by esp.example with the key k1 , which is not the domain in From.");
    expect(text).toContain("DMARC fail From receiver.example , whose policy is p=reject.");
    expect(text).toContain("Original mail");
    app.db.sqlite.run("UPDATE dmarc_reports SET authenticity = 'pending', authenticity_body = NULL");
    expect((await get(await pathOfFirst())).text).toContain("are checked within minutes");
  });

  test("with markup in it is shown as text", async () => {
    const org = "&lt;img src=x onerror=alert(1)&gt;";
    const { get, path, pathOfFirst } = await startFilled([{ org, rows: [{ reasons: [`other ${org}`] }] }]);
    for (const { html, text } of [await get(path), await get(await pathOfFirst())]) {
      expect(html).not.toContain("<img src=x");
      expect(text).toContain("<img src=x onerror=alert(1)>");
    }
  });
});
