import { afterEach, describe, expect, test } from "bun:test";
import { leave } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

describe.each(WAYS)("webhooks %s", (_, way) => {
  test("are tested, their deliveries read and sent again, and the secret shown and replaced", async () => {
    const hands = await Hands.of("owner", way, "/webhooks");
    for (const status of [502, 504]) hands.person.expectedStatuses.add(status);
    await hands.press("Send");
    await hands.sees(/Delivered: the receiver responded 204/);
    await hands.person.goto("/webhooks/deliveries?status=delivered");
    await hands.sees(/\/(orders|slow)/);
    await hands.page.locator("main a[href*='/webhooks/deliveries/']").first().press("Enter");
    await hands.press(/^Send (now|again)$/);
    await hands.sees("The event will be sent again now.");
    await hands.person.goto("/webhooks");
    await hands.follow("Signing secret");
    await hands.press("Show the secret");
    await hands.sees(/whsec_/);
  });
});

describe("usage", () => {
  test("of any range, with the same figures as CSV", async () => {
    const hands = await Hands.of("owner", WAYS[1][1], "/usage");
    await hands.sees(/deliverable/i);
    const day = (daysAgo: number) => new Date(Date.now() - daysAgo * 86_400_000).toISOString().slice(0, 10);
    await hands.fill("From", day(10));
    await hands.fill("To", day(2));
    await hands.press("Show", hands.page.locator("form:has([name=from])"));
    await hands.sees(/deliverable/i);
    expect(new URL(hands.page.url()).searchParams.get("from")).toBe(day(10));
  });
});
