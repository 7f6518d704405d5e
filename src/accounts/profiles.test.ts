import { expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { ok } from "../foundation/base/errors.ts";
import { createApps } from "../testing/app.ts";
import { Profiles } from "./profiles.ts";
import { hashOfRecoveryCode } from "./second-factor.ts";
import { SessionStore } from "./session-store.ts";
import { UserStore } from "./user-store.ts";

const start = createApps();
const PASSWORD = "four plain words here";

const fill = async () => {
  const app = start();
  const add = async (account: string) => {
    const accountId = app.newAccount(account, "scale");
    const email = `${account}@example.com`;
    const created = await app.service.accounts.users.create(
      { accountId, email, role: "member", isOperator: false, password: PASSWORD },
      null,
    );
    if (!created.ok) throw new Error(created.error.message);
    return { email, own: { userId: created.value.id, sessionId: "none" } };
  };
  return { app, acme: await add("acme"), other: await add("other") };
};

test("recovery codes are stored as hashes only", async () => {
  const { app, acme } = await fill();
  const secret = app.service.accounts.profiles.enrol(acme.own.userId)?.secret ?? "";
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: app.clock.nowMs() });
  const confirmed = await app.service.accounts.profiles.confirmCodes(acme.own, { present: PASSWORD, code });
  const renewed = await app.service.accounts.profiles.replaceRecoveryCodes(acme.own.userId, PASSWORD);
  const codes = [confirmed, renewed].flatMap((result) => (result.ok ? result.value : []));
  expect(codes).toHaveLength(20);
  const stored = JSON.stringify(app.db.sqlite.query("SELECT * FROM users").all());
  expect(stored).toContain(hashOfRecoveryCode(codes[19] ?? ""));
  for (const one of codes) for (const text of [one, one.replaceAll("-", "")]) expect(stored).not.toContain(text);
});

test("codes are switched on by a code of the app only, and once", async () => {
  const { app, acme } = await fill();
  const { profiles } = app.service.accounts;
  const secret = profiles.enrol(acme.own.userId)?.secret ?? "";
  const codeOf = (base32: string) =>
    new TOTP({ secret: Secret.fromBase32(base32) }).generate({ timestamp: app.clock.nowMs() });
  const confirm = async (code: string) => {
    const confirmed = await profiles.confirmCodes(acme.own, { present: PASSWORD, code });
    return confirmed.ok ? "on" : confirmed.error.code;
  };
  expect(await confirm(codeOf("JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"))).toBe("code_wrong");
  expect(await confirm(codeOf(secret))).toBe("on");
  await app.clock.advance(30_000);
  expect(await confirm(codeOf(secret))).toBe("code_wrong");
});

test("a change of the password checks the throttle and the present one before it hashes anything", async () => {
  const { app, acme } = await fill();
  const done: string[] = [];
  const passwords = {
    verify: async (_: string, __: string | null, caller: string | null) => {
      done.push(`verify for ${caller}`);
      return ok(false);
    },
    hash: async () => {
      done.push("hash");
      return ok("");
    },
  };
  const profiles = new Profiles(
    { db: app.db, clock: app.clock },
    { store: new UserStore(app.db), sessions: new SessionStore(app.db), passwords, audit: app.service.accounts.audit },
  );
  const change = () => profiles.changePassword(acme.own, { present: "not mine", next: "five other plain words" });
  const codes = (await Promise.all(Array.from({ length: 300 }, change))).map((changed) =>
    changed.ok ? "changed" : changed.error.code,
  );
  expect(codes.filter((code) => code === "password_wrong")).toHaveLength(3);
  expect(codes.filter((code) => code === "throttled")).toHaveLength(297);
  const accountId = app.service.accounts.store.findAccountByName("acme")?.id;
  expect(done).toEqual(Array.from({ length: 3 }, () => `verify for ${accountId}`));
});

test("a member who sends changes of the password keeps nobody of another account from signing in", async () => {
  const { app, acme, other } = await fill();
  let isOver = false;
  const flood = Array.from({ length: 30 }, async () => {
    for (let n = 0; n < 20 && !isOver; n++) {
      const next = `${n} other plain words`;
      await app.service.accounts.profiles.changePassword(acme.own, { present: n % 2 === 0 ? PASSWORD : "wrong", next });
    }
  });
  const results: string[] = [];
  for (let n = 0; n < 10; n++) {
    const client = { address: "192.0.2.1", userAgent: "test" };
    const result = await app.service.accounts.sessions.signIn({ email: other.email, password: PASSWORD }, client);
    results.push(result.ok ? "in" : result.error.kind);
  }
  isOver = true;
  await Promise.all(flood);
  expect(results).toEqual(Array.from({ length: 10 }, () => "in"));
}, 60_000);
