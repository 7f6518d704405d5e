import { describe, expect, test } from "bun:test";
import { sampleReportMail, sampleReportXml } from "../../testing/dmarc-reports.ts";
import { createDmarcPages } from "../../testing/dmarc-pages.ts";

const start = createDmarcPages();
const DOMAIN = "acme-shop.com";
const ofDomain = (more = {}) => sampleReportXml({ domain: DOMAIN, ...more });
const linkTo = (html: string, pattern: RegExp): string => pattern.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";

describe("an upload", () => {
  test("of several files ends at a page with the outcome of each", async () => {
    const { enrol, upload, get } = await start();
    await enrol(DOMAIN);
    const sent = await upload([
      ["one.xml", ofDomain()],
      ["two.xml.gz", Bun.gzipSync(ofDomain({ reportId: "2" }))],
      ["mail.eml", new Uint8Array(sampleReportMail({ domain: DOMAIN, reportId: "3" }))],
      ["again.xml", ofDomain()],
      ["photo.jpg", new Uint8Array([255, 216, 255, 1])],
      ["other.xml", sampleReportXml({ domain: "foreign-corp.com" })],
    ]);
    expect(sent.status).toBe(303);
    const { text } = await get(sent.location ?? "");
    expect(text).toContain("6 files read: 3 stored, 1 stored already, 1 quarantined, 1 rejected.");
    expect(text).toContain("2 files of 6 could not be used");
    expect(text).toMatch(
      /one\.xml receiver\.example about acme-shop\.com Upload, a moment ago Stored The report is stored\./,
    );
    expect(text).toMatch(/photo\.jpg Upload, a moment ago Rejected It contains no report\. Retry/);
    expect(text).toContain("The report is about a domain that is not enrolled. Enroll the domain, then retry.");
  });

  test("shows its own files only, and the list all", async () => {
    const { enrol, upload, get, app } = await start();
    await enrol(DOMAIN);
    await upload([["first.xml", ofDomain()]]);
    await app.advance(1);
    const { location } = await upload([["second.xml", ofDomain({ reportId: "2" })]]);
    const { text } = await get(location ?? "");
    expect(text).toContain("1 file was stored");
    expect(text).not.toContain("first.xml");
    expect((await get("/dmarc/intake")).text).toContain("first.xml");
  });

  test("without a file, or too large, shows the page again with what is wrong", async () => {
    const { upload, visitor } = await start();
    const empty = await visitor.upload("/dmarc/intake", new FormData());
    expect([empty.status, empty.text.includes("The form")]).toEqual([400, true]);
    const large = await upload([["large.xml", new Uint8Array(33 * 1024 * 1024)]]);
    expect([large.status, large.text.includes("A file must not exceed 33,554,432 bytes.")]).toEqual([413, true]);
  });

  test("without the token stores nothing", async () => {
    const { visitor, app, get } = await start();
    const form = new FormData();
    form.append("file", new File([ofDomain()], "a.xml"));
    const headers = { accept: "text/html" };
    const sent = await app.handle(
      new Request("http://localhost/dmarc/intake", { method: "POST", body: form, headers }),
    );
    expect(sent.headers.get("location")).toStartWith("/sign-in");
    expect((await visitor.upload("/dmarc/intake?_csrf=x", form)).status).toBe(403);
    expect((await get("/dmarc/intake")).text).toContain("Nothing received yet");
  });

  test("in test mode is apart from live data", async () => {
    const { visitor, upload, get } = await start();
    await visitor.submit("/test/dmarc/new", { domains: "shop.example" });
    const { location } = await upload([["t.xml", sampleReportXml({ domain: "shop.example" })]], "/test/dmarc/intake");
    expect(location).toStartWith("/test/dmarc/intake?at=");
    expect((await get(location ?? "")).text).toContain("1 file was stored");
    expect((await get("/dmarc/intake")).text).toContain("Nothing received yet");
  });
});

