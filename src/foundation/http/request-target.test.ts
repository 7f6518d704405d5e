import { afterAll, expect, test } from "bun:test";
import { areaOf } from "../../service/http-application.ts";
import { createUrlOfRequest } from "./request-target.ts";
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
    expect(routes.filter(({ path }) => areaOf(path).startsWith(":"))).toEqual([]);
    for (const { method, path } of routes) {
      const status = await statusOf(method, path.replace(/:\w+/g, "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52"));
      expect([`${method} ${path}`, status]).not.toEqual([`${method} ${path}`, 405]);
    }
    expect(await statusOf("GET", "/healthz?x=//y")).not.toBe(404);
    expect(await statusOf("GET", "/healthz")).toBe(200);
    expect(await statusOf("GET", "/v1/account")).toBe(200);
    expect(await statusOf("PUT", "/v1/account")).toBe(405);
    for (const path of [
      "/nowhere",
      "/v1",
      "/v1/nowhere",
      "/v1/dmarc/nowhere",
      "/test/nowhere",
      "/testing",
      "//v1/account",
    ])
      expect([path, await statusOf("GET", path)]).toEqual([path, 404]);
    for (const path of ["/", "/test", "/test/", "/lists/", "/test/lists"])
      expect([path, await statusOf("GET", path)]).not.toEqual([path, 404]);
  },
);

const LISTENS = "http://127.0.0.1:8080";

test.each<[string, string | null, string, string, string | null, string]>([
  ["the URL as set", "https://set.example", LISTENS, "http://other.example/x", null, "https://set.example"],
  ["the host of the request", null, LISTENS, "http://mail.example:8080/docs?x=/y", null, "http://mail.example:8080"],
  ["behind a proxy with TLS", null, LISTENS, "http://mail.example/", "http, https", "https://mail.example"],
  ["with TLS of its own", null, "https://localhost:443", "http://mail.example/", null, "https://mail.example"],
  ["an address", null, LISTENS, "http://[::1]:8080/", null, "http://[::1]:8080"],
  ["a host that no link can have", null, LISTENS, "http://a'b/", null, LISTENS],
  ["no host", null, LISTENS, "http:///x", null, LISTENS],
])("links begin with %s", (_, url, listensOn, target, proto, expected) => {
  const headers = new Headers(proto === null ? {} : { "x-forwarded-proto": proto });
  const request = Object.assign(Object.create(null), { url: target, headers });
  expect(createUrlOfRequest(url, listensOn)(request)).toBe(expected);
});

test("the OpenAPI document and the examples of the manual have the URL of the request", async () => {
  const read = async (path: string) => (await app.handle(new Request(`http://mail.example:8080${path}`))).text();
  expect(JSON.parse(await read("/openapi.json")).servers).toEqual([{ url: "http://mail.example:8080" }]);
  const page = await read("/docs/reference-api-email-verification");
  expect(page).toContain("http://mail.example:8080/v1/email-verifications");
  expect(page).not.toContain("postwarden.invalid");
});
