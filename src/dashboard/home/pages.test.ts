import { describe, expect, test } from "bun:test";
import { TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

describe("the home page", () => {
  test("of a new account says that there are no open problems, and how to begin", async () => {
    const visitor = await signIn(new TestApp());
    const { status, text } = await visitor.get("/");
    expect(status).toBe(200);
    expect(text).toContain("No open problems.");
    expect(text).toContain("Not monitored");
    expect(text).not.toContain("All clear");
    expect(text).toContain("First steps");
    expect(text).toContain("100 credits");
    expect(text).toContain("Verdicts by day appear here");
    expect(text).toContain("Monitor a domain");
    expect(text).toContain("Monitor an address");
  });

  test("shows what was verified today and last", async () => {
    const app = new TestApp();
    const visitor = await signIn(app);
    await visitor.post("/test/verify", { email: "mailbox_exists@any.example" });
    await visitor.post("/test/verify", { email: "mailbox_not_found@any.example" });
    const { text, html } = await visitor.get("/test");
    expect(text).not.toContain("First steps");
    expect(text).toContain("Verified today 2 50 % deliverable");
    expect(text).toContain("mailbox_not_found@any.example No such mailbox");
    expect(html).toContain('href="/test/usage"');
    expect((await visitor.get("/")).text).toContain("Verified today 0");
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
