import { describe, expect, test } from "bun:test";
import { TOTP, Secret } from "otpauth";
import { createApps, type TestApp } from "../../testing/app.ts";
import { Browser } from "../../testing/dashboard-browser.ts";

const start = createApps();
const PASSWORD = "four plain words here";

const withUser = async (settings: Record<string, string> = {}) => {
  const app = start({ settings });
  const accountId = app.newAccount("acme", "scale");
  const requested = {
    accountId,
    email: "ada@example.com",
    role: "owner",
    isOperator: true,
    password: PASSWORD,
  } as const;
  const created = await app.service.accounts.users.create(requested, null);
  if (!created.ok) throw new Error(created.error.message);
  return { app, accountId, user: created.value };
};

const credentials = { email: "ada@example.com", password: PASSWORD };

const signedIn = async (app: TestApp): Promise<Browser> => {
  const browser = new Browser(app);
  await browser.get("/sign-in");
  expect((await browser.post("/sign-in", credentials)).status).toBe(303);
  await browser.get("/settings/profile");
  return browser;
};

describe("the sign-in", () => {
  test("leads home, or to the page that was asked for", async () => {
    const { app } = await withUser();
    const browser = new Browser(app);
    const asked = await browser.get("/test/settings/users?page=2");
    expect(asked.location).toBe("/sign-in?next=%2Ftest%2Fsettings%2Fusers%3Fpage%3D2");
    const shown = await browser.get(asked.location ?? "");
    expect(shown.text).toContain("Email address");
    expect(shown.html).toContain('name="next" value="/test/settings/users?page=2"');
    const sent = await browser.post("/sign-in", { ...credentials, next: "/test/settings/users?page=2" });
    expect([sent.status, sent.location]).toEqual([303, "/test/settings/users?page=2"]);
    expect((await browser.get("/settings/profile")).text).toContain("ada@example.com");
    expect((await browser.get("/sign-in")).location).toBe("/");
  });

  test.each([
    "//evil.example",
    "/\\evil.example",
    "\\\\evil.example",
    "https://evil.example/",
    "https:evil.example",
    "javascript:alert(1)",
    "/\t/evil.example",
    "/%0d%0aset-cookie: a=b\r\n",
    " //evil.example",
    "evil.example",
    "/sign-out",
    "/sign-in?next=/sign-in",
  ])("with next=%j leads home", async (next) => {
    const { app } = await withUser();
    const browser = new Browser(app);
    const shown = await browser.get(`/sign-in?next=${encodeURIComponent(next)}`);
    expect(shown.html).toContain('name="next" value="/"');
    expect((await browser.post("/sign-in", { ...credentials, next })).location).toBe("/");
  });

  test("says the same for a wrong password and an unknown address, keeps what was typed but the password", async () => {
    const { app } = await withUser();
    const browser = new Browser(app);
    await browser.get("/sign-in");
    for (const email of ["ada@example.com", "<b>eve@example.com"]) {
      const { status, text, html } = await browser.post("/sign-in", { email, password: "wrong one", next: "/lists" });
      expect(status).toBe(401);
      expect(text).toContain("Email address or password is wrong.");
      expect(html).toContain(`value="${email.replace("<", "&lt;")}"`);
      expect(html).toContain('name="next" value="/lists"');
      expect(html).not.toContain("wrong one");
    }
  });

  test("waits after failures, and lets the right password in afterwards", async () => {
    const { app } = await withUser();
    const browser = new Browser(app);
    await browser.get("/sign-in");
    for (let n = 0; n < 3; n++) await browser.post("/sign-in", { ...credentials, password: "wrong" });
    const waiting = await browser.post("/sign-in", credentials);
    expect(waiting.status).toBe(429);
    expect(waiting.text).toContain("Wait 1 second, then try again; your password keeps working.");
    await app.advance(1_000);
    expect((await browser.post("/sign-in", credentials)).status).toBe(303);
  });

  test("of a disabled account says whom to ask", async () => {
    const { app } = await withUser();
    app.service.accounts.accounts.setEnabled("acme", false);
    const browser = new Browser(app);
    await browser.get("/sign-in");
    const { status, text } = await browser.post("/sign-in", credentials);
    expect(status).toBe(403);
    expect(text).toContain("Ask the operator");
  });

  test("gives a new session: the token of before is worth nothing, and a chosen one is never taken", async () => {
    const { app } = await withUser();
    const browser = await signedIn(app);
    const before = browser.cookie("pw_session") ?? "";
    const fixed = "a".repeat(43);
    for (const given of [before, fixed]) {
      const other = new Browser(app);
      await other.get("/sign-in");
      other.setCookie("pw_session", given);
      // The old session is another visitor's with a form of its own.
      const csrf = app.service.accounts.sessions.find(given)?.csrfToken;
      const sent = await other.post("/sign-in", { ...credentials, ...(csrf === undefined ? {} : { _csrf: csrf }) });
      expect(sent.status).toBe(303);
      expect(other.cookie("pw_session")).not.toBe(given);
      expect(app.service.accounts.sessions.find(given)).toBeUndefined();
    }
  });

  test.each([
    ["no token", { _csrf: "" }],
    ["another one", { _csrf: "0".repeat(64) }],
  ])("is refused with %s of the form", async (_, fields) => {
    const { app } = await withUser();
    const browser = new Browser(app);
    await browser.get("/sign-in");
    expect((await browser.post("/sign-in", { ...credentials, ...fields })).status).toBe(403);
    expect(browser.cookie("pw_session")).toBeUndefined();
  });

  test("on a service without users says how to add one", async () => {
    const app = start();
    expect((await new Browser(app).get("/sign-in")).text).toContain("postwarden users add EMAIL");
  });
});

