import { Database as Sqlite } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { hostname } from "node:os";
import { join } from "node:path";
import { ownUserId, userNameOf } from "../foundation/base/private-file.ts";
import { readApiKey } from "../foundation/base/secrets.ts";
import { createCommandLine } from "../testing/command-line.ts";

const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const { dataDir, run } = createCommandLine();

describe("accounts", () => {
  test("are made, shown, listed and moved to another plan", async () => {
    const created = await run(["accounts", "create", "anna", "--json"]);
    const anna = {
      id: UUID,
      name: "anna",
      plan: "free",
      credits: { available: 100, held: 0 },
      limits: { requests_per_second: 1, burst: 2, custom: false },
      keys: 0,
      created_at: TIME,
      disabled_at: null,
    };
    expect(created).toMatchObject({ status: 0, err: "" });
    expect(created.json).toEqual(anna);
    expect((await run(["accounts", "show", "anna", "--json"])).json).toEqual(created.json);
    expect((await run(["accounts", "list", "--json"])).json).toEqual({ accounts: [created.json] });
    const moved = { ...created.json, plan: "scale", limits: { requests_per_second: 25, burst: 50, custom: false } };
    expect((await run(["accounts", "set-plan", "anna", "scale", "--json"])).json).toEqual(moved);
    expect((await run(["accounts", "show", "anna", "--json"])).json).toEqual(moved);
  });

  test("are shown to people as a table", async () => {
    await run(["accounts", "create", "bert", "--plan", "growth"]);
    for (const args of [["list"], ["show", "bert"], ["set-plan", "bert", "growth"]]) {
      const { status, out } = await run(["accounts", ...args]);
      expect(status).toBe(0);
      expect(out).toMatch(/^ACCOUNT +PLAN +AVAILABLE/);
      expect(out).toMatch(/bert +growth +100 +0 +10 \(burst 20\)/);
    }
  });
});

describe("an account", () => {
  test("has limits of its own until its plan is set without them", async () => {
    await run(["accounts", "create", "hans"]);
    const limitsAfter = async (...flags: string[]) =>
      (await run(["accounts", "set-plan", "hans", "growth", ...flags, "--json"])).json.limits;
    expect(await limitsAfter("--rate", "40")).toEqual({ requests_per_second: 40, burst: 80, custom: true });
    expect(await limitsAfter("--rate", "40", "--burst", "7")).toEqual({
      ...{ requests_per_second: 40, burst: 7, custom: true },
    });
    expect(await limitsAfter("--burst", "100")).toEqual({ requests_per_second: 10, burst: 100, custom: true });
    expect((await run(["accounts", "show", "hans"])).out).toMatch(
      /10 \(burst 100\)[\s\S]*\n +\*[\s\S]*\n\* limits of its own/,
    );
    expect(await limitsAfter()).toEqual({ requests_per_second: 10, burst: 20, custom: false });
    for (const wrong of ["0", "1.5", "x", "10001", "-1"])
      for (const flag of ["--rate", "--burst"])
        expect(await run(["accounts", "set-plan", "hans", "free", `${flag}=${wrong}`])).toMatchObject({
          status: 2,
          out: "",
          err: expect.stringContaining("whole number"),
        });
    expect((await run(["accounts", "show", "hans", "--json"])).json).toMatchObject({ plan: "growth" });
  });

  test("is renamed, disabled and enabled; its keys say so", async () => {
    await run(["accounts", "create", "ida"]);
    await run(["accounts", "create", "jan"]);
    const { json: key } = await run(["keys", "create", "--account", "ida", "--mode", "test", "--json"]);
    expect(await run(["accounts", "rename", "ida", "jan"])).toMatchObject({ status: 1 });
    expect(await run(["accounts", "rename", "ida", " "])).toMatchObject({ status: 2 });
    expect(await run(["accounts", "rename", "nobody", "ida2"])).toMatchObject({ status: 1 });
    expect((await run(["accounts", "rename", "ida", "ida2", "--json"])).json).toMatchObject({ name: "ida2", keys: 1 });
    expect((await run(["accounts", "disable", "ida2", "--json"])).json).toMatchObject({ disabled_at: TIME });
    const again = (await run(["accounts", "disable", "ida2", "--json"])).json;
    expect((await run(["accounts", "show", "ida2", "--json"])).json).toEqual(again);
    const { out } = await run(["keys", "list", "--account", "ida2"]);
    expect(out).toContain(String(key.id));
    expect(out).toMatch(/STATE +disabled/);
    expect((await run(["accounts", "enable", "ida2", "--json"])).json).toMatchObject({ disabled_at: null });
    expect((await run(["keys", "list", "--account", "ida2"])).out).toMatch(/STATE +valid/);
  });
});

