import { afterEach, describe, expect, test } from "bun:test";
import { Secret, TOTP } from "otpauth";
import { facts } from "./facts.ts";
import { leave, visit } from "./browser.ts";
import { Hands, WAYS } from "./hands.ts";

afterEach(async () => {
  expect(await leave()).toEqual([]);
});

const [MOUSE, NO_SCRIPTS, KEYS] = WAYS;
const PASSWORD = "a sufficiently long password";
/** Another run on the same stage invites other people. */
const RUN = Date.now().toString(36);

describe("the first user", () => {
  test("comes by the printed link, chooses a password and sees what to do first", async () => {
    const link = /http:\S+\/setup\/\w+/.exec(facts.fresh.greeting)?.[0] ?? "";
    expect(link).toStartWith(facts.fresh.url);
    const hands = await Hands.ofVisitor(NO_SCRIPTS[1], facts.fresh.url, new URL(link).pathname);
    await hands.fill("Email address", "first@kaffeewerk-lab.com");
    await hands.fill(/^Password/, "short");
    await hands.fill("The same again", "short");
    await hands.press("Save and sign in");
    await hands.sees(/at least \d+ characters/);
    expect(await hands.page.getByLabel("Email address").inputValue()).toBe("first@kaffeewerk-lab.com");
    await hands.fill(/^Password/, PASSWORD);
    await hands.fill("The same again", PASSWORD);
    await hands.press("Save and sign in");
    await hands.sees("You are signed in.");
    expect(hands.path).toBe("/welcome");
    await hands.follow("Verify", hands.page.getByRole("navigation").first());
    await hands.sees("Verify");
    const again = new Hands(await visit({}, facts.fresh.url), MOUSE[1]);
    again.person.expectedStatuses.add(404);
    expect(await again.person.goto(new URL(link).pathname)).toBe(404);
    await again.sees("This link does not work");
  });
});

/** Invites a colleague and returns the one-time link. */
const invite = async (hands: Hands, email: string): Promise<string> => {
  await hands.person.goto("/settings/users");
  await hands.fill("Email address", email);
  await hands.press(/invitation$/);
  const text = await hands.sees("/setup/");
  return /https?:\/\/\S+\/setup\/\w+/.exec(text)?.[0] ?? "";
};

const setUp = async (link: string, way: Hands["way"]): Promise<Hands> => {
  const hands = await Hands.ofVisitor(way, facts.url, new URL(link).pathname);
  await hands.fill(/^Password/, PASSWORD);
  await hands.fill("The same again", PASSWORD);
  await hands.press("Save and sign in");
  await hands.sees("You are signed in.");
  return hands;
};

describe.each(WAYS)("a colleague %s", (name, way) => {
  const email = `${name.replaceAll(" ", "-")}.${RUN}@kaffeewerk-lab.com`;

  test("is invited, signs in, becomes an owner, and is removed", async () => {
    const hands = await Hands.of("owner", way, "/");
    const colleague = await setUp(await invite(hands, email), way);
    colleague.person.expectedStatuses.add(403);
    expect(await colleague.person.goto("/settings/users")).toBe(403);
    await hands.person.goto("/settings/users");
    await hands.follow(email);
    await hands.choose("Role", "Owner");
    await hands.press("Change the role");
    await hands.sees(/is (now )?(an )?owner/i);
    expect(await colleague.person.goto("/settings/users")).toBe(200);
    await hands.person.goto("/settings/users");
    await hands.follow(email);
    await hands.press(/^Remove/);
    await hands.sees(/is removed/);
    await colleague.person.goto("/");
    await colleague.sees("Sign in");
  });
});

describe("a user", () => {
  test("switches codes of an app on, signs in with them, and signs out everywhere", async () => {
    const owner = await Hands.of("owner", MOUSE[1], "/");
    const email = `codes.${RUN}@kaffeewerk-lab.com`;
    const hands = await setUp(await invite(owner, email), KEYS[1]);
    await hands.person.goto("/settings/profile");
    await hands.press("Set up");
    const key = /(?:[A-Z2-7]{4} ){7}[A-Z2-7]{4}/.exec(await hands.sees("Six digits"))?.[0].replaceAll(" ", "") ?? "";
    const totp = new TOTP({ secret: Secret.fromBase32(key) });
    await hands.fill("Code", "000000");
    await hands.fill("Your password", PASSWORD);
    await hands.press("Switch on");
    await hands.sees(/code/i);
    await hands.fill("Code", totp.generate());
    await hands.fill("Your password", PASSWORD);
    await hands.press("Switch on");
    await hands.sees("Recovery codes");
    const recovery = /\b\w{4}(-\w{4}){3}\b/.exec(await hands.person.text())?.[0] ?? "";
    expect(recovery).not.toBe("");
    const elsewhere = await Hands.ofVisitor(NO_SCRIPTS[1], facts.url, "/sign-in");
    for (const status of [401, 429]) elsewhere.person.expectedStatuses.add(status);
    await elsewhere.fill("Email address", email);
    await elsewhere.fill("Password", PASSWORD);
    await elsewhere.press("Sign in");
    await elsewhere.sees("Enter the code");
    await elsewhere.fill(/code/i, recovery);
    await elsewhere.press("Sign in");
    await elsewhere.person.goto("/settings/profile");
    await elsewhere.sees("Where you are signed in");
    await hands.person.goto("/settings/profile");
    await hands.press("Sign out everywhere");
    await hands.sees("You are signed out in all browsers.");
    await elsewhere.person.goto("/");
    await elsewhere.sees("Sign in");
  });

  test("changes the password, the time zone and the colours", async () => {
    const owner = await Hands.of("owner", MOUSE[1], "/");
    const hands = await setUp(await invite(owner, `profile.${RUN}@kaffeewerk-lab.com`), NO_SCRIPTS[1]);
    await hands.person.goto("/settings/profile");
    await hands.choose("Times are shown in", "Asia/Tokyo");
    await hands.press("Save");
    await hands.sees("The time zone is saved.");
    await hands.press("Dark");
    expect(await hands.page.locator("html").getAttribute("data-theme")).toBe("dark");
    await hands.press("Sign out");
    await hands.sees("You are signed out.");
  });
});

describe("signing in", () => {
  test("with a wrong password keeps the address and says what is wrong", async () => {
    const person = await visit({ hasScripts: false });
    const hands = new Hands(person, NO_SCRIPTS[1]);
    person.expectedStatuses.add(401);
    await person.goto("/sign-in?next=%2Flists");
    await hands.fill("Email address", facts.users.owner.email);
    await hands.fill("Password", "not the password");
    await hands.press("Sign in");
    await hands.sees(/password/i);
    expect(await hands.page.getByLabel("Email address").inputValue()).toBe(facts.users.owner.email);
    await hands.fill("Password", facts.password);
    await hands.press("Sign in");
    await hands.sees("Lists");
    expect(hands.path).toBe("/lists");
  });
});
