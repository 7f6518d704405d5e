import { afterAll, afterEach, beforeAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type ScriptedDnsServer, startDnsServer, soaFor } from "../testing/dns-server.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "../testing/smtp-stub.ts";
import { progressLine } from "./verify-file-progress.ts";

const { run } = createCommandLine();
let dns: ScriptedDnsServer;
beforeAll(async () => {
  dns = await startDnsServer((query) => {
    const { name, type } = query;
    if (!name.toLowerCase().endsWith("shop.example.com")) return encodeResponse(query, { rcode: 3 });
    if (type === "A") return encodeResponse(query, { answers: [{ type, name, ttl: 60, data: "127.0.0.1" }] });
    return encodeResponse(query, { authorities: [soaFor(name)] });
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
    // It was settled at the start that this may be written.
    writeFileSync(at("long-out.csv"), "older");
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

  test("leaves a file alone that stands at --out, unless --force says to replace it", async () => {
    writeFileSync(at("one.csv"), "email\nno address\n");
    writeFileSync(at("kept.csv"), "precious");
    const before = readdirSync(folder);
    const args = ["--file", at("one.csv"), "--out", at("kept.csv")];
    const refused = await verify(args);
    const sentence = `postwarden: ${at("kept.csv")} exists; give another --out or --force.`;
    expect({ status: refused.status, err: refused.err }).toEqual({ status: 1, err: sentence });
    expect(readFileSync(at("kept.csv"), "utf8")).toBe("precious");
    expect(readdirSync(folder)).toEqual(before);
    const forced = await verify([...args, "--force"]);
    expect(forced).toMatchObject({ status: 0, out: expect.stringContaining("1 row, 1 address: ") });
    expect(readFileSync(at("kept.csv"), "utf8")).toStartWith("email,normalized_email,");
  });

  test("says in a sentence what is wrong with the paths before it begins", async () => {
    mkdirSync(at("folder"), { recursive: true });
    writeFileSync(at("good.csv"), "mail\nno address\n");
    writeFileSync(at("list.json"), '{"emails":["anna@shop.example.com"]}');
    linkSync(at("good.csv"), at("same.csv"));
    const rows: ReadonlyArray<readonly [file: string, out: string, status: number, says: string]> = [
      [at("nowhere.csv"), at("y.csv"), 1, "nowhere.csv is not there."],
      [at("folder"), at("y.csv"), 1, "folder is a directory; --file is a list."],
      [at("good.csv/x"), at("y.csv"), 1, "cannot be used (ENOTDIR)."],
      ["/dev/null", at("y.csv"), 1, "/dev/null is not a regular file. A list is read more than once: save it first."],
      [at("list.json"), at("y.csv"), 1, "This is JSON"],
      [at("good.csv"), at("folder"), 1, "folder is a directory; --out is a file."],
      [at("good.csv"), at("new/"), 1, "new/ is a directory; --out is a file."],
      [at("good.csv"), at("new/y.csv"), 1, "new of --out is not there."],
      [at("good.csv"), "/dev/null", 1, "/dev/null is not a regular file."],
      [at("good.csv"), at("y".repeat(250)), 1, "cannot be written: "],
      [at("good.csv"), at("same.csv"), 2, "--out must be another file than --file."],
      [at("good.csv"), "", 2, "--file and --out need a path."],
    ];
    const before = readdirSync(folder);
    for (const [file, out, status, says] of rows) {
      const refused = await verify(["--file", file, "--out", out]);
      expect({ status: refused.status, err: refused.err }).toEqual({ status, err: expect.stringContaining(says) });
      expect(refused.err.split("\n")).toHaveLength(1);
    }
    expect(readdirSync(folder)).toEqual(before);
  });

  test.each([
    "--force anna@shop.example.com",
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
  const one = { addressesFinished: 0, addressesTotal: 1 } as typeof job;
  const first = progressLine({ job: one, forecast: { secondsLeft: null, pollAfterMs: 1_000 } });
  expect(first).toEndWith("   0%  0 of 1 address");
});