describe("the session cookie", () => {
  const SECURE = "__Host-pw_session=TOKEN; Path=/; HttpOnly; SameSite=Lax; Max-Age=7776000; Secure";
  const cases: ReadonlyArray<readonly [string, Record<string, string>, Record<string, string>, string]> = [
    ["by http", {}, {}, "pw_session=TOKEN; Path=/; HttpOnly; SameSite=Lax; Max-Age=7776000"],
    ["behind a proxy that was asked by https", {}, { "x-forwarded-proto": "https" }, SECURE],
    ["of a service with an https URL", { BASE_URL: "https://mail.example.com" }, {}, SECURE],
  ];

  test.each(cases)("%s", async (_, settings, headers, expected) => {
    const { app } = await withUser(settings);
    const browser = new Browser(app, headers);
    await browser.get("/sign-in");
    const sent = await browser.post("/sign-in", credentials);
    const cookie = sent.headers.getSetCookie().find((one) => one.includes("pw_session"));
    expect(cookie?.replace(/=\w{43}/, "=TOKEN")).toBe(expected);
    expect((await browser.get("/settings/profile")).status).toBe(200);
  });

  test("of HTTPS is none by http, and the other way round", async () => {
    const { app } = await withUser();
    const schemes = [
      ["pw_session", {}],
      ["__Host-pw_session", { "x-forwarded-proto": "https" }],
    ] as const;
    for (const [name, headers] of schemes) {
      const browser = new Browser(app, headers);
      await browser.get("/sign-in");
      await browser.post("/sign-in", credentials);
      const token = browser.cookie(name) ?? "";
      expect(token).toMatch(/^\w{43}$/);
      for (const [otherName, otherHeaders] of schemes) {
        const other = new Browser(app, otherHeaders);
        other.setCookie(otherName, token);
        expect((await other.get("/settings/profile")).status).toBe(otherName === name ? 200 : 303);
      }
    }
  });

  test.each([
    ["pw_visitor", {}],
    ["__Host-pw_visitor", { "x-forwarded-proto": "https" }],
  ])("and that of a visitor, %s, can only be set by this host where HTTPS allows it", async (name, headers) => {
    const { app } = await withUser();
    const browser = new Browser(app, headers);
    const shown = await browser.get("/sign-in");
    expect(shown.headers.getSetCookie().map((one) => one.split("=")[0])).toContain(name);
    expect((await browser.post("/sign-in", credentials)).status).toBe(303);
    // A cookie that another host of the domain has set is not the visitor's.
    const planted = new Browser(app, { "x-forwarded-proto": "https" });
    planted.setCookie("pw_visitor", browser.cookie(name) ?? "");
    expect((await planted.post("/sign-in", { ...credentials, _csrf: browser.csrf })).status).toBe(403);
  });
});

