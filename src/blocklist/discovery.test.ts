import { describe, expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";
import { createZoneResolver } from "../testing/dns-zone.ts";
import { discoveredSchema } from "./batch.ts";
import { TargetDiscovery } from "./discovery.ts";

const start = createApps();
const PATH = "/v1/blacklist/targets/discover";
const ZONE = {
  "example.com": {
    MX: [
      [10, "mx1.example.com"],
      [20, "mx2.example.com"],
    ],
    TXT: ["other", "v=spf1 ip4:9.9.9.9 +ip4:8.8.4.0/24 ip6:2620:fe::fe ip4:10.0.0.0/8 include:_spf.example.net -all"],
  },
  "mx1.example.com": { A: ["8.8.8.8"], AAAA: ["2001:4860:4860::8888"] },
  "mx2.example.com": { A: ["8.8.8.8", "10.0.0.1"] },
  "plain.com": { A: ["1.1.1.1"] },
  "broken.com": { MX: "servfail" },
} as const;

const discover = async (
  body: unknown,
  { settings = {}, mode = "live" }: { settings?: Record<string, string>; mode?: "live" | "test" } = {},
) => {
  const app = start({ zone: ZONE, settings });
  const key = app.newKey({ mode });
  const answer = await app.request("POST", PATH, { key, body });
  const watched = await app.request("GET", "/v1/blacklist/targets", { key });
  return { app, answer, watched: watched.text };
};

describe("discovery", () => {
  test("adds a domain with the public addresses of its mail hosts and SPF record, and says what it leaves out", async () => {
    const { answer } = await discover({ domain: "Example.com", label: "ours" });
    expect(answer.status).toBe(200);
    const { found, unknown } = discoveredSchema.parse(answer.body);
    expect(found.map(({ target, source, status }) => [target, source, status])).toEqual([
      ["example.com", "domain", "created"],
      ["8.8.8.8", "MX mx1.example.com", "created"],
      ["2001:4860:4860::8888", "MX mx1.example.com", "created"],
      ["9.9.9.9", "SPF of example.com", "created"],
      ["8.8.4.0/24", "SPF of example.com", "created"],
      ["2620:fe::fe", "SPF of example.com", "created"],
    ]);
    expect(unknown).toEqual([
      "Not followed in the SPF record: include:_spf.example.net.",
      expect.stringMatching(/^10\.0\.0\.1 \(MX mx2\.example\.com\): .*not a public address/),
      expect.stringMatching(/^10\.0\.0\.0\/8 \(SPF of example\.com\): /),
    ]);
  });

  test("uses a domain without MX as its own mail host, and says when a DNS query failed", async () => {
    const plain = await discover({ domain: "plain.com" });
    expect(plain.answer.body).toMatchObject({ found: [{ target: "plain.com" }, { target: "1.1.1.1" }] });
    const broken = await discover({ domain: "broken.com" });
    expect(broken.answer.body).toMatchObject({
      found: [{ target: "broken.com" }],
      unknown: [expect.stringContaining("MX of broken.com")],
    });
  });

  test("adds nothing in a dry run", async () => {
    const { answer, watched } = await discover({ domain: "example.com", dry_run: true });
    expect(answer.body).toMatchObject({ found: [{ status: "found", id: null }, {}, {}, {}, {}, {}] });
    expect(watched).toBe('{"targets":[],"next_cursor":null}');
  });

  test("finds the configured addresses of this service, and says when they are not known", async () => {
    const set = await discover({ egress: true }, { settings: { SOURCE_ADDRESSES: "8.8.8.8,192.168.1.1" } });
    expect(set.answer.body).toMatchObject({ found: [{ target: "8.8.8.8", source: "source address" }], unknown: [] });
    const not = await discover({ egress: true });
    expect(not.answer.body).toMatchObject({
      found: [],
      unknown: [expect.stringContaining("POSTWARDEN_SOURCE_ADDRESSES")],
    });
    const proxied = await discover({ egress: true }, { settings: { SOCKS_PROXIES: "socks5://127.0.0.1:1080" } });
    expect(proxied.answer.body).toMatchObject({ found: [], unknown: [expect.stringContaining("proxies")] });
  });

  test("adds the own servers in DMARC reports, up to the limit of a discovery, and says what it leaves out", async () => {
    const many = Array.from({ length: 600 }, (_, at) => `8.${at % 2}.${Math.floor(at / 200)}.${at % 200}`);
    const discovery = new TargetDiscovery({
      ...{ resolver: createZoneResolver({}), sourceAddresses: [], hasProxies: false },
      ownAddresses: async (_, domain) => (domain === "example.com" ? ["8.8.8.8", "10.0.0.1"] : many),
    });
    const find = (reportedDomain: string) =>
      discovery.discover({ accountId: "a", mode: "live" }, { domain: null, reportedDomain, egress: false });
    expect(await find("example.com")).toEqual({
      found: [{ target: "8.8.8.8", source: "DMARC reports of example.com" }],
      unknown: [expect.stringMatching(/^10\.0\.0\.1 \(DMARC reports of example\.com\): .*not a public address/)],
    });
    const { found, unknown } = await find("large.com");
    expect(found).toHaveLength(500);
    expect(unknown).toEqual([expect.stringContaining("Only the first 500 of 600 targets")]);
  });

  test("says that the account does not monitor the DMARC reports of a domain", async () => {
    const { answer } = await discover({ dmarc_domain: "example.com" });
    expect(answer.body).toEqual({
      found: [],
      unknown: ["This account does not monitor the DMARC reports of example.com."],
    });
  });

  test("with a test key sends no query", async () => {
    const { app, answer } = await discover({ domain: "listed.example" }, { mode: "test" });
    expect(answer.body).toMatchObject({
      found: [{ target: "listed.example", status: "created" }],
      unknown: [expect.any(String)],
    });
    expect(app.resolver.queries).toEqual([]);
  });

  test.each([
    [{}],
    [{ egress: false }],
    [{ domain: "8.8.8.8" }],
    [{ dmarc_domain: "8.8.8.8" }],
    [{ domain: "com" }],
    [{ domain: "example.com", x: 1 }],
  ])("%j is refused", async (body) => {
    expect((await discover(body)).answer.status).toBe(400);
  });

  test("needs the scope", async () => {
    const app = start();
    const key = app.newKey({ scopes: ["blacklist:read"] });
    expect((await app.request("POST", PATH, { key, body: { egress: true } })).status).toBe(403);
    const blind = app.newKey({ scopes: ["blacklist:write"] });
    const body = { dmarc_domain: "example.com" };
    expect(await app.request("POST", PATH, { key: blind, body })).toMatchObject({
      status: 403,
      body: { required: "dmarc:read" },
    });
  });
});
