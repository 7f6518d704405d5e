import { afterAll, expect, test } from "bun:test";
import { TestApp } from "../../testing/app.ts";

/** One for all, because the router compiles each route at its first request. */
const app = new TestApp();
const { key } = app.newKey();
afterAll(() => app.close());

test.each(["http://a", "https://a", "https://abcd.example", "https://[::1]:8443", "http://[::1]", "https://localhost"])(
  "every route is found at %s",
  async (origin) => {
    const statusOf = async (method: string, path: string) => {
      const request = new Request(origin + path, { method, headers: { authorization: `Bearer ${key}` } });
      return (await app.handle(request)).status;
    };
    const [api, pages] = await Promise.all(["/v1", "/"].map((path) => app.applicationOf(path)));
    const routes = [...(api?.routes ?? []), ...(pages?.routes ?? [])];
    expect(routes.length).toBeGreaterThan(200);
    for (const { method, path } of routes) {
      const status = await statusOf(method, path.replace(/:\w+/g, "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52"));
      expect([`${method} ${path}`, status]).not.toEqual([`${method} ${path}`, 405]);
    }
    expect(await statusOf("GET", "/healthz?x=//y")).not.toBe(404);
    expect(await statusOf("GET", "/healthz")).toBe(200);
    expect(await statusOf("GET", "/v1/account")).toBe(200);
    expect(await statusOf("PUT", "/v1/account")).toBe(405);
    expect(await statusOf("GET", "/nowhere")).toBe(404);
  },
);
