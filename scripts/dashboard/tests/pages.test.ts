import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { axeProblems, type Person } from "../browser.ts";
import { HOSTILE_LINE } from "../hostile.ts";
import { Frontier, PAGE_MAP, linksOf } from "../places.ts";
import { leave, problemsOf, signedIn, visit } from "./browser.ts";

/** Of each kind of page one is looked at here; `npm run shots` looks at several. */
const PER_PLACE = 1;

/** Pages that differ only in other parameters have the same parts. */
const hasOwnParts = (target: string): boolean => !target.includes("?") || /[?&](tab|confirm|q)=/.test(target);

describe("every page", () => {
  let owner: Person;

  beforeAll(async () => {
    owner = await signedIn("owner");
  });
  afterAll(leave);

  test("is reached by links, accessible in both schemes, never wider than the window, and shows hostile texts as text", async () => {
    const frontier = new Frontier(PER_PLACE, ["/", "/test"]);
    const found: string[] = [];
    for (let target = frontier.next(); target !== undefined; target = frontier.next()) {
      const status = await owner.goto(target);
      if (status !== 200) found.push(`${target}: status ${status}`);
      frontier.add(await linksOf(owner.page));
      if (hasOwnParts(target) && !target.startsWith("/test/")) found.push(...(await problemsOf(owner, target)));
    }
    expect([...found, ...owner.problems]).toEqual([]);
    expect(PAGE_MAP.filter((place) => !frontier.places.has(place))).toEqual([]);
  }, 1_200_000);

  test("shows what a browser calls itself as text", async () => {
    await owner.goto("/settings/profile");
    expect(await owner.page.locator(".people h3").first().getAttribute("title")).toBe(HOSTILE_LINE.slice(0, 300));
    expect(await owner.injected()).toEqual([]);
  });

  test("for visitors is accessible as well", async () => {
    const visitor = await visit();
    visitor.expectedStatuses.add(404);
    const found: string[] = [];
    for (const target of ["/sign-in", "/no-such-page"]) {
      await visitor.goto(target);
      found.push(...(await problemsOf(visitor, target)));
    }
    expect([...found, ...visitor.problems]).toEqual([]);
  });
});

describe("on a phone", () => {
  test("the menu opens, leads to every section and closes", async () => {
    const person = await signedIn("owner", { width: 390 });
    await person.goto("/");
    const menu = person.page.locator("details.menu");
    for (const section of ["Verify", "Lists", "DMARC", "Blocklists", "Usage", "Webhooks", "Settings"]) {
      await menu.locator("summary").click();
      await menu.getByRole("link", { name: new RegExp(`^${section}`) }).click();
      await person.page.waitForURL(`**/${section.toLowerCase()}**`);
      expect(await menu.getAttribute("open")).toBeNull();
    }
    expect(await leave()).toEqual([]);
  });
});

describe("the search", () => {
  test("opens over any page with Ctrl-K, shows results while typing, and is used by keyboard alone", async () => {
    const person = await signedIn("owner");
    const { page } = person;
    await person.goto("/usage");
    await page.keyboard.press("Control+k");
    const dialog = page.locator("dialog.search");
    await dialog.locator("input").waitFor();
    await page.keyboard.type("kaffeewerk");
    await dialog
      .getByRole("link", { name: /^kaffeewerk/ })
      .first()
      .waitFor();
    expect(await axeProblems(page)).toEqual([]);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowUp");
    expect(await dialog.locator("input").evaluate((input) => input === document.activeElement)).toBe(true);
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/dmarc\/[0-9a-f-]{36}/);
    await page.keyboard.press("Control+k");
    await dialog.locator("input").waitFor();
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await leave()).toEqual([]);
  });

  test("is a page without scripts", async () => {
    const person = await signedIn("owner", { hasScripts: false });
    await person.goto("/");
    await person.page
      .getByRole("link", { name: /^Search/ })
      .filter({ visible: true })
      .click();
    await person.page.locator("#search input").fill("notifications");
    await person.page.locator("#search button").click();
    await person.page.locator("#found").getByRole("link", { name: "Notifications" }).click();
    await person.page.waitForURL("**/settings/notifications");
    expect(await leave()).toEqual([]);
  });
});

describe("live and test data", () => {
  test("are switched in the frame, and never mixed", async () => {
    const person = await signedIn("owner");
    await person.goto("/blocklists");
    expect(await person.text()).not.toContain("listed.example");
    await person.page.getByRole("link", { name: "Test", exact: true }).filter({ visible: true }).click();
    await person.page.waitForURL("**/test/blocklists");
    expect(await person.text()).toContain("listed.example");
    expect(await person.text()).not.toContain("81.169.10.20");
    expect(await person.page.locator("body").getAttribute("class")).toContain("test");
    expect(await leave()).toEqual([]);
  });
});
