import { afterEach, describe, expect, test } from "bun:test";
import { systemClock } from "../foundation/base/clock.ts";
import { mailHostOf, readConfig } from "../service/config.ts";
import { createZoneResolver, type Zone } from "../testing/dns-zone.ts";
import { type SmtpStub, startSmtpStub } from "../testing/smtp-stub.ts";
import { checkReports } from "./reports-check.ts";

const stubs: SmtpStub[] = [];
afterEach(() => {
  for (const stub of stubs.splice(0)) stub.stop();
});

const configOf = (settings: Readonly<Record<string, string>>) => {
  const config = readConfig(
    Object.fromEntries(Object.entries(settings).map(([name, value]) => [`POSTWARDEN_${name}`, value])),
  );
  if (!config.ok) throw new Error(config.error.join(" "));
  return config.value;
};

const look = async (
  settings: Readonly<Record<string, string>>,
  zone: Zone,
  domains: readonly string[] | null = null,
) => {
  const config = configOf({ HELO_NAME: "mail.example.com", ...settings });
  const checks = await checkReports({
    ...{ config, mailHost: mailHostOf(config) },
    resolver: createZoneResolver(zone),
    clock: systemClock,
    readDomains: () => domains,
  });
  return {
    states: Object.fromEntries(checks.map(({ check, state }) => [check, state])),
    message: (name: string) => checks.find(({ check }) => check === name)?.message ?? "",
  };
};

const HOST = { REPORT_HOST: "reports.example.com" };
const MX: Zone = {
  "reports.example.com": { MX: [[10, "mail.example.com"]] },
  "mail.example.com": { A: ["127.0.0.99"] },
};
/** Answers whatever is asked below `_report._dmarc`, as a wildcard does. */
const withWildcard = (zone: Zone, text: string): Zone =>
  new Proxy(zone, {
    get: (target, name) =>
      typeof name === "string" && name.endsWith("._report._dmarc.reports.example.com")
        ? { TXT: [text] }
        : Reflect.get(target, name),
    has: (target, name) => (typeof name === "string" && name.includes("._report._dmarc.")) || Reflect.has(target, name),
    getOwnPropertyDescriptor: (target, name) =>
      typeof name === "string" && name.includes("._report._dmarc.")
        ? { configurable: true, enumerable: true, value: { TXT: [text] } }
        : Reflect.getOwnPropertyDescriptor(target, name),
  });

describe("doctor: the DMARC report path", () => {
  test("without a report host it says that monitoring is off", async () => {
    const { states, message } = await look({}, {});
    expect(states).toEqual({ report_host: "warn" });
    expect(message("report_host")).toContain("POSTWARDEN_REPORT_HOST");
  });

  test("a bare report host: the records to publish are named", async () => {
    const { states, message } = await look(HOST, {});
    expect(states).toEqual({ report_mx: "fail", report_authorisation: "fail" });
    expect(message("report_mx")).toContain('reports.example.com MX "10 mail.example.com."');
    expect(message("report_authorisation")).toContain('*._report._dmarc.reports.example.com TXT "v=DMARC1;"');
  });

  test.each([
    ["only domains of its own organization", ["example.com", "shop.example.com"], "ok"],
    ["a domain of another organization", ["example.com", "example.net"], "fail"],
    ["no domain", [], "fail"],
    ["domains that cannot be read", null, "fail"],
  ] as const)("the authorization is a problem by the enrolled domains: %s", async (_, domains, state) => {
    const { states, message } = await look(HOST, MX, domains);
    expect(states.report_authorisation).toBe(state);
    expect(message("report_authorisation")).toContain('*._report._dmarc.reports.example.com TXT "v=DMARC1;"');
  });

  test("a record to publish is named once", async () => {
    const { message } = await look(HOST, {});
    expect(message("report_authorisation").match(/publish/gi)).toHaveLength(1);
    expect(message("report_mx").match(/publish/gi)).toHaveLength(1);
  });

  test("without a full HELO name no MX is made up: the name is to be set first", async () => {
    const { message } = await look({ ...HOST, HELO_NAME: "localhost" }, {});
    expect(message("report_mx")).toContain("POSTWARDEN_HELO_NAME");
    expect(message("report_mx")).not.toContain("10 reports.example.com.");
  });

  test("with its records published", async () => {
    const { states, message } = await look(HOST, withWildcard(MX, "v=DMARC1;"));
    expect(states).toEqual({ report_mx: "ok", report_port: "warn", report_authorisation: "ok" });
    expect(message("report_mx")).toContain("mail.example.com [127.0.0.99]");
  });

  test("DNS that does not answer is no proof of a missing record", async () => {
    const { states, message } = await look(HOST, { ...MX, "reports.example.com": "servfail" });
    expect(states.report_mx).toBe("warn");
    expect(message("report_mx")).not.toMatch(/publish/i);
    const unresolved = await look(HOST, { ...MX, "mail.example.com": "unconfirmed" });
    expect(unresolved.states.report_mx).toBe("warn");
    expect(unresolved.message("report_mx")).toContain("(unconfirmed)");
    const failing = new Proxy(MX, {
      get: () => "servfail",
      getOwnPropertyDescriptor: () => ({ configurable: true, enumerable: true, value: "servfail" }),
    });
    expect((await look(HOST, failing)).states.report_authorisation).toBe("warn");
  });

  test("an MX without address is in the way", async () => {
    const { states, message } = await look(HOST, { ...MX, "mail.example.com": { TXT: ["hello"] } });
    expect(states.report_mx).toBe("fail");
    expect(message("report_mx")).toBe(
      "The MX hosts of reports.example.com (mail.example.com) have no address. Publish A records for them.",
    );
  });

  test("the listener: answers, or does not", async () => {
    const stub = startSmtpStub();
    stubs.push(stub);
    const there = await look({ ...HOST, REPORT_LISTEN: `127.0.0.1:${stub.port}` }, MX);
    expect(there.states.report_listener).toBe("ok");
    stub.stop();
    const gone = await look({ ...HOST, REPORT_LISTEN: `127.0.0.1:${stub.port}` }, MX);
    expect(gone.states.report_listener).toBe("warn");
    expect(gone.message("report_listener")).toContain("serve");
  });
});

test.each([
  ["mail.example.com", "mail.example.com"],
  ["[192.0.2.1]", null],
  ["localhost", null],
])("the mail host of HELO %s is %p", (HELO_NAME, expected) => {
  expect(mailHostOf(configOf({ HELO_NAME }))).toBe(expected);
});
