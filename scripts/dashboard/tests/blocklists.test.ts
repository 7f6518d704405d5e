import { afterEach, describe, expect, test } from "bun:test";
import { control } from "./facts.ts";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

/** Another run on the same stage adds other addresses. */
const RUN = Math.floor(Date.now() / 1_000) % 240;
const addressOf = (at: number): string => `85.13.${131 + at}.${RUN + 1}`;

describe.each(WAYS)("a blocklist target %s", (name, way) => {
  const address = addressOf(WAYS.findIndex(([one]) => one === name));
  const reload = !way.hasScripts;

  test("is added, checked, listed, noted, muted, paused and deleted", async () => {
    const hands = await Hands.of("owner", way, "/blocklists");
    await hands.follow("Add targets");
    await hands.fill("One a line", `${address}\n198.51.100.7`);
    await hands.press("Add");
    await hands.sees("1 line cannot be added");
    expect(await hands.page.getByLabel("One a line").inputValue()).toBe(`${address}\n198.51.100.7`);
    await hands.fill("One a line", address);
    await hands.press("Add");
    await hands.sees("First check");
    await hands.press("Check now");
    await hands.sees(/On none of \d+ lists/, { reload });

    await control({ kind: "list", list: "spamcop", target: address });
    await hands.press("Check now");
    await hands.sees(/SpamCop SCBL.*severity/, { reload });
    await hands.press("Acknowledge");
    await hands.sees("Needs attention again");
    await hands.press("Removal requested");
    await hands.sees("Not requested after all");
    await hands.unfold("Note");
    await hands.fill(/^Note about/, "Asked the <b>provider</b>");
    await hands.press("Save the note");
    await hands.sees("Asked the <b>provider</b>");
    await hands.unfold("Mute");
    await hands.fill("Why", "shared address");
    await hands.press("Mute");
    await hands.sees("shared address");
    await hands.press("Unmute");
    await hands.sees("Unmuted. The next check");

    await hands.press("Pause");
    await hands.sees("Nobody looks at this target");
    await hands.press("Resume");
    await hands.unfold("Edit settings");
    await hands.fill("Label", "<i>new label</i>");
    await hands.press("Save");
    await hands.sees("<i>new label</i>");
    await hands.press("Delete …");
    await hands.sees("Delete 1 target?");
    await hands.press("Delete");
    await hands.sees("deleted");
    await control({ kind: "delist", list: "spamcop", target: address });
  });
});

describe("blocklists", () => {
  test("show a clean target on one screen, also one that was listed and has a list that cannot be believed", async () => {
    const hands = await Hands.of("owner", WAYS[0][1], "/blocklists?state=clean");
    const { page } = hands;
    await page.setViewportSize({ width: 1_440, height: 900 });
    await hands.follow("85.13.130.8", page.locator("main"));
    await hands.sees("listed 1 time");
    await hands.sees("cannot be believed");
    expect(await page.evaluate("document.documentElement.scrollHeight")).toBe(900);
  });

  test("say which lists cannot be believed, and what to do", async () => {
    const hands = await Hands.of("owner", WAYS[1][1], "/blocklists/lists");
    await hands.sees("cannot be believed");
    await hands.sees("Barracuda");
  });
});
