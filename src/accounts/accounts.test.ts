import { describe, expect, test } from "bun:test";
import { readApiKey } from "../base/secrets.ts";
import { SCOPES } from "../http/scopes.ts";
import { createApps } from "../testing/app.ts";
import { describeAccountProblem } from "./accounts.ts";
import { describeKeyProblem } from "./keys.ts";

const start = createApps();

describe("accounts", () => {
  test("begin on the plan Free with 100 credits, as an entry of the ledger", () => {
    const { service } = start();
    const created = service.accounts.create("anna");
    if (!created.ok) throw new Error(created.error);
    expect(created.value).toMatchObject({ name: "anna", plan: "free" });
    expect(service.ledger.sum(created.value.id)).toEqual({ available: 100, held: 0 });
  });

  test.each(["", " ", " a", "a ", "a\nb", "a\u0000", "x".repeat(101)])("are not called %p", (name) => {
    expect(start().service.accounts.create(name)).toEqual({ ok: false, error: "name_invalid" });
  });

  test.each(["a", "Anna & Co. Ⅷ", "😀".repeat(100), "__proto__", "' OR 1=1"])("may be called %p", (name) => {
    const { accounts, store } = start().service;
    expect(accounts.create(name).ok).toBe(true);
    expect(store.findAccountByName(name)?.name).toBe(name);
    expect(accounts.create(name)).toEqual({ ok: false, error: "name_taken" });
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_000_001])(
    "are not granted %p credits",
    (credits) => {
      const { accounts } = start().service;
      accounts.create("anna");
      expect(accounts.grantCredits("anna", credits, "x")).toEqual({ ok: false, error: "credits_invalid" });
    },
  );

  test("that do not exist are a problem, not a crash", () => {
    const { accounts, keys } = start().service;
    expect(accounts.setPlan("nobody", "scale")).toEqual({ ok: false, error: "unknown_account" });
    expect(accounts.grantCredits("nobody", 1, "x")).toEqual({ ok: false, error: "unknown_account" });
    expect(keys.create({ account: "nobody", mode: "live" })).toEqual({ ok: false, error: "unknown_account" });
  });
});

describe("keys", () => {
  test("have a readable form, all scopes, and are stored as a hash only", () => {
    const app = start();
    for (const mode of ["live", "test"] as const) {
      const issued = app.newKey({ mode });
      expect(issued.key).toMatch(new RegExp(`^pw_${mode}_[0-9A-Za-z]{49}$`));
      expect(readApiKey(issued.key)).toEqual({ mode });
      expect(issued.scopes).toEqual(SCOPES);
      const stored = JSON.stringify(
        ["api_keys", "key_secrets"].map((t) => app.db.sqlite.query(`SELECT * FROM ${t}`).all()),
      );
      expect(stored).not.toContain(issued.key.slice(8, 40));
      const [secret] = app.service.store.listSecrets(issued.id);
      expect(secret).toMatchObject({ hash: expect.stringMatching(/^[0-9a-f]{64}$/), ending: issued.key.slice(-4) });
    }
  });

  test.each([
    [{ scopes: [] }, "scope_invalid"],
    [{ scopes: ["verifications"] }, "scope_invalid"],
    [{ scopes: ["verifications:read", "all:write"] }, "scope_invalid"],
    [{ name: "" }, "name_invalid"],
    [{ name: "a\tb" }, "name_invalid"],
    [{ expiresAtMs: 0 }, "time_invalid"],
    [{ expiresAtMs: Date.UTC(2026, 0, 1) }, "time_invalid"],
    [{ expiresAtMs: Number.NaN }, "time_invalid"],
  ] as const)("%j is %s", (wanted, error) => {
    const { accounts, keys, store } = start().service;
    accounts.create("anna");
    expect(keys.create({ account: "anna", mode: "live", ...wanted })).toEqual({ ok: false, error });
    expect(store.listKeys()).toEqual([]);
  });

  test("a scope given twice counts once", () => {
    const key = start().newKey({ scopes: ["bulk:read", "bulk:read"] });
    expect(key.scopes).toEqual(["bulk:read"]);
  });

  test.each([-1, Number.NaN, Number.POSITIVE_INFINITY])("are not rotated with a grace of %p", (graceMs) => {
    const app = start();
    expect(app.service.keys.rotate(app.newKey().id, graceMs)).toEqual({ ok: false, error: "time_invalid" });
  });

  test("that do not exist cannot be rotated or revoked", () => {
    const { keys } = start().service;
    expect(keys.rotate("nothing")).toEqual({ ok: false, error: "unknown_key" });
    expect(keys.revoke("nothing")).toEqual({ ok: false, error: "unknown_key" });
  });
});

test("every problem has a sentence", () => {
  for (const problem of ["name_taken", "name_invalid", "unknown_account", "credits_invalid"] as const) {
    expect(describeAccountProblem(problem)).toMatch(/^[A-Z].*\.$/);
  }
  for (const problem of ["unknown_key", "revoked_key", "scope_invalid", "time_invalid"] as const) {
    expect(describeKeyProblem(problem)).toMatch(/^[A-Z].*\.$/);
  }
});
