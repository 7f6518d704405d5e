import { describe, expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { createApps, type TestApp } from "../testing/app.ts";
import { SessionStore } from "./session-store.ts";
import { type Client, Sessions } from "./sessions.ts";
import { UserStore, type User } from "./user-store.ts";

const start = createApps();
const PASSWORD = "four plain words here";
const DAY_MS = 24 * 60 * 60 * 1000;

const from = (address: string, token?: string): Client => ({ address, userAgent: "Firefox", token });
const HOME = from("192.0.2.1");

const fill = async () => {
  const app = start();
  const accountId = app.newAccount("acme", "scale");
  const add = async (email: string, role: "owner" | "member" = "owner"): Promise<User> => {
    const created = await app.service.accounts.users.create(
      { accountId, email, role, isOperator: false, password: PASSWORD },
      null,
    );
    if (!created.ok) throw new Error(created.error.message);
    return created.value;
  };
  const ada = await add("ada@example.com");
  return { app, accountId, add, ada, sessions: app.service.accounts.sessions };
};

const signIn = async (app: TestApp, password: string, client = HOME, email = "ada@example.com") => {
  const result = await app.service.accounts.sessions.signIn({ email, password }, client);
  return result.ok ? result.value.token : result.error.kind;
};

const tokenOf = async (app: TestApp, client = HOME): Promise<string> => {
  const result = await app.service.accounts.sessions.signIn({ email: "Ada@Example.com ", password: PASSWORD }, client);
  if (!result.ok) throw new Error(result.error.kind);
  return result.value.token;
};

describe("signing in", () => {
  test("with the right password begins a session that names user and account", async () => {
    const { app, ada, accountId, sessions } = await fill();
    const token = await tokenOf(app);
    const session = sessions.find(token);
    expect(session?.user.id).toBe(ada.id);
    expect(session?.account).toEqual({ id: accountId, name: "acme" });
    expect(session?.csrfToken).toMatch(/^\w{43}$/);
    expect(session?.csrfToken).not.toBe(token);
    const stored = JSON.stringify(app.db.sqlite.query("SELECT * FROM sessions").all());
    expect(stored).not.toContain(token);
  });

  test("is refused when the account is disabled between password and code", async () => {
    const { app, ada, accountId, sessions } = await fill();
    const { profiles } = app.service.accounts;
    const secret = Secret.fromBase32(profiles.enrol(ada.id)?.secret ?? "");
    const code = () => new TOTP({ secret }).generate({ timestamp: app.clock.nowMs() });
    const own = { userId: ada.id, sessionId: sessions.find(await tokenOf(app))?.id ?? "" };
    expect((await profiles.confirmCodes(own, { present: PASSWORD, code: code() })).ok).toBe(true);
    await app.advance(60_000);
    const challengeOf = async () => {
      const result = await sessions.signIn({ email: "ada@example.com", password: PASSWORD }, HOME);
      return !result.ok && result.error.kind === "code_required" ? result.error.challenge : "";
    };
    const challenge = await challengeOf();
    app.db.sqlite.run("UPDATE accounts SET disabled_at_ms = 1 WHERE id = ?", [accountId]);
    const refused = await sessions.enterCode({ challenge, code: code() }, HOME);
    expect(refused).toEqual({ ok: false, error: { kind: "disabled" } });
    app.db.sqlite.run("UPDATE accounts SET disabled_at_ms = NULL WHERE id = ?", [accountId]);
    expect((await sessions.enterCode({ challenge: await challengeOf(), code: code() }, HOME)).ok).toBe(true);
  });

  test("ends the session that the browser had: a token from before is worth nothing after", async () => {
    const { app, sessions } = await fill();
    const before = await tokenOf(app);
    const after = await tokenOf(app, from("192.0.2.1", before));
    expect(after).not.toBe(before);
    expect(sessions.find(before)).toBeUndefined();
    expect(sessions.find(after)).toBeDefined();
  });

  test.each([
    ["a wrong password", "ada@example.com", "another phrase"],
    ["an unknown address", "eve@example.com", PASSWORD],
    ["no address", "", PASSWORD],
    ["no password", "ada@example.com", ""],
    ["a password of a million characters", "ada@example.com", "x".repeat(1_000_000)],
  ])("with %s says the same", async (_what, email, password) => {
    const { app } = await fill();
    expect(await signIn(app, password, HOME, email)).toBe("wrong");
  });

  test("of an invited user without a password fails, whatever the password", async () => {
    const { app, accountId } = await fill();
    const invited = { accountId, email: "new@example.com", role: "member", isOperator: false } as const;
    expect(app.service.accounts.users.invite(invited, null).ok).toBe(true);
    expect(await signIn(app, "", HOME, "new@example.com")).toBe("wrong");
    expect(await signIn(app, PASSWORD, HOME, "new@example.com")).toBe("wrong");
  });

  test("to a disabled account is refused, and its sessions rest until it is enabled", async () => {
    const { app, sessions } = await fill();
    const token = await tokenOf(app);
    app.service.accounts.accounts.setEnabled("acme", false);
    expect(sessions.find(token)).toBeUndefined();
    expect(await signIn(app, PASSWORD)).toBe("disabled");
    expect(await signIn(app, "another phrase")).toBe("wrong");
    app.service.accounts.accounts.setEnabled("acme", true);
    expect(sessions.find(token)).toBeDefined();
  });
});

test("an unknown address, one without a password and a known one cost one verification each", async () => {
  const { app, accountId } = await fill();
  app.service.accounts.users.invite({ accountId, email: "new@example.com", role: "member", isOperator: false }, null);
  const hashes: (string | null)[] = [];
  const passwords = {
    verify: async (_: string, hash: string | null) => {
      hashes.push(hash);
      return { ok: true, value: false } as const;
    },
  };
  const stores = { store: new SessionStore(app.db), users: new UserStore(app.db) };
  const sessions = new Sessions(
    { db: app.db, clock: app.clock },
    { ...stores, passwords, audit: app.service.accounts.audit },
  );
  for (const email of ["eve@example.com", "new@example.com", "not an address", "ada@example.com"])
    expect(await sessions.signIn({ email, password: PASSWORD }, HOME)).toEqual({ ok: false, error: { kind: "wrong" } });
  expect(hashes).toEqual([null, null, null, expect.stringMatching(/^\$argon2id\$/)]);
});

test("too many sign-ins at once are no failures of their users", async () => {
  const { app } = await fill();
  const passwords = { verify: async () => ({ ok: false, error: "busy" }) as const };
  const stores = { store: new SessionStore(app.db), users: new UserStore(app.db) };
  const sessions = new Sessions(
    { db: app.db, clock: app.clock },
    { ...stores, passwords, audit: app.service.accounts.audit },
  );
  for (let n = 0; n < 10; n++)
    expect(await sessions.signIn({ email: "ada@example.com", password: PASSWORD }, HOME)).toEqual({
      ...{ ok: false, error: { kind: "busy" } },
    });
});

describe("a session", () => {
  test("ends 14 days after its last use, and 90 days after the sign-in in any case", async () => {
    const { app, sessions } = await fill();
    const token = await tokenOf(app);
    for (let day = 13; day < 90; day += 13) {
      app.clock.setWall(13 * DAY_MS);
      expect([day, sessions.find(token)?.user.email]).toEqual([day, "ada@example.com"]);
      await app.db.commit(() => undefined);
    }
    app.clock.setWall(13 * DAY_MS);
    expect(sessions.find(token)).toBeUndefined();
    const idle = await tokenOf(app);
    app.clock.setWall(14 * DAY_MS);
    expect(sessions.find(idle)).toBeUndefined();
    const inUse = await tokenOf(app);
    expect(await sessions.purge(() => false)).toBe(2);
    expect(sessions.find(inUse)?.user.email).toBe("ada@example.com");
  });

  test("notes its use at most once a minute", async () => {
    const { app, ada, sessions } = await fill();
    const token = await tokenOf(app);
    const startMs = app.clock.nowMs();
    const seenMs = async () => {
      sessions.find(token);
      await app.db.commit(() => undefined);
      return (sessions.list(ada.id)[0]?.lastSeenAtMs ?? 0) - startMs;
    };
    await app.advance(59_999);
    expect(await seenMs()).toBe(0);
    await app.advance(1);
    expect(await seenMs()).toBe(60_000);
    // A note that cannot be written is lost, and the next one is made again.
    const disk = "CREATE TRIGGER full BEFORE UPDATE ON sessions BEGIN SELECT RAISE(ABORT, 'disk full'); END";
    app.db.sqlite.run(disk);
    await app.advance(60_000);
    expect(await seenMs()).toBe(60_000);
    app.db.sqlite.run("DROP TRIGGER full");
    expect(await seenMs()).toBe(120_000);
  });

  test("ends alone, or with all others, or with all but one", async () => {
    const { app, ada, sessions } = await fill();
    const tokens = [await tokenOf(app), await tokenOf(app), await tokenOf(app)];
    const ids = tokens.map((token) => sessions.find(token)?.id ?? "");
    const open = () => tokens.map((token) => sessions.find(token) !== undefined);
    expect(sessions.end("019b7600-0000-7000-8000-000000000001", ids[0] ?? "")).toBe(false);
    expect(sessions.end(ada.id, ids[0] ?? "")).toBe(true);
    expect(open()).toEqual([false, true, true]);
    sessions.endAll(ada.id, ids[1]);
    expect(open()).toEqual([false, true, false]);
    sessions.endAll(ada.id);
    expect(open()).toEqual([false, false, false]);
  });

  test("ends at once when its user is removed, reset or given a password", async () => {
    const { app, add, sessions } = await fill();
    const { users } = app.service.accounts;
    const bob = await add("bob@example.com");
    const bobToken = async () => signIn(app, PASSWORD, HOME, "bob@example.com");
    for (const change of [() => users.setPassword(bob.id, PASSWORD), async () => users.reset(bob.id, null)]) {
      const token = await bobToken();
      expect(sessions.find(token)).toBeDefined();
      await change();
      expect(sessions.find(token)).toBeUndefined();
    }
    await users.setPassword(bob.id, PASSWORD);
    const token = await bobToken();
    expect(users.remove(bob.id, null).ok).toBe(true);
    expect(sessions.find(token)).toBeUndefined();
  });

  test("of a user are 50 at most: the least recently used end", async () => {
    const { app, ada, sessions } = await fill();
    const first = await tokenOf(app);
    const open = () => app.db.transact((tx) => sessions.open(tx, ada.id, HOME));
    for (let n = 0; n < 49; n++) {
      await app.advance(1);
      open();
    }
    expect(sessions.find(first)).toBeDefined();
    open();
    expect(sessions.find(first)).toBeUndefined();
    expect(sessions.list(ada.id)).toHaveLength(50);
  });
});

test.each([undefined, "", "x", "x".repeat(43), "x".repeat(10_000), "' OR 1=1 --"])(
  "the token %p is none",
  async (token) => {
    const { sessions } = await fill();
    expect(sessions.find(token)).toBeUndefined();
  },
);

describe("failed sign-ins", () => {
  test("are in the audit log once an hour with their number, and sign-ins each, without addresses", async () => {
    const { app } = await fill();
    const entries = async () => {
      await app.db.commit(() => undefined);
      const all = app.service.accounts.audit.list({}, { before: null, limit: 50 });
      return all.filter(({ action }) => action.startsWith("users.sign-in")).map(({ action, after }) => [action, after]);
    };
    for (let n = 0; n < 3; n++) await signIn(app, "another phrase");
    expect(await entries()).toEqual([["users.sign-in-failed", '{"failures":1}']]);
    await app.advance(60_000);
    await tokenOf(app);
    expect(await entries()).toEqual([
      ["users.sign-in", null],
      ["users.sign-in-failed", '{"failures":2}'],
      ["users.sign-in-failed", '{"failures":1}'],
    ]);
    const log = JSON.stringify(app.service.accounts.audit.list({}, { before: null, limit: 50 }));
    expect(log).not.toContain("example.com");
    expect(log).not.toContain("192.0.2.1");
  });
});
