import { summarySchema, timeseriesSchema } from "./summary.ts";
import { sourcesSchema, SourceReader } from "./source-routes.ts";
import { createReportQueries } from "../../../testing/report-queries.ts";
import { fillReportQueries } from "../../../testing/report-queries-filled.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { describe, expect, test } from "bun:test";
import type { Caller } from "../../../foundation/http/guard.ts";

const newHarness = createReportQueries();
const startFilled = () => fillReportQueries(newHarness());

describe("every route", () => {
  const PATHS = ["summary", "timeseries", "sources", "records", "reports", "tls-reports", "advice"];

  test("answers 404 for a domain of another account, one that does not exist, and what is no id", async () => {
    const { request, domain } = await startFilled();
    for (const path of [...PATHS, `reports/${newId()}`, `reports/${newId()}/raw`]) {
      expect(await request("GET", `${domain.id}/${path}`, { key: "other" })).toMatchObject({ status: 404 });
      for (const id of [newId(), "1"]) expect((await request("GET", `${id}/${path}`)).body.error).toBe("not_found");
    }
    const change = { key: "other", body: { classification: "threat" } };
    expect((await request("PATCH", `${domain.id}/sources/net:5.5.5.0%2F24`, change)).status).toBe(404);
  });

  test("needs the scope", async () => {
    const { get, request, domain } = await startFilled();
    for (const path of PATHS) {
      expect((await get(path, { key: "reader" })).status).toBe(200);
      expect((await get(path, { key: "blind" })).status).toBe(403);
      expect((await get(path, { key: "" })).status).toBe(401);
    }
    const change = { key: "reader", body: { classification: null } };
    expect((await request("PATCH", `${domain.id}/sources/spf:x`, change)).status).toBe(403);
  });

  test.each([
    ["from=2026-01-02&to=2026-01-01", "from"],
    ["from=yesterday", "from"],
    ["to=2026-02-30", "to"],
    ["from=2010-01-01&to=2026-01-01", "from"],
    ["from=", "from"],
    ["since=2026-01-01", "since"],
  ])("with a range refuses %s, and names what is wrong", async (query, path) => {
    const { get } = await startFilled();
    for (const route of ["summary", "timeseries", "sources", "records", "reports"]) {
      const answer = await get(`${route}?${query}`);
      expect(answer).toMatchObject({ status: 400, body: { error: "Invalid query", issues: [{ path }] } });
    }
  });
});

test("the summary tells of the range at a glance", async () => {
  const { get, domain } = await startFilled();
  const { body } = await get("summary");
  expect(summarySchema.parse(body)).toEqual(body as never);
  expect(body).toMatchObject({
    domain_id: domain.id,
    domain: "example.com",
    from: "2025-12-03",
    to: "2026-01-01",
    reports: 2,
    reporters: 2,
    messages: 110,
    aligned: 100,
    failing: 10,
    aligned_percent: 90.9,
    dkim_aligned: 100,
    spf_aligned: 100,
    forwarded: 1,
    authenticated_unaligned: 6,
    dispositions: { none: 101, quarantine: 6, reject: 3 },
    top_sources: [{ key: "service:sendgrid", classification: "misconfigured" }, { key: "pending" }],
    top_reporters: [
      { org_name: "receiver.example", reports: 1, messages: 100, aligned: 90 },
      { org_name: "Other Receiver", reports: 1, messages: 10, aligned: 10 },
    ],
    names: [{ header_from: "example.com", messages: 110, aligned: 100 }],
    first_day: "2025-12-31",
    last_day: "2026-01-01",
  });
  const day = (await get("summary?from=2025-12-31&to=2025-12-31T23:00:00Z")).body;
  expect(day).toMatchObject({ reports: 1, messages: 10, failing: 0, aligned_percent: 100, top_sources: [] });
});

