import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import type { Answer } from "dns-packet";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type ScriptedDnsServer, startDnsServer, soaFor } from "../testing/dns-server.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "../testing/smtp-stub.ts";
import { resultSchema } from "../verify/result.ts";

const NXDOMAIN = 3;
const TTL_S = 60;
const RECORDS: Readonly<Record<string, Answer>> = {
  "MX shop.example.com": {
    type: "MX",
    name: "shop.example.com",
    ttl: TTL_S,
    data: { preference: 10, exchange: "mx.example.com" },
  },
  "A mx.example.com": { type: "A", name: "mx.example.com", ttl: TTL_S, data: "127.0.0.1" },
};

const { run } = createCommandLine();
let dns: ScriptedDnsServer;
beforeAll(async () => {
  dns = await startDnsServer((query) => {
    const name = query.name.toLowerCase();
    const answer = RECORDS[`${query.type} ${name}`];
    const isKnown = Object.keys(RECORDS).some((key) => key.endsWith(` ${name}`));
    return encodeResponse(
      query,
      answer ? { answers: [answer] } : { rcode: isKnown ? 0 : NXDOMAIN, authorities: [soaFor(name)] },
    );
  });
});
afterAll(() => dns.stop());

const stubs: SmtpStub[] = [];
afterEach(() => {
  for (const stub of stubs.splice(0)) stub.stop();
});

const onlyAnna: SmtpStubScript = {
  rcpt: (address) => (address.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown"),
};

const verify = (args: readonly string[], script = onlyAnna, stdin?: readonly string[]) => {
  const stub = startSmtpStub(script);
  stubs.push(stub);
  const settings = {
    DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
    SMTP_PORT: String(stub.port),
    PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
    HELO_NAME: "probe.example.com",
    DNSBL_SIGNAL: "off",
  };
  return run(["verify", ...args], { settings, ...(stdin === undefined ? {} : { stdin }) });
};

const ADDRESSES = ["anna@shop.example.com", "bert@shop.example.com", "x@nowhere.example.com", "no address"];
const SUB_STATUSES = ["mailbox_exists", "mailbox_not_found", "domain_not_found", "invalid_syntax"];

test("what a mail server says cannot act on a terminal", async () => {
  const evil = "\u001b[2J\u009b31m\u202e\u200b";
  const says = { raw: `550 5.7.1 ${evil}\r\n` };
  for (const flags of [["--evidence"], ["--evidence", "--json"], []]) {
    const { status, out, err } = await verify(["anna@shop.example.com", ...flags], {
      banner: () => ({ raw: `220 mx ${evil}\r\n` }),
      rcpt: () => says,
    });
    expect(status).toBe(0);
    expect(out + err).not.toMatch(/(?!\n)[\p{Cc}\p{Cf}]/u);
  }
});

describe("verify", () => {
  test("prints the result object, one a line, as they finish, from arguments or standard input", async () => {
    for (const ended of [
      await verify(["--json", ...ADDRESSES]),
      await verify(["--json"], onlyAnna, [...ADDRESSES, " "]),
    ]) {
      expect(ended).toMatchObject({ status: 0, err: "" });
      const results = ended.out.split("\n").map((line) => resultSchema.strict().parse(JSON.parse(line)));
      const found = new Map(results.map((result): [string, string] => [result.email, result.sub_status]));
      expect(results).toHaveLength(ADDRESSES.length);
      // Given last, but known without any query.
      expect(results[0]?.email).toBe("no address");
      expect(ADDRESSES.map((email) => found.get(email))).toEqual(SUB_STATUSES);
    }
  });

  test("prints a line for people without --json", async () => {
    const { status, out } = await verify(["anna@shop.example.com"]);
    expect(status).toBe(0);
    expect(out).toMatch(/^anna@shop\.example\.com +deliverable +mailbox_exists +quality +\d+ +confidence +\d+$/);
  });

  test("prints columns on a terminal, and lines of words elsewhere", async () => {
    const { out } = await verify(ADDRESSES);
    const columns = out.split("\n").map((line) => [line.search(/ (deliver|undeliver)/), line.indexOf("quality")]);
    expect(columns).toHaveLength(ADDRESSES.length);
    expect(new Set(columns.map(String)).size).toBe(1);
  });

  test("prints the evidence: what was asked, answered and concluded", async () => {
    const { out } = await verify(["--evidence", "bert@shop.example.com"]);
    for (const said of [
      "mx.example.com",
      "RCPT TO:<bert@shop.example.com>",
      "550 5.1.1 User unknown",
      "mailbox_not_found",
    ]) {
      expect(out).toContain(said);
    }
    const { json } = await verify(["--evidence", "--json", "bert@shop.example.com"]);
    expect(json).toMatchObject({ sub_status: "mailbox_not_found", evidence: { attempts: [{ number: 1 }] } });
  });

  test("ends with 0 whatever the verdict is, and concludes at once with --no-retries", async () => {
    const greylisting = { rcpt: () => "450 4.2.0 Greylisted, please come back later" };
    const { status, json } = await verify(["--no-retries", "--json", "anna@shop.example.com"], greylisting);
    expect({ status, json }).toMatchObject({ status: 0, json: { verdict: "risky", sub_status: "greylisted" } });
  });
});

describe("doctor", () => {
  test("checks database, DNS, name, sender and port, and ends with 1 when one fails", async () => {
    const stub = startSmtpStub();
    stubs.push(stub);
    const settings = {
      DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
      SMTP_PORT: String(stub.port),
      PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
      HELO_NAME: "mx.example.com",
    };
    await run(["migrate"], { settings });
    const healthy = await run(["doctor", "--json", "--domain", "shop.example.com"], { settings });
    expect(healthy.status).toBe(0);
    const checks = healthy.json.checks as Array<{ check: string; state: string }>;
    expect(Object.fromEntries(checks.map(({ check, state }) => [check, state]))).toMatchObject({
      asn: "warn",
      blocklists: "warn",
      database: "ok",
      dns: "ok",
      helo: "warn",
      mail_from: "ok",
      port: "ok",
      report_host: "warn",
    });
    const sick = await run(["doctor", "--domain", "nowhere.example.com"], {
      settings: { ...settings, HELO_NAME: "localhost", MAIL_FROM: "probe@nowhere.example.com" },
    });
    expect(sick.status).toBe(1);
    expect(sick.err).toMatch(/2 of \d+ checks failed\./);
    expect(sick.out).toMatch(/^ {2}warn {2}127\.0\.0\.1:\d+ says that nowhere\.example\.com does not exist/m);
    expect(sick.out).toMatch(/^Sender\n {2}fail {2}The HELO name "localhost" is not/m);
    expect(sick.out.match(/^ {2}fail /gm)).toHaveLength(2);
    for (const line of sick.out.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
  });
});
