import { describe, expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { createApps } from "../../testing/app.ts";
import { Browser } from "../../testing/dashboard-browser.ts";

const start = createApps();
const PASSWORD = "four plain words here";
const NEXT = "five other plain words";
const PATH = "/settings/profile";

const fill = async () => {
  const app = start();
  const accountId = app.newAccount("acme", "scale");
  const requested = {
    accountId,
    email: "ada@example.com",
    role: "member",
    isOperator: false,
    password: PASSWORD,
  } as const;
  const created = await app.service.accounts.users.create(requested, null);
  if (!created.ok) throw new Error(created.error.message);
  const open = async () => {
    const browser = new Browser(app);
    const client = { address: "192.0.2.1", userAgent: "Mozilla/5.0 (X11; Linux x86_64) Firefox/130.0" };
    browser.setCookie(
      "pw_session",
      app.db.transact((tx) => app.service.accounts.sessions.open(tx, created.value.id, client)),
    );
    await browser.get(PATH);
    return browser;
  };
  const signIn = async (password: string) => {
    const client = { address: "192.0.2.9", userAgent: "" };
    const result = await app.service.accounts.sessions.signIn({ email: "ada@example.com", password }, client);
    return result.ok ? "signed in" : result.error.kind;
  };
  return { app, user: created.value, open, signIn };
};

describe("the password", () => {
  test("is changed with the present one, and ends all other sessions", async () => {
    const { open, signIn } = await fill();
    const [here, there] = [await open(), await open()];
    const sent = await here.post(`${PATH}/password`, { present: PASSWORD, password: NEXT, repeat: NEXT });
    expect(sent.status).toBe(303);
    expect((await here.get(PATH)).text).toContain("Your password is changed.");
    expect((await there.get(PATH)).location).toStartWith("/sign-in");
    expect([await signIn(PASSWORD), await signIn(NEXT)]).toEqual(["wrong", "signed in"]);
  });

  test.each([
    [{ present: "wrong one", password: NEXT, repeat: NEXT }, "This is not your password."],
    [{ present: PASSWORD, password: "short", repeat: "short" }, "at least 10 characters"],
    [{ present: PASSWORD, password: NEXT, repeat: "else" }, "The two passwords differ."],
    [{ present: PASSWORD, password: "ada@example.com", repeat: "ada@example.com" }, "must not be the email address"],
  ])("stays with %j", async (fields, message) => {
    const { open, signIn } = await fill();
    const sent = await (await open()).post(`${PATH}/password`, fields);
    expect([sent.status, sent.text.includes(message)]).toEqual([400, true]);
    expect(await signIn(PASSWORD)).toBe("signed in");
  });

  test("cannot be guessed in an open session", async () => {
    const { app, open } = await fill();
    const browser = await open();
    const guess = (present: string) => browser.post(`${PATH}/password`, { present, password: NEXT, repeat: NEXT });
    for (let n = 0; n < 3; n++) expect((await guess(`guess ${n}`)).status).toBe(400);
    expect((await guess(PASSWORD)).status).toBe(429);
    await app.advance(1_000);
    expect((await guess(PASSWORD)).status).toBe(303);
  });
});

describe("codes of an app", () => {
  const enrol = async () => {
    const { app, user, open, signIn } = await fill();
    const browser = await open();
    await browser.post(`${PATH}/codes/enrol`);
    const page = await browser.get(PATH);
    const secret = app.service.accounts.profiles.findEnrolment(user.id)?.secret ?? "";
    const code = () => new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: app.clock.nowMs() });
    return { app, user, open, signIn, browser, page, secret, code };
  };

  test("are set up by a QR code or a key, and count once a code is confirmed", async () => {
    const { browser, page, secret, code, signIn, open } = await enrol();
    expect(page.html).toContain('aria-label="QR code for the authenticator app"');
    expect(page.text).toContain(secret.replaceAll(/(.{4})(?=.)/g, "$1 "));
    expect(await signIn(PASSWORD)).toBe("signed in");
    const there = await open();
    const sent = await browser.post(`${PATH}/codes/confirm`, { code: code(), present: PASSWORD });
    const on = await browser.get(sent.location ?? "");
    expect(on.status).toBe(200);
    expect(on.html.match(/\w{4}-\w{4}-\w{4}-\w{4}/g)?.length).toBeGreaterThanOrEqual(10);
    expect(on.html).not.toContain(secret);
    expect(await signIn(PASSWORD)).toBe("code_required");
    expect((await there.get(PATH)).location).toStartWith("/sign-in");
    const { text, html } = await browser.get(PATH);
    expect(text).toContain("10 recovery codes are left");
    expect(html).not.toContain(secret);
  });

  test.each([
    ["a wrong code", { code: "000000", present: PASSWORD }, "This code is wrong"],
    ["a wrong password", { code: "now", present: "wrong one" }, "This is not your password."],
  ])("stay off with %s", async (_, fields, message) => {
    const { browser, code, signIn } = await enrol();
    const sent = await browser.post(`${PATH}/codes/confirm`, {
      ...fields,
      code: fields.code === "now" ? code() : fields.code,
    });
    expect([sent.status, sent.text.includes(message)]).toEqual([400, true]);
    expect(await signIn(PASSWORD)).toBe("signed in");
  });

  test("are not set up when that is cancelled, and another secret comes next", async () => {
    const { app, user, browser, secret } = await enrol();
    await browser.post(`${PATH}/codes/cancel`);
    expect(app.service.accounts.profiles.findEnrolment(user.id)).toBeNull();
    await browser.post(`${PATH}/codes/enrol`);
    expect(app.service.accounts.profiles.findEnrolment(user.id)?.secret).not.toBe(secret);
  });

  test("are switched off, and get new recovery codes, with the password only", async () => {
    const { app, user, browser, code, signIn } = await enrol();
    await browser.post(`${PATH}/codes/confirm`, { code: code(), present: PASSWORD });
    await browser.get(PATH);
    const stored = () => app.db.sqlite.query("SELECT recovery_codes FROM users").get();
    const before = stored();
    for (const action of ["recovery", "off"])
      expect((await browser.post(`${PATH}/codes`, { change: action, present: "wrong one" })).status).toBe(400);
    expect(stored()).toEqual(before);
    const replaced = await browser.post(`${PATH}/codes`, { change: "recovery", present: PASSWORD });
    expect((await browser.get(replaced.location ?? "")).text).toContain("shown only now");
    expect(stored()).not.toEqual(before);
    expect(await signIn(PASSWORD)).toBe("code_required");
    expect((await browser.post(`${PATH}/codes`, { change: "off", present: PASSWORD })).status).toBe(303);
    expect(await signIn(PASSWORD)).toBe("signed in");
    expect(app.service.accounts.profiles.findEnrolment(user.id)).toBeNull();
  });

  test("that are on are not set up again by an intruder", async () => {
    const { browser, code, user, app } = await enrol();
    await browser.post(`${PATH}/codes/confirm`, { code: code(), present: PASSWORD });
    const before = app.db.sqlite.query("SELECT totp_secret FROM users").get();
    for (const action of ["enrol", "cancel"]) await browser.post(`${PATH}/codes/${action}`);
    expect(app.db.sqlite.query("SELECT totp_secret FROM users").get()).toEqual(before);
    expect(app.service.accounts.users.find(user.id)?.hasSecondFactor).toBe(true);
  });
});

