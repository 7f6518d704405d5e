import { domainHealthSchema } from "./insight/health/health-schema.ts";
import { insertDomain } from "../testing/ingest-harness.ts";
import { createApps, type TestAppOptions } from "../testing/app.ts";
import { newId } from "../foundation/base/secrets.ts";
import { describe, expect, test } from "bun:test";

const start = createApps();
const ZONE = {
  "a.com": { TXT: ["v=spf1 +all"], MX: [[10, "mx.a.com"] as const] },
  "_dmarc.a.com": { TXT: ["v=DMARC1; p=reject; rua=mailto:x@a.com"] },
};

const startWith = (mode: "live" | "test", options: TestAppOptions = {}) => {
  const app = start(options);
  const key = app.newKey({ mode });
  const { id } = insertDomain(app.db, mode === "live" ? "a.com" : "a.example", { mode, accountId: app.accountId() });
  const get = (query = "", of = id, as = key) =>
    app.request("GET", `/v1/dmarc/domains/${of}/health${query}`, { key: as });
  return { app, key, id, get };
};

describe("GET /v1/dmarc/domains/{id}/health", () => {
  test("returns what the DNS publishes, from the last check unless refresh is set", async () => {
    const { get, app } = startWith("live", { zone: ZONE });
    const { status, body } = await get();
    expect(status).toBe(200);
    const health = domainHealthSchema.parse(body);
    expect(health).toMatchObject({ domain: "a.com", status: "problems" });
    expect(health.sections.find(({ code }) => code === "spf")?.findings).toEqual([
      expect.objectContaining({ code: "spf_pass_all", severity: "error" }),
    ]);
    const asked = app.resolver.countQueries("a.com", "TXT");
    await get();
    await get("?refresh=false");
    expect(app.resolver.countQueries("a.com", "TXT")).toBe(asked);
    await get("?refresh=true");
    expect(app.resolver.countQueries("a.com", "TXT")).toBe(asked + 1);
    expect(app.resolver.queriedFor.some((who) => who?.account === app.accountId())).toBe(true);
  });

  test("takes selectors", async () => {
    const { get, app } = startWith("live", { zone: ZONE });
    const health = domainHealthSchema.parse((await get("?selectors=mail,K1")).body);
    const dkim = health.sections.find((section) => section.code === "dkim");
    expect(dkim?.code === "dkim" && dkim.keys.map(({ selector, state }) => `${selector} ${state}`)).toEqual([
      "mail missing",
      "k1 missing",
    ]);
    expect(app.resolver.countQueries("google._domainkey.a.com", "TXT")).toBe(0);
  });

  test("is made up for test keys, without a question to the DNS", async () => {
    const { get, app } = startWith("test");
    const health = domainHealthSchema.parse((await get()).body);
    expect(health.status).toBe("ok");
    expect(health.sections.map(({ status }) => status)).toEqual(Array.from({ length: 7 }, () => "ok"));
    expect(app.resolver.queries).toEqual([]);
    const { id } = insertDomain(app.db, "conflict.example", { mode: "test", accountId: app.accountId() });
    const conflicting = domainHealthSchema.parse((await get("", id)).body);
    expect(conflicting.sections[0]?.findings.map(({ code }) => code)).toEqual(["dmarc_several"]);
    expect(conflicting.status).toBe("problems");
  });

  test.each([
    "?refresh=yes",
    "?refresh=true&refresh=true",
    "?selectors=",
    "?selectors=a%20b",
    "?selectors=a&selectors=b",
    `?selectors=${Array.from({ length: 11 }, (_, at) => `s${at}`).join(",")}`,
    "?other=1",
  ])("refuses %s", async (query) => {
    const { get } = startWith("test");
    expect(await get(query)).toMatchObject({
      status: 400,
      body: { error: "Invalid query", issues: [{ message: expect.any(String) }] },
    });
  });

  test("is for the domains of the caller's account and mode, and needs the scope", async () => {
    const { get, app, id } = startWith("live", { zone: ZONE });
    for (const other of [newId(), "no-id"]) expect((await get("", other)).status).toBe(404);
    expect((await get("", id, app.newKey({ account: "other", mode: "live" }))).status).toBe(404);
    expect((await get("", id, app.newKey({ mode: "test" }))).status).toBe(404);
    expect((await get("", id, app.newKey({ mode: "live", scopes: ["blacklist:read"] }))).status).toBe(403);
    expect(app.resolver.queries).toEqual([]);
  });
});
