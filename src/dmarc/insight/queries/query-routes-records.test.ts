import { describe, expect, test } from "bun:test";
import { parse } from "csv-parse/sync";
import { newId } from "../../../foundation/base/secrets.ts";
import { fillReportQueries, STRANGER } from "../../../testing/report-queries-filled.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { recordsSchema } from "./records.ts";

const newHarness = createReportQueries();
const startFilled = () => fillReportQueries(newHarness());

describe("records", () => {
  test("are listed newest day first, of a day what fails first, by pages", async () => {
    const { get } = await startFilled();
    const all = recordsSchema.parse((await get("records")).body).records;
    expect(all.map(({ date, source_ip, count }) => [date, source_ip, count])).toEqual([
      ["2026-01-01", "9.9.9.9", 6],
      ["2026-01-01", "5.5.5.5", 3],
      ["2026-01-01", "6.6.6.6", 1],
      ["2026-01-01", "8.8.8.8", 90],
      ["2025-12-31", "8.8.8.8", 10],
    ]);
    for (const filter of ["", "&source_ip=8.8.8.8", "&aligned=false", "&aligned=true"]) {
      const whole = recordsSchema.parse((await get(`records?limit=100${filter}`)).body).records;
      const found: unknown[] = [];
      for (let cursor = ""; ;) {
        const page = recordsSchema.parse((await get(`records?limit=1${filter}${cursor}`)).body);
        found.push(...page.records);
        if (page.next_cursor === null) break;
        cursor = `&cursor=${page.next_cursor}`;
      }
      expect(found).toEqual(whole);
    }
  });

  test("say all that the report said", async () => {
    const { get, nameAddress, placeAddress } = await startFilled();
    nameAddress("9.9.9.9", "o1.sendgrid.net");
    placeAddress("9.9.9.9", { asn: 64_500, asName: "EXAMPLE-MAIL", country: "US" });
    nameAddress("5.5.5.5", "forged.example", false);
    const [first, second, third] = recordsSchema.parse((await get("records")).body).records;
    expect(first).toMatchObject({
      reverse_name: "o1.sendgrid.net",
      asn: 64_500,
      as_name: "EXAMPLE-MAIL",
      country: "US",
      source: "service:sendgrid",
      source_name: "SendGrid",
      aligned: false,
      dkim: "fail",
      spf: "fail",
      disposition: "quarantine",
      forwarded: false,
      header_from: "example.com",
      dkim_results: [{ domain: "sendgrid.net", selector: "s1", result: "pass", human_result: null }],
      spf_results: [{ domain: "em.sendgrid.net", scope: "mfrom", result: "pass", human_result: null }],
      report: { org_name: "receiver.example", report_id: "made-1", begin: "2026-01-01T00:00:00.000Z" },
    });
    expect(second).toMatchObject({
      ...{ reverse_name: null, asn: null, as_name: null, country: null },
      source: "unauthenticated",
    });
    expect(third).toMatchObject({ forwarded: true, reasons: [{ type: "mailing_list", comment: null }] });
  });

  test.each([
    ["source=net:5.5.5.0%2F24", ["5.5.5.5"]],
    ["source=own", ["8.8.8.8", "8.8.8.8"]],
    ["source=org:none.example", []],
    ["source_ip=::ffff:9.9.9.9", ["9.9.9.9"]],
    ["disposition=reject", ["5.5.5.5"]],
    ["aligned=false", ["9.9.9.9", "5.5.5.5", "6.6.6.6"]],
    ["aligned=true", ["8.8.8.8", "8.8.8.8"]],
    ["header_from=EXAMPLE.com.&aligned=true&from=2026-01-01", ["8.8.8.8"]],
    ["header_from=other.example", []],
    ["reporter=OTHER%20receiver", ["8.8.8.8"]],
    ["from=2025-12-31&to=2025-12-31", ["8.8.8.8"]],
    [`report=${newId()}`, []],
  ] as const)("with %s are those", async (query, ips) => {
    const { get } = await startFilled();
    const { records } = recordsSchema.parse((await get(`records?${query}`)).body);
    expect(records.map(({ source_ip }) => source_ip)).toEqual([...ips]);
  });

  test.each(["source=x", "source_ip=1.2.3", "disposition=good", "aligned=yes", "header_from=", "report=1"])(
    "cannot be asked for with %s",
    async (query) => {
      const { get } = await startFilled();
      expect((await get(`records?${query}`)).body.error).toBe("Invalid query");
    },
  );

  test("of a report that is still being written are not shown, nor is it", async () => {
    const { get, db } = await startFilled();
    db.sqlite.run("UPDATE dmarc_reports SET is_complete = 0 WHERE report_id = 'made-1'");
    expect(recordsSchema.parse((await get("records?limit=1")).body).records.map(({ date }) => date)).toEqual([
      "2025-12-31",
    ]);
    expect((await get("reports")).body.reports).toHaveLength(1);
  });
});

describe("CSV", () => {
  test("of records is what JSON says, flat, with formulas defused", async () => {
    const { get, give, placeAddress } = await startFilled();
    placeAddress("5.5.5.5", { asn: 64_501, asName: "=EVIL()", country: "DE" });
    await give({ org: "=cmd()", rows: [{ ...STRANGER, count: 900, reasons: ['other a, b; "c"'] }] });
    const file = await get("records", { accept: "text/csv" });
    expect(file.headers.get("content-type")).toBe("text/csv; charset=utf-8");
    expect(file.headers.get("content-disposition")).toContain(
      'filename="records-example.com-2025-12-03-2026-01-01.csv"',
    );
    const rows: Record<string, string>[] = parse(file.text, { columns: true, record_delimiter: "\r\n" });
    const records = recordsSchema.parse((await get("records")).body).records;
    expect(rows.map(({ date, source_ip, count }) => [date, source_ip, Number(count)])).toEqual(
      records.map(({ date, source_ip, count }) => [date, source_ip, count]),
    );
    expect(rows[0]).toMatchObject({ org_name: "'=cmd()", reasons: 'other: a, b; "c"', aligned: "false", spf: "fail" });
    expect(rows[0]).toMatchObject({ source_ip: "5.5.5.5", asn: "64501", as_name: "'=EVIL()", country: "DE" });
    expect(rows[1]).toMatchObject({
      asn: "",
      as_name: "",
      country: "",
      dkim_results: "s1._domainkey.sendgrid.net=pass",
      envelope_to: "",
    });
  });

  test("of sources has all of them, whatever the limit", async () => {
    const { get } = await startFilled();
    const file = await get("sources?limit=1", { accept: "text/csv, application/json;q=0.5" });
    const rows: Record<string, string>[] = parse(file.text, { columns: true });
    expect(rows.map(({ key }) => key)).toEqual(["service:sendgrid", "pending", "own", "net:6.6.6.0/24"]);
    expect(rows[0]).toMatchObject({ service: "SendGrid", addresses: "9.9.9.9", aligned_percent: "0" });
  });
});