describe("what came in", () => {
  const startRefused = async () => {
    const pages = await start();
    await pages.upload([
      ["foreign.xml", ofDomain()],
      ["photo.jpg", new Uint8Array([255, 216])],
    ]);
    const { html } = await pages.get("/dmarc/intake?outcome=quarantined");
    return { ...pages, path: linkTo(html, /href="(\/dmarc\/intake\/[0-9a-f-]{36})"/) };
  };

  test("is filtered by outcome, way and state", async () => {
    const { get } = await startRefused();
    expect((await get("/dmarc/intake?outcome=rejected")).text).not.toContain("foreign.xml");
    expect((await get("/dmarc/intake?via=smtp")).text).toContain("Nothing matches");
    expect((await get("/dmarc/intake?status=pending")).text).toContain("Nothing matches");
    expect((await get("/dmarc/intake?outcome=nonsense&cursor=x")).text).toContain("foreign.xml");
  });

  test("is taken away as CSV, with its filters and why", async () => {
    const { get } = await startRefused();
    const { html, headers } = await get("/dmarc/intake.csv?outcome=quarantined");
    expect(headers.get("content-disposition")).toContain("reports-received.csv");
    const [columns, ...rows] = html.trim().split("\r\n");
    expect(columns).toStartWith("id,received_at,via,name,");
    expect(rows).toHaveLength(1);
    expect(rows[0]).toContain(`quarantined,foreign_domain,"The report is about a domain that is not enrolled.`);
    expect(rows[0]).toEndWith(`${DOMAIN},receiver.example,1`);
  });

  test("refreshes while something waits to be read", async () => {
    const { get, app } = await startRefused();
    expect((await get("/dmarc/intake")).html).not.toContain("data-live");
    app.db.sqlite.run("UPDATE dmarc_ingestions SET status = 'pending', outcome = NULL, reason = NULL, findings = NULL");
    const { html, text } = await get("/dmarc/intake?status=pending");
    expect(html).toContain("data-live");
    expect(text).toContain("Waiting It will be read within a minute.");
  });

  test("about one domain is a list of its own", async () => {
    const { upload, enrol, get } = await startRefused();
    const domain = await enrol(DOMAIN);
    await upload([["own.xml", ofDomain({ reportId: "own" })]]);
    const { text } = await get(`/dmarc/intake?domain=${domain.id}`);
    expect(text).toContain("own.xml");
    expect(text).toContain("Show all domains");
    expect(text).not.toContain("photo.jpg");
  });

  test("names rows that cannot be read", async () => {
    const { upload, enrol, get } = await startRefused();
    await enrol(DOMAIN);
    const broken = ofDomain({ reportId: "broken", rows: [{ count: 7 }, { count: 11 }] }).replace(
      "<count>11<",
      "<count>x<",
    );
    await upload([["broken.xml", broken]]);
    const { text } = await get("/dmarc/intake");
    expect(text).toContain("One of its rows cannot be read and is not counted; the page of the report says why.");
  });

  test("can be read again when the cause is gone, one or all", async () => {
    const { visitor, enrol, app, get, path } = await startRefused();
    await enrol(DOMAIN);
    await app.service.dmarc.start();
    const retried = await visitor.submit(`${path}/retry`);
    expect(retried.text).toContain("It is being read again.");
    for (let n = 0; n < 20 && !(await get(path)).text.includes("The report is stored."); n++) await app.advance(1_000);
    const { text, html } = await get(path);
    expect(text).toContain("Stored The report is stored.");
    expect(html).toMatch(/href="\/dmarc\/[0-9a-f-]{36}\/reports\/[0-9a-f-]{36}"/);
    expect(text).not.toContain("Retry");
    expect((await visitor.submit("/dmarc/intake/retry")).text).toContain("1 mail or file will be read again.");
    await app.service.dmarc.stop();
  });

  test("says when there is nothing to retry", async () => {
    const { visitor } = await start();
    expect((await visitor.submit("/dmarc/intake/retry")).text).toContain("There is nothing to retry");
  });

  test("of a mail that is not authenticated can be accepted; a file cannot", async () => {
    const { visitor, app, get, path } = await startRefused();
    expect((await get(path)).text).not.toContain("It is genuine, accept it");
    expect((await visitor.post(`${path}/retry`, { accept: "yes" })).status).toBe(409);
    const finding = {
      ...{ outcome: "quarantined", reason: "not_authentic", name: null, report_id: null, domain_id: null },
      ...{ domain: DOMAIN, org_name: "x", external_report_id: null },
    };
    app.db.sqlite
      .query(
        "UPDATE dmarc_ingestions SET via = 'smtp', reason = 'not_authentic', mail_from = ?, findings = ? WHERE name = 'foreign.xml'",
      )
      .run("a@b.example", JSON.stringify([finding]));
    const { text } = await get(path);
    expect(text).toContain("If you know that it is genuine, accept it.");
    expect((await visitor.submit(`${path}/retry`, { accept: "yes" })).text).toContain(
      "Accepted: its reports are counted",
    );
  });

  test("can be downloaded as it came, never as a page", async () => {
    const { get, path } = await startRefused();
    const raw = await get(`${path}/raw`);
    expect(raw.html).toContain("<policy_published>");
    expect(raw.headers.get("content-type")).toBe("application/octet-stream");
    expect(raw.headers.get("content-disposition")).toStartWith("attachment;");
  });

  test("with markup in its name is shown as text", async () => {
    const { upload, get } = await start();
    const { location } = await upload([['"><img src=x onerror=alert(1)>.xml', "x"]]);
    const { html, text } = await get(location ?? "");
    expect(html).not.toContain("<img src=x");
    expect(text).toContain("<img src=x onerror=alert(1)>.xml");
  });
});
