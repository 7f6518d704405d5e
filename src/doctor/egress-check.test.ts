import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Answer } from "dns-packet";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type ScriptedDnsServer, soaFor, startDnsServer } from "../testing/dns-server.ts";
import { type SocksServerScript, startSocksServer } from "../testing/socks-server.ts";
import { startSmtpStub } from "../testing/smtp-stub.ts";

const RECORDS: Readonly<Record<string, Answer>> = {
  "MX shop.example.com": {
    type: "MX",
    name: "shop.example.com",
    ttl: 60,
    data: { preference: 1, exchange: "mx.example.com" },
  },
  "A mx.example.com": { type: "A", name: "mx.example.com", ttl: 60, data: "127.0.0.1" },
};

const { run } = createCommandLine();
const stub = startSmtpStub({ rcpt: () => "250 2.1.5 Ok" });
let dns: ScriptedDnsServer;
beforeAll(async () => {
  dns = await startDnsServer((query) => {
    const answer = RECORDS[`${query.type} ${query.name.toLowerCase()}`];
    return encodeResponse(query, answer ? { answers: [answer] } : { authorities: [soaFor(query.name)] });
  });
  await run(["migrate"]);
});
afterAll(() => {
  dns.stop();
  stub.stop();
});

const settingsWith = (settings: Record<string, string>) => ({
  DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
  SMTP_PORT: String(stub.port),
  PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
  HELO_NAME: "probe.example.com",
  DNSBL_SIGNAL: "off",
  ...settings,
});

const portsOf = async (settings: Record<string, string>, domain = "shop.example.com") => {
  const { status, json } = await run(["doctor", "--domain", domain, "--json"], {
    settings: settingsWith(settings),
  }).then((end) => ({ status: end.status, json: JSON.parse(end.out.split("\n")[0] ?? "") }));
  const checks = json.checks as Array<{ check: string; state: string; message: string }>;
  return {
    status,
    ports: checks.filter(({ check }) => check === "port").map(({ state, message }) => `${state} ${message}`),
  };
};

describe("doctor tries the egress that probes will use", () => {
  test("every source address, and names one that is not this machine's", async () => {
    const { status, ports } = await portsOf({ SOURCE_ADDRESSES: "127.0.0.5,203.0.113.77" });
    expect(status).toBe(1);
    expect(ports).toEqual([
      "fail 203.0.113.77 is not an address of this machine (POSTWARDEN_SOURCE_ADDRESSES); no probe was sent. Remove it, or run: ip address add 203.0.113.77 dev eth0 (see `postwarden help sender-reputation#outgoing-port-25`)",
      `ok mx.example.com [127.0.0.1]:${stub.port} is reachable from 127.0.0.5.`,
    ]);
    expect(stub.sessions.at(-1)?.remoteAddress).toBe("127.0.0.5");
  });

  test("a proxy that is not there", async () => {
    const { status, ports } = await portsOf({ SOCKS_PROXIES: "socks5://127.0.0.1:9" });
    expect(status).toBe(1);
    expect(ports).toEqual([
      "fail The proxy socks5://127.0.0.1:9 (POSTWARDEN_SOCKS_PROXIES) does not accept connections. Check its host and port, its firewall, and that it runs. No probe was sent. See `postwarden help sender-reputation#outgoing-port-25`.",
    ]);
  });

  test.each<[string, SocksServerScript, string]>([
    ["works", { user: "bob", password: "hunter2" }, "ok mx.example.com"],
    ["refuses the login", { user: "bob", password: "other" }, "refuses the login. Check user and password"],
    ["forbids the port", { reply: 2 }, "Allow connections to port 25 in its rules."],
    ["says nothing", { silentAt: "greeting" }, "stays silent"],
    ["cannot reach the host", { reply: 4 }, "refused_or_unreachable at connect from socks5://127.0.0.1:"],
    ["waits for the host", { silentAt: "connect" }, "connect_timeout at connect from socks5://127.0.0.1:"],
  ])("a proxy that %s", async (_, script, message) => {
    const proxy = await startSocksServer(script);
    const { ports } = await portsOf({
      SOCKS_PROXIES: `socks5://bob:hunter2@127.0.0.1:${proxy.port}`,
      SMTP_CONNECT_TIMEOUT_MS: "300",
    });
    proxy.stop();
    expect(ports).toHaveLength(1);
    expect(ports[0]).toContain(message);
    expect(ports[0]).not.toContain("hunter2");
  });

  test("straight from this machine where no egress is set", async () => {
    expect((await portsOf({})).ports).toEqual([`ok mx.example.com [127.0.0.1]:${stub.port} is reachable.`]);
  });

  test("nothing for a domain without a mail host, and says how to go on", async () => {
    const { ports } = await portsOf({}, "none.example.com");
    expect(ports).toEqual([
      `warn No mail host of none.example.com was found, so outgoing port ${stub.port} was not tested (egress: direct). Check the DNS servers, or name another domain with --domain. See \`postwarden help sender-reputation#outgoing-port-25\`.`,
    ]);
  });
});

test("serve warns of a source address that is not this machine's", async () => {
  const settings = { ...settingsWith({ SOURCE_ADDRESSES: "203.0.113.77" }), PORT: "0" };
  const { status, err } = await run(["serve"], { settings });
  expect(status).toBe(0);
  const lines = err.split("\n").filter((line) => line.includes("203.0.113.77"));
  expect(lines.map((line): unknown => JSON.parse(line).level)).toEqual(["warn"]);
});

test("the evidence of a check names the address and its setting", async () => {
  const settings = settingsWith({ SOURCE_ADDRESSES: "203.0.113.77" });
  const { out } = await run(["verify", "--no-retries", "--evidence", "anna@shop.example.com"], { settings });
  expect(out).toContain("This machine cannot connect from 203.0.113.77 (POSTWARDEN_SOURCE_ADDRESSES)");
});

const addressStub = startSmtpStub({
  command: (line) =>
    line.startsWith("EHLO") ? "250-mx.example.com at your service, [203.0.114.9]\r\n250 SIZE 1" : undefined,
});
afterAll(() => addressStub.stop());

test("the address that the mail host sees is checked: reverse name and blocklists", async () => {
  const { json } = await run(["doctor", "--domain", "shop.example.com", "--json"], {
    settings: settingsWith({ SMTP_PORT: String(addressStub.port) }),
  }).then(({ out }) => ({ json: JSON.parse(out.split("\n")[0] ?? "") }));
  const checks = json.checks as Array<{ area: string; check: string; state: string; message: string }>;
  const egress = checks.filter(({ area }) => area === "Egress");
  expect(egress.map(({ check, state }) => `${check} ${state}`)).toEqual([
    "port ok",
    "egress_name warn",
    "egress_listed warn",
  ]);
  expect(egress[0]?.message).toContain("is reachable and sees the address 203.0.114.9.");
  expect(egress[1]?.message).toContain("203.0.114.9 has no PTR record");
  expect(egress[2]?.message).toContain("Run: postwarden blocklist check 203.0.114.9");
});
