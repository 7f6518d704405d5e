import { expect, test } from "bun:test";
import { createDmarcPages } from "../../testing/dmarc-pages.ts";

const start = createDmarcPages();

test("one domain is enrolled and leads to its record; again it says so", async () => {
  const { visitor } = await start();
  const record = await visitor.submit("/dmarc/new", { domains: " Acme-Shop.com " });
  expect(record.text).toContain("acme-shop.com is enrolled. Publish its record now.");
  expect(record.text).toContain("No DMARC record is published");
  expect((await visitor.submit("/dmarc/new", { domains: "acme-shop.com" })).text).toContain("was enrolled already");
});

test("many domains are enrolled together, with their records as a table and as lines of a zone file", async () => {
  const { app, visitor, enrol, zone } = await start();
  await enrol("known-corp.com");
  await app.advance(1);
  zone["_dmarc.b-corp.com"] = { TXT: ['v=DMARC1; p=reject; x="y"'] };
  const { text, html } = await visitor.submit("/dmarc/new", { domains: "a-corp.com, b-corp.com\nknown-corp.com" });
  expect(text).toContain("2 domains are enrolled. 1 domain was enrolled already.");
  expect(text).toContain("Publish 2 records");
  expect(text).toContain('_dmarc.a-corp.com. 3600 IN TXT "v=DMARC1; p=none; rua=mailto:');
  expect(text).toContain('_dmarc.b-corp.com. 3600 IN TXT "v=DMARC1; p=reject; x=\\"y\\"; rua=mailto:');
  expect(html).not.toContain("known-corp.com");
});

test("new domains get tags, which are refused beside their field", async () => {
  const { app, visitor, enrol } = await start();
  const known = await enrol("known-corp.com");
  await visitor.submit("/dmarc/new", { domains: "a-corp.com known-corp.com", tags: "Client-A, shops" });
  const { domains } = app.service.dmarc;
  const owner = { accountId: visitor.accountId, mode: "live" } as const;
  const listed = domains.list(owner, {}, { before: null, limit: 9 });
  expect(Object.fromEntries(listed.map(({ domain, tags }) => [domain, tags]))).toEqual({
    "a-corp.com": ["client-a", "shops"],
    "known-corp.com": [],
  });
  expect(domains.find(owner, known.id).tags).toEqual([]);
  const { status, text } = await visitor.post("/dmarc/new", { domains: "b-corp.com", tags: "x".repeat(41) });
  expect(status).toBe(400);
  expect(text).toContain("A tag has 1 to 40 letters and digits");
  expect(domains.list(owner, {}, { before: null, limit: 9 })).toHaveLength(2);
});

test("a mistake enrols nothing, keeps what was typed and stands beside the field", async () => {
  const { visitor } = await start();
  const typed = "a-corp.com\n<b>x</b>@b-corp.com";
  const { status, text, html } = await visitor.post("/dmarc/new", { domains: typed });
  expect(status).toBe(400);
  expect(html).toContain("a-corp.com\n&lt;b>x&lt;/b>@b-corp.com</textarea>");
  expect(html).toContain('aria-invalid="true"');
  expect(text).toContain("Nothing was enrolled: 1 of 2 cannot be monitored.");
  expect(text).toContain("<b>x</b>@b-corp.com: This is an email address: give the domain only");
  expect((await visitor.post("/dmarc/new", { domains: "" })).status).toBe(400);
});

test("without a report host the page says what the operator has to do, and test domains can be enrolled", async () => {
  const { get } = await start({ settings: { REPORT_HOST: "" } });
  const { text } = await get("/dmarc/new");
  expect(text).toContain("This service cannot receive reports yet");
  expect(text).toContain("POSTWARDEN_IMAP_ADDRESS");
  expect((await get("/test/dmarc/new")).text).toContain("Each domain has a reporting address of its own");
});

test("where a mailbox receives the reports, the page names it", async () => {
  const settings = {
    ...{ REPORT_HOST: "", IMAP_URL: "imaps://dmarc%40corp.com:secret@mail.corp.com", IMAP_ADDRESS: "dmarc@corp.com" },
  };
  const { get, visitor } = await start({ settings });
  expect((await get("/dmarc/new")).text).toContain("All of them go to the mailbox dmarc@corp.com");
  const { text } = await visitor.submit("/dmarc/new", { domains: "acme-shop.com" });
  expect(text).toContain("rua=mailto:dmarc@corp.com");
});

test("a form with another token changes nothing", async () => {
  const { visitor, app } = await start();
  expect((await visitor.post("/dmarc/new", { domains: "a-corp.com" }, "wrong")).status).toBe(403);
  const owner = { accountId: visitor.accountId, mode: "live" } as const;
  expect(app.service.dmarc.domains.list(owner, {}, { before: null, limit: 10 })).toEqual([]);
});
