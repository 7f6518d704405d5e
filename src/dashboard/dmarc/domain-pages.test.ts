import { describe, expect, test } from "bun:test";
import { sampleReportXml } from "../../testing/dmarc-reports.ts";
import { signIn } from "../../testing/dashboard.ts";
import { createDmarcPages, type DmarcPages } from "../../testing/dmarc-pages.ts";

const start = createDmarcPages();
const DOMAIN = "acme-shop.com";
const DAY_S = 86_400;
const BEGIN_S = Date.UTC(2026, 0, 1) / 1000;

const startActive = async (tags = "p=none") => {
  const pages = await start();
  const domain = await pages.enrol(DOMAIN);
  pages.zone[`_dmarc.${DOMAIN}`] = { TXT: [pages.recordOf(domain, tags)] };
  await pages.visitor.post(`/dmarc/${domain.id}/record/check`);
  return { ...pages, domain, path: `/dmarc/${domain.id}` };
};

const reportDays = async ({ app, upload }: DmarcPages, days: number, failing: number) => {
  for (let day = 0; day < days; day++) {
    await app.advance(DAY_S * 1000);
    const rows = [
      { ip: "192.0.2.10", count: 100 },
      {
        ip: "192.0.2.11",
        count: failing,
        dkim: "fail" as const,
        spf: "fail" as const,
        dkimResults: ["mcsv.net pass k1"],
        spfResults: ["mcsv.net pass"],
      },
    ];
    const report = { domain: DOMAIN, begin: BEGIN_S + day * DAY_S, rows };
    await upload(
      ["google.com", "Yahoo"].map(
        (org) => [`${org}.xml`, sampleReportXml({ ...report, org, reportId: `${org}${day}` })] as const,
      ),
    );
  }
};

describe("the advice", () => {
  test("before the record is published leads to the record", async () => {
    const { enrol, get } = await start();
    const domain = await enrol(DOMAIN);
    const { text, html } = await get(`/dmarc/${domain.id}/advice`);
    expect(text).toContain("Next step: publish the record first");
    expect(text).not.toContain("dns_records");
    expect(html).toContain(`class="button main"`);
  });

  test("says when the next stage is possible at the earliest, and the figures of each requirement", async () => {
    const pages = await startActive();
    await reportDays(pages, 6, 0);
    const { text } = await pages.get(`${pages.path}/advice`);
    expect(text).toContain("Next step: wait for more reports");
    expect(text).toContain("You are here p=none");
    expect(text).toContain("Not before 16 Jan :");
    expect(text).toMatch(/Not yet Days with reports 6 of 14 /);
    expect(text).toContain("Met Reporters 2, at least 2 needed");
  });

  test("names the senders in the way, with links to them", async () => {
    const pages = await startActive();
    await reportDays(pages, 3, 50);
    const { text, html } = await pages.get(`${pages.path}/advice`);
    expect(text).toContain("Senders in the way");
    expect(html).toMatch(new RegExp(`href="${pages.path}/sources/[^"]+"[^>]*>[^<]*(Mailchimp|mcsv)`));
    expect(text).toMatch(/300 300/);
  });

  test("gives the whole record to publish, with what changes", async () => {
    const pages = await startActive();
    await reportDays(pages, 15, 0);
    const { text, html } = await pages.get(`${pages.path}/advice`);
    expect(text).toContain("Next step: rehearse quarantine");
    expect(html).toContain('data-copy="v=DMARC1; p=quarantine; t=y; rua=mailto:');
    expect(text).toContain("p changes from none to quarantine");
    expect(text).toContain("t added: y");
  });
});

