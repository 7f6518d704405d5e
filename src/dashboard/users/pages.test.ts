import { describe, expect, test } from "bun:test";
import { createApps, type TestApp } from "../../testing/app.ts";
import { signIn, type Visitor } from "../../testing/dashboard.ts";

const start = createApps();
const PATH = "/settings/users";

const idOf = (app: TestApp, email: string): string => app.service.accounts.users.findByEmail(email)?.id ?? "";

const PEOPLE = ["owner", "second", "member", "operator", "other"] as const;

/** An account with two owners, a member and an operator, and another account. */
const fill = async () => {
  const app = start();
  const people: Partial<Record<(typeof PEOPLE)[number], Visitor>> = {};
  const add = async (name: (typeof PEOPLE)[number], options: Parameters<typeof signIn>[1]) => {
    people[name] = await signIn(app, { email: `${name}@example.com`, isOperator: false, ...options });
  };
  await add("owner", {});
  await add("second", {});
  await add("member", { role: "member" });
  await add("operator", { isOperator: true });
  await add("other", { account: "other" });
  // Users who can sign in.
  app.db.sqlite.run("UPDATE users SET password_hash = 'argon2'");
  const visitor = (name: (typeof PEOPLE)[number]): Visitor => {
    const found = people[name];
    if (found === undefined) throw new Error(name);
    return found;
  };
  return { app, as: visitor, id: (name: string) => idOf(app, `${name}@example.com`) };
};

