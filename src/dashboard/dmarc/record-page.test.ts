import { describe, expect, test } from "bun:test";
import { createDmarcPages, REPORTS_AT } from "../../testing/dmarc-pages.ts";

const start = createDmarcPages();
const OLD = "v=DMARC1; p=reject; rua=mailto:dmarc@acme-shop.com";

describe("the record of a domain", () => {
  test("that has one is shown with what changes marked in the text", async () => {
    const { enrol, get } = await start({ zone: { "_dmarc.acme-shop.com": { TXT: [OLD] } } });
    const domain = await enrol("acme-shop.com");
    const { text, html } = await get(`/dmarc/${domain.id}/record`);
    expect(text).toContain("The published record lacks your reporting address");
    expect(text).toContain("Name, in the zone acme-shop.com _dmarc Copy");
    const added = `,mailto:${domain.token}@${REPORTS_AT}`;
    expect(html).toContain(`data-copy="${OLD}${added}"`);
    expect(html).toContain(`<ins><span class="unseen">[added: </span>${added}<span class="unseen">]</span></ins>`);
    expect(text).toContain(`rua changes from mailto:dmarc@acme-shop.com to mailto:dmarc@acme-shop.com${added}`);
    expect(text).toContain("First check");
  });

  test("of a subdomain is entered by its name in the zone", async () => {
    const { enrol, get } = await start();
    const domain = await enrol("news.acme-shop.com");
    expect((await get(`/dmarc/${domain.id}/record`)).text).toContain(
      "Name, in the zone acme-shop.com _dmarc.news Copy",
    );
  });

  test("is checked on request: not visible yet, different, published, unknown", async () => {
    const { enrol, visitor, zone, recordOf } = await start();
    const domain = await enrol("acme-shop.com");
    const path = `/dmarc/${domain.id}/record`;
    const check = async () => (await visitor.submit(`${path}/check`)).text;
    const waiting = await check();
    expect(waiting).toContain("Not visible yet. Resolvers may keep the old answer until 00:05 UTC.");
    expect(waiting).toContain("Publish the record below, then check it here.");
    zone["_dmarc.acme-shop.com"] = { TXT: ["v=DMARC1; p=none"] };
    expect(await check()).toContain(
      "Different: the published record has changed, but it lacks your reporting address.",
    );
    expect(await check()).toContain("Not visible yet.");
    zone["_dmarc.acme-shop.com"] = { TXT: [recordOf(domain)] };
    const published = await check();
    expect(published).toContain("Published: the record is in place, and reports can arrive.");
    expect(published).toContain("status action required → active");
    expect(published).not.toContain("What to publish");
    zone["_dmarc.acme-shop.com"] = "servfail";
    const unknown = await check();
    expect(unknown).toContain("Not known: the DNS did not respond.");
    expect(unknown).toContain("This failure says nothing about the record");
  });

  test("with faults and several records says what is wrong", async () => {
    const { enrol, get, zone, visitor } = await start();
    const domain = await enrol("acme-shop.com");
    zone["_dmarc.acme-shop.com"] = { TXT: ["v=DMARC1; p=none", "v=DMARC1; p=reject"] };
    const { text } = await visitor.submit(`/dmarc/${domain.id}/record/check`);
    expect(text).toContain("Fix the published records first");
    expect(text).toContain("There are 2 DMARC records, so receivers use none. Keep one.");
    expect((await get(`/dmarc/${domain.id}/record`)).text).toContain("v=DMARC1; p=reject Copy");
  });

  test("says what the operator must publish when receivers may not report to the report host", async () => {
    const { enrol, zone, visitor, recordOf } = await start();
    const domain = await enrol("acme-shop.com");
    zone["_dmarc.acme-shop.com"] = { TXT: [recordOf(domain)] };
    zone[`acme-shop.com._report._dmarc.${REPORTS_AT}`] = "nxdomain";
    const { text } = await visitor.submit(`/dmarc/${domain.id}/record/check`);
    expect(text).toContain("The record is published, but receivers may not send the reports here");
    expect(text).toContain(`TXT at *._report._dmarc.${REPORTS_AT} v=DMARC1; Copy`);
  });

  test("with markup in it is shown as text", async () => {
    const hostile = 'v=DMARC1; p=none; x=<script>alert(1)</script>"onclick="1; rua=mailto:a@b.com';
    const { enrol, get } = await start({ zone: { "_dmarc.acme-shop.com": { TXT: [hostile, `${hostile}&`] } } });
    const domain = await enrol("acme-shop.com");
    const { html, text } = await get(`/dmarc/${domain.id}/record`);
    expect(html).not.toContain("<script>alert");
    expect(text).toContain("x=<script>alert(1)</script>");
  });

  test("has its history by pages, with the differences", async () => {
    const { enrol, get, zone, visitor, recordOf } = await start();
    const domain = await enrol("acme-shop.com");
    for (let n = 1; n <= 22; n++) {
      zone["_dmarc.acme-shop.com"] = { TXT: [recordOf(domain, `p=none; x=${n}`)] };
      await visitor.post(`/dmarc/${domain.id}/record/check`);
    }
    const first = await get(`/dmarc/${domain.id}/record`);
    expect(first.html).toContain("[removed: </span>x=21<span");
    expect(first.html).toContain("[added: </span>x=22<span");
    const next = /href="([^"]+cursor=[^"]+)"/.exec(first.html)?.[1] ?? "";
    const second = await get(next.replaceAll("&amp;", "&"));
    expect(second.text).toContain("First check");
    expect(second.text).toContain("Previous page");
    expect(first.text).not.toContain("First check");
  });
});

test("in test mode the record is published by the check", async () => {
  const { visitor } = await start();
  const enrolled = await visitor.submit("/test/dmarc/new", { domains: "shop.example" });
  expect(enrolled.text).toContain("shop.example is enrolled. Publish its record now.");
  const path = /action="([^"]+\/record\/check)"/.exec(enrolled.html)?.[1] ?? "";
  expect(path).toStartWith("/test/dmarc/");
  expect((await visitor.submit(path)).text).toContain("Published: the record is in place");
});

describe("the MTA-STS policy of a domain", () => {
  test("begins, is not enforced before it is tested, and says what to publish", async () => {
    const { enrol, visitor, zone, recordOf } = await start();
    const domain = await enrol("acme-shop.com");
    const path = `/dmarc/${domain.id}`;
    const set = async (fields: Readonly<Record<string, string>>) =>
      (await visitor.submit(`${path}/mta-sts`, fields)).text;
    expect(await set({ mode: "testing" })).toContain(
      "Publish the DMARC record of acme-shop.com with your reporting address",
    );
    zone["_dmarc.acme-shop.com"] = { TXT: [recordOf(domain)] };
    zone["acme-shop.com"] = { MX: [[10, "mx.acme-shop.com"]] };
    await visitor.submit(`${path}/record/check`);
    const testing = await set({ mode: "testing" });
    expect(testing).toContain("mx: mx.acme-shop.com max_age: 604800");
    expect(testing).toContain("TXT at _mta-sts.acme-shop.com Not published");
    expect(testing).toContain("Tested for 0 of 14 days");
    expect(await set({ mode: "enforce" })).toContain("MTA-STS policy Testing");
    expect(await set({ mode: "enforce", early: "on" })).toContain("MTA-STS policy Enforced");
    expect(await set({ mode: "none" })).toContain("Senders may hold the enforced policy until");
    expect(await set({ mode: "off" })).toContain("MTA-STS policy Withdrawn");
  });
});
