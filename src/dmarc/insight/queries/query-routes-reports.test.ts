import { expect, test } from "bun:test";
import { newId } from "../../../foundation/base/secrets.ts";
import { sampleReportMail, sampleReportXml, SAMPLE_DAY_S, type SampleRow } from "../../../testing/dmarc-reports.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { recordsSchema } from "./records.ts";
import { reportDetailSchema, reportsSchema, tlsReportsSchema } from "./reports.ts";

const start = createReportQueries();
const DAY_S = 86_400;

const startEmpty = () => {
  const harness = start();
  const domain = harness.enrol();
  const get = (path: string, options: Parameters<typeof harness.request>[2] = {}) =>
    harness.request("GET", `${domain.id}/${path}`, options);
  const list = async (query = "") => reportsSchema.parse((await get(`reports${query}`)).body);
  return { ...harness, domain, get, list };
};

test("reports are listed by the day they are about, of a day the last to come first, by pages", async () => {
  const { give, list } = startEmpty();
  await give({ reportId: "a" });
  await give({ reportId: "b", begin: SAMPLE_DAY_S - DAY_S });
  await give({ reportId: "c", org: "Élan" });
  const { reports, next_cursor } = await list();
  expect(reports.map(({ report_id, date }) => [report_id, date])).toEqual([
    ["c", "2026-01-01"],
    ["a", "2026-01-01"],
    ["b", "2025-12-31"],
  ]);
  expect(next_cursor).toBeNull();
  const ids: unknown[] = [];
  for (let cursor = ""; ;) {
    const page = await list(`?limit=1${cursor}`);
    ids.push(...page.reports.map(({ report_id }) => report_id));
    if (page.next_cursor === null) break;
    cursor = `&cursor=${page.next_cursor}`;
  }
  expect(ids).toEqual(["c", "a", "b"]);
  const only = async (query: string) => (await list(query)).reports.map(({ report_id }) => report_id);
  expect(await only("?reporter=%C3%89LAN")).toEqual(["c"]);
  expect(await only("?from=2025-12-31&to=2025-12-31")).toEqual(["b"]);
  expect(await only("?authenticity=pass")).toEqual([]);
});

test("a report says what its reporter says, and how the mail that brought it was judged", async () => {
  const { take, list, db } = startEmpty();
  await take(sampleReportMail({ rows: [{ count: 3 }, { count: 2, dkim: "fail", spf: "fail" }] }));
  const [report] = (await list()).reports;
  expect(report).toMatchObject({
    org_name: "receiver.example",
    email: "dmarc@receiver.example",
    report_id: "1",
    begin: "2026-01-01T00:00:00.000Z",
    end: "2026-01-01T23:59:59.000Z",
    received_at: "2026-01-01T00:00:00.000Z",
    policy_domain: "example.com",
    policy: { domain: "example.com", p: "none", sp: "none", np: null, pct: 100, adkim: "r", discovery_method: null },
    rows: 2,
    messages: 5,
    aligned: 3,
    notices: [],
    skipped_rows: [],
    raw_available: true,
  });
  const finding = {
    authenticity: "fail",
    from: "receiver.example",
    spf: { result: "fail", domain: "receiver.example" },
    dkim: [{ domain: "x.example", selector: "s", result: "pass", aligned: false, problem: null }],
    dmarc: { result: "fail", policy: "reject" },
    message: "No.",
    temporary: false,
  };
  db.sqlite.query("UPDATE dmarc_reports SET authenticity = 'fail', authenticity_body = ?").run(JSON.stringify(finding));
  const { authenticity, temporary: _, dkim: __, ...told } = finding;
  const dkim = [{ domain: "x.example", selector: "s", result: "pass", aligned: false }];
  expect((await list("?authenticity=fail")).reports[0]?.authenticity).toEqual({
    result: authenticity,
    dkim,
    ...told,
  } as never);
  db.sqlite.run("UPDATE dmarc_reports SET authenticity = 'pending', authenticity_body = NULL");
  expect((await list()).reports[0]?.authenticity).toMatchObject({ result: "pending", from: null, dkim: [] });
  db.sqlite.run("UPDATE dmarc_reports SET authenticity = NULL");
  expect((await list()).reports[0]?.authenticity).toBeNull();
});

