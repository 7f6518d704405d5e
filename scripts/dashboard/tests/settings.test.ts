import { afterEach, describe, expect, test } from "bun:test";
import { facts } from "./facts.ts";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const RUN = Date.now().toString(36);

/** The status of a request with a key. */
const statusWith = async (key: string): Promise<number> =>
  (await fetch(`${facts.url}/v1/account`, { headers: { authorization: `Bearer ${key}` } })).status;

const keyIn = (text: string): string => /pw_test_[0-9A-Za-z]{20,}/.exec(text)?.[0] ?? "";

describe.each(WAYS)("an API key %s", (name, way) => {
  const title = `journey ${name} ${RUN}`;

  test("is created and shown once, rotated, and revoked", async () => {
    const hands = await Hands.of("owner", way, "/settings/keys");
    await hands.fill("Name", title);
    await hands.choose("Mode", "Test: fixed results, free");
    await hands.press("Create key");
    const first = keyIn(await hands.sees("pw_test_"));
    expect(await statusWith(first)).toBe(200);
    await hands.person.goto("/settings/keys");
    expect(await hands.person.text()).not.toContain(first);
    await hands.follow(title);
    await hands.press("Rotate key");
    const second = keyIn(await hands.sees("pw_test_"));
    expect(second).not.toBe(first);
    expect([await statusWith(first), await statusWith(second)]).toEqual([200, 200]);
    await hands.person.goto("/settings/keys");
    await hands.follow(title);
    await hands.press("Revoke key");
    await hands.sees(/Tick the box/);
    await hands.tick("Nothing uses this key any more");
    await hands.press("Revoke key");
    await hands.sees("is revoked.");
    expect([await statusWith(first), await statusWith(second)]).toEqual([401, 401]);
  });
});

describe.each(WAYS)("the suppression list %s", (name, way) => {
  const entry = `${name.replaceAll(" ", "-")}-${RUN}@acme-lab.com`;

  test("takes entries and gives them up", async () => {
    const hands = await Hands.of("owner", way, "/settings/suppressions");
    const main = hands.page.locator("main");
    await main.locator("textarea[name=entries]").fill(entry);
    await hands.fill("Note", "asked by phone", main);
    await hands.press("Add", main);
    await hands.sees("Added 1 entry.");
    await hands.sees(entry);
    await hands.tick(`Remove ${entry}`);
    await hands.press("Remove ticked");
    await hands.sees("Removed 1 entry.");
  });
});

describe("settings", () => {
  test("lead to every part of them, each of which opens", async () => {
    const hands = await Hands.of("owner", WAYS[1][1], "/settings");
    const paths = await hands.page.evaluate<string[]>(
      `[...document.querySelectorAll("main a[href^='/settings/']")].map((link) => link.getAttribute("href"))`,
    );
    expect(paths.length).toBeGreaterThan(6);
    for (const path of paths) {
      expect([path, await hands.person.goto(path)]).toEqual([path, 200]);
      expect(await hands.page.locator("h1").count()).toBe(1);
    }
  });

  test("change the default webhook, with a mistake first", async () => {
    const hands = await Hands.of("owner", WAYS[1][1], "/settings/notifications");
    const before = await hands.page.getByLabel("Webhook URL").inputValue();
    await hands.fill("Webhook URL", "http://10.0.0.1/hook");
    await hands.press("Save");
    await hands.sees(/10\.0\.0\.1|not allowed|public|network/);
    expect(await hands.page.getByLabel("Webhook URL").inputValue()).toBe("http://10.0.0.1/hook");
    await hands.fill("Webhook URL", before);
    await hands.press("Save");
    await hands.sees(/saved|changed/i);
  });
});

describe.each(WAYS)("a person's data %s", (name, way) => {
  const address = `person-${name.replaceAll(" ", "-")}-${RUN}@acme-lab.com`;

  test("are found, and erased when the address is typed again", async () => {
    const hands = await Hands.of("owner", way, "/settings/suppressions");
    const main = hands.page.locator("main");
    await main.locator("textarea[name=entries]").fill(address);
    await hands.press("Add", main);
    await hands.sees("Added 1 entry.");
    await hands.follow("Personal data", main);
    await hands.fill("Email address", address);
    await hands.press("Find");
    await hands.sees("Found in 1 place");
    await hands.fill("Type the address again", `other-${address}`);
    await hands.press("Erase this address");
    await hands.sees("Must be the same address");
    await hands.fill("Type the address again", address);
    await hands.tick(/Remove it from the suppression list/);
    await hands.press("Erase this address");
    await hands.sees("The last address was erased", { reload: true });
    await hands.fill("Email address", address);
    await hands.press("Find");
    await hands.sees("Found nowhere");
  });
});

describe("the navigation of the settings", () => {
  test.each([1440, 1024, 390])(
    "stands on every page at %d px, with the page marked, and nothing scrolls sideways",
    async (width) => {
      const hands = await Hands.of("owner", WAYS[1][1], "/settings/account");
      await hands.page.setViewportSize({ width, height: 900 });
      for (const title of ["Notifications", "Personal data", "Sending identity", "Service", "Profile"]) {
        await hands.follow(title, hands.page.locator(".settings-nav"));
        await hands.page.locator(".settings-nav [aria-current=page]", { hasText: title }).waitFor();
        expect(await hands.page.evaluate("document.documentElement.scrollWidth - innerWidth")).toBe(0);
      }
    },
  );
});

test("usage of a calendar month is chosen, and has a total by key", async () => {
  const hands = await Hands.of("owner", WAYS[1][1], "/usage");
  await hands.follow("Last month");
  await hands.sees(/ in [A-Z][a-z]+ \d{4}, from /);
  await hands.follow("This month");
  await hands.sees(/Total/);
});
