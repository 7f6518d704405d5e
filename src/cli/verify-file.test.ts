import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type ScriptedDnsServer, startDnsServer } from "../testing/dns-server.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "../testing/smtp-stub.ts";
import { progressLine } from "./verify-file-progress.ts";

const { run } = createCommandLine();
let dns: ScriptedDnsServer;
beforeAll(async () => {
  dns = await startDnsServer((query) => {
    const { name, type } = query;
    if (!name.toLowerCase().endsWith("shop.example.com")) return encodeResponse(query, { rcode: 3 });
    if (type === "A") return encodeResponse(query, { answers: [{ type, name, ttl: 60, data: "127.0.0.1" }] });
    return encodeResponse(query);
  });
});
afterAll(() => dns.stop());

const stubs: SmtpStub[] = [];
afterEach(() => {
  for (const stub of stubs.splice(0)) stub.stop();
});

const folder = mkdtempSync(join(tmpdir(), "postwarden-file-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const at = (name: string): string => join(folder, name);

const never = (): Promise<string> => Promise.withResolvers<string>().promise;

const onlyAnna: SmtpStubScript = {
  rcpt: (address) => (address.startsWith("anna@") ? "250 2.1.5 Ok" : "550 5.1.1 User unknown"),
};

const verify = (args: readonly string[], script: SmtpStubScript = onlyAnna, untilSignal = never) => {
  const stub = startSmtpStub(script);
  stubs.push(stub);
  const settings = {
    DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
    SMTP_PORT: String(stub.port),
    PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
    HELO_NAME: "probe.example.com",
    DNSBL_SIGNAL: "off",
  };
  return run(["verify", ...args], { settings, untilSignal });
};

const LIST = 'name;mail\r\n"Anna; A";anna@shop.example.com\r\nBert;bert@shop.example.com\r\n\r\nX;no address\r\n';

describe("verify --file", () => {
  test("writes the list with its results, prints the totals, and leaves nothing else behind", async () => {
    writeFileSync(at("in.csv"), LIST);
    const before = readdirSync(folder);
    const { status, json } = await verify(["--json", "--file", at("in.csv"), "--out", at("out.csv")]);
    expect({ status, json }).toEqual({
      status: 0,
      json: {
        out: at("out.csv"),
        rows: 3,
        addresses: 3,
        verdicts: { deliverable: 1, risky: 0, undeliverable: 2 },
        sub_statuses: { invalid_syntax: 1, mailbox_exists: 1, mailbox_not_found: 1 },
      },
    });
    const lines = readFileSync(at("out.csv"), "utf8").split("\r\n");
    expect(lines.map((line) => line.split(";").slice(0, 5).join(";"))).toEqual([
      "name;mail;normalized_email;verdict;sub_status",
      '"Anna; A";anna@shop.example.com;anna@shop.example.com;deliverable',
      "Bert;bert@shop.example.com;bert@shop.example.com;undeliverable;mailbox_not_found",
      "X;no address;no address;undeliverable;invalid_syntax",
      "",
    ]);
    expect(readdirSync(folder).toSorted()).toEqual([...before, "out.csv"].toSorted());
  });

  test("goes on where it was interrupted: what is finished is not asked again", async () => {
    writeFileSync(at("long.csv"), "mail\nanna@shop.example.com\nno address\n");
    const args = ["--file", at("long.csv"), "--out", at("long-out.csv")];
    const asked = Promise.withResolvers<string>();
    const silent: SmtpStubScript = {
      rcpt() {
        asked.resolve("SIGINT");
        return Promise.withResolvers<string>().promise;
      },
    };
    const stopped = await verify(args, silent, () => asked.promise);
    expect(stopped).toMatchObject({ status: 1, err: expect.stringContaining("Interrupted.") });
    expect(existsSync(at("long-out.csv"))).toBe(false);
    const other = await verify([...args, "--header", "false"]);
    expect(other).toMatchObject({ status: 1, err: expect.stringContaining("other options") });
    const done = await verify(args);
    expect(done).toMatchObject({ status: 0, err: expect.stringContaining("Going on with") });
    expect(readFileSync(at("long-out.csv"), "utf8").split("\r\n")[1]).toStartWith(
      "anna@shop.example.com,anna@shop.example.com,deliverable,",
    );
    expect(existsSync(at("long-out.csv.postwarden"))).toBe(false);
  });

  test("says which row of a broken list is at fault, and leaves nothing behind", async () => {
    writeFileSync(at("broken.csv"), 'mail\nanna@shop.example.com\n"x\n');
    const before = readdirSync(folder);
    const { status, err } = await verify(["--file", at("broken.csv"), "--out", at("x.csv")]);
    expect({ status, err }).toMatchObject({ status: 1, err: expect.stringContaining("Row 3 of the list") });
    expect(readdirSync(folder)).toEqual(before);
  });

  test.each([
    "--file a.csv",
    "--out a.csv anna@shop.example.com",
    "--file a.csv --out a.csv",
    "--file a.csv --out b.csv anna@shop.example.com",
    "--file a.csv --out b.csv --evidence",
    "--file a.csv --out b.csv --header maybe",
  ])("%s is wrong usage", async (args) => {
    expect((await verify(args.split(" "))).status).toBe(2);
  });
});

test("the line of progress says how far and how long", () => {
  const job = { addressesFinished: 500, addressesTotal: 1_000 } as Parameters<typeof progressLine>[0]["job"];
  const line = progressLine({ job, forecast: { secondsLeft: 600, pollAfterMs: null } });
  expect(line).toBe(`[${"#".repeat(15)}${" ".repeat(15)}]  50%  500 of 1,000 addresses, about 10 min left`);
});