test("a domain without reports has zeros, no percentage and no days", async () => {
  const { request, enrol } = newHarness();
  const { id } = enrol();
  const { body } = await request("GET", `${id}/summary`);
  expect(summarySchema.parse(body)).toMatchObject({
    messages: 0,
    aligned_percent: null,
    first_day: null,
    last_day: null,
  });
  expect((await request("GET", `${id}/sources`)).body).toEqual({ sources: [], next_cursor: null });
  expect((await request("GET", `${id}/records`)).body).toEqual({ records: [], next_cursor: null });
});

test("the time series has every day, the empty ones with zeros", async () => {
  const { get } = await startFilled();
  const { body } = await get("timeseries?from=2025-12-30&to=2026-01-02");
  expect(timeseriesSchema.parse(body)).toMatchObject({ interval: "day", from: "2025-12-30", to: "2026-01-02" });
  const points = timeseriesSchema.parse(body).points;
  expect(points.map(({ date, messages, failing }) => [date, messages, failing])).toEqual([
    ["2025-12-30", 0, 0],
    ["2025-12-31", 10, 0],
    ["2026-01-01", 100, 10],
    ["2026-01-02", 0, 0],
  ]);
  expect(points[2]).toMatchObject({ reports: 1, forwarded: 1, quarantined: 6, rejected: 3, aligned_percent: 90 });
  expect(points[0]?.aligned_percent).toBeNull();
});

