import { expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { err, ok } from "../../foundation/base/errors.ts";
import { createLog } from "../../foundation/base/log.ts";
import { createCodeAlerts, createTestMail } from "./user-mails.ts";
import type { Mailer } from "../../foundation/net/mailer.ts";
import { UserStore } from "../../accounts/user-store.ts";
import { createApps, type TestApp } from "../../testing/app.ts";
import { silentLog } from "../../testing/silent-log.ts";

const start = createApps();
const PASSWORD = "four plain words here";

const invite = (app: TestApp, accountId: string, name: string, role: "owner" | "member"): void => {
  const invited = app.service.accounts.users.invite(
    { accountId, email: `${name}@example.com`, role, isOperator: false },
    null,
  );
  if (!invited.ok) throw new Error(invited.error.message);
};

/** Ada, a member with codes, and two owners of her account beside another account. Returns how somebody enters wrong codes. */
const guessing = async (mailer: Mailer | null) => {
  const app = start();
  const [own, other] = [app.newAccount("own", "scale"), app.newAccount("other", "scale")];
  const requested = { accountId: own, email: "ada@example.com", role: "member", isOperator: false } as const;
  const created = await app.service.accounts.users.create({ ...requested, password: PASSWORD }, null);
  if (!created.ok) throw new Error(created.error.message);
  const ada = created.value.id;
  for (const name of ["first-owner", "second-owner"]) invite(app, own, name, "owner");
  invite(app, own, "colleague", "member");
  invite(app, other, "other-owner", "owner");
  const { sessions, profiles, guessedCodes } = app.service.accounts;
  const lines: string[] = [];
  const log = createLog("warn", app.clock, (text) => lines.push(text));
  sessions.onCodesGuessed(
    createCodeAlerts({ mailer, baseUrl: "https://verify.example", brandName: "Hofmail", log }, guessedCodes),
  );
  const secret = profiles.enrol(ada)?.secret ?? "";
  const code = new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: app.clock.nowMs() });
  const confirmed = await profiles.confirmCodes({ userId: ada, sessionId: "" }, { present: PASSWORD, code });
  if (!confirmed.ok) throw new Error(confirmed.error.message);
  let clients = 0;
  const client = () => ({ address: `2001:db8:${(++clients).toString(16)}::1`, userAgent: "test" });
  let challenge = "";
  const guess = async (): Promise<string> => {
    if (challenge === "") {
      const entered = await sessions.signIn({ email: "ada@example.com", password: PASSWORD }, client());
      if (entered.ok || entered.error.kind !== "code_required") throw new Error(JSON.stringify(entered));
      ({ challenge } = entered.error);
    }
    const result = await sessions.enterCode({ challenge, code: "000000" }, client());
    const said = result.ok ? "in" : result.error.kind;
    if (said === "codes_wait") challenge = "";
    return said;
  };
  return { app, guess, lines };
};

/** The mails that were sent, by recipient. */
const recording = () => {
  const mails: Array<Parameters<Mailer>[0]> = [];
  const mailer: Mailer = async (mail) => {
    mails.push(mail);
    return ok(null);
  };
  return { mails, mailer };
};

test("ten wrong codes are mailed to the user and the owners of the account, the next ones not", async () => {
  const { mails, mailer } = recording();
  const { app, guess } = await guessing(mailer);
  for (let n = 1; n <= 9; n++) expect(await guess()).toBe("wrong");
  expect(mails).toEqual([]);
  expect(await guess()).toBe("codes_wait");
  expect(mails.map(({ to }) => to).toSorted()).toEqual([
    ...["ada@example.com", "first-owner@example.com", "second-owner@example.com"],
  ]);
  expect(mails[0]?.subject).toBe("10 wrong codes at the sign-in of ada@example.com");
  expect(mails[0]?.text).toContain("https://verify.example/settings/profile");
  await app.advance(60_000);
  expect(await guess()).toBe("wrong");
  expect(mails).toHaveLength(3);
});

test("wrong codes are mailed with every doubling of their number", async () => {
  const { mails, mailer } = recording();
  const { app } = await guessing(null);
  const ada = new UserStore(app.db).findByEmail("ada@example.com")?.user;
  if (ada === undefined) throw new Error("no user");
  const deps = { mailer, baseUrl: "https://verify.example", brandName: "Hofmail", log: silentLog };
  const alert = createCodeAlerts(deps, { recipients: ({ email }) => [email] });
  for (const count of [10, 20, 30, 40, 50, 60, 80]) alert(ada, { count, waitMs: 0 });
  expect(mails.map(({ subject }) => Number.parseInt(subject, 10))).toEqual([10, 20, 40, 80]);
});

test("nobody is mailed where the service sends no mail", async () => {
  const { guess, lines } = await guessing(null);
  for (let n = 1; n <= 9; n++) expect(await guess()).toBe("wrong");
  expect(await guess()).toBe("codes_wait");
  expect(lines).toEqual([]);
});

test.each([
  ["refuses", async () => err({ isFinal: true, problem: "550 no" })],
  ["fails", () => Promise.reject(new Error("no relay"))],
] satisfies [string, Mailer][])(
  "a relay that %s is in the log, and the sign-in responds as ever",
  async (_, mailer) => {
    const { guess, lines } = await guessing(mailer);
    for (let n = 1; n <= 9; n++) expect(await guess()).toBe("wrong");
    expect(await guess()).toBe("codes_wait");
    await Promise.resolve();
    expect(lines.filter((text) => text.includes("mail about wrong codes not sent"))).toHaveLength(3);
    expect(lines.join()).not.toContain("@example.com");
  },
);

test("a test mail goes to the user, and a refusal of the relay is returned", async () => {
  const { mails, mailer } = recording();
  const deps = { mailer, baseUrl: "https://verify.example", brandName: "Postwarden" };
  expect(await createTestMail(deps)?.("ada@example.com")).toBeNull();
  expect(mails.map(({ to, subject }) => [to, subject])).toEqual([["ada@example.com", "Test mail from Postwarden"]]);
  expect(mails[0]?.text).toContain("https://verify.example/settings/notifications");
  const refusing: Mailer = async () => err({ isFinal: true, problem: "550 no" });
  expect(await createTestMail({ ...deps, mailer: refusing })?.("ada@example.com")).toBe("550 no");
  expect(createTestMail({ ...deps, mailer: null })).toBeNull();
});