describe("the code of an app", () => {
  const withCodes = async () => {
    const { app, user, accountId } = await withUser();
    const secret = app.service.accounts.profiles.enrol(user.id)?.secret ?? "";
    const codeNow = () => new TOTP({ secret: Secret.fromBase32(secret) }).generate({ timestamp: app.clock.nowMs() });
    const own = { userId: user.id, sessionId: "" };
    const confirmed = await app.service.accounts.profiles.confirmCodes(own, { present: PASSWORD, code: codeNow() });
    if (!confirmed.ok) throw new Error(confirmed.error.message);
    await app.advance(30_000);
    return { app, user, accountId, codeNow, recovery: confirmed.value };
  };
  const afterPassword = async (app: TestApp) => {
    const browser = new Browser(app);
    await browser.get("/sign-in");
    const shown = await browser.post("/sign-in", { ...credentials, next: "/lists" });
    expect(shown.status).toBe(200);
    expect(shown.text).toContain("Code of your authenticator app");
    expect(browser.cookie("pw_session")).toBeUndefined();
    const challenge = /name="challenge" value="(\w+)"/.exec(shown.html)?.[1] ?? "";
    return { browser, enter: (code: string) => browser.post("/sign-in/code", { challenge, code, next: "/lists" }) };
  };

  test("is asked for after the password; a wrong one stays on the page, the right one leads on", async () => {
    const { app, codeNow } = await withCodes();
    const { browser, enter } = await afterPassword(app);
    const wrong = await enter("000000");
    expect([wrong.status, wrong.html.includes("This code is wrong")]).toEqual([401, true]);
    const sent = await enter(codeNow());
    expect([sent.status, sent.location]).toEqual([303, "/lists"]);
    expect((await browser.get("/settings/profile")).status).toBe(200);
  });

  test("is accepted once, also by another browser", async () => {
    const { app, codeNow } = await withCodes();
    const [one, two] = [await afterPassword(app), await afterPassword(app)];
    const code = codeNow();
    expect((await one.enter(code)).status).toBe(303);
    expect((await two.enter(code)).status).toBe(401);
    await one.browser.get("/settings/profile");
    expect((await one.enter(code)).location).toBe("/sign-in?next=%2Flists");
  });

  test("is the one of now, or of half a minute before or after", async () => {
    const { app, codeNow } = await withCodes();
    const code = codeNow();
    const { enter } = await afterPassword(app);
    await app.advance(61_000);
    expect((await enter(code)).status).toBe(401);
    await app.advance(1_000);
    expect((await enter(codeNow())).status).toBe(303);
  });

  test("may be a recovery code, each once", async () => {
    const { app, recovery } = await withCodes();
    const code = recovery[3] ?? "";
    expect((await (await afterPassword(app)).enter(` ${code} `)).status).toBe(303);
    expect((await (await afterPassword(app)).enter(code)).status).toBe(401);
    expect((await (await afterPassword(app)).enter(recovery[4] ?? "")).status).toBe(303);
  });

  test("is refused after ten wrong ones, from whatever addresses; a recovery code and a new password are not", async () => {
    const { app, user, codeNow, recovery, accountId } = await withCodes();
    const { sessions, audit, guessedCodes } = app.service.accounts;
    const from = (n: number) => ({ address: `2001:db8:${n.toString(16)}::1`, userAgent: "test" });
    let clients = 0;
    const password = async (text = PASSWORD): Promise<string> => {
      const result = await sessions.signIn({ email: "ada@example.com", password: text }, from(++clients));
      if (result.ok || result.error.kind !== "code_required") throw new Error(JSON.stringify(result));
      return result.error.challenge;
    };
    const enter = async (challenge: string, code: string) => {
      const result = await sessions.enterCode({ challenge, code }, from(++clients));
      return result.ok ? "in" : result.error;
    };
    const own = { accountId, userId: user.id, isOwner: true };
    const [first, second] = [await password(), await password()];
    for (let n = 0; n < 9; n++) expect(await enter(first, "000000")).toEqual({ kind: "wrong" });
    expect(guessedCodes.attention(own)).toEqual([]);
    expect(await enter(first, "000000")).toEqual({ kind: "codes_wait", retryAfterS: 60, isOver: true });
    for (const ended of [first, second]) expect(await enter(ended, codeNow())).toEqual({ kind: "expired" });
    // The next challenge takes no code of the app, not even the right one, but a recovery code.
    const third = await password();
    expect(await enter(third, codeNow())).toEqual({ kind: "codes_wait", retryAfterS: 60, isOver: false });
    expect(await enter(third, recovery[0] ?? "")).toBe("in");
    await app.advance(60_000);
    expect(await enter(await password(), codeNow())).toBe("in");

    const entries = audit.list({ accountId }, { before: null, limit: 50 });
    const found = entries.filter(({ action }) => action === "users.second-factor.guessed");
    expect(found.map(({ subject, after }) => [subject, after])).toEqual([[user.id, '{"wrong_codes":10,"wait_s":60}']]);
    expect(guessedCodes.attention(own).map(({ title }) => title)).toEqual(["Wrong codes were entered for your user"]);
    expect(guessedCodes.attention({ ...own, userId: "other" }).map(({ title }) => title)).toEqual([
      "Wrong codes were entered for ada@example.com",
    ]);
    expect(guessedCodes.attention({ ...own, userId: "other", isOwner: false })).toEqual([]);
    await app.advance(60_000);
    const present = { present: PASSWORD, next: "five other plain words" };
    expect(
      (await app.service.accounts.profiles.changePassword({ userId: user.id, sessionId: "none" }, present)).ok,
    ).toBe(true);
    expect(guessedCodes.attention(own)).toEqual([]);
  });

  test("that is the tenth wrong one leads back to the password, and says what to do", async () => {
    const { app } = await withCodes();
    const { browser, enter } = await afterPassword(app);
    for (let n = 0; n < 9; n++) {
      expect((await enter("000000")).status).toBe(401);
      if (n >= 2) await app.advance(60_000);
    }
    expect((await enter("000000")).location).toBe("/sign-in?next=%2Flists");
    const shown = await browser.get("/sign-in");
    expect(shown.text).toContain("Too many wrong codes. Wait 60 seconds, or enter a recovery code.");
  });

  test("cannot be guessed quickly, and the right one works after the wait", async () => {
    const { app, codeNow } = await withCodes();
    const { enter } = await afterPassword(app);
    for (let n = 0; n < 3; n++) expect((await enter(`00000${n}`)).status).toBe(401);
    expect((await enter(codeNow())).status).toBe(429);
    await app.advance(1_000);
    expect((await enter(codeNow())).status).toBe(303);
  });

  test.each([
    ["after ten minutes", async ({ app }: { app: TestApp }) => app.advance(600_000)],
    [
      "after the password was reset",
      async ({ app, id }: { app: TestApp; id: string }) => void app.service.accounts.users.reset(id, null),
    ],
  ])("begins again %s", async (_, change) => {
    const { app, user, codeNow } = await withCodes();
    const { enter } = await afterPassword(app);
    await change({ app, id: user.id });
    expect((await enter(codeNow())).location).toBe("/sign-in?next=%2Flists");
  });
});