test("renaming an account says that the settings that name it must follow", async () => {
  await run(["accounts", "create", "box"]);
  const url = "imaps://a%40example.com:x@mail.example.com/INBOX";
  const settings = {
    ...{ IMAP_URL: url, IMAP_ACCOUNT: "box", POLICY_LISTEN: "127.0.0.1:1", POLICY_ACCOUNT: "box" },
    ...{ BOUNCE_IMAP_URL: url, BOUNCE_IMAP_ACCOUNT: "box", BOUNCE_IMAP_SIGNED_BY: "example.com" },
  };
  const { status, err } = await run(["accounts", "rename", "box", "mailbox"], { settings });
  const named = [...err.matchAll(/POSTWARDEN_([A-Z_]+)_ACCOUNT names/g)].map(([, name]) => name);
  expect({ status, named }).toEqual({ status: 0, named: ["IMAP", "BOUNCE_IMAP", "POLICY"] });
});

describe("the audit log", () => {
  interface Entry {
    readonly action: string;
    readonly subject: string | null;
    readonly before: unknown;
    readonly after: unknown;
  }
  const entriesOf = async (...flags: string[]) => {
    const { json } = await run(["audit", ...flags, "--json"]);
    return (json as { entries: Entry[] }).entries.map(({ action, subject, before, after }) => ({
      ...{ action, subject, before, after },
    }));
  };

  test("has every change of an account with the values before and after, newest first, and nothing refused", async () => {
    await run(["accounts", "create", "karl", "--plan", "starter"]);
    const { json: key } = await run(["keys", "create", "--account", "karl", "--mode", "live", "--json"]);
    await run(["keys", "rotate", String(key.id), "--grace-hours", "0"]);
    await run(["keys", "revoke", String(key.id)]);
    await run(["keys", "revoke", String(key.id)]);
    await run(["credits", "grant", "karl", "50", "--note", "invoice 17"]);
    await run(["credits", "grant", "karl", "0"]);
    await run(["accounts", "set-plan", "karl", "scale", "--rate", "40"]);
    await run(["accounts", "disable", "karl"]);
    await run(["accounts", "disable", "karl"]);
    await run(["accounts", "enable", "karl"]);
    await run(["accounts", "rename", "karl", "karla"]);
    const rates = { requests_per_second: null, burst: null };
    expect(await entriesOf("--account", "karla")).toEqual([
      { action: "accounts.rename", subject: "karl", before: { name: "karl" }, after: { name: "karla" } },
      { action: "accounts.enable", subject: "karl", before: null, after: null },
      { action: "accounts.disable", subject: "karl", before: null, after: null },
      {
        action: "accounts.set-plan",
        subject: "karl",
        before: { plan: "starter", ...rates },
        after: { plan: "scale", ...rates, requests_per_second: 40 },
      },
      {
        action: "credits.grant",
        subject: "karl",
        before: { available: 100 },
        after: { available: 150, granted: 50, note: "invoice 17" },
      },
      { action: "keys.revoke", subject: String(key.id), before: { name: "live key" }, after: null },
      {
        action: "keys.rotate",
        subject: String(key.id),
        before: null,
        after: { ending: expect.any(String), old_secret_valid_until: TIME },
      },
      {
        action: "keys.create",
        subject: String(key.id),
        before: null,
        after: expect.objectContaining({ mode: "live" }),
      },
      { action: "accounts.create", subject: "karl", before: null, after: { plan: "starter", credits: 100 } },
    ]);
    expect(await entriesOf("--account", "karla", "--limit", "1")).toHaveLength(1);
    expect(await entriesOf("--since", "2999-01-01")).toEqual([]);
    expect(JSON.stringify(await entriesOf("--limit", "1000"))).not.toContain(String(key.key));
  });

  test("names the user, also the one who used sudo, and the process", async () => {
    await run(["accounts", "create", "lena"]);
    const environment = { POSTWARDEN_DATA_DIR: dataDir, SUDO_USER: "anna" };
    await run(["accounts", "set-plan", "lena", "scale"], { environment });
    const { json } = await run(["audit", "--account", "lena", "--json"]);
    const username = userNameOf(ownUserId());
    expect(json.entries).toMatchObject([
      { user: `anna (as ${username})`, host: hostname(), pid: process.pid, at: TIME },
      { user: username, host: hostname(), pid: process.pid },
    ]);
    const { out } = await run(["audit", "--account", "lena"], { stdoutKind: "terminal" });
    expect(out.replace(/\s+/g, " ")).toContain("plan free →");
    expect(out).toContain("accounts.set-plan");
  });

  test("refuses unknown accounts and times", async () => {
    expect(await run(["audit", "--account", "nobody"])).toMatchObject({ status: 1, out: "" });
    expect(await run(["audit", "--since", "soon"])).toMatchObject({ status: 2, out: "" });
    expect(await run(["audit", "--limit", "0"])).toMatchObject({ status: 2, out: "" });
  });

  test("cannot be changed", () => {
    const db = new Sqlite(join(dataDir, "postwarden.db"));
    for (const change of [
      "UPDATE audit_log SET user = 'x'",
      "DELETE FROM audit_log",
      "REPLACE INTO audit_log SELECT * FROM audit_log LIMIT 1",
    ])
      expect(() => db.run(change)).toThrow("the audit log is append-only");
    db.close();
  });
});

