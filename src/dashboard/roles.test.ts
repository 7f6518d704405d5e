import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createApps, type TestApp } from "../testing/app.ts";
import { type Fields, signIn } from "../testing/dashboard.ts";
import { hasRole, ROLES, roleOfForm } from "./roles.ts";

const start = createApps();
const ID = "019b7600-0000-7000-8000-000000000001";
const USERS = {
  member: { role: "member", isOperator: false },
  owner: { role: "owner", isOperator: false },
  operator: { role: "member", isOperator: true },
} as const;

const concrete = (path: string): string => path.replaceAll(/:\w+/g, ID);
const forms = ROLES.flatMap(({ role, forms: of }) => Object.keys(of).map((path) => ({ role, path })));
const pages = ROLES.flatMap(({ role, pages: of }) => of.map((path) => ({ role, path })));

describe.each(["member", "owner", "operator"] as const)("as %s", (name) => {
  const enter = (app: ReturnType<typeof start>) => signIn(app, { email: `${name}@example.com`, ...USERS[name] });

  test("exactly the forms of the table are allowed, live and in test mode", async () => {
    const app = start();
    for (const { role, path } of forms) {
      const visitor = await signIn(app, { email: `${crypto.randomUUID()}@example.com`, ...USERS[name] });
      for (const prefix of ["", "/test"]) {
        // A wrong token: a form that is allowed is refused for it, and nothing is changed.
        const { text, status } = await visitor.post(`${prefix}${concrete(path)}`, {}, "x");
        expect([path, status]).toEqual([path, 403]);
        const isDenied = text.includes("Only an owner of the account") || text.includes("Only an operator of this");
        expect([path, isDenied]).toEqual([path, !hasRole(role, USERS[name])]);
      }
    }
  });

  test("exactly the pages of the table are refused", async () => {
    const visitor = await enter(start());
    for (const { role, path } of pages) {
      const { status } = await visitor.get(concrete(path));
      expect([path, status === 403]).toEqual([path, !hasRole(role, USERS[name])]);
    }
  });
});

test("a form is found in the table by its action", () => {
  expect(roleOfForm(`/dmarc/${ID}/delete`)).toBe("owner");
  expect(roleOfForm("/lists/upload?column=2")).toBe("member");
  expect(roleOfForm("/settings/suppressions/remove")).toBe("operator");
  expect(roleOfForm("/lists/new/discard")).toBe("member");
  expect(roleOfForm("/sign-in")).toBe("anyone");
});

test("the README shows the same table", () => {
  const readme = readFileSync(new URL("../../README.md", import.meta.url), "utf8");
  const rows = ROLES.map(
    ({ role, may }) => `| ${role}${role === "operator" ? " (in addition to a role)" : ""} | ${may} |`,
  );
  expect(readme).toContain(["| role | may |", "|---|---|", ...rows].join("\n"));
});

test("a member can neither set the default webhook nor delete a domain or target", async () => {
  const app = start();
  const member = await signIn(app, { role: "member", isOperator: false });
  const owner = { accountId: member.accountId, mode: "live" } as const;
  expect((await member.post("/webhooks/default", { webhook_url: "https://hooks.example.com/x" })).status).toBe(403);
  expect((await member.post("/blocklists/bulk", { ids: ID, act: "delete-confirmed", back: "" })).status).toBe(403);
  expect((await member.post(`/dmarc/${ID}/delete`)).status).toBe(403);
  expect((await member.get("/webhooks")).text).toContain("Only an owner of the account can change this.");
  const first = await signIn(app, { email: "first@example.com", isOperator: false });
  expect((await first.post("/webhooks/default", { webhook_url: "https://hooks.example.com/x" })).status).toBe(303);
  const [entry] = app.service.audit.list({ accountId: owner.accountId }, { before: null, limit: 1 });
  expect(entry?.action).toBe("notifications.set");
  expect(entry?.user).toBe(`user ${app.service.users.findByEmail("first@example.com")?.id}`);
});

describe("the audit log", () => {
  interface Sent {
    readonly path: string;
    readonly fields: Fields;
  }
  type Prepared = { readonly app: TestApp; readonly other: string; readonly key: string };
  const to =
    (path: string, fields: Fields = {}) =>
    (): Sent => ({ path, fields });
  const user =
    (act: string, fields: Fields = {}) =>
    ({ other }: Prepared): Sent => ({
      ...{ path: `/settings/users/${other}/${act}`, fields },
    });
  const key =
    (act: string, fields: Fields = {}) =>
    (given: Prepared): Sent => ({
      ...{ path: `/settings/keys/${given.key}/${act}`, fields },
    });

  /** Every form that its use case records: what to send. `changing-forms.test.ts` sends the others. */
  const SENT: Readonly<Record<string, (given: Prepared) => Sent>> = {
    "/settings/account": to("/settings/account", { name: "renamed" }),
    "/settings/keys": to("/settings/keys", { name: "new", mode: "test", scopes: "bulk:read", expires: "" }),
    "/settings/keys/:id/rotate": key("rotate", { grace: "0" }),
    "/settings/keys/:id/revoke": key("revoke", { sure: "on" }),
    "/settings/users": to("/settings/users", { email: "new@example.com", role: "member" }),
    "/settings/users/:id/role": user("role", { role: "owner" }),
    "/settings/users/:id/remove": user("remove"),
    "/settings/users/:id/reset": user("reset"),
    "/settings/suppressions": to("/settings/suppressions", { entries: "blocked@example.com" }),
    "/settings/suppressions/remove": to("/settings/suppressions/remove", { entry: "blocked.example" }),
    "/settings/notifications": to("/settings/notifications", {
      ...{ webhook_url: "", recipients: "", severity: "", digest: "off" },
    }),
    "/welcome/keys": to("/welcome/keys", { mode: "test" }),
    "/webhooks/secret/rotate": to("/webhooks/secret/rotate"),
    "/settings/service/backup": to("/settings/service/backup"),
  };
  const ELSEWHERE = [
    ...["/settings/profile/password", "/settings/profile/codes", "/settings/profile/codes/confirm"],
    "/settings/notifications/mail",
  ];
  const useCases = ROLES.flatMap(({ forms: of }) => Object.entries(of)).flatMap(([path, rule]) =>
    "useCase" in rule ? [[path, rule.useCase] as const] : [],
  );

  test("is written by use cases for these forms", () => {
    expect(useCases.map(([path]) => path).toSorted()).toEqual([...Object.keys(SENT), ...ELSEWHERE].toSorted());
  });

  test.each(useCases.filter(([path]) => path in SENT))("has %s as %s", async (path, action) => {
    const app = start({ settings: { BACKUP_DIR: "/tmp" } });
    const visitor = await signIn(app);
    await signIn(app, { email: "other@example.com", role: "member", isOperator: false });
    const issued = app.service.keys.create({ account: "main", mode: "test" });
    const given = {
      ...{ app, other: app.service.users.findByEmail("other@example.com")?.id ?? "" },
      key: issued.ok ? issued.value.id : "",
    };
    const sent = SENT[path]?.(given) ?? { path, fields: {} };
    const { status, text } = await visitor.post(sent.path, sent.fields);
    expect([path, status < 400, status < 400 ? "" : text]).toEqual([path, true, ""]);
    const own = `user ${app.service.users.findByEmail("main@example.com")?.id}`;
    const entries = app.service.audit.list({}, { before: null, limit: 50 }).filter((entry) => entry.user === own);
    expect(entries.map((entry) => entry.action)).toContain(action);
  });
});