describe("signing out", () => {
  test("ends the session here, or everywhere", async () => {
    const { app } = await withUser();
    const [one, two, three] = [await signedIn(app), await signedIn(app), await signedIn(app)];
    const token = one.cookie("pw_session");
    expect((await one.post("/sign-out")).location).toBe("/sign-in");
    expect(app.service.accounts.sessions.find(token)).toBeUndefined();
    expect((await one.get("/sign-in")).text).toContain("You are signed out.");
    expect((await two.get("/settings/profile")).status).toBe(200);
    await two.post("/sign-out/everywhere");
    expect((await three.get("/settings/profile")).location).toStartWith("/sign-in");
  });

  test("needs the token of the session, not of another one", async () => {
    const { app } = await withUser();
    const [one, two] = [await signedIn(app), await signedIn(app)];
    await two.get("/settings/profile");
    expect((await one.post("/sign-out", { _csrf: two.csrf })).status).toBe(403);
    expect((await one.get("/settings/profile")).status).toBe(200);
  });
});

describe("a one-time link", () => {
  const firstLink = (app: TestApp, accountId: string) =>
    app.db.transact((tx) => app.service.accounts.setupLinks.create(tx, { accountId, userId: null })).token;
  const fields = { email: "New@Example.com", password: PASSWORD, repeat: PASSWORD };

  test("makes the first user, an owner and operator, who is signed in", async () => {
    const app = start();
    const token = firstLink(app, app.newAccount("acme", "scale"));
    const browser = new Browser(app);
    expect((await browser.get(`/setup/${token}`)).text).toContain("You will be the first user");
    expect((await browser.post(`/setup/${token}`, fields)).location).toBe("/welcome");
    const { doctor } = app.service;
    expect(doctor.isRunning || doctor.latestFindings() !== null).toBe(true);
    expect((await browser.get("/settings/profile")).text).toContain("owner, operator");
    expect(app.service.accounts.users.list()).toMatchObject([
      { user: { email: "new@example.com", hasPassword: true } },
    ]);
  });

  test("of an invitation sets the password of that user, whatever address is sent along", async () => {
    const { app, accountId } = await withUser();
    const invitation = { accountId, email: "bob@example.com", role: "member", isOperator: false } as const;
    const invited = app.service.accounts.users.invite(invitation, null);
    if (!invited.ok) throw new Error(invited.error.message);
    const browser = new Browser(app);
    expect((await browser.get(`/setup/${invited.value.token}`)).text).toContain("bob@example.com");
    await browser.post(`/setup/${invited.value.token}`, fields);
    expect((await browser.get("/settings/profile")).text).toContain("bob@example.com");
    expect(app.service.accounts.users.findByEmail("new@example.com")).toBeUndefined();
  });

  test("is shown again with what is wrong", async () => {
    const app = start();
    const token = firstLink(app, app.newAccount("acme", "scale"));
    const browser = new Browser(app);
    await browser.get(`/setup/${token}`);
    for (const [change, message] of [
      [{ email: "no address" }, "This is not an email address."],
      [{ password: "short", repeat: "short" }, "at least 10 characters"],
      [{ password: "password123", repeat: "password123" }, "most common passwords"],
      [{ password: "new@example.com", repeat: "new@example.com" }, "must not be the email address"],
      [{ repeat: "another one" }, "The two passwords differ."],
    ] as const) {
      const { status, text, html } = await browser.post(`/setup/${token}`, { ...fields, ...change });
      expect([message, status, text.includes(message)]).toEqual([message, 400, true]);
      expect(html).not.toContain(PASSWORD);
    }
  });

  test.each([
    [
      "was used",
      async ({ app, token }: { app: TestApp; token: string }) => {
        const first = new Browser(app);
        await first.get(`/setup/${token}`);
        await first.post(`/setup/${token}`, fields);
      },
      "This link was used before",
    ],
    [
      "has expired",
      async ({ app }: { app: TestApp; token: string }) => app.clock.setWall(7 * 24 * 60 * 60 * 1000),
      "This link has expired",
    ],
    [
      "would make a second first user",
      async ({ app }: { app: TestApp; token: string }) => {
        const accountId = app.accountId("acme");
        app.service.accounts.users.invite({ accountId, email: "x@example.com", role: "owner", isOperator: true }, null);
      },
      "This link was used before",
    ],
  ])("that %s does nothing and says what to do", async (_, change, message) => {
    const app = start();
    const token = firstLink(app, app.newAccount("acme", "scale"));
    const browser = new Browser(app);
    await browser.get(`/setup/${token}`);
    await change({ app, token });
    const before = JSON.stringify(app.service.accounts.users.list());
    for (const page of [await browser.get(`/setup/${token}`), await browser.post(`/setup/${token}`, fields)]) {
      expect(page.status).toBe(404);
      expect(page.text).toContain(message);
      expect(page.text).toContain("ask an owner of your account for a new link");
    }
    expect(JSON.stringify(app.service.accounts.users.list())).toBe(before);
    expect(browser.cookie("pw_session")).toBeUndefined();
  });

  test("that nobody has made is a 404 without a hint", async () => {
    const app = start();
    firstLink(app, app.newAccount("acme", "scale"));
    for (const guess of ["x", "a".repeat(43), "%27%20OR%201=1"]) {
      const { status, text } = await new Browser(app).get(`/setup/${guess}`);
      expect([status, text.includes("This link does not exist.")]).toEqual([404, true]);
    }
  });

  test("used by two at the same time works for one", async () => {
    const app = start();
    const token = firstLink(app, app.newAccount("acme", "scale"));
    const browsers = [new Browser(app), new Browser(app)];
    for (const browser of browsers) await browser.get(`/setup/${token}`);
    const sent = await Promise.all(
      browsers.map((browser, n) => browser.post(`/setup/${token}`, { ...fields, email: `u${n}@example.com` })),
    );
    expect(sent.map(({ status }) => status).toSorted()).toEqual([303, 404]);
    expect(app.service.accounts.users.list()).toHaveLength(1);
  });
});

test("no log has a token, a password or a code", async () => {
  const { app, user } = await withUser();
  const browser = await signedIn(app);
  const token = browser.cookie("pw_session") ?? "none";
  const secret = app.service.accounts.profiles.enrol(user.id)?.secret ?? "none";
  await new Browser(app).get("/setup/abc");
  const logged = app.logged.join("\n");
  const audit = JSON.stringify(app.service.accounts.audit.list({}, { before: null, limit: 50 }));
  for (const hidden of [token, PASSWORD, secret]) {
    expect(logged).not.toContain(hidden);
    expect(audit).not.toContain(hidden);
  }
});
