import { describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

const start = createApps();
const MAIL = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:1", NOTIFY_FROM: "alerts@postwarden.example" };
const NOTIFY = "/settings/notifications";
const SUPPRESS = "/settings/suppressions";
const HOSTILE = "<img src=x onerror=alert(1)>";

describe("the settings", () => {
  test("lead to what the viewer may open", async () => {
    const app = start();
    const owner = (await signIn(app)).get("/settings");
    expect((await owner).text).toContain("Suppression list");
    const member = await signIn(app, { email: "m@example.com", role: "member", isOperator: false });
    const { text } = await member.get("/settings");
    expect(text).toContain("Notifications");
    expect(text).not.toContain("Suppression list");
    expect(text).not.toContain("API keys");
  });

  test.each(["/settings/suppressions", "/settings/suppressions.csv", "/settings/sender", "/settings/service"])(
    "%s is for operators",
    async (path) => {
      const visitor = await signIn(start(), { isOperator: false });
      expect((await visitor.get(path)).status).toBe(403);
    },
  );

  test.each([
    ["/settings/sender", {}],
    ["/settings/service/backup", {}],
    [SUPPRESS, { entries: "a@example.com" }],
    [`${SUPPRESS}/remove`, { entry: "a@example.com" }],
  ])("the form %s is for operators", async (path, fields) => {
    const visitor = await signIn(start(), { isOperator: false });
    expect((await visitor.post(path, fields)).status).toBe(403);
  });

  test.each([NOTIFY, "/settings/account", "/settings/service/backup", SUPPRESS, "/welcome/hide"])(
    "the form %s needs its token",
    async (path) => {
      const visitor = await signIn(start());
      expect((await visitor.post(path, {}, "forged")).status).toBe(403);
    },
  );
});

describe("notifications", () => {
  test("are saved, and shown as saved", async () => {
    const app = start({ settings: MAIL });
    const visitor = await signIn(app);
    const form = {
      webhook_url: "https://hooks.example.com/all",
      recipients: "Ops@example.com\nboss@example.com, ops@example.com",
      severity: "high",
      digest: "weekly",
    };
    expect((await visitor.submit(NOTIFY, form)).text).toContain("Saved.");
    expect(app.service.notifications.settings.view({ accountId: visitor.accountId, mode: "live" })).toMatchObject({
      ...{ webhook_url: "https://hooks.example.com/all", blacklist_severity_min: "high", blacklist_digest: "weekly" },
      recipients: ["ops@example.com", "boss@example.com"],
    });
    const log = await visitor.get("/settings/audit");
    expect(log.text).toContain("notifications.set");
    expect(log.text).not.toContain("boss@example.com");
  });

  test.each([
    ["webhook_url", { webhook_url: "http://example.com/" }, "https"],
    ["recipients", { recipients: "nobody" }, "Must be an email address"],
    ["recipients", { recipients: "a@example.com" }, "does not send mail"],
  ])("say beside %s what is wrong, and keep what was typed", async (_, form, message) => {
    const visitor = await signIn(start());
    const refused = await visitor.post(NOTIFY, form);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(message)]);
    expect(refused.html).toContain(Object.values(form)[0] ?? "");
  });

  test("are shown to members, and changed by owners only", async () => {
    const app = start({ settings: MAIL });
    await (
      await signIn(app)
    ).post(NOTIFY, { webhook_url: "https://hooks.example.com/all", recipients: "a@example.com" });
    const member = await signIn(app, { email: "m@example.com", role: "member" });
    const { text } = await member.get(NOTIFY);
    expect(text).toContain("https://hooks.example.com/all");
    expect(text).not.toContain("Save");
    expect((await member.post(NOTIFY, { webhook_url: "" })).status).toBe(403);
    const change = { recipient: "a@example.com", kind: "dmarc_alerts", enabled: "false" };
    expect((await member.post(`${NOTIFY}/mail`, change)).status).toBe(403);
  });

  test("of test data have no mail", async () => {
    const visitor = await signIn(start({ settings: MAIL }));
    const { text } = await visitor.get(`/test${NOTIFY}`);
    expect(text).toContain("Webhook URL");
    expect(text).not.toContain("Recipients");
  });
});

