import { describe, expect, test } from "bun:test";
import { signIn } from "../testing/dashboard.ts";
import { createDmarcPageTests } from "../testing/dmarc-page-tests.ts";
import { ROLES } from "./roles.ts";

const newTest = createDmarcPageTests();

/** What only the other client's domain has, and a tag that is not the viewer's. */
const SECRETS = ["pays-late", "rival-shop.org", "label-of-rival", "client-b", "rival-crm.net", "198.51.100.77"];

/** Two clients with a domain each, and a viewer of the first one. */
const start = async () => {
  const made = await newTest();
  const [own, other] = [await made.enrol("own-shop.org"), await made.enrol("rival-shop.org")];
  const { app, key } = made;
  const patch = (id: string, body: object) => app.request("PATCH", `/v1/dmarc/domains/${id}`, { key, body });
  await patch(own, { tags: ["client-a", "pays-late"] });
  await patch(other, { tags: ["client-b", "client-a-b"], label: "label-of-rival" });
  for (const domain of ["own-shop.org", "rival-shop.org"])
    await made.report(1, {
      domain,
      rows: [{ ip: domain === "own-shop.org" ? "192.0.2.1" : "198.51.100.77", count: 90, headerFrom: domain }],
    });
  made.nameAddresses({ "192.0.2.1": "mail.own-shop.org", "198.51.100.77": "out.rival-crm.net" });
  await app.service.dmarc.jobs.sumUpDomains();
  const viewer = await signIn(app, { email: "v@example.com", role: "viewer", isOperator: false, tag: "client-a" });
  return { ...made, own, other, viewer };
};

/** Every page of the service, as the router has it. */
const pagesOf = async ({ app }: Awaited<ReturnType<typeof start>>) => {
  const routes: ReadonlyArray<{ readonly method: string; readonly path: string }> = (await app.applicationOf("/dmarc"))
    .routes;
  const paths = routes.filter(({ method }) => method === "GET").map(({ path }) => path);
  return [...new Set(paths)].filter((path) => !path.includes("*"));
};

const fill = (path: string, id: string): string =>
  path.replace("/dmarc/:id", `/dmarc/${id}`).replaceAll(":key", "own").replaceAll(/:\w+/g, id);

describe("a viewer of one tag", () => {
  test("sees nothing of a domain without it on any page, live and in test mode", async () => {
    const made = await start();
    const { viewer, own, other } = made;
    const paths = await pagesOf(made);
    expect(paths.length).toBeGreaterThan(80);
    let opened = 0;
    for (const path of paths) {
      for (const id of [own, other]) {
        const { status, html } = await viewer.get(fill(path, id));
        const found = SECRETS.filter((secret) => html.includes(secret));
        expect([path, found]).toEqual([path, []]);
        if (path.includes(":id") && id === other) expect([path, status >= 300]).toEqual([path, true]);
        if (status === 200 && path.startsWith("/dmarc") && id === own) opened += 1;
      }
    }
    expect(opened).toBeGreaterThanOrEqual(12);
  });

  test("sees no tab that leads to no page", async () => {
    const { viewer, own } = await start();
    const { text } = await viewer.get(`/dmarc/${own}`);
    expect(text).toContain("Overview Sources Record Advice Health Reports Alerts More");
  });

  test("opens exactly the pages of the table, which show its own domain", async () => {
    const { viewer, own } = await start();
    const [{ pages = [] } = {}] = ROLES.filter(({ role }) => role === "viewer");
    for (const path of pages) expect([path, (await viewer.get(fill(path, own))).status]).toEqual([path, 200]);
    const list = await viewer.get("/dmarc");
    expect(list.text).toContain("own-shop.org");
    expect(list.text).toContain("1 domain");
    expect(list.text).not.toContain("Enroll a domain");
    expect((await viewer.get("/")).location).toBe("/dmarc");
    for (const tag of ["client-b", "pays-late"])
      expect((await viewer.get(`/dmarc?tag=${tag}`)).text).toContain("No domain matches");
  });

  test("follows no link that is refused, and sees no form but its own", async () => {
    const { viewer, own } = await start();
    const [{ pages = [], forms = {} } = {}] = ROLES.filter(({ role }) => role === "viewer");
    const refused = new Set<string>();
    for (const path of pages.filter((one) => !one.endsWith(".csv"))) {
      const { html } = await viewer.get(fill(path, own));
      for (const [, action = ""] of html.matchAll(/<form method="post" action="([^"?]+)/g))
        if (
          action !== "/theme" &&
          !Object.keys(forms).some((form) => form.split("/:")[0] === action.replace(/\/[0-9a-f-]{36}\/end$/, ""))
        )
          refused.add(`${path}: form ${action}`);
      for (const [, href = ""] of html.matchAll(/<a href="(\/(?!docs|assets)[^"#]*)"/g))
        if ((await viewer.get(href.replaceAll("&amp;", "&"))).status >= 400) refused.add(`${path}: ${href}`);
    }
    expect([...refused]).toEqual([]);
  });

  test("cannot use the API: a session is not a key", async () => {
    const { app, viewer, other } = await start();
    const { routes } = await app.applicationOf("/v1/account");
    const paths = [...routes].filter(({ method, path }) => method === "GET" && path.startsWith("/v1/"));
    expect(paths.length).toBeGreaterThan(30);
    for (const { path } of paths) expect([path, (await viewer.get(fill(path, other))).status]).toEqual([path, 401]);
  });

  test("changes nothing of the account: every other form is refused", async () => {
    const { viewer, own } = await start();
    for (const { role, forms } of ROLES) {
      if (role === "viewer") continue;
      for (const path of Object.keys(forms))
        expect([path, (await viewer.post(fill(path, own))).status]).toEqual([path, 403]);
    }
  });

  test("loses sight of a domain when the tag is taken away", async () => {
    const { app, key, viewer, own } = await start();
    await app.request("PATCH", `/v1/dmarc/domains/${own}`, { key, body: { tags: [] } });
    expect((await viewer.get(`/dmarc/${own}`)).status).toBe(404);
    expect((await viewer.get("/dmarc")).text).not.toContain("own-shop.org");
  });

  test("needs a tag, and is no operator", async () => {
    const { app, viewer } = await start();
    const { users } = app.service.accounts;
    const asked = { accountId: viewer.accountId, email: "w@example.com", role: "viewer", isOperator: false } as const;
    for (const more of [{}, { tag: null }, { tag: "client-a", isOperator: true }])
      expect(users.invite({ ...asked, ...more }, null)).toMatchObject({ ok: false, error: { code: "viewer_invalid" } });
    const member = users.invite({ ...asked, role: "member" }, null);
    if (!member.ok) throw new Error("not invited");
    expect(users.changeRole(member.value.user.id, "viewer", null).ok).toBe(false);
    expect(users.changeRole(member.value.user.id, "viewer", null, "client-a")).toMatchObject({
      value: { tag: "client-a" },
    });
    expect(users.changeRole(member.value.user.id, "member", null)).toMatchObject({ value: { tag: null } });
  });
});
