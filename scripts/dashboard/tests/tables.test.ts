import { afterEach, describe, expect, test } from "bun:test";
import { leave, signedIn } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const RUN = Date.now().toString(36);

/** By keyboard alone it is the same links, behind those of fifty rows. */
describe.each(WAYS.slice(0, 2))("the pages of a table %s", (_, way) => {
  test("leads forward and back, and back by the browser's button", async () => {
    const hands = await Hands.of("owner", way, "/verify");
    const pager = hands.page.locator(".pager");
    const first = await hands.sees(/1–50 of \d+/);
    await hands.follow("Next page", pager);
    await hands.sees(/51–100 of \d+/);
    await hands.follow("Next page", pager);
    await hands.sees(/101–150 of \d+/);
    await hands.follow("Previous page", pager);
    const second = await hands.sees(/51–100 of \d+/);
    expect(second).not.toBe(first);
    await hands.page.goBack();
    await hands.sees(/101–150 of \d+/);
    await hands.follow("First page", pager);
    await hands.follow("200 rows", pager);
    await hands.sees(/1–200 of \d+/);
  });
});

describe.each(WAYS)("a table %s", (_, way) => {
  const reload = !way.hasScripts;

  test("has a menu for each row, which verifies again and deletes", async () => {
    const email = `nobody.menu.${RUN}.${way.isKeyboard ? "keys" : String(way.hasScripts)}@hotelmar-lab.com`;
    const hands = await Hands.of("owner", way, "/verify");
    await hands.fill(/address/i, email, hands.page.locator("form[method=post]"));
    await hands.press("Verify", hands.page.locator("main"));
    await hands.sees(/User unknown in virtual mailbox table/, { reload });
    const history = `/verify?q=${encodeURIComponent(email)}`;
    await hands.person.goto(history);
    const menu = hands.page.locator("td.menu");
    await menu.locator("summary").first().press("Enter");
    await hands.press("Verify again", menu);
    await hands.sees(/User unknown in virtual mailbox table/, { reload });
    await hands.person.goto(history);
    await hands.sees("1–2 of 2");
    await menu.locator("summary").first().press("Enter");
    await hands.unfold("Delete …", menu);
    await hands.press("Delete for good", menu);
    await hands.sees("The verification and its evidence are deleted.");
    expect(new URL(hands.page.url()).search).toBe(new URL(history, hands.page.url()).search);
    expect(await hands.page.locator("td.menu").count()).toBe(1);
  });
});

describe("filters with scripts", () => {
  test("apply when they change, keep the focus, and the browser's button takes them back", async () => {
    const hands = await Hands.of("owner", WAYS[0][1], "/verify");
    await hands.choose("Verdict", "Undeliverable");
    await hands.page.waitForURL("**verdict=undeliverable**");
    await hands.sees("No such mailbox");
    expect(await hands.page.locator("tbody").textContent()).not.toContain("Deliverable");
    await hands.page.getByLabel("Address contains").pressSequentially("hotelmar");
    await hands.page.waitForURL("**q=hotelmar**");
    expect(await hands.page.evaluate("document.activeElement.name")).toBe("q");
    await hands.page.goBack();
    await hands.page.waitForURL((url) => url.searchParams.get("q") !== "hotelmar");
    await hands.page.waitForFunction("document.querySelector('[name=q]').value === ''");
    expect(await hands.page.getByLabel("Verdict").inputValue()).toBe("undeliverable");
  });
});

describe("a menu of a row", () => {
  test("closes with Escape and by a click elsewhere, and one is open at a time", async () => {
    const person = await signedIn("owner");
    await person.goto("/blocklists");
    const { page } = person;
    const menus = page.locator(".row-menu > summary");
    await menus.nth(0).click();
    await menus.nth(6).click();
    expect(await page.locator(".row-menu[open]").count()).toBe(1);
    await page.keyboard.press("Escape");
    expect(await page.locator(".row-menu[open]").count()).toBe(0);
    expect(await menus.nth(6).evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    await menus.nth(6).click();
    await page.locator("h1").click();
    expect(await page.locator(".row-menu[open]").count()).toBe(0);
  });
});

describe("the head of a long table", () => {
  test("stays in sight in a wide window", async () => {
    const person = await signedIn("owner");
    await person.goto("/verify");
    const { page } = person;
    await page.locator("tbody tr").nth(40).scrollIntoViewIfNeeded();
    const { y } = (await page.locator("thead th").first().boundingBox()) ?? { y: -1 };
    expect(y).toBeGreaterThanOrEqual(0);
    expect(y).toBeLessThan(120);
  });
});

describe("evidence on paper", () => {
  test("has id, account, exact times and every line, and nothing that leads elsewhere", async () => {
    const hands = await Hands.of("owner", WAYS[0][1], "/verify?verdict=undeliverable&q=hotelmar");
    await hands.follow(/@hotelmar/, hands.page.locator("main"));
    await hands.sees("S = server, C = Postwarden");
    const { page } = hands;
    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    const text = await hands.person.text();
    expect(text).toContain(new URL(page.url()).pathname.split("/")[2] ?? "");
    expect(text).toMatch(/Account default/);
    expect(await page.locator("time[title]").first().getAttribute("title")).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \S+/,
    );
    expect(await page.locator(".side, main .button, .filters").filter({ visible: true }).count()).toBe(0);
    const hidden = await page.evaluate<number>(
      "[...document.querySelectorAll('.transcript li')].filter((line) => line.scrollWidth > line.clientWidth + 1).length",
    );
    expect(hidden).toBe(0);
    expect(await page.evaluate<string>("getComputedStyle(document.body).color")).toBe("rgb(20, 32, 31)");
  });
});