describe("maintenance windows", () => {
  test.each([
    ["day", "windows", { day: "2099-01-01", until: "06:00" }, "7 days at most"],
    ["until", "windows", { day: "soon", until: "06:00" }, "A day and a time"],
    ["time_zone", "windows/weekly", { days: "mon", from: "22:00", to: "06:00", time_zone: "Moon" }, "zone"],
  ])(
    "say beside %s what is wrong, in the form that is open and has the focus there",
    async (field, path, form, message) => {
      const visitor = await signIn(start({ settings: MAIL }));
      const { status, html } = await visitor.post(`${NOTIFY}/${path}`, form);
      expect(status).toBe(400);
      const [open = ""] = /<details class="more" open.*?<\/details>/s.exec(html) ?? [];
      expect(open).toContain(message);
      expect([...open.matchAll(/<input[^>]* name="(\w+)"[^>]* autofocus/g)].map(([, name]) => name)).toEqual([field]);
    },
  );
});

describe("the suppression list", () => {
  test("takes many pasted entries with a note, finds and removes them, and leaves as CSV", async () => {
    const app = start();
    const visitor = await signIn(app);
    expect((await visitor.get(SUPPRESS)).text).toContain("The list is empty");
    const entries = "Trap@Example.com\nexample.org; a@example.net a@example.net";
    expect((await visitor.submit(SUPPRESS, { entries, note: "complaints" })).text).toContain("Added 3 entries.");
    expect((await visitor.get(`${SUPPRESS}?q=TRAP`)).text).not.toContain("example.org");
    const csv = await visitor.get(`${SUPPRESS}.csv`);
    expect(csv.html.split("\r\n").map((line) => line.split(",")[0])).toEqual([
      ...["entry", "a@example.net", "example.org", "trap@example.com", ""],
    ]);
    const removed = await visitor.submit(`${SUPPRESS}/remove`, { entry: ["example.org", "a@example.net"] });
    expect(removed.text).toContain("Removed 2 entries.");
    const log = await visitor.get("/settings/audit?action=suppress");
    expect(log.text).toContain("suppress.remove");
    expect(log.text).not.toContain("example.org");
  });

  test("adds nothing when an entry is wrong, and keeps what was typed", async () => {
    const visitor = await signIn(start());
    const refused = await visitor.post(SUPPRESS, { entries: `good@example.com ${"x@@y"}`, note: HOSTILE });
    expect(refused.status).toBe(400);
    expect(refused.text).toMatch(/Nothing was added\. .* entry 2: "x@@y" is not an address\./);
    expect(refused.html).toContain("good@example.com x@@y");
    expect(refused.html).not.toContain(HOSTILE);
    expect((await visitor.get(SUPPRESS)).text).toContain("The list is empty");
  });

  test("is shown in pages, and a search takes its characters literally", async () => {
    const visitor = await signIn(start());
    const entries = Array.from({ length: 90 }, (_, n) => `n${String(n).padStart(3, "0")}@example.com`);
    await visitor.post(SUPPRESS, { entries: [...entries, "100%_@example.com"].join("\n") });
    const first = await visitor.get(SUPPRESS);
    const next = /rel="next" href="([^"]+)"/.exec(first.html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    expect((await visitor.get(next)).text).toContain("n089@example.com");
    expect((await visitor.get(`${SUPPRESS}?q=%25_`)).text).toContain("100%_@example.com");
    expect((await visitor.get(`${SUPPRESS}?q=%25_`)).text).not.toContain("n001@");
  });
});

