import { afterEach, beforeAll, describe, expect, test } from "bun:test";
import { leave, signedIn } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const CHECK_MS_MAX = 60_000;

beforeAll(async () => {
  const { page } = await signedIn("owner");
  await page.goto("/settings/sender");
  const text = await page.locator("main").textContent();
  if (text?.includes("Not checked since") === true) await page.getByRole("button", { name: "Check now" }).click();
  await page.getByText("Checking this machine…").waitFor({ state: "detached", timeout: CHECK_MS_MAX });
  await leave();
}, CHECK_MS_MAX * 2);

describe.each(WAYS)("the home page %s", (name, way) => {
  test("has five problems and folds the others, and a warning of the machine is acknowledged and shown again", async () => {
    const hands = await Hands.of("owner", way, "/");
    await hands.sees("Since yesterday:");
    expect(await hands.page.locator("main .panel > .items > li").count()).toBeLessThanOrEqual(5);
    await hands.unfold(/^\d+ more$/);
    await hands.unfold(/about this machine/);
    await hands.unfold("Acknowledge");
    await hands.fill("Reason", `Known, ${name}`);
    await hands.choose("Until", "in 7 days");
    await hands.press("Acknowledge", hands.page.locator("details.more[open] form"));
    await hands.sees("Acknowledged for 7 days.");
    await hands.unfold(/acknowledged/);
    await hands.sees(`“Known, ${name}”`);
    await hands.press("Show again");
    await hands.sees("The warning shows again.");
  });

  test("leads to the first steps, of which one is hidden and shown, and to the records of report mail", async () => {
    const hands = await Hands.of("owner", way, "/welcome");
    await hands.press("Hide", hands.page.locator(".first-steps"));
    await hands.sees("Show 1 hidden step");
    await hands.press("Show 1 hidden step");
    await hands.sees("All steps are shown.");
    await hands.person.goto("/welcome/report-mail");
    await hands.fill("Report host", "reports.example.com");
    await hands.press("Show its records");
    await hands.sees("POSTWARDEN_REPORT_HOST=reports.example.com");
    await hands.press("Are they published now?");
    await hands.sees(/missing|unknown|published/);
  });
});

test.each([390, 360])("on a phone of %p px, the figures come before the problems", async (width) => {
  const person = await signedIn("owner", { width });
  await person.goto("/");
  const top = (selector: string) => person.page.locator(selector).first().boundingBox();
  const [figures, problems] = [await top(".stats"), await top(".items")];
  expect(figures?.y ?? Number.POSITIVE_INFINITY).toBeLessThan(problems?.y ?? 0);
  expect(figures?.y ?? Number.POSITIVE_INFINITY).toBeLessThan(300);
});
