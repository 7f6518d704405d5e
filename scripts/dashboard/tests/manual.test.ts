import { afterEach, describe, expect, test } from "bun:test";
import { leave, problemsOf, signedIn, visit } from "./browser.ts";

/** The pages of the dashboard, and a heading that the section of the manual behind their Help link has. */
const HELP = [
  ["/verify", "Verify an address"],
  ["/lists", "Lists"],
  ["/dmarc", "DMARC"],
  ["/blocklists", "Blocklists"],
  ["/usage", "Usage"],
  ["/webhooks", "Webhooks and mail"],
  ["/settings", "Settings"],
  ["/settings/users", "Users and roles"],
  ["/settings/service", "Monitor it"],
] as const;

describe("the manual", () => {
  afterEach(leave);

  test("needs no session, is accessible in both schemes, and fits a phone, page by page", async () => {
    const visitor = await visit();
    // All pages are made at the first request for one.
    expect((await fetch(new URL("/docs", visitor.origin))).status).toBe(200);
    await visitor.goto("/docs");
    const links = await visitor.page
      .locator(".manual-side .lists a")
      .evaluateAll((all) => all.map((link) => link.getAttribute("href") ?? ""));
    expect(links.length).toBeGreaterThan(18);
    const found: string[] = [];
    for (const target of ["/docs", ...links]) {
      expect([target, await visitor.goto(target)]).toEqual([target, 200]);
      found.push(...(await problemsOf(visitor, target)));
    }
    visitor.expectedStatuses.add(404);
    expect(await visitor.goto("/docs/no-such-page")).toBe(404);
    expect(await visitor.page.locator("h1").textContent()).toBe("No such page");
    found.push(...(await problemsOf(visitor, "/docs/no-such-page")));
    expect([...found, ...visitor.problems]).toEqual([]);
  }, 240_000);

  test("finds sections as one types, leads to them, and says when there is none", async () => {
    const { page, ...visitor } = await visit();
    await page.goto(new URL("/docs", visitor.origin).href);
    const search = page.getByRole("searchbox", { name: "Search the manual" });
    await search.fill("credits");
    const first = page.locator("#found a").first();
    await first.waitFor();
    const href = (await first.getAttribute("href")) ?? "";
    await first.click();
    await page.waitForURL(`**${href}`);
    expect(href).toMatch(/^\/docs\/[a-z-]+/);
    await page.getByRole("searchbox", { name: "Search the manual" }).fill("zzqqxx");
    await page.locator("[role=status]", { hasText: /no|nothing/i }).waitFor({ state: "attached" });
    expect(await page.locator("#found a").count()).toBe(0);
  });

  test("has its sections folded above the text on a phone", async () => {
    const { page, ...visitor } = await visit({ width: 390 });
    await page.goto(new URL("/docs/lists", visitor.origin).href);
    await page.locator(".on-this-page summary").click();
    await page.locator(".on-this-page a", { hasText: "Results" }).click();
    await page.waitForURL("**/docs/lists#results");
  });

  test("is what the Help link of each page leads to, and leads back", async () => {
    const owner = await signedIn("owner");
    for (const [path, heading] of HELP) {
      await owner.goto(path);
      await owner.page.locator(".wide nav a", { hasText: "Help" }).click();
      await owner.page.waitForURL("**/docs/**");
      const { hash } = new URL(owner.page.url());
      const target = hash === "" ? owner.page.locator("h1") : owner.page.locator(hash);
      expect([path, await target.textContent()]).toEqual([path, expect.stringContaining(heading)]);
    }
    await owner.page.getByRole("link", { name: "Back to the dashboard" }).click();
    await owner.page.waitForURL((url) => url.pathname === HELP.at(-1)?.[0]);
    expect(owner.problems).toEqual([]);
  });
});