describe("the account", () => {
  test("is renamed by an owner, and the audit log says by whom", async () => {
    const visitor = await signIn(start());
    expect((await visitor.submit("/settings/account", { name: HOSTILE })).text).toContain("is now called");
    expect((await visitor.get("/settings/account")).html).not.toContain(HOSTILE);
    expect((await visitor.get("/settings/audit")).text).toMatch(/main@example\.com accounts\.rename/);
    const csv = await visitor.get("/settings/audit.csv?action=accounts.rename");
    expect(csv.html).toContain(",main@example.com,accounts.rename,main,");
  });

  test("is not renamed to another account's name, nor by members", async () => {
    const app = start();
    const visitor = await signIn(app);
    app.newAccount("other", "free");
    const taken = await visitor.post("/settings/account", { name: "other" });
    expect([taken.status, taken.text]).toEqual([400, expect.stringContaining("already exists")]);
    const member = await signIn(app, { email: "m@example.com", role: "member" });
    expect((await member.post("/settings/account", { name: "mine" })).status).toBe(403);
    expect((await member.get("/settings/account")).text).not.toContain("Rename");
  });

  test("gets credits and a plan from an operator, and the audit log says from whom", async () => {
    const app = start();
    const visitor = await signIn(app);
    const other = app.newAccount("other", "free");
    const before = app.service.accounts.ledger.balance(other);
    const granted = await visitor.submit("/settings/account/credits", { credits: "20000" });
    expect(granted.text).toContain("20,000 credits granted: 20,100 credits available.");
    expect(app.credits()).toEqual({ available: 20_100, held: 0 });
    expect(app.service.accounts.ledger.balance(other)).toEqual(before);
    const back = await visitor.post("/settings/account/credits", { credits: "1", back: "/lists/new?draft=x" });
    expect(back.location).toBe("/lists/new?draft=x");
    const changed = await visitor.submit("/settings/account/plan", { plan: "growth", rate: "40", burst: "" });
    expect(changed.text).toContain("The account has the plan growth.");
    expect(changed.text).toContain("Verifications per second and key 40");
    const { text } = await visitor.get("/settings/audit");
    expect(text).toMatch(/main@example\.com credits\.grant/);
    expect(text).toMatch(/main@example\.com accounts\.set-plan/);
  });

  test.each([
    ["/settings/account/credits", { credits: "0" }, "Credits must be a whole number from 1"],
    ["/settings/account/credits", { credits: "many" }, "Must be a whole number"],
    ["/settings/account/credits", { credits: "9999999999" }, "Credits must be a whole number from 1"],
    ["/settings/account/credits", { credits: "5", back: "https://elsewhere.example/" }, "form"],
    ["/settings/account/plan", { plan: "gold", rate: "", burst: "" }, "form"],
    ["/settings/account/plan", { plan: "free", rate: "0", burst: "" }, "A rate and a burst must be whole numbers"],
  ])("%s with %j changes nothing", async (path, fields, said) => {
    const app = start();
    const visitor = await signIn(app);
    const sent = await visitor.post(path, fields);
    expect([sent.status, sent.html.includes(said)]).toEqual([400, true]);
    expect(app.credits()).toEqual({ available: 100, held: 0 });
    expect(app.service.accounts.store.findAccount(visitor.accountId)).toMatchObject({
      plan: "scale",
      ratePerSecond: null,
    });
  });

  test("offers neither to an owner who is no operator", async () => {
    const app = start();
    const owner = await signIn(app, { isOperator: false });
    expect((await owner.get("/settings/account")).text).not.toContain("Grant credits");
    expect((await owner.post("/settings/account/credits", { credits: "5" })).status).toBe(403);
    expect((await owner.post("/settings/account/plan", { plan: "scale", rate: "", burst: "" })).status).toBe(403);
  });

  test("has its own audit log only", async () => {
    const app = start();
    const [visitor, other] = [await signIn(app), await signIn(app, { account: "other" })];
    await visitor.post("/settings/account", { name: "renamed" });
    expect((await other.get("/settings/audit")).text).not.toContain("accounts.rename");
  });
});

