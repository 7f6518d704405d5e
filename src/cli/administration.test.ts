import { describe, expect, test } from "bun:test";
import { readApiKey } from "../base/secrets.ts";
import { createCommandLine } from "../testing/command-line.ts";

const UUID = expect.stringMatching(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

const { run } = createCommandLine();

describe("accounts", () => {
  test("are made, shown, listed and moved to another plan", async () => {
    const created = await run(["accounts", "create", "anna", "--json"]);
    const anna = {
      id: UUID,
      name: "anna",
      plan: "free",
      credits: { available: 100, held: 0 },
      limits: { requests_per_second: 1, burst: 2 },
      keys: 0,
      created_at: TIME,
    };
    expect(created).toMatchObject({ status: 0, err: "" });
    expect(created.json).toEqual(anna);
    expect((await run(["accounts", "show", "anna", "--json"])).json).toEqual(created.json);
    expect((await run(["accounts", "list", "--json"])).json).toEqual({ accounts: [created.json] });
    const moved = { ...created.json, plan: "scale", limits: { requests_per_second: 25, burst: 50 } };
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

describe("credits", () => {
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
      name: "test key",
      mode: "test",
      ending: String(json.key).slice(-4),
      scopes: expect.arrayContaining(["verifications:read", "webhooks:write"]),
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
    expect(out).toMatch(/CI +pw_live_…\w{4} +valid +verifications:read,bulk:write +never/);
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
