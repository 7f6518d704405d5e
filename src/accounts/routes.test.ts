import { SCOPES } from "../foundation/http/scopes.ts";
import { expect, test } from "bun:test";
import { createApps, ENDLESS } from "../testing/app.ts";

const start = createApps();

test.each([
  ["free", 1, 2],
  ["starter", 3, 6],
  ["growth", 10, 20],
  ["scale", 25, 50],
] as const)("the account says its plan %s, the limits of it, and the mode of the key", async (plan, rate, burst) => {
  const app = start();
  const id = app.newAccount("it", plan);
  for (const mode of ["live", "test"] as const) {
    const answer = await app.request("GET", "/v1/account", { key: app.newKey({ account: "it", mode }) });
    expect(answer.body).toEqual({
      id,
      name: "it",
      plan,
      mode,
      scopes: SCOPES,
      credits: { available: 100, held: 0 },
      limits: { requests_per_second: rate, burst },
    });
  }
});

test("the account shows what is held, and a new plan from the next request on", async () => {
  const app = start(ENDLESS);
  const key = app.newKey({ mode: "live" });
  const posted = app.verify(key, "someone@example.com", "?timeout=1");
  await app.advance(1_000);
  await posted;
  app.service.accounts.accounts.setPlan("main", "free");
  expect((await app.request("GET", "/v1/account", { key })).body).toMatchObject({
    plan: "free",
    credits: { available: 99, held: 1 },
    limits: { requests_per_second: 1, burst: 2 },
  });
  const next = app.verify(key, "someone@example.com", "?timeout=1");
  await app.advance(1_000);
  expect((await next).headers.get("ratelimit-limit")).toBe("1");
});
