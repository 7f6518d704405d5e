/** Sign-up forms on pages of other origins: what the script says, and that no form waits for a service that is away or slow. */
import { afterAll, afterEach, describe, expect, test } from "bun:test";
import { axeProblems, type Person } from "../browser.ts";
import { facts } from "./facts.ts";
import { leave, visit } from "./browser.ts";
import { Hands, type Way, WAYS } from "./hands.ts";

const RUN = Date.now().toString(36);
/** A form that waits for the service would take longer. */
const SENT_MS_MAX = 4_000;
const servers: Array<Bun.Server<undefined>> = [];

afterEach(async () => {
  expect(
    (await leave()).filter((problem) => !/request to http:\/\/127\.0\.0\.1:\d+\/(widget\.js|v1\/)/.test(problem)),
  ).toEqual([]);
});

afterAll(async () => {
  await Promise.all(servers.map((server) => server.stop(true)));
});

const serve = (
  fetch: (request: Request) => Response | Promise<Response>,
): { url: string; stop: () => Promise<void> } => {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch });
  servers.push(server);
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
};

const page = (body: string) =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Shop</title>${body}</html>`;

/** A shop with a strict policy. `service`: where its page loads the script from. */
const openShop = () => {
  const shop = { service: facts.url, key: "" };
  const { url } = serve(async (request) => {
    const policy = `default-src 'none'; script-src ${shop.service}; connect-src ${shop.service}; form-action 'self'; require-trusted-types-for 'script'`;
    const headers = { "content-type": "text/html", "content-security-policy": policy };
    if (request.method === "POST") {
      const email = new URLSearchParams(await request.text()).get("email");
      return new Response(page(`</head><body><main><h1>Welcome</h1><p>Joined: ${email}</p></main></body>`), {
        headers,
      });
    }
    if (new URL(request.url).pathname !== "/") return new Response(null, { status: 204 });
    const script = `<script src="${shop.service}/widget.js" data-key="${shop.key}" defer></script></head>`;
    const field = `<label for="email">Email</label><input type="email" id="email" name="email" autocomplete="email">`;
    const form = `<form method="post" action="/joined" data-postwarden>${field}<button>Join</button></form>`;
    return new Response(page(`${script}<body><main><h1>Shop</h1>${form}</main></body>`), { headers });
  });
  return Object.assign(shop, { url });
};

/** Creates a publishable key of test mode on the dashboard, and returns it. */
const keyFor = async (origins: string, way: Way = WAYS[1][1]): Promise<{ key: string; hands: Hands }> => {
  const hands = await Hands.of("owner", way, "/settings/keys");
  const form = hands.page.locator("form[action$='/settings/keys/publishable']");
  await hands.fill("Name", `sign-up ${RUN}`, form);
  await hands.choose("Mode", "Test: fixed results, free", form);
  await hands.fill("Origins", origins, form);
  await hands.press("Create publishable key", form);
  const text = await hands.sees("pw_pub_test_");
  return { key: /pw_pub_test_[0-9A-Za-z]{49}/.exec(text)?.[0] ?? "", hands };
};

const customer = async (url: string): Promise<Person> => {
  const person = await visit({}, url);
  for (const status of [403, 429]) person.expectedStatuses.add(status);
  await person.goto("/");
  return person;
};

const type = async ({ page: shown }: Person, email: string): Promise<void> => {
  await shown.getByLabel("Email").fill(email);
  await shown.keyboard.press("Tab");
};

/** Sends the form, and returns what the shop got. */
const join = async (person: Person): Promise<string> => {
  const startedMs = performance.now();
  await person.page.getByRole("button", { name: "Join", exact: true }).click();
  await person.page.getByText("Joined:").waitFor();
  expect(performance.now() - startedMs).toBeLessThan(SENT_MS_MAX);
  return person.text();
};

describe.each(WAYS)("a publishable key %s", (_name, way) => {
  test("is created, shown again with its snippet, and changed", async () => {
    const { key, hands } = await keyFor("https://shop.example", way);
    await hands.page.reload();
    await hands.sees(`data-key="${key}"`);
    await hands.fill("Addresses in a day", "50");
    await hands.press("Save");
    await hands.sees("Saved.");
    if (!way.hasScripts) return;
    await hands.fill("Email", "someone@gmial.com");
    await hands.page.keyboard.press("Tab");
    await hands.sees("someone@gmail.com?");
  });
});

describe("a form on a page of another origin", () => {
  const shop = openShop();

  test("suggests an address, changes it only when the visitor says so, and is sent", async () => {
    shop.key = (await keyFor(shop.url)).key;
    const person = await customer(shop.url);
    const field = person.page.getByLabel("Email");
    await field.focus();
    const status = person.page.getByRole("status");
    expect([await status.getAttribute("aria-live"), await status.textContent()]).toEqual(["polite", ""]);
    await type(person, "someone@gmial.com");
    const suggestion = person.page.getByRole("button", { name: "someone@gmail.com" });
    await suggestion.waitFor();
    expect(await status.textContent()).toBe("Did you mean someone@gmail.com?");
    expect(await field.inputValue()).toBe("someone@gmial.com");
    expect(await field.getAttribute("aria-describedby")).toBe(await status.getAttribute("id"));
    expect(await axeProblems(person.page)).toEqual([]);
    await suggestion.press("Enter");
    expect(await field.inputValue()).toBe("someone@gmail.com");
    expect(await field.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
    await suggestion.waitFor({ state: "detached" });
    expect(await join(person)).toContain("Joined: someone@gmail.com");
  });

  test("says what is wrong with an address, and is sent all the same", async () => {
    const person = await customer(shop.url);
    await type(person, "null_mx@any.example");
    await person.page.getByText("This address cannot receive mail.").waitFor();
    await type(person, "disposable@any.example");
    await person.page.getByText("This is a disposable address.").waitFor();
    await type(person, "someone@any.example");
    await person.page.getByText("disposable").waitFor({ state: "detached" });
    await type(person, "null_mx@any.example");
    expect(await join(person)).toContain("Joined: null_mx@any.example");
  });

  test("says nothing on an origin that the key does not list, and is sent", async () => {
    const other = openShop();
    other.key = shop.key;
    const person = await customer(other.url);
    const refused = person.page.waitForEvent("requestfailed");
    await type(person, "null_mx@any.example");
    await refused;
    expect(await person.page.getByRole("status").textContent()).toBe("");
    expect(await join(person)).toContain("Joined: null_mx@any.example");
    person.problems.splice(0);
  });

  test.each([
    ["away", async (stop: () => Promise<void>) => stop()],
    ["slow", async () => undefined],
  ])("is sent at once while the service is %s", async (_what, begin) => {
    const front = serve((request) =>
      new URL(request.url).pathname === "/widget.js"
        ? fetch(`${facts.url}/widget.js`)
        : Promise.withResolvers<Response>().promise,
    );
    shop.service = front.url;
    const person = await customer(shop.url);
    await person.page.getByLabel("Email").focus();
    await begin(front.stop);
    await type(person, "someone@gmial.com");
    expect(await join(person)).toContain("Joined: someone@gmial.com");
    person.problems.splice(0);
  });

  test("is sent when not even the script could be loaded", async () => {
    const gone = serve(() => new Response());
    await gone.stop();
    shop.service = gone.url;
    const person = await customer(shop.url);
    await type(person, "someone@gmial.com");
    expect(await join(person)).toContain("Joined: someone@gmial.com");
    person.problems.splice(0);
  });
});
