import { SQLiteError } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readApiKey } from "../foundation/base/secrets.ts";
import { SCOPES } from "../foundation/http/scopes.ts";
import { createApps } from "../testing/app.ts";
import { Ledger } from "./billing/store.ts";
import { accountOfSetting, Accounts, describeAccountProblem, isBalanced } from "./accounts.ts";
import { describeKeyProblem } from "./keys.ts";

const start = createApps();

describe("accounts", () => {
  test("begin on the plan Free with 100 credits, as an entry of the ledger", () => {
    const { service } = start();
    const created = service.accounts.accounts.create("anna");
    if (!created.ok) throw new Error(created.error);
    expect(created.value).toMatchObject({ name: "anna", plan: "free" });
    expect(service.accounts.ledger.sum(created.value.id)).toEqual({ available: 100, held: 0 });
  });

  test.each(["", " ", " a", "a ", "a\nb", "a\u0000", "x".repeat(101)])("are not called %p", (name) => {
    expect(start().service.accounts.accounts.create(name)).toEqual({ ok: false, error: "name_invalid" });
  });

  test.each(["a", "Anna & Co. Ⅷ", "😀".repeat(100), "__proto__", "' OR 1=1"])("may be called %p", (name) => {
    const { accounts, store } = start().service.accounts;
    expect(accounts.create(name).ok).toBe(true);
    expect(store.findAccountByName(name)?.name).toBe(name);
    expect(accounts.create(name)).toEqual({ ok: false, error: "name_taken" });
  });

  test.each([0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 1_000_000_001])(
    "are not granted %p credits",
    (credits) => {
      const { accounts } = start().service.accounts;
      accounts.create("anna");
      expect(accounts.grantCredits("anna", credits, "x")).toEqual({ ok: false, error: "credits_invalid" });
    },
  );

  test("that do not exist are a problem, not a crash", () => {
    const { accounts, keys } = start().service.accounts;
    expect(accounts.setPlan("nobody", "scale")).toEqual({ ok: false, error: "unknown_account" });
    expect(accounts.grantCredits("nobody", 1, "x")).toEqual({ ok: false, error: "unknown_account" });
    expect(keys.create({ account: "nobody", mode: "live" })).toEqual({ ok: false, error: "unknown_account" });
  });
});

describe("a statement of credits", () => {
  const folder = mkdtempSync(join(tmpdir(), "postwarden-accounts-"));
  afterAll(() => rmSync(folder, { recursive: true }));

  /** Two services on one file: whenever the first has read a balance, the second books a credit, where it may. */
  const disturbed = (name: string) => {
    const [ours, theirs] = [start({ path: join(folder, name) }), start({ path: join(folder, name) })];
    const id = ours.newAccount("anna", "free");
    theirs.db.sqlite.run("PRAGMA busy_timeout = 0");
    let booked = 0;
    const interfere = () => {
      try {
        theirs.db.transact((tx) =>
          theirs.service.accounts.ledger.grant(tx, { accountId: id, credits: 1, note: "meanwhile", atMs: 0 }),
        );
        booked += 1;
      } catch (error) {
        if (!(error instanceof SQLiteError)) throw error;
      }
    };
    const { store } = ours.service.accounts;
    class InterruptedLedger extends Ledger {
      override balance(accountId: string) {
        const balance = super.balance(accountId);
        interfere();
        return balance;
      }
    }
    const ledger = new InterruptedLedger(ours.db);
    const accounts = new Accounts(
      { db: ours.db, clock: ours.clock },
      { store, ledger, audit: ours.service.accounts.audit },
    );
    return { accounts, booked: () => booked };
  };

  test("is of one moment, whatever another process books between its reads", () => {
    const { accounts, booked } = disturbed("show.db");
    const statement = accounts.statement("anna");
    if (!statement.ok) throw new Error(statement.error);
    expect(booked()).toBe(1);
    expect(isBalanced(statement.value)).toBe(true);
    expect(statement.value).toMatchObject({ available: 100, granted: 100 });
    expect(accounts.statement("anna")).toMatchObject({ value: { available: 101, granted: 101 } });
  });

  test("after a grant comes from the transaction that granted", () => {
    const { accounts, booked } = disturbed("grant.db");
    const granted = accounts.grantCredits("anna", 50, "x");
    expect(granted).toMatchObject({ value: { available: 150, granted: 150, ledger: { available: 150, held: 0 } } });
    expect(booked()).toBe(0);
  });

  test("that does not add up refuses a grant, and then nothing is granted", () => {
    const { service, db } = start();
    service.accounts.accounts.create("anna");
    db.sqlite.run("UPDATE accounts SET credits_available = 7");
    expect(service.accounts.accounts.grantCredits("anna", 50, "x")).toEqual({ ok: false, error: "ledger_mismatch" });
    expect(service.accounts.accounts.statement("anna")).toMatchObject({
      value: { available: 7, ledger: { available: 100 } },
    });
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
      const [secret] = app.service.accounts.store.listSecrets(issued.id);
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
    const { accounts, keys, store } = start().service.accounts;
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
    expect(app.service.accounts.keys.rotate(app.newKey().id, graceMs)).toEqual({ ok: false, error: "time_invalid" });
  });

  test("that do not exist cannot be rotated or revoked", () => {
    const { keys } = start().service.accounts;
    expect(keys.rotate("nothing")).toEqual({ ok: false, error: "unknown_key" });
    expect(keys.revoke("nothing")).toEqual({ ok: false, error: "unknown_key" });
  });
});

test("a note of a grant has 1 to 200 characters", () => {
  const { service } = start();
  service.accounts.accounts.create("anna");
  const grant = (note: string) => service.accounts.accounts.grantCredits("anna", 1, note);
  expect([grant("é").ok, grant("é".repeat(200)).ok]).toEqual([true, true]);
  for (const note of ["", "é".repeat(201)]) expect(grant(note)).toEqual({ ok: false, error: "note_invalid" });
});

test("the audit log names a user, a key, or else who runs the process", () => {
  const { db, service } = start();
  const { audit } = service.accounts;
  const appended = (who: { readonly by?: string; readonly byKey?: string }) => {
    db.transact((tx) => audit.append(tx, { action: "accounts.enable", accountId: "a", subject: "anna", ...who }));
    return audit.list({}, { before: null, limit: 1 })[0]?.user;
  };
  const [process, user, key] = [appended({}), appended({ by: "ada" }), appended({ byKey: "k1" })];
  expect([user, key]).toEqual(["user ada", "key k1"]);
  expect(process).not.toMatch(/^user |^key |undefined/);
});

test("an unknown account is named", () => {
  expect(describeAccountProblem("unknown_account", "acme")).toBe(
    'There is no account "acme". `postwarden accounts list` lists all accounts.',
  );
});

test("a setting that names no account is named, the account is not: anybody may read it", () => {
  const { service } = start();
  expect(accountOfSetting(service.accounts.store, "POSTWARDEN_X", "customer")).toEqual({
    ok: false,
    error: "POSTWARDEN_X names an account that does not exist. `postwarden accounts list` lists all accounts.",
  });
});

test("every problem has a sentence", () => {
  for (const problem of ["name_taken", "name_invalid", "unknown_account", "credits_invalid"] as const) {
    expect(describeAccountProblem(problem, "acme")).toMatch(/^[A-Z].*\.$/);
  }
  for (const problem of ["unknown_key", "revoked_key", "scope_invalid", "time_invalid"] as const) {
    expect(describeKeyProblem(problem)).toMatch(/^[A-Z].*\.$/);
  }
});
