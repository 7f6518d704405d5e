import { expect, test } from "bun:test";
import { signIn } from "../../testing/dashboard.ts";
import { createDmarcPageTests } from "../../testing/dmarc-page-tests.ts";

const newTest = createDmarcPageTests();
const HOSTILE = `"><img src=x onerror=alert(1)>`;

/** The titles and paths of what a page found, without pages. */
const foundIn = (html: string): readonly string[] => {
  const [, list = ""] = html.split('id="found"');
  return [...list.matchAll(/<a href="([^"]+)"[^>]*><span>([^<]*)<\/span>/g)].map(
    ([, path, title]) => `${title} ${path}`,
  );
};

/** A service with one of everything that can be found. */
const filled = async () => {
  const made = await newTest();
  const { app, visitor, key } = made;
  const domain = await made.enrol("kaffeewerk.com");
  await made.report(1, {
    domain: "kaffeewerk.com",
    rows: [{ ip: "198.51.100.7", count: 12, dkim: "fail", spf: "fail", dkimResults: ["sendgrid.net pass s1"] }],
  });
  for (const email of ["ada@kaffee.example", "Ada@kaffee.example", "adam@kaffee.example", "bob@kaffee.example"])
    await app.request("POST", "/v1/email-verifications", { key, body: { email } });
  const form = new FormData();
  form.append("file", new File(["email\nada@kaffee.example\n"], "kaffee-newsletter.csv"));
  const uploaded = await visitor.upload("/lists/upload", form);
  const draft = uploaded.location?.split("draft=")[1] ?? "";
  const list = await visitor.post("/lists/new", { draft, header: "auto" });
  const target = await app.request("POST", "/v1/blacklist/targets", { key, body: { target: "mx.roesterei.com" } });
  return { ...made, domain, list: list.location ?? "", target };
};

test("addresses are found by how they begin, once each, with the newest result", async () => {
  const { visitor } = await filled();
  const { html, text } = await visitor.get("/search?q=ADA");
  const addresses = foundIn(html).filter((one) => one.includes(" /verify/"));
  expect(addresses.map((one) => one.split(" ")[0])).toEqual(["ada@kaffee.example", "adam@kaffee.example"]);
  expect(text).toContain("No such domain");
  expect(foundIn((await visitor.get("/search?q=dam")).html).join()).not.toContain("adam@");
});

test("lists, domains, senders and targets are found by a part of their names", async () => {
  const { visitor, domain, list } = await filled();
  const byPart = foundIn((await visitor.get("/search?q=kaffee")).html);
  expect(byPart).toContain(`kaffee-newsletter.csv ${list}`);
  expect(byPart).toContain(`kaffeewerk.com /dmarc/${domain}`);
  for (const sender of ["sendgrid", "SendGrid", "198.51.100"]) {
    const { html } = await visitor.get(`/search?q=${sender}`);
    expect(foundIn(html)).toContain(`kaffeewerk.com /dmarc/${domain}/sources?text=${sender}`);
  }
  expect(foundIn((await visitor.get("/search?q=roesterei")).html)[0]).toStartWith("mx.roesterei.com /blocklists/");
});

test("pages are found by their name and by what is on them; only those that a role may open", async () => {
  const { app, visitor } = await filled();
  const member = await signIn(app, { email: "member@example.com", role: "member", isOperator: false });
  expect(foundIn((await visitor.get("/search?q=password")).html)).toEqual(["Profile /settings/profile"]);
  expect(foundIn((await visitor.get("/search?q=invite")).html)).toEqual(["Users /settings/users"]);
  expect(foundIn((await member.get("/search?q=invite")).html)).toEqual([]);
  expect((await member.get("/search?q=invite")).text).toContain("Nothing was found.");
});

test("nothing of another account or mode is found", async () => {
  const { app, visitor } = await filled();
  const other = await signIn(app, { account: "other" });
  for (const text of ["ada", "kaffee", "sendgrid", "roesterei"]) {
    expect(foundIn((await visitor.get(`/search?q=${text}`)).html)).not.toEqual([]);
    expect(foundIn((await other.get(`/search?q=${text}`)).html)).toEqual([]);
    expect(foundIn((await visitor.get(`/test/search?q=${text}`)).html)).toEqual([]);
  }
});

test("a text is shown as it was typed, and no pattern", async () => {
  const { visitor } = await filled();
  const { html, status } = await visitor.get(`/search?q=${encodeURIComponent(HOSTILE)}`);
  expect(status).toBe(200);
  expect(html).not.toContain("<img src=x");
  for (const pattern of ["%", "_", "*"])
    expect(foundIn((await visitor.get(`/search?q=${encodeURIComponent(pattern)}`)).html)).toEqual([]);
  expect((await visitor.get(`/search?q=${"a".repeat(201)}`)).text).toContain("Addresses are found by how they begin");
});

test("the navigation leads there from every page; a viewer, who sees one tag only, has no search", async () => {
  const { app, visitor } = await filled();
  expect((await visitor.get("/settings")).html).toContain('href="/search" class="find" data-search');
  const viewer = await signIn(app, { email: "viewer@example.com", role: "viewer", tag: "a", isOperator: false });
  expect((await viewer.get("/dmarc")).html).not.toContain("data-search");
  expect((await viewer.get("/search?q=ada")).status).toBe(403);
});
