import { Database as Sqlite } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";

const { dataDir, run } = createCommandLine();
const PASSWORD = "four plain words here";

const withSqlite = <T>(work: (sqlite: Sqlite) => T): T => {
  const sqlite = new Sqlite(join(dataDir, "postwarden.db"));
  try {
    return work(sqlite);
  } finally {
    sqlite.close();
  }
};
const listed = async (...args: string[]) => (await run(["users", "list", "--json", ...args])).json.users;

test("the first user of all is an owner and operator, the first of an account an owner, others are members", async () => {
  await run(["accounts", "create", "acme"]);
  const added = await run(["users", "add", "Ada@Example.com"]);
  expect(added.out).toMatch(/^http:\/\/127\.0\.0\.1:8080\/setup\/\w{43}\n\nGive this link to ada@example\.com: /);
  expect(added.out).toContain("set POSTWARDEN_BASE_URL");
  await run(["accounts", "create", "other"]);
  for (const args of [
    ["bob@example.com", "--account", "acme"],
    ["cy@example.com", "--account", "other"],
    ["dee@example.com", "--account", "acme", "--role", "owner", "--operator"],
  ])
    expect((await run(["users", "create", ...args])).status).toBe(0);
  expect(await listed()).toMatchObject([
    { email: "ada@example.com", account: "acme", role: "owner", operator: true, state: "link open" },
    { email: "bob@example.com", account: "acme", role: "member", operator: false },
    { email: "cy@example.com", account: "other", role: "owner", operator: false },
    { email: "dee@example.com", account: "acme", role: "owner", operator: true },
  ]);
  const cy = { email: "cy@example.com", last_sign_in_at: null };
  expect(await listed("--account", "other")).toMatchObject([cy]);
  withSqlite((sqlite) => sqlite.run("UPDATE users SET last_sign_in_at_ms = 1500 WHERE email LIKE 'cy@%'"));
  expect(await listed("--account", "other")).toMatchObject([{ ...cy, last_sign_in_at: "1970-01-01T00:00:01.500Z" }]);
  withSqlite((sqlite) => sqlite.run("UPDATE users SET last_sign_in_at_ms = NULL"));
  expect((await run(["users", "list"], { stdoutKind: "pipe" })).out).toContain("owner, operator");
});

test("the link is under the base URL, and only its hash is stored", async () => {
  const added = await run(["users", "add", "eve@example.com", "--account", "acme", "--json"], {
    settings: { BASE_URL: "https://mail.example.com" },
  });
  expect(added.json).toMatchObject({ email: "eve@example.com", account: "acme", has_password: false });
  const url = String(added.json.setup_url);
  expect(url).toMatch(/^https:\/\/mail\.example\.com\/setup\/\w{43}$/);
  const stored = withSqlite((sqlite) => JSON.stringify(sqlite.query("SELECT * FROM setup_links").all()));
  expect(stored).not.toContain(url.slice(-43));
});

describe("a password on standard input", () => {
  test("is set at once, and never shown", async () => {
    const args = ["users", "add", "fay@example.com", "--account", "acme", "--password-stdin"];
    const { status, out, err } = await run(args, { stdin: [PASSWORD] });
    expect({ status, out, err }).toEqual({ status: 0, out: "User fay@example.com is added.", err: "" });
    expect(await listed()).toContainEqual(expect.objectContaining({ email: "fay@example.com", state: "active" }));
    expect(withSqlite((sqlite) => JSON.stringify(sqlite.query("SELECT * FROM users").all()))).not.toContain(PASSWORD);
  });

  test("replaces the one of a user by reset", async () => {
    const before = withSqlite((sqlite) =>
      sqlite.query("SELECT password_hash FROM users WHERE email LIKE 'fay%'").get(),
    );
    const args = ["users", "set-password", "fay@example.com", "--password-stdin"];
    expect(await run(args, { stdin: ["five other plain words here"] })).toMatchObject({
      ...{ status: 0, out: "The password of fay@example.com is set." },
    });
    const after = withSqlite((sqlite) => sqlite.query("SELECT password_hash FROM users WHERE email LIKE 'fay%'").get());
    expect(after).not.toEqual(before);
  });

  test.each([
    [[], "no password on standard input"],
    [["short"], "at least 10 characters"],
    [["password1234"], "most common"],
  ])("%p is refused: %s", async (stdin, message) => {
    const args = ["users", "add", "gus@example.com", "--account", "acme", "--password-stdin"];
    expect(await run(args, { stdin })).toMatchObject({ status: 2, err: expect.stringContaining(message) });
  });
});

