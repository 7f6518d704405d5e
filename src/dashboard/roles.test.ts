import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { createApps } from "../testing/app.ts";
import { signIn } from "../testing/dashboard.ts";
import { hasRole, ROLES, roleOfForm } from "./roles.ts";

const start = createApps();
const ID = "019b7600-0000-7000-8000-000000000001";
const USERS = {
  viewer: { role: "viewer", isOperator: false, tag: "client-a" },
  member: { role: "member", isOperator: false },
  owner: { role: "owner", isOperator: false },
  operator: { role: "member", isOperator: true },
} as const;

const concrete = (path: string): string => path.replaceAll(/:\w+/g, ID);
const forms = ROLES.flatMap(({ role, forms: of }) => Object.keys(of).map((path) => ({ role, path })));
const pages = ROLES.flatMap(({ role, pages: of }) => of.map((path) => ({ role, path })));

describe.each(["viewer", "member", "owner", "operator"] as const)("as %s", (name) => {
  const enter = (app: ReturnType<typeof start>) => signIn(app, { email: `${name}@example.com`, ...USERS[name] });

  test("exactly the forms of the table are allowed, live and in test mode", async () => {
    const app = start();
    for (const { role, path } of forms) {
      const visitor = await signIn(app, { email: `${crypto.randomUUID()}@example.com`, ...USERS[name] });
      for (const prefix of ["", "/test"]) {
        // A wrong token: a form that is allowed is refused for it, and nothing is changed.
        const { text, status } = await visitor.post(`${prefix}${concrete(path)}`, {}, "x");
        expect([path, status]).toEqual([path, 403]);
        const isDenied =
          text.includes("Only an owner of the account") ||
          text.includes("Only an operator of this") ||
          text.includes("Only members");
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

test("the guide shows the same table", () => {
  const guide = readFileSync(new URL("../service/docs/manual/dashboard.md", import.meta.url), "utf8");
  const rows = ROLES.map(
    ({ role, may }) => `| ${role}${role === "operator" ? " (in addition to a role)" : ""} | ${may} |`,
  );
  // The formatter pads the cells of a table.
  const lines = guide.split("\n").map((line) => line.replaceAll(/ {2,}/g, " "));
  const first = lines.indexOf("| role | may |") + 2;
  expect(lines.slice(first, first + rows.length + 1)).toEqual([...rows, ""]);
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
  const [entry] = app.service.accounts.audit.list({ accountId: owner.accountId }, { before: null, limit: 1 });
  expect(entry?.action).toBe("notifications.set");
  expect(entry?.user).toBe(`user ${app.service.accounts.users.findByEmail("first@example.com")?.id}`);
});
