import { describe, expect, test } from "bun:test";
import { readApiKey } from "../foundation/base/secrets.ts";
import { createCommandLine } from "../testing/command-line.ts";

const { run } = createCommandLine();
const SHOP = "https://shop.example";

const create = async (...options: readonly string[]) =>
  run(["keys", "create", "--account", "anna", "--mode", "test", ...options, "--json"]);

describe("a publishable key", () => {
  test("is made with origins and limits, shown later, changed, and keeps what is not changed", async () => {
    await run(["accounts", "create", "anna"]);
    const { status, json } = await create("--origins", `${SHOP}/, http://localhost:3000`, "--per-day", "50");
    expect(status).toBe(0);
    expect(readApiKey(String(json.key))).toEqual({ mode: "test" });
    const publishable = {
      key: json.key,
      origins: [SHOP, "http://localhost:3000"],
      ...{ visitor_per_hour: 20, per_day: 50, check: "mailbox" },
    };
    expect(json).toMatchObject({ scopes: ["verifications:write"], publishable });
    const changed = await run(["keys", "change", String(json.id), "--check", "domain", "--per-day", "60", "--json"]);
    expect(changed.json.publishable).toEqual({ ...publishable, check: "domain", per_day: 60 });
    const { out } = await run(["keys", "list", "--account", "anna"]);
    expect(out).toContain(`pw_pub_test_…${String(json.key).slice(-4)}`);
    const { json: rotated } = await run(["keys", "rotate", String(json.id), "--json"]);
    expect(rotated).toMatchObject({ publishable: { key: rotated.key, check: "domain" } });
  });

  test.each([
    [["--origins", "shop.example"], "origin_invalid"],
    [["--origins", "https://shop.example/path"], "origin_invalid"],
    [["--origins", SHOP, "--per-day", "0"], "limit_invalid"],
    [["--origins", SHOP, "--visitor-per-hour", "many"], "limit_invalid"],
    [["--origins", SHOP, "--scopes", "bulk:read"], "usage"],
    [["--per-day", "5"], "usage"],
    [["--origins", SHOP, "--check", "all"], "usage"],
  ])("is refused with %p: %s", async (options, error) => {
    await run(["accounts", "create", "anna"]);
    const refused = await create(...options);
    expect(refused.status).toBe(2);
    expect(JSON.parse(refused.err)).toMatchObject({ error });
  });

  test("a secret key has neither origins nor limits that could be changed", async () => {
    await run(["accounts", "create", "anna"]);
    const { json } = await create();
    const refused = await run(["keys", "change", String(json.id), "--per-day", "5", "--json"]);
    expect([refused.status, JSON.parse(refused.err).error]).toEqual([1, "secret_key"]);
    expect((await run(["keys", "change", String(json.id)])).status).toBe(2);
  });
});