describe("removal and reset", () => {
  test("a reset removes password, codes and sessions, and prints a new link", async () => {
    withSqlite((sqlite) => {
      sqlite.run("UPDATE users SET totp_secret = 'AAAA', totp_confirmed_at_ms = 1 WHERE email = 'fay@example.com'");
      sqlite.run(
        "INSERT INTO sessions SELECT 'h', 'i', id, 'c', '', '', 1, 1 FROM users WHERE email = 'fay@example.com'",
      );
    });
    const reset = await run(["users", "reset", "Fay@example.com", "--json"]);
    expect(reset.json).toMatchObject({ has_password: false, second_factor: false });
    expect(reset.json.setup_url).toMatch(/\/setup\/\w{43}$/);
    expect(withSqlite((sqlite) => sqlite.query("SELECT * FROM sessions").all())).toEqual([]);
  });

  test("a removed user is gone with its links; the last owner stays", async () => {
    expect((await run(["users", "remove", "bob@example.com"])).out).toBe("User bob@example.com is removed.");
    expect(JSON.stringify(await listed())).not.toContain("bob@");
    await run(["users", "set-password", "cy@example.com", "--password-stdin"], { stdin: [PASSWORD] });
    const refused = await run(["users", "remove", "cy@example.com"]);
    expect(refused).toMatchObject({ status: 1, err: expect.stringContaining("last owner of the account") });
  });

  test("what was done is in the audit log, without addresses", async () => {
    const { json, out } = await run(["audit", "--json"]);
    const actions = (json.entries as { action: string }[]).map(({ action }) => action);
    for (const action of ["users.add", "users.remove", "users.reset"]) expect(actions).toContain(action);
    expect(out).not.toContain("@example.com");
  });
});

test.each([
  [["add", "bad address", "--account", "acme"], 2, "not an email address"],
  [["add", "ADA@example.com", "--account", "acme"], 1, "already exists"],
  [["add", "new@example.com"], 2, "There are several accounts"],
  [["add", "new@example.com", "--account", "none"], 1, 'There is no account "none"'],
  [["add", "new@example.com", "--account", "acme", "--role", "root"], 2, "Allowed choices are owner, member"],
  [["remove", "nobody@example.com"], 1, "`postwarden users list`"],
  [["reset", "nobody@example.com"], 1, "`postwarden users list`"],
])("users %p fails with %i: %s", async (args, status, message) => {
  expect(await run(["users", ...args])).toMatchObject({ status, err: expect.stringContaining(message) });
});

test("a deleted account takes its users along", async () => {
  expect((await run(["accounts", "delete", "acme", "--yes"])).status).toBe(0);
  expect(await listed()).toMatchObject([{ email: "cy@example.com" }]);
});

test("a viewer has a tag, which no other role has", async () => {
  await run(["accounts", "create", "agency"]);
  const add = (...more: string[]) => run(["users", "add", "vi@example.com", "--account", "agency", ...more]);
  expect(await add("--role", "member", "--tag", "client-a")).toMatchObject({
    status: 2,
    err: expect.stringContaining("--tag is for viewers. Add --role viewer."),
  });
  expect((await add("--role", "viewer")).status).toBe(1);
  expect((await add("--role", "viewer", "--tag", "Client-A")).status).toBe(0);
  expect(await listed()).toContainEqual(
    expect.objectContaining({ email: "vi@example.com", role: "viewer", tag: "client-a" }),
  );
  expect((await run(["users", "list"], { stdoutKind: "pipe" })).out).toContain("viewer of client-a");
});