const linkIn = (html: string): string => /https?:\/\/[^<"\s]+\/setup\/\w{43}/.exec(html)?.[0] ?? "none";

describe("the users of an account", () => {
  test("are listed for owners, without those of other accounts", async () => {
    const { as } = await fill();
    const { status, text } = await as("owner").get(PATH);
    expect(status).toBe(200);
    for (const name of ["owner", "second", "member", "operator"]) expect(text).toContain(`${name}@example.com`);
    expect(text).not.toContain("other@example.com");
    expect(text).toContain("owner@example.com (you)");
  });

  test("are invited by a link that is shown once, under the host of the request", async () => {
    const { as, app } = await fill();
    const sent = await as("owner").submit(PATH, { email: "New@Example.com", role: "member" });
    expect(sent.status).toBe(200);
    const link = linkIn(sent.html);
    expect(link).toStartWith("http://localhost/setup/");
    expect(app.service.accounts.setupLinks.find(link.slice(-43))).toMatchObject({
      ok: true,
      value: { email: "new@example.com" },
    });
    expect(app.service.accounts.users.findByEmail("new@example.com")).toMatchObject({
      role: "member",
      isOperator: false,
    });
    const { text, html } = await as("owner").get(PATH);
    expect(text).toContain("Link until");
    expect(html).not.toContain(link);
  });

  test.each([
    [{ email: "nonsense", role: "member" }, 400, "This is not an email address."],
    [{ email: "MEMBER@example.com", role: "member" }, 409, "already exists"],
    [{ email: "other@example.com", role: "member" }, 409, "already exists"],
    [{ email: "new@example.com", role: "operator" }, 400, "One field needs your attention."],
  ])("are not invited with %j", async (fields, status, message) => {
    const { as } = await fill();
    const sent = await as("owner").post(PATH, fields);
    expect([sent.status, sent.text.includes(message)]).toEqual([status, true]);
    expect(sent.html).toContain(`value="${fields.email}"`);
  });

  test("an invitation never makes an operator", async () => {
    const { as, app } = await fill();
    await as("owner").post(PATH, { email: "new@example.com", role: "owner", isOperator: "on", is_operator: "true" });
    expect(app.service.accounts.users.findByEmail("new@example.com")?.isOperator).toBe(false);
  });
});

describe("one user", () => {
  test("changes its role, loses its sign-in by a reset, and is gone after its removal", async () => {
    const { as, app, id } = await fill();
    const path = `${PATH}/${id("member")}`;
    expect((await as("owner").submit(`${path}/role`, { role: "owner" })).text).toContain("is now an owner");
    expect(app.service.accounts.users.find(id("member"))?.role).toBe("owner");
    const reset = await as("owner").submit(`${path}/reset`);
    expect(linkIn(reset.html)).toContain("/setup/");
    expect((await as("member").get("/settings/profile")).location).toStartWith("/sign-in");
    expect((await as("owner").submit(`${path}/remove`)).text).toContain("member@example.com is removed.");
    expect((await as("owner").get(path)).status).toBe(404);
  });

  test("is signed out at once when it is removed", async () => {
    const { as, id } = await fill();
    expect((await as("member").get("/settings/profile")).status).toBe(200);
    await as("owner").post(`${PATH}/${id("member")}/remove`);
    expect((await as("member").get("/settings/profile")).location).toStartWith("/sign-in");
    expect((await as("member").post("/settings/profile/time-zone", { time_zone: "UTC" })).location).toBe("/sign-in");
  });

  test("loses the rights of an owner with the role, at once", async () => {
    const { as, id } = await fill();
    expect((await as("second").get(PATH)).status).toBe(200);
    await as("owner").post(`${PATH}/${id("second")}/role`, { role: "member" });
    expect((await as("second").get(PATH)).status).toBe(403);
    expect((await as("second").post(PATH, { email: "new@example.com", role: "owner" })).status).toBe(403);
  });

  test("the last owner stays an owner, and stays", async () => {
    const { app, id } = await fill();
    const other = await signIn(app, { account: "other", email: "x@example.com", role: "owner", isOperator: false });
    const path = `${PATH}/${id("other")}`;
    for (const [action, fields] of [["role", { role: "member" }] as const, ["remove", {}] as const]) {
      const sent = await other.post(`${path}/${action}`, fields);
      expect([sent.status, sent.text.includes("This is the last owner of the account.")]).toEqual([409, true]);
    }
    // The invited owner counts from the password on.
    app.db.sqlite.run("UPDATE users SET password_hash = 'argon2'");
    expect((await other.post(`${path}/role`, { role: "member" })).status).toBe(303);
    const { id: last } = app.service.accounts.users.findByEmail("x@example.com") ?? {};
    expect((await other.post(`${PATH}/${last}/remove`)).status).toBe(409);
  });

  test("who is an operator is changed by operators only: a new link would make its holder one", async () => {
    const { as, app, id } = await fill();
    const path = `${PATH}/${id("operator")}`;
    expect((await as("owner").get(path)).text).toContain("Only operators can change operators.");
    for (const action of ["role", "reset", "remove"]) {
      const sent = await as("owner").post(`${path}/${action}`, { role: "member" });
      expect([action, sent.status, linkIn(sent.html)]).toEqual([action, 403, "none"]);
    }
    expect(app.service.accounts.users.find(id("operator"))).toMatchObject({ role: "owner", isOperator: true });
    expect((await as("operator").post(`${PATH}/${id("owner")}/role`, { role: "member" })).status).toBe(303);
  });

  test("does not reset itself here: its profile asks for the password", async () => {
    const { as, id } = await fill();
    const sent = await as("owner").post(`${PATH}/${id("owner")}/reset`);
    expect([sent.status, linkIn(sent.html)]).toEqual([409, "none"]);
  });
});

const ACTIONS = (id: string): ReadonlyArray<readonly [string, Record<string, string>]> => [
  [PATH, { email: "new@example.com", role: "owner" }],
  [`${PATH}/${id}/role`, { role: "member" }],
  [`${PATH}/${id}/reset`, {}],
  [`${PATH}/${id}/remove`, {}],
];

describe("nobody else changes users", () => {
  test("not a member", async () => {
    const { app, as, id } = await fill();
    const before = JSON.stringify(app.service.accounts.users.list());
    for (const path of [PATH, `${PATH}/${id("second")}`]) expect((await as("member").get(path)).status).toBe(403);
    for (const [path, fields] of ACTIONS(id("second"))) {
      for (const prefix of ["", "/test"])
        expect([path, (await as("member").post(prefix + path, fields)).status]).toEqual([path, 403]);
    }
    expect(JSON.stringify(app.service.accounts.users.list())).toBe(before);
  });

  test("not an owner of another account", async () => {
    const { app, as, id } = await fill();
    const before = JSON.stringify(app.service.accounts.users.list());
    expect((await as("other").get(`${PATH}/${id("member")}`)).status).toBe(404);
    for (const [path, fields] of ACTIONS(id("member")).slice(1))
      expect([path, (await as("other").post(path, fields)).status]).toEqual([path, 404]);
    expect(JSON.stringify(app.service.accounts.users.list())).toBe(before);
  });

  test("not an owner without the token of its session, or with another one's", async () => {
    const { app, as, id } = await fill();
    const before = JSON.stringify(app.service.accounts.users.list());
    for (const [path, fields] of ACTIONS(id("member")))
      for (const token of ["", as("second").csrf])
        expect([path, (await as("owner").post(path, fields, token)).status]).toEqual([path, 403]);
    expect(JSON.stringify(app.service.accounts.users.list())).toBe(before);
  });

  test("not a visitor", async () => {
    const { app, id } = await fill();
    for (const [path] of ACTIONS(id("member"))) {
      const request = new Request(`http://localhost${path}`, { method: "POST", headers: { accept: "text/html" } });
      expect((await app.handle(request)).headers.get("location")).toBe("/sign-in");
    }
  });
});

test("who did what is in the audit log by the id of the user", async () => {
  const { as, app, id } = await fill();
  await as("owner").post(`${PATH}/${id("member")}/role`, { role: "owner" });
  const [entry] = app.service.accounts.audit.list({}, { before: null, limit: 1 });
  expect(entry).toMatchObject({
    ...{ user: `user ${id("owner")}`, action: "users.role", subject: id("member") },
    ...{ before: '{"role":"member"}', after: '{"role":"owner"}' },
  });
});