describe("credits", () => {
  test("have a history with notes", async () => {
    await run(["accounts", "create", "mia"]);
    await run(["credits", "grant", "mia", "5", "--note", "invoice 18"]);
    const { json } = await run(["credits", "history", "mia", "--json"]);
    expect(json.entries).toMatchObject([
      { kind: "grant", available: 5, held: 0, reference: null, note: "invoice 18", at: TIME },
      { kind: "grant", available: 100, note: "sign-up" },
    ]);
    expect((await run(["credits", "history", "mia", "--limit", "1", "--json"])).json.entries).toHaveLength(1);
    expect((await run(["credits", "history", "mia", "--grants"])).out).toMatch(/grant +\+5 +0 +invoice 18/);
    expect(await run(["credits", "history", "nobody"])).toMatchObject({ status: 1 });
    const long = await run(["credits", "grant", "mia", "5", "--note", "x".repeat(201)]);
    expect(long).toMatchObject({ status: 2, err: expect.stringContaining("A note must have") });
  });

  test("are granted and shown", async () => {
    await run(["accounts", "create", "carl"]);
    const carl = { account: "carl", available: 150, held: 0, granted: 150, spent: 0 };
    expect((await run(["credits", "grant", "carl", "50", "--json"])).json).toEqual(carl);
    expect((await run(["credits", "show", "carl", "--json"])).json).toEqual(carl);
    expect((await run(["credits", "show", "carl"])).out).toMatch(/carl +150 +0 +150 +0/);
  });
});

describe("keys", () => {
  test("are made, with the secret in the answer and nowhere later", async () => {
    await run(["accounts", "create", "dora"]);
    const { status, json, out } = await run(["keys", "create", "--account", "dora", "--mode", "test", "--json"]);
    expect(status).toBe(0);
    expect(json).toEqual({
      id: UUID,
      key: expect.any(String),
      account: "dora",
      account_disabled: false,
      name: "test key",
      mode: "test",
      ending: String(json.key).slice(-4),
      scopes: expect.arrayContaining(["verifications:read", "webhooks:write"]),
      publishable: null,
      created_at: TIME,
      last_used_at: null,
      expires_at: null,
      revoked_at: null,
      old_secret_valid_until: null,
    });
    expect(out.split("\n")).toHaveLength(1);
    expect(readApiKey(String(json.key))).toEqual({ mode: "test" });
    for (const flags of [[], ["--json"]]) {
      const { out: listed } = await run(["keys", "list", "--account", "dora", ...flags]);
      expect(listed).toContain(String(json.id));
      expect(listed).not.toContain(String(json.key));
    }
  });

  test("take a name, scopes and an end", async () => {
    await run(["accounts", "create", "emil"]);
    const options = ["--name", "CI", "--scopes", "verifications:read, bulk:write", "--expires", "2999-01-31"];
    const { json } = await run(["keys", "create", "--account", "emil", "--mode", "live", ...options, "--json"]);
    expect(json).toMatchObject({
      name: "CI",
      scopes: ["verifications:read", "bulk:write"],
      expires_at: "2999-01-31T00:00:00.000Z",
    });
    const { out } = await run(["keys", "list", "--account", "emil"]);
    expect(out).toMatch(
      /NAME +CI\nKEY +pw_live_…\w{4}\nSTATE +valid\nSCOPES +verifications:read, bulk:write\nCREATED +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\nEXPIRES +2999-01-31 00:00:00\nLAST USED +never/,
    );
  });

  test("are rotated: same id, new secret, the old one for 24 hours or as told", async () => {
    await run(["accounts", "create", "fred"]);
    const { json: made } = await run(["keys", "create", "--account", "fred", "--mode", "live", "--json"]);
    const { json: rotated } = await run(["keys", "rotate", String(made.id), "--json"]);
    expect(rotated).toMatchObject({ id: made.id, mode: "live", old_secret_valid_until: TIME });
    expect(rotated.key).not.toBe(made.key);
    const { json: again } = await run(["keys", "rotate", String(made.id), "--grace-hours", "0", "--json"]);
    expect(again).toMatchObject({ id: made.id, old_secret_valid_until: null });
  });

  test("are revoked once and for good", async () => {
    await run(["accounts", "create", "gerd"]);
    const { json } = await run(["keys", "create", "--account", "gerd", "--mode", "live", "--json"]);
    const id = String(json.id);
    expect((await run(["keys", "revoke", id, "--json"])).json).toMatchObject({ id, revoked_at: TIME });
    expect((await run(["keys", "list", "--account", "gerd"])).out).toContain("revoked");
    for (const command of ["revoke", "rotate"]) {
      const again = await run(["keys", command, id, "--json"]);
      expect(again.status).toBe(1);
      expect(JSON.parse(again.err)).toMatchObject({ error: "revoked_key" });
    }
  });

  test("are printed to people with the secret alone on the first line", async () => {
    await run(["accounts", "create", "hans"]);
    const { out } = await run(["keys", "create", "--account", "hans", "--mode", "live"]);
    expect(readApiKey(out.split("\n")[0] ?? "")).toEqual({ mode: "live" });
    expect(out).toContain("shown only once");
  });
});
