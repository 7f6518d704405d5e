import { describe, expect, test } from "bun:test";
import { HttpClient } from "../http-client.ts";
import { leave, signedIn } from "./browser.ts";
import { facts, sessionOf } from "./facts.ts";

const SESSION = "pw_session";
const { owner } = facts.users;
const credentials = { email: owner.email, password: facts.password };

describe("a session", () => {
  test("begins with a new random cookie, whatever the browser sent before", async () => {
    const client = new HttpClient(facts.url);
    const planted = "A".repeat(43);
    client.setCookie(SESSION, planted);
    const { status, headers } = await client.submit("/sign-in", "/sign-in", credentials);
    expect(status).toBe(303);
    const cookie = headers.getSetCookie().find((line) => line.startsWith(`${SESSION}=`)) ?? "";
    expect(cookie).toMatch(/; HttpOnly; SameSite=Lax/);
    expect(client.cookie(SESSION)).not.toBe(planted);
    const attacker = new HttpClient(facts.url);
    attacker.setCookie(SESSION, planted);
    expect((await attacker.get("/")).location).toBe("/sign-in");
  });

  test("that was there is replaced by a sign-in", async () => {
    const client = await sessionOf("owner");
    const before = client.cookie(SESSION) ?? "";
    const again = await client.get("/sign-in");
    // A signed-in user does not see the form; a second sign-in in another tab gets another session.
    expect([200, 303]).toContain(again.status);
    const second = await sessionOf("owner");
    expect(second.cookie(SESSION)).not.toBe(before);
  });

  test("ends at the server when its user signs out", async () => {
    const client = await sessionOf("owner");
    const token = client.cookie(SESSION) ?? "";
    const { status } = await client.submit("/", "/sign-out", {});
    expect(status).toBe(303);
    const thief = new HttpClient(facts.url);
    thief.setCookie(SESSION, token);
    expect((await thief.get("/")).location).toBe("/sign-in");
  });
});

describe("a form whose session has ended", () => {
  test("has what was typed again after the sign-in, once, and other pages have nothing of it", async () => {
    const { context, page, ...person } = await signedIn("owner");
    const names = page.getByLabel("Domains", { exact: true });
    const signIn = async () => {
      await page.waitForURL("**/sign-in?**");
      await page.getByLabel("Email address").fill(credentials.email);
      await page.getByLabel("Password").fill(credentials.password);
      await page.getByRole("button", { name: "Sign in" }).click();
      await page.waitForURL("**/dmarc/new");
    };
    await page.goto("/dmarc/new");
    await names.fill("typed-lab.com");
    await context.clearCookies();
    await page.getByRole("button", { name: "Enroll" }).click();
    await signIn();
    expect(await names.inputValue()).toBe("typed-lab.com");
    await page.reload();
    expect(await names.inputValue()).toBe("");
    expect(person.problems).toEqual([]);
    await leave();
  });

  test("is sent from a browser that keeps no data of pages", async () => {
    const { context, page, ...person } = await signedIn("owner");
    const content = `Object.defineProperty(window, "sessionStorage", { get: () => { throw new DOMException("denied") } });`;
    await context.addInitScript({ content });
    await page.goto("/dmarc/new");
    await page.getByLabel("Domains", { exact: true }).fill("typed-lab.com");
    await context.clearCookies();
    await page.getByRole("button", { name: "Enroll" }).click();
    await page.waitForURL("**/sign-in?**");
    expect(person.problems).toEqual([]);
    await leave();
  });
});

describe("a redirect leads nowhere else", () => {
  const TARGETS = [
    "https://evil.example/",
    "//evil.example/",
    "/\\evil.example",
    "javascript:alert(1)",
    "/%5cevil.example",
    "http:evil.example",
    "\t//evil.example",
  ];

  test.each(TARGETS)("after the sign-in: %j", async (next) => {
    const client = new HttpClient(facts.url);
    const page = `/sign-in?next=${encodeURIComponent(next)}`;
    const { html } = await client.get(page);
    const action = /<form[^>]+action="(\/sign-in[^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "/sign-in";
    const { status, location } = await client.submit(page, action, credentials);
    expect(status).toBe(303);
    expect(new URL(location ?? "", facts.url).origin).toBe(facts.url);
    expect(location).toMatch(/^\/(?![/\\])/);
  });

  test.each(TARGETS)("after a change of the colours: %j", async (back) => {
    const client = await sessionOf("owner");
    const { status, location } = await client.submit("/", "/theme", { back });
    expect(status).toBe(303);
    expect(location).toMatch(/^\/(?![/\\])/);
  });

  test("and to the page that was wanted", async () => {
    const client = new HttpClient(facts.url);
    const page = `/sign-in?next=${encodeURIComponent("/lists?status=running")}`;
    const { html } = await client.get(page);
    const action = /<form[^>]+action="(\/sign-in[^"]*)"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "/sign-in";
    expect((await client.submit(page, action, credentials)).location).toBe("/lists?status=running");
  });
});

describe("guessing passwords", () => {
  test("is slowed down by a minute at most, and says nothing about who exists", async () => {
    const { member } = facts.users;
    const guess = async (email: string) => {
      const client = new HttpClient(facts.url);
      const wrong = { email, password: "wrong guess 1234" };
      const { status, html, headers } = await client.submit("/sign-in", "/sign-in", wrong);
      return { status, html: html.replaceAll(/value="[^"]*"/g, ""), waitS: Number(headers.get("retry-after")) };
    };
    const [known, unknown] = [await guess(member.email), await guess("nobody@kaffeewerk-lab.com")];
    expect(known.status).toBe(unknown.status);
    expect(known.html.replaceAll(member.email, "")).toBe(unknown.html.replaceAll("nobody@kaffeewerk-lab.com", ""));
    const guesses = [];
    for (let n = 0; n < 6; n++) guesses.push(await guess(member.email));
    const refused = guesses.filter(({ status }) => status === 429);
    expect(refused).not.toEqual([]);
    for (const { waitS } of refused) {
      expect(waitS).toBeGreaterThan(0);
      expect(waitS).toBeLessThanOrEqual(60);
    }
  });
});