describe("the health", () => {
  test("is not known before the first run; a run finds what is wrong, why it matters and what to do", async () => {
    const { enrol, get, visitor, zone } = await start();
    const domain = await enrol(DOMAIN);
    const path = `/dmarc/${domain.id}/health`;
    expect((await get(path)).text).toContain("The health was not checked yet");
    zone[DOMAIN] = { TXT: ["v=spf1 +all <script>"], MX: [[10, `mx.${DOMAIN}`]] };
    zone[`mx.${DOMAIN}`] = { A: ["198.51.100.2"] };
    zone[`_smtp._tls.${DOMAIN}`] = "servfail";
    const { text, html } = await visitor.submit(`${path}/run`);
    expect(text).toContain("Checked just now.");
    expect(text).toContain("Why it matters:");
    expect(text).toContain("What to do:");
    expect(text).toContain(`Not known Could not be checked: SERVFAIL for _smtp._tls.${DOMAIN} TXT.`);
    expect(text).not.toContain("No TLS reporting record.");
    expect(html).not.toContain("<script>");
    const order = [
      "SPF which servers",
      "DKIM the keys",
      "MX the hosts",
      "MTA-STS whether",
      "TLS-RPT where",
      "BIMI the logo",
      "DMARC what",
    ];
    expect(order.map((title) => text.indexOf(title))).toEqual(
      order.map((title) => text.indexOf(title)).toSorted((a, b) => a - b),
    );
    expect(text.indexOf("Error")).toBeLessThan(text.indexOf("Note"));
    expect((await get(path)).text).toContain("checked a moment ago");
  });

  test("of a test domain is made up", async () => {
    const { visitor, get } = await start();
    const record = await visitor.post("/test/dmarc/new", { domains: "shop.example" });
    const { text } = await get((record.location ?? "").replace("/record", "/health"));
    expect(text).toContain("v=spf1 mx -all");
    expect(text).toContain("Valid RSA 2048");
  });
});

describe("TLS reports", () => {
  const tlsReport = (day: number, failures: readonly object[]) =>
    JSON.stringify({
      ...{ "organization-name": "<b>Google</b>", "report-id": `r${day}` },
      "date-range": {
        "start-datetime": new Date((BEGIN_S - day * DAY_S) * 1000).toISOString(),
        "end-datetime": new Date((BEGIN_S - day * DAY_S + DAY_S - 1) * 1000).toISOString(),
      },
      policies: [
        {
          policy: { "policy-type": "sts", "policy-domain": DOMAIN },
          summary: { "total-successful-session-count": 90, "total-failure-session-count": failures.length * 10 },
          "failure-details": failures,
        },
      ],
    });

  test("are summed up by day, reason and host, in words", async () => {
    const { enrol, upload, get } = await start();
    const domain = await enrol(DOMAIN);
    const path = `/dmarc/${domain.id}/tls`;
    expect((await get(path)).text).toContain("No TLS reports yet");
    const failure = {
      "result-type": "certificate-expired",
      "failed-session-count": 10,
      "receiving-mx-hostname": "mx.acme-shop.com",
    };
    await upload([
      ["a.json", tlsReport(0, [failure])],
      ["b.json", tlsReport(2, [])],
    ]);
    const { text, html } = await get(path);
    expect(text).toContain("10 of 190 sessions failed, mostly because the certificate has expired");
    expect(text).toContain("10 The certificate has expired certificate-expired What to do: Renew the certificate");
    expect(text).toContain("mx.acme-shop.com the certificate has expired 10");
    expect(text).toContain("31 Dec 2025 no data no data 1 Jan 90 10");
    expect(html).not.toContain("<b>Google");
    expect(text).toContain("MTA-STS 190 94.7 %");
  });
});

