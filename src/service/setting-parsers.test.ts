import { describe, expect, test } from "bun:test";
import { createApps } from "../testing/app.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { startSocksServer } from "../testing/socks-server.ts";
import { startSmtpStub } from "../testing/smtp-stub.ts";
import { readConfig } from "./config.ts";
import { egressesOf } from "../verify/smtp/open.ts";
import { createZoneResolver } from "../testing/dns-zone.ts";
import { nextTurn, systemClock } from "../foundation/base/clock.ts";
import { createDirectConnector } from "../foundation/net/connector.ts";

const SECRET = "hunter2";
const { run } = createCommandLine();
const start = createApps();

const readOne = (name: string, value: string) => readConfig({ [`POSTWARDEN_${name}`]: value });
const proxiesOf = (value: string) => {
  const config = readOne("SOCKS_PROXIES", value);
  if (!config.ok) throw new Error(config.error.join("\n"));
  return config.value.socksProxies;
};

describe("SOURCE_ADDRESSES", () => {
  test("are IP addresses of either version", () => {
    expect(readOne("SOURCE_ADDRESSES", "192.0.2.1, 2001:db8::1,")).toMatchObject({
      ok: true,
      value: { sourceAddresses: ["192.0.2.1", "2001:db8::1"] },
    });
  });

  test.each(["mail.example.com", "192.0.2.1:25", "192.0.2.300", "192.0.2.0/24"])("are not %p", (value) => {
    expect(readOne("SOURCE_ADDRESSES", `192.0.2.1,${value}`)).toEqual({
      ok: false,
      error: [`POSTWARDEN_SOURCE_ADDRESSES: "${value}" is not an IP address such as 192.0.2.1 or 2001:db8::1.`],
    });
  });
});

const isSettled = (work: Promise<unknown>): Promise<boolean> =>
  Promise.race([work.then(() => true), nextTurn().then(() => false)]);