describe("sources", () => {
  test("are listed worst first, by pages, and by what they are", async () => {
    const { get } = await startFilled();
    const { body } = await get("sources");
    const all = sourcesSchema.parse(body).sources;
    expect(all.map(({ key, classification, failing }) => [key, classification, failing])).toEqual([
      ["service:sendgrid", "misconfigured", 6],
      ["pending", "unknown", 3],
      ["own", "authorized", 0],
      ["net:6.6.6.0/24", "forwarder", 1],
    ]);
    const keys: string[] = [];
    for (let cursor = ""; ;) {
      const page = sourcesSchema.parse((await get(`sources?limit=1${cursor}`)).body);
      keys.push(...page.sources.map(({ key }) => key));
      if (page.next_cursor === null) break;
      cursor = `&cursor=${page.next_cursor}`;
    }
    expect(keys).toEqual(all.map(({ key }) => key));
    const forwarders = sourcesSchema.parse((await get("sources?classification=forwarder")).body);
    expect(forwarders.sources.map(({ key }) => key)).toEqual(["net:6.6.6.0/24"]);
    for (const [query, error] of [
      ["limit=0", "Invalid limit"],
      ["cursor=x", "Invalid cursor"],
      ["classification=good", "Invalid query"],
    ] as const)
      expect((await get(`sources?${query}`)).body.error).toBe(error);
  });

  test("are what the user says until that is taken back, under any key that has to be encoded", async () => {
    const { request, get, domain } = await startFilled();
    for (const key of ["net:6.6.6.0/24", "service:sendgrid", "own"]) {
      const path = `${domain.id}/sources/${encodeURIComponent(key)}`;
      const before = sourcesSchema.parse((await get("sources")).body).sources.find((source) => source.key === key);
      const said = await request("PATCH", path, { body: { classification: "threat" } });
      expect(said.status).toBe(200);
      expect(said.body).toEqual({ ...before, classification: "threat", classified_by: "user" });
      const back = await request("PATCH", path, { body: { classification: null } });
      expect(back.body).toEqual({ ...before });
    }
  });

  test("in no report are not found, and a classification must be one of five", async () => {
    const { request, domain } = await startFilled();
    const say = (key: string, body: unknown) => request("PATCH", `${domain.id}/sources/${key}`, { body });
    for (const key of ["org:none.example", "net:1.2.3.0%2F24", "nonsense", "%E0"])
      expect((await say(key, { classification: "threat" })).body.error).toBe("not_found");
    for (const body of [{}, { classification: "good" }, { classification: "threat", other: 1 }])
      expect((await say("own", body)).body.error).toBe("Invalid request body");
  });

  test("are classified many at once, all of them or none", async () => {
    const { request, domain, get } = await startFilled();
    const classify = (body: unknown) => request("PATCH", `${domain.id}/sources`, { body });
    const keys = ["own", "service:sendgrid", "net:5.5.5.0/24"];
    const said = sourcesSchema.pick({ sources: true }).parse((await classify({ keys, classification: "threat" })).body);
    expect(said.sources.map(({ key, classification }) => [key, classification])).toEqual(
      keys.map((key) => [key, "threat"]),
    );
    expect(sourcesSchema.parse((await get("sources?classification=threat")).body).sources).toHaveLength(3);
    const missing = await classify({ keys: ["own", "org:none.example"], classification: "authorized" });
    expect(missing).toMatchObject({ status: 404, body: { error: "not_found" } });
    expect(JSON.stringify(missing.body)).toContain("org:none.example");
    const own = sourcesSchema.parse((await get("sources")).body).sources.find(({ key }) => key === "own");
    expect(own?.classification).toBe("threat");
    for (const body of [
      { keys: [], classification: "threat" },
      { keys: ["dkim:example.com"], classification: "threat" },
      { keys: Array(501).fill("own"), classification: "threat" },
      { keys: ["own"] },
    ])
      expect((await classify(body)).body.error).toBe("Invalid request body");
    expect((await request("PATCH", `${domain.id}/sources`, { key: "reader", body: {} })).status).toBe(403);
    expect(
      (await request("PATCH", `${domain.id}/sources`, { key: "other", body: { keys: ["own"], classification: null } }))
        .status,
    ).toBe(404);
  });

  test("show the networks of unauthenticated mail when asked for", async () => {
    const { get, nameAddress } = await startFilled();
    nameAddress("5.5.5.5", null);
    const keys = async (query: string) =>
      sourcesSchema.parse((await get(`sources${query}`)).body).sources.map(({ key }) => key);
    expect(await keys("")).toContain("unauthenticated");
    expect(await keys("?unauthenticated=by_network")).toContain("net:5.5.5.0/24");
    expect((await get("sources?unauthenticated=all")).body.error).toBe("Invalid query");
  });

  test("keep the word that was given before their reverse name was known", async () => {
    const { request, sourcesOf, domain, nameAddress } = await startFilled();
    const path = (key: string) => `${domain.id}/sources/${encodeURIComponent(key)}`;
    await request("PATCH", path("net:5.5.5.0/24"), { body: { classification: "authorized" } });
    nameAddress("5.5.5.5", "mail.host.example");
    const range = { fromDay: 0, toDay: 99_999 };
    expect(sourcesOf(domain).find("net:5.5.5.0/24", range)).toBeUndefined();
    expect(sourcesOf(domain).find("org:host.example", range)).toMatchObject({ classification: "authorized" });
    const own = await request("PATCH", path("org:host.example"), { body: { classification: "threat" } });
    expect(own.body).toMatchObject({ classification: "threat", classified_by: "user", kind: "organization" });
    const back = await request("PATCH", path("org:host.example"), { body: { classification: null } });
    expect(back.body).toMatchObject({ classification: "unknown", classified_by: "service" });
  });
});

test("advice is served as it is given", async () => {
  const { get } = await startFilled();
  expect((await get("advice")).body).toEqual({ domain: "example.com" });
});

const newQueries = createReportQueries();
const CALLER = { accountId: "account", mode: "live" } as Caller;

test.each([
  ["", 4],
  ["  SENDGRID ", 1],
  ["9.9.9", 1],
  ["absent", 0],
])("sources with %p in a name, a domain or an address", async (text, count) => {
  const { clock, store, domain } = await fillReportQueries(newQueries());
  const reader = new SourceReader({ clock, rollups: store, findDomain: () => domain });
  expect((await reader.list(CALLER, domain.id, { text })).sources).toHaveLength(count);
});