describe("failure reports", () => {
  const mail = [
    "From: reports@reporter.example",
    ...["Content-Type: multipart/report; report-type=feedback-report; boundary=o", "", "--o"],
    ...["Content-Type: message/feedback-report", "", "Feedback-Type: auth-failure", "Auth-Failure: dmarc"],
    ...[`Reported-Domain: ${DOMAIN}`, "Source-IP: 192.0.2.66", "Delivery-Result: reject"],
    ...["Original-Rcpt-To: <bob@b.example>", "--o", "Content-Type: message/rfc822", ""],
    ...[`From: Ann <ann@${DOMAIN}>`, "Subject: Your bill", "", "Secret.", "--o--", ""],
  ].join("\r\n");

  test("are shown as they are stored: redacted", async () => {
    const { enrol, upload, get, app, visitor } = await start();
    const domain = await enrol(DOMAIN);
    const path = `/dmarc/${domain.id}/failures`;
    expect((await get(path)).text).toContain("Failure reports are not stored");
    const owner = { accountId: visitor.accountId, mode: "live" } as const;
    await app.service.dmarc.domains.change(owner, domain.id, { storeFailureReports: true });
    expect((await get(path)).text).toContain("No failure reports yet");
    await upload([["f.eml", mail]]);
    const list = await get(path);
    expect(list.text).toContain("192.0.2.66 DMARC Rejected");
    const one = await get(/href="([^"]+\/failures\/[0-9a-f-]{36})"/.exec(list.html)?.[1] ?? "");
    expect(one.text).toContain("Redacted Local parts, names, the subject");
    expect(one.text).toContain(`From redacted@${DOMAIN}`);
    expect(one.text).not.toMatch(/ann@|bob@|Secret/);
  });

  test("have the header of the message in full", async () => {
    const { enrol, upload, get, app, visitor } = await start();
    const { id } = await enrol(DOMAIN);
    const owner = { accountId: visitor.accountId, mode: "live" } as const;
    const change = { storeFailureReports: true, failureReportsRedact: false };
    await app.service.dmarc.domains.change(owner, id, change);
    await upload([["f.eml", mail.replace("From: Ann", `From: ${"Ann Long-Name ".repeat(9)}`)]]);
    const { html } = await get(`/dmarc/${id}/failures`);
    const one = await get(/href="([^"]+\/failures\/[0-9a-f-]{36})"/.exec(html)?.[1] ?? "");
    expect(one.text).toContain("Ann Long-Name Ann");
    expect(one.html).not.toMatch(/class="cut"[^>]*>Ann/);
  });
});

test("the domains, reports and ingestions of another account do not exist, on any page or form", async () => {
  const pages = await startActive();
  await pages.upload([
    ["a.xml", sampleReportXml({ domain: DOMAIN })],
    ["b.jpg", "x"],
  ]);
  const report = /\/reports\/([0-9a-f-]{36})"/.exec((await pages.get(`${pages.path}/reports`)).html)?.[1];
  const ingestion = /\/intake\/([0-9a-f-]{36})"/.exec((await pages.get("/dmarc/intake")).html)?.[1];
  const stranger = await signIn(pages.app, { account: "stranger", isOperator: false });
  const own = await pages.enrol("stranger-corp.com", stranger);
  const paths = [
    "record",
    "advice",
    "health",
    "reports",
    "reports.csv",
    `reports/${report}`,
    `reports/${report}/records.csv`,
    `reports/${report}/raw`,
    "tls",
    "failures",
  ];
  for (const path of paths) {
    expect([path, (await pages.get(`${pages.path}/${path}`)).status]).toEqual([path, 200]);
    expect([path, (await stranger.get(`${pages.path}/${path}`)).status]).toEqual([path, 404]);
    expect([path, (await pages.get(`/test${pages.path}/${path}`)).status]).toEqual([path, 404]);
  }
  expect((await stranger.get(`/dmarc/${own.id}/reports/${report}`)).status).toBe(404);
  for (const path of [`/dmarc/intake/${ingestion}`, `/dmarc/intake/${ingestion}/raw`]) {
    expect((await pages.get(path)).status).toBe(200);
    expect((await stranger.get(path)).status).toBe(404);
  }
  for (const path of [`${pages.path}/record/check`, `${pages.path}/health/run`, `/dmarc/intake/${ingestion}/retry`]) {
    expect([path, (await stranger.post(path)).status]).toEqual([path, 404]);
    expect([path, (await pages.visitor.post(path, {}, "wrong")).status]).toEqual([path, 403]);
  }
  expect((await stranger.get(`/dmarc/intake?domain=${pages.domain.id}`)).text).toContain("Nothing matches");
});