test("one report shows a thousand of its records, the worst first, and where the others are", async () => {
  const { give, list, get } = startEmpty();
  const rows = Array.from({ length: 1203 }, (_, n): SampleRow => ({
    ip: `8.8.${n >> 8}.${n & 255}`,
    count: n + 1,
    ...(n < 5 ? { dkim: "fail", spf: "fail" } : {}),
  }));
  await give({ rows, begin: SAMPLE_DAY_S - 200 * DAY_S });
  const id = (await list("?from=2025-01-01")).reports[0]?.id ?? "";
  const detail = reportDetailSchema.parse((await get(`reports/${id}`)).body);
  expect(detail).toMatchObject({ rows: 1203, version: "1.0", generator: null, errors: [] });
  expect(detail.records).toHaveLength(1000);
  expect(detail.records.slice(0, 6).map(({ aligned, count }) => [aligned, count])).toEqual([
    [false, 5],
    [false, 4],
    [false, 3],
    [false, 2],
    [false, 1],
    [true, 1203],
  ]);
  const rest = recordsSchema.parse((await get(`records?report=${id}&cursor=${detail.records_next_cursor}`)).body);
  expect(rest.records).toHaveLength(100);
  const whole = recordsSchema.parse((await get(`records?report=${id}&limit=1000`)).body);
  expect(whole.records).toEqual(detail.records);
  const own = recordsSchema.parse((await get(`records?report=${id}&source_ip=8.8.0.7&source=own`)).body);
  expect(own.records.map(({ count }) => count)).toEqual([8]);
  expect(recordsSchema.parse((await get(`records?report=${id}&source=org:example.com`)).body).records).toEqual([]);
});

test("the bytes that brought a report are given back as they came, until they expire", async () => {
  const { take, list, get, db } = startEmpty();
  const bytes = Buffer.from(sampleReportXml());
  await take(bytes, 'a "b"\r\n/../ü.xml');
  const [report] = (await list()).reports;
  const raw = await get(`reports/${report?.id}/raw`);
  expect(raw.status).toBe(200);
  expect(raw.bytes.equals(bytes)).toBe(true);
  expect(raw.headers.get("content-type")).toBe("application/octet-stream");
  expect(raw.headers.get("x-content-type-options")).toBe("nosniff");
  expect(raw.headers.get("content-disposition")).toBe('attachment; filename="a_b_.._.xml"');
  db.sqlite.run("DELETE FROM dmarc_raw");
  const gone = await get(`reports/${report?.id}/raw`);
  expect(gone.status).toBe(404);
  expect(gone.body.message).toContain("no longer stored");
  expect((await list()).reports[0]?.raw_available).toBe(false);
});

test("a report of another domain of the same account is not found", async () => {
  const { give, enrol, list, get, request } = startEmpty();
  const other = enrol("other.example");
  await give();
  const id = (await list()).reports[0]?.id ?? "";
  expect((await get(`reports/${id}`)).status).toBe(200);
  for (const path of [`reports/${id}`, `reports/${id}/raw`])
    expect((await request("GET", `${other.id}/${path}`)).body.error).toBe("not_found");
  expect((await request("GET", `${other.id}/records?report=${id}`)).body.records).toEqual([]);
  for (const wrong of ["1", newId()]) expect((await get(`reports/${wrong}`)).status).toBe(404);
});

test("TLS reports are listed, those that came last first", async () => {
  const { take, get } = startEmpty();
  const made = (id: string, failed: number) =>
    Buffer.from(
      JSON.stringify({
        "organization-name": "Receiver",
        "report-id": id,
        "contact-info": "tls@receiver.example",
        "date-range": { "start-datetime": "2026-01-01T00:00:00Z", "end-datetime": "2026-01-01T23:59:59Z" },
        policies: [
          {
            policy: { "policy-type": "sts", "policy-domain": "example.com" },
            summary: { "total-successful-session-count": 9, "total-failure-session-count": failed },
            "failure-details": [{ "result-type": "certificate-expired", "failed-session-count": failed }],
          },
        ],
      }),
    );
  await take(made("one", 1), "one.json");
  await take(made("two", 2), "two.json");
  const first = tlsReportsSchema.parse((await get("tls-reports?limit=1")).body);
  expect(first.tls_reports[0]).toMatchObject({
    report_id: "two",
    contact: "tls@receiver.example",
    begin: "2026-01-01T00:00:00.000Z",
    successful_sessions: 9,
    failed_sessions: 2,
    policies: [
      { domain: "example.com", policy_type: "sts", failures: [{ result_type: "certificate-expired", sessions: 2 }] },
    ],
  });
  const second = tlsReportsSchema.parse((await get(`tls-reports?cursor=${first.next_cursor}`)).body);
  expect(second.tls_reports.map(({ report_id }) => report_id)).toEqual(["one"]);
  expect(second.next_cursor).toBeNull();
  for (const [range, count] of [
    ["from=2026-01-01&to=2026-01-01", 2],
    ["from=2025-12-01&to=2025-12-31", 0],
    ["from=2025-12-31", 2],
  ] as const)
    expect(tlsReportsSchema.parse((await get(`tls-reports?${range}`)).body).tls_reports).toHaveLength(count);
  expect((await get("tls-reports?from=2026-01-02&to=2026-01-01")).status).toBe(400);
});