describe("a test mail", () => {
  const MAIL = { NOTIFY_SMTP_URL: "smtp://127.0.0.1:1", NOTIFY_FROM: "postwarden@postwarden.example" };

  test("says why it was not sent, and is sent every 30 seconds at most", async () => {
    const app = start({ settings: MAIL });
    const visitor = await signIn(app);
    expect((await visitor.get("/settings/notifications")).text).toContain("Send a test mail");
    const sent = await visitor.submit("/settings/notifications/test-mail");
    expect(sent.text).toContain("The test mail was not sent.");
    expect((await visitor.submit("/settings/notifications/test-mail")).text).toContain("less than 30 seconds ago");
    await app.advance(30_000);
    expect((await visitor.submit("/settings/notifications/test-mail")).text).toContain("The test mail was not sent.");
  });

  test("is not offered where the service sends no mail", async () => {
    const visitor = await signIn(start());
    expect((await visitor.get("/settings/notifications")).text).not.toContain("Send a test mail");
    expect((await visitor.submit("/settings/notifications/test-mail")).text).toContain("does not send mail");
  });
});

describe("the navigation of the settings", () => {
  test.each([
    ["an operator", { isOperator: true }, ["Profile", "Users", "Sending identity", "Service"], []],
    ["an owner", { isOperator: false }, ["Profile", "Users", "Audit log"], ["Sending identity", "Service"]],
    ["a member", { isOperator: false, role: "member" }, ["Profile", "Account"], ["Users", "API keys", "Service"]],
  ] as const)("of %s has the pages that the role may open, and marks its own", async (_, user, shown, hidden) => {
    const visitor = await signIn(start(), { email: "nav@example.com", ...user });
    const { html } = await visitor.get("/test/settings/notifications");
    const nav = /<nav class="settings-nav".*?<\/nav>/s.exec(html)?.[0] ?? "";
    expect(nav).toMatch(/<a href="\/test\/settings\/notifications"[^>]*aria-current="page"/);
    expect(nav.match(/aria-current/g)).toHaveLength(1);
    for (const title of shown) expect(nav).toContain(`>${title}</a>`);
    for (const title of hidden) expect(nav).not.toContain(`>${title}</a>`);
    expect((await visitor.get("/settings")).html).not.toContain("settings-nav");
  });
});

describe("the service", () => {
  test("shows its state, and what the log warned of", async () => {
    const visitor = await signIn(start());
    const { status, text } = await visitor.get("/settings/service");
    expect(status).toBe(200);
    for (const part of ["Backups", "POSTWARDEN_BACKUP_DIR", "Queues", "direct", "How long things are kept", "400 days"])
      expect(text).toContain(part);
    expect((await visitor.submit("/settings/service/backup")).text).toContain("Set POSTWARDEN_BACKUP_DIR first.");
  });

  test("shows its backups, and begins one when the operator asks for it", async () => {
    const directory = mkdtempSync(join(tmpdir(), "postwarden-settings-"));
    try {
      const app = start({ settings: { BACKUP_DIR: directory } });
      const visitor = await signIn(app);
      const page = async () => (await visitor.get("/settings/service")).text;
      expect(await page()).toContain("No backup was seen yet.");
      writeFileSync(join(directory, "postwarden-2026-01-01T00-00-00Z.db"), "");
      await app.service.backups?.run();
      expect(await page()).toContain("Back up now");
      expect(await page()).not.toContain("No backup was seen yet.");
      await visitor.submit("/settings/service/backup");
      expect(await page()).toContain("A backup begins within a minute");
    } finally {
      rmSync(directory, { recursive: true });
    }
  });

  test("checks its machine when somebody asks for it, and says what to do", async () => {
    const visitor = await signIn(start());
    expect((await visitor.get("/settings/sender")).text).toContain("Not checked since the service was started");
    expect((await visitor.submit("/settings/sender")).text).toContain("Checking this machine.");
    expect((await visitor.submit("/settings/sender")).text).toContain("less than 30 seconds ago");
    const { text } = await visitor.get("/settings/sender");
    expect(text).toContain("No scheduled backups.");
    expect(text).toContain("Set POSTWARDEN_BACKUP_DIR to one.");
    expect(text).toContain("1 failure, 1 warning");
  });
});
