import { afterEach, describe, expect, test } from "bun:test";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const RUN = Date.now().toString(36);

describe.each(WAYS)("an address %s", (_, way) => {
  const reload = !way.hasScripts;

  test("is verified, explained, found in the history and verified again", async () => {
    const email = `nobody.${RUN}@hotelmar-lab.com`;
    const hands = await Hands.of("owner", way, "/verify");
    await hands.fill(/address/i, email, hands.page.locator("form[method=post]"));
    await hands.press("Verify", hands.page.locator("main"));
    await hands.sees(/User unknown in virtual mailbox table/, { reload });
    await hands.sees("RCPT TO");
    await hands.press("Verify again");
    await hands.sees(/User unknown in virtual mailbox table/, { reload });
    await hands.person.goto(`/verify?q=${encodeURIComponent(email)}&verdict=undeliverable`);
    await hands.sees(email);
    await hands.follow(email, hands.page.locator("main"));
    await hands.sees("RCPT TO");
  });

  test("with a mistake gets a suggestion", async () => {
    const hands = await Hands.of("owner", way, "/verify");
    await hands.fill(/address/i, `anna${RUN}@gmial.com`, hands.page.locator("form[method=post]"));
    await hands.press("Verify", hands.page.locator("main"));
    await hands.sees(`anna${RUN}@gmail.com`, { reload });
    await hands.press("Verify that one");
    await hands.sees(`anna${RUN}@gmail.com`, { reload });
  });
});

describe("a check that waits for greylisting", () => {
  test("says what it waits for and until when, and goes on by itself", async () => {
    const hands = await Hands.of("owner", WAYS[0][1], "/verify?q=patience.example");
    await hands.follow(/lena\.hoffmann@patience/, hands.page.locator("main"));
    await hands.sees(/[Gg]reylist/);
  });
});