describe("the time zone", () => {
  test("is saved, and may be that of the browser again", async () => {
    const { app, user, open } = await fill();
    const browser = await open();
    await browser.post(`${PATH}/time-zone`, { time_zone: "Europe/Berlin" });
    expect(app.service.accounts.users.find(user.id)?.timeZone).toBe("Europe/Berlin");
    expect((await browser.get(PATH)).html).toContain('<option value="Europe/Berlin" selected');
    await browser.post(`${PATH}/time-zone`, { time_zone: "" });
    expect(app.service.accounts.users.find(user.id)?.timeZone).toBeNull();
  });

  test.each(["Mars/Olympus", "+02:00", "../etc", "<b>"])("is not %j", async (time_zone) => {
    const { app, user, open } = await fill();
    const sent = await (await open()).post(`${PATH}/time-zone`, { time_zone });
    expect([sent.status, sent.text.includes("not a time zone")]).toEqual([400, true]);
    expect(app.service.accounts.users.find(user.id)?.timeZone).toBeNull();
  });
});

describe("sessions", () => {
  test("are listed with their browsers, and signed out one by one", async () => {
    const { app, user, open } = await fill();
    const [here, there] = [await open(), await open()];
    const { text } = await here.get(PATH);
    expect(text).toContain("Firefox on Linux");
    expect(text).toContain("This browser");
    expect(text).toContain("192.0.2.1");
    const other = app.service.accounts.sessions.find(there.cookie("pw_session"))?.id ?? "";
    expect((await here.post(`${PATH}/sessions/${other}/end`)).status).toBe(303);
    expect((await there.get(PATH)).location).toStartWith("/sign-in");
    expect(app.service.accounts.sessions.list(user.id)).toHaveLength(1);
  });

  test("of others are not signed out", async () => {
    const { app, open } = await fill();
    const here = await open();
    const requested = {
      accountId: app.accountId("acme"),
      email: "bob@example.com",
      role: "member",
      isOperator: false,
    } as const;
    const bob = app.service.accounts.users.invite(requested, null);
    if (!bob.ok) throw new Error(bob.error.message);
    const client = { address: "", userAgent: "" };
    const token = app.db.transact((tx) => app.service.accounts.sessions.open(tx, bob.value.user.id, client));
    const id = app.service.accounts.sessions.find(token)?.id ?? "";
    expect((await here.post(`${PATH}/sessions/${id}/end`)).status).toBe(404);
    expect(app.service.accounts.sessions.find(token)).toBeDefined();
  });
});

test("a hostile User-Agent is shown as text", async () => {
  const { app, user, open } = await fill();
  const client = { address: '"><script>x', userAgent: '"><script>alert(1)</script>' };
  app.db.transact((tx) => app.service.accounts.sessions.open(tx, user.id, client));
  const { html, text } = await (await open()).get(PATH);
  expect(html).not.toContain("<script>alert");
  expect(html).not.toContain("<script>x");
  expect(text).toContain("Unknown browser");
});
