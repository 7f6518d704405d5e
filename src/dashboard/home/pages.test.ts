import { describe, expect, test } from "bun:test";
import { DAY_MS } from "../../foundation/base/days.ts";
import { TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";
// The checks declare their titles.
import "../../doctor/open.ts";

describe("the home page", () => {
  test("of a new account says that there are no open problems, and how to begin", async () => {
    const visitor = await signIn(new TestApp());
    const { status, text } = await visitor.get("/");
    expect(status).toBe(200);
    expect(text).toContain("No open problems. Since yesterday: nothing has changed.");
    expect(text).toContain("Not monitored");
    expect(text).not.toContain("All clear");
    expect(text).toContain("First steps");
    expect(text).toContain("100 credits");
    expect(text).toContain("Verdicts by day appear here");
    expect(text).toContain("Monitor a domain");
    expect(text).toContain("Monitor an address");
  });

  test("shows what was verified in a week and last", async () => {
    const app = new TestApp();
    const visitor = await signIn(app);
    await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    await visitor.post("/test/verify", { email: "mailbox_not_found@any.example" });
    const { text, html } = await visitor.get("/test");
    expect(text).not.toContain("First steps");
    expect(text).toContain("Deliverable, 7 days 50 % 2 verified, 2 today");
    expect(text).toContain("Since yesterday: 2 addresses verified.");
    expect(text).toContain("mailbox_not_found@any.example No such mailbox");
    expect(html).toContain('href="/test/usage"');
    expect((await visitor.get("/")).text).toContain("Deliverable, 7 days – nothing verified in these days");
  });

  test("shows a trend only where there was an earlier week", async () => {
    const app = new TestApp();
    const visitor = await signIn(app);
    await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    await app.advance(7 * DAY_MS);
    await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    await visitor.post("/test/verify", { email: "mailbox_not_found@any.example" });
    expect((await visitor.get("/test")).text).toContain("Deliverable, 7 days 50 % −50.0 since last week 2 verified");
  });

  test("shows the figures before the problems", async () => {
    const { text } = await (await signIn(new TestApp())).get("/");
    expect(text.indexOf("Targets clean")).toBeLessThan(text.indexOf("Open problems"));
  });
});

test("new listings are counted since yesterday and for a week, of this account only", async () => {
  const app = new TestApp();
  const visitor = await signIn(app);
  await visitor.post("/test/blocklists/new", { targets: "listed.example" });
  await app.advance(120_000);
  await app.service.blocklist.scheduler.checkDue();
  const { text } = await visitor.get("/test");
  expect(text).toContain("1 new listing since last week");
  expect(text).toContain("Since yesterday: 1 new listing.");
  const other = await signIn(app, { account: "other" });
  expect((await other.get("/test")).text.includes("new listing")).toBe(false);
  await app.advance(8 * DAY_MS);
  expect((await visitor.get("/test")).text.includes("new listing")).toBe(false);
});

describe("warnings about this machine", () => {
  const checked = async () => {
    const app = new TestApp();
    await app.service.doctor.run();
    return { app, visitor: await signIn(app), warning: app.service.machine.state().warnings[0]?.key ?? "" };
  };

  test("stand in one line with their own labels, and a failure is a problem", async () => {
    const { visitor } = await checked();
    const { text, html } = await visitor.get("/");
    expect(text).toContain("1 open problem, 1 urgent.");
    expect(text).toContain("Egress Outgoing port 25 Port 25 is closed.");
    expect(text).toContain("1 warning about this machine: Backups");
    expect(html).toContain('<span class="count urgent">2');
  });

  test("are acknowledged with a reason and an end, and shown again", async () => {
    const { app, visitor, warning } = await checked();
    const path = `/machine/${warning}/acknowledge`;
    const refused = await visitor.post(path, { reason: " ", days: "30" });
    expect([refused.status, refused.text.includes("Say why")]).toEqual([400, true]);
    const { text, html } = await visitor.submit(path, { reason: "The provider copies the disk.", days: "30" });
    expect(text).toContain("Warnings about this machine: 1 acknowledged");
    expect(text).toContain("by main@example.com");
    expect(text).toContain("“The provider copies the disk.”");
    expect(html).toContain('<span class="count urgent">1');
    expect((await visitor.get("/settings/sender")).text).toContain("acknowledged Backups");
    expect((await visitor.submit(`/machine/${warning}/withdraw`)).text).toContain("1 warning about this machine");
    await visitor.post(path, { reason: "Copied.", days: "7" });
    await app.advance(7 * DAY_MS);
    expect((await visitor.get("/")).text).toContain("1 warning about this machine: Backups");
  });

  test("concern operators only, and nobody can acknowledge a failure", async () => {
    const { app, visitor, warning } = await checked();
    const owner = await signIn(app, { email: "o@example.com", isOperator: false });
    expect((await owner.get("/")).text).not.toContain("about this machine");
    const form = { reason: "No.", days: "7" };
    expect((await owner.post(`/machine/${warning}/acknowledge`, form)).status).toBe(403);
    const failure = app.service.machine.state().failures[0]?.key ?? "";
    expect((await visitor.post(`/machine/${failure}/acknowledge`, form)).status).toBe(404);
  });

  test("are unknown before the first check", async () => {
    const { text } = await (await signIn(new TestApp())).get("/");
    expect(text).toContain(
      "This machine has not been checked since the service started; that happens within the hour. Check it now",
    );
  });
});

test("the choice of colours returns to the page it was made on, and to no other site", async () => {
  const app = new TestApp();
  const visitor = await signIn(app);
  const chosen = await visitor.post("/theme", { theme: "dark", back: "/lists?a=1" });
  expect([chosen.status, chosen.location]).toEqual([303, "/lists?a=1"]);
  expect(chosen.headers.getSetCookie()[0]).toStartWith("pw_theme=dark;");
  expect((await visitor.post("/theme", { theme: "dark", back: "//evil.example" })).location).toBe("/");
  expect((await visitor.post("/theme", { theme: "pink", back: "/" })).status).toBe(400);
});
