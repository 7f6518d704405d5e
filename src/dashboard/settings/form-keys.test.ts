import { describe, expect, test } from "bun:test";
import { createApps } from "../../testing/app.ts";
import { signIn } from "../../testing/dashboard.ts";

const start = createApps();
const PATH = "/settings/keys";
const KEY = /pw_pub_test_[0-9A-Za-z]{49}/;
const SETTINGS = {
  origins: "https://shop.example\r\nhttps://www.example.com/",
  visitor_per_hour: "20",
  per_day: "500",
  check: "mailbox",
};
const NEW = { name: "sign-up", mode: "test", ...SETTINGS };

const begin = async () => {
  const app = start();
  const visitor = await signIn(app);
  const created = await visitor.submit(`${PATH}/publishable`, NEW);
  const [id = ""] = app.service.accounts.store.listKeys(visitor.accountId).map((one) => one.id);
  return { app, visitor, created, id };
};

describe("a publishable key of the dashboard", () => {
  test("is shown whenever its page is opened, with the snippet and a form to try it", async () => {
    const { visitor, created, id } = await begin();
    const key = KEY.exec(created.html)?.[0] ?? "";
    for (const page of [created, await visitor.get(`${PATH}/${id}`)]) {
      expect(page.text).toContain(`<script src="http://localhost/widget.js" data-key="${key}" defer></script>`);
      expect(page.html).toContain(`<script src="/widget.js" data-key="${key}" defer>`);
      expect(page.text).toContain("https://shop.example https://www.example.com");
    }
    expect((await visitor.get(PATH)).text).toContain("2 origins");
  });

  test("works on the pages of the service itself, and on those of its origins only", async () => {
    const { app, created } = await begin();
    const key = KEY.exec(created.html)?.[0] ?? "";
    const statusFrom = async (origin: string) => {
      const headers = { authorization: `Bearer ${key}`, host: "localhost", origin, "content-type": "application/json" };
      const body = JSON.stringify({ email: "someone@any.example" });
      const url = "http://localhost/v1/email-verifications";
      return (await app.handle(new Request(url, { method: "POST", headers, body }))).status;
    };
    expect(await statusFrom("http://localhost")).toBe(200);
    expect(await statusFrom("https://shop.example")).toBe(200);
    for (const origin of ["http://localhost:81", "https://localhost", "http://evil.example"])
      expect(await statusFrom(origin)).toBe(403);
  });

  test("is changed, with mistakes named at their fields and nothing lost", async () => {
    const { app, visitor, id } = await begin();
    const path = `${PATH}/${id}/publishable`;
    const wrong = await visitor.post(path, { ...SETTINGS, origins: "https://shop.example/path", per_day: "500" });
    expect([wrong.status, wrong.text]).toEqual([400, expect.stringContaining("Name 1 to 20 origins")]);
    expect(wrong.html).toContain("https://shop.example/path</textarea>");
    const few = await visitor.post(path, { ...SETTINGS, per_day: "0" });
    expect([few.status, few.text]).toEqual([400, expect.stringContaining("whole number from 1 to")]);
    const saved = await visitor.submit(path, { ...SETTINGS, origins: "http://localhost:3000", check: "domain" });
    expect(saved.text).toContain("The domain only, without credits");
    const forms = app.service.accounts.store.findKey(id)?.forms;
    expect(forms).toMatchObject({ origins: ["http://localhost:3000"], perDay: 500, check: "domain" });
  });

  test("gets a new secret on its own page", async () => {
    const { visitor, created, id } = await begin();
    const rotated = await visitor.submit(`${PATH}/${id}/rotate`, { grace: "3600000" });
    expect(rotated.html).toMatch(KEY);
    expect(KEY.exec(rotated.html)?.[0]).not.toBe(KEY.exec(created.html)?.[0] ?? "");
    await visitor.submit(`${PATH}/${id}/revoke`, { sure: "on" });
    expect((await visitor.get(`${PATH}/${id}`)).html).not.toMatch(KEY);
  });

  test("a secret key has no such settings", async () => {
    const app = start();
    const visitor = await signIn(app);
    const { id } = app.newKey({ account: "main" });
    const refused = await visitor.post(`${PATH}/${id}/publishable`, SETTINGS);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining("This is a secret key")]);
  });
});
