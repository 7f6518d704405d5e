import { expect, test } from "bun:test";
import { TestApp } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

test("a new account has nothing that needs attention", async () => {
  const app = new TestApp();
  const visitor = await signIn(app);
  const { status, text } = await visitor.get("/");
  expect(status).toBe(200);
  expect(text).toContain("Nothing needs you.");
  expect(text).toContain("All clear");
  expect(text).toContain("100 credits");
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