describe("SOCKS_PROXIES", () => {
  test.each([
    ["socks5://192.0.2.1", { host: "192.0.2.1", port: 1080, user: null, password: null }],
    ["socks5h://proxy.example.com:9050/", { host: "proxy.example.com", port: 9050, user: null, password: null }],
    ["socks5://[2001:db8::1]:1081", { host: "2001:db8::1", port: 1081, user: null, password: null }],
    ["socks5://user@192.0.2.1", { host: "192.0.2.1", port: 1080, user: "user", password: null }],
    ["socks5://us%40er:p%3A%2C%2F%C3%A4@192.0.2.1:1", { host: "192.0.2.1", port: 1, user: "us@er", password: "p:,/ä" }],
  ])("%s", (value, proxy) => {
    expect(proxiesOf(value)).toEqual([proxy]);
  });

  test.each([
    `http://user:${SECRET}@192.0.2.1:8080`,
    `user:${SECRET}@192.0.2.1:1080`,
    `socks4://user:${SECRET}@192.0.2.1`,
    `socks5://user:${SECRET}@192.0.2.1:port`,
    `socks5://user:${SECRET}@192.0.2.1:0`,
    `socks5://user:${SECRET}@192.0.2.1:70000`,
    `socks5://user:${SECRET}@`,
    `socks5://user:${SECRET}@host name`,
    `socks5://user:${SECRET}@ho%73t!`,
    `socks5://user:${SECRET}@192.0.2.1/path`,
    `socks5://user:${SECRET}@192.0.2.1?x=1`,
    `socks5://us%zzer:${SECRET}@192.0.2.1`,
    `socks5://user:${SECRET}%ff@192.0.2.1`,
    `socks5://:${SECRET}@192.0.2.1`,
    `socks5://user:${SECRET}${"x".repeat(256)}@192.0.2.1`,
    `socks5://user:a@${SECRET}@b@192.0.2.1:x`,
    `socks5://user:a,${SECRET}@192.0.2.1`,
    `socks5://user:${SECRET},b@192.0.2.1`,
    SECRET,
  ])("%s is refused by its position, and its password is not repeated", async (value) => {
    const config = readOne("SOCKS_PROXIES", `socks5://192.0.2.9,${value}`);
    if (config.ok) throw new Error("it was taken");
    for (const sentence of config.error) {
      expect(sentence).toMatch(/^POSTWARDEN_SOCKS_PROXIES: entry [23] .*\.$/);
      expect(sentence).not.toContain(SECRET);
    }
    const { status, out, err } = await run(["config"], { settings: { SOCKS_PROXIES: value } });
    expect([status, out.includes(SECRET), err.includes(SECRET)]).toEqual([1, false, false]);
  });

  test("are shown without user and password", async () => {
    const value = `socks5://user:${SECRET}@[2001:db8::1]:1081,socks5://${SECRET}@192.0.2.1`;
    const { status, json, out } = await run(["config", "--json"], { settings: { SOCKS_PROXIES: value } });
    expect(status).toBe(0);
    expect(json.POSTWARDEN_SOCKS_PROXIES).toEqual(["socks5://[2001:db8::1]:1081", "socks5://192.0.2.1:1080"]);
    expect(out).not.toContain(SECRET);
    expect((await run(["config"], { settings: { SOCKS_PROXIES: value } })).out).not.toContain(SECRET);
  });

  test.each([
    ["right", SECRET, "catch_all", 99],
    ["wrong", "another", "internal_error", 100],
  ])("with a %s password: neither evidence nor log repeats it", async (_, password, subStatus, creditsLeft) => {
    const stub = startSmtpStub();
    const proxy = await startSocksServer({ user: "bob", password });
    const app = start({
      zone: { "x.example": { MX: [[10, "mx.x.example"]] }, "mx.x.example": { A: [stub.hostname] } },
      stub,
      settings: { SOCKS_PROXIES: `socks5://bob:${SECRET}@127.0.0.1:${proxy.port}`, GREYLIST_RETRIES_S: "1" },
    });
    const key = app.newKey({ mode: "live" });
    const posted = app.verify(key, "ada@x.example", "?timeout=60");
    // A proxy that refuses us is tried again after a second. While a connection is open its real time counts: the test
    // clock stands still, because its deadlines would come before the bytes on a busy machine.
    while (!(await isSettled(posted))) if (proxy.openConnections() === 0) await app.advance(100);
    const { body, id, text } = await posted;
    const evidence = await app.request("GET", `/v1/email-verifications/${id}/evidence`, { key });
    expect(body).toMatchObject({ result: { sub_status: subStatus } });
    expect(evidence.text).toContain(`"egress":"socks5://127.0.0.1:${proxy.port}"`);
    for (const said of [text, evidence.text, app.logged.join("\n")]) expect(said).not.toMatch(/hunter2|bob/);
    expect(proxy.targets).toEqual(password === SECRET ? [`127.0.0.1 ${stub.port}`] : []);
    expect(app.credits()).toEqual({ available: creditsLeft, held: 0 });
    const problem = `The proxy socks5://127.0.0.1:${proxy.port} (POSTWARDEN_SOCKS_PROXIES) refuses the login.`;
    const { body: readiness } = await app.request("GET", "/readyz");
    expect(JSON.stringify(readiness).includes(problem)).toBe(password !== SECRET);
    proxy.stop();
    stub.stop();
  });
});

describe("the ways out", () => {
  const connector = createDirectConnector({ clock: systemClock, mayConnect: () => true });
  const platform = { clock: systemClock, random: { integer: () => 0 }, resolver: createZoneResolver({}), connector };
  const namesOf = (settings: Record<string, string>) => {
    const config = readConfig(settings);
    if (!config.ok) throw new Error(config.error.join("\n"));
    return egressesOf(config.value, platform).map(({ name, localAddress }) => [name, localAddress]);
  };

  test("are this machine's own without settings", () => {
    expect(namesOf({})).toEqual([["direct", null]]);
  });

  test("have each a name of its own, also two accounts at one proxy", () => {
    expect(
      namesOf({
        POSTWARDEN_SOURCE_ADDRESSES: "192.0.2.1,2001:db8::1,192.0.2.1",
        POSTWARDEN_SOCKS_PROXIES: "socks5://a:x@192.0.2.9,socks5://b:x@192.0.2.9,socks5://[2001:db8::9]:1",
      }),
    ).toEqual([
      ["192.0.2.1", "192.0.2.1"],
      ["2001:db8::1", "2001:db8::1"],
      ["socks5://192.0.2.9:1080", null],
      ["socks5://192.0.2.9:1080#2", null],
      ["socks5://[2001:db8::9]:1", null],
    ]);
  });
});
