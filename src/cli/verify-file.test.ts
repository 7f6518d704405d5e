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
import { workbookOf } from "../testing/workbook.ts";
import { progressLine } from "./progress.ts";

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

const verify = (
  args: readonly string[],
  script: SmtpStubScript = onlyAnna,
  untilSignal = never,
  stdin?: readonly string[],
) => {
  const stub = startSmtpStub(script);
  stubs.push(stub);
  const settings = {
    DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
    SMTP_PORT: String(stub.port),
    PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
    HELO_NAME: "probe.example.com",
    DNSBL_SIGNAL: "off",
  };
  return run(["verify", ...args], {
    settings,
    untilSignal,
    stdoutKind: "pipe",
    ...(stdin === undefined ? {} : { stdin }),
  });
};

const UNTIDY = [
  "sep=;",
  "Customers",
  "name;mail;work",
  "A;Anna <anna@shop.example.com>;",
  "B;;",
  "C;a@b.example, c@d.example;x@gmial.com",
];

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
        format: {
          type: "csv",
          encoding: "utf-8",
          encoding_assumed: false,
          sheet: null,
          delimiter: ";",
          header: true,
          title_rows: 0,
          column: {
            index: 1,
            name: "mail",
            reason: "only_addresses",
            message: "It is the only column with addresses.",
          },
        },
        rows: 3,
        empty: 0,
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
    // The first run has settled that this file may be written.
    writeFileSync(at("long-out.csv"), "older");
    const done = await verify(args);
    expect(done).toMatchObject({ status: 0, err: expect.stringContaining("Resuming from") });
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
    const sentence = `postwarden: ${at("kept.csv")} exists. Give another --out, or replace it with --force.`;
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
      [at("nowhere.csv"), at("y.csv"), 1, "nowhere.csv: no such file"],
      [at("folder"), at("y.csv"), 1, "folder: is a directory; --file must be a list"],
      [`${at("folder")}/../good.csv/x`, at("y.csv"), 1, "/folder/../good.csv/x: "],
      ["/dev/null", at("y.csv"), 1, "/dev/null: not a regular file; save the list to a file first"],
      [at("list.json"), at("y.csv"), 1, "This is JSON"],
      [at("good.csv"), at("folder"), 1, "folder: is a directory; --out must be a file"],
      [at("good.csv"), at("new/"), 1, "new/: is a directory; --out must be a file"],
      [at("good.csv"), at("new/y.csv"), 1, "new: no such directory"],
      [at("good.csv"), "/dev/null", 1, "/dev/null: not a regular file"],
      [at("good.csv"), at("y".repeat(250)), 1, "is not writable: "],
      [at("good.csv"), at("same.csv"), 2, "--out must not be the same file as --file."],
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

describe("- for a path", () => {
  test("reads the list from standard input and writes the results to standard output", async () => {
    const done = await verify(["--file", "-", "--out", "-"], onlyAnna, never, UNTIDY);
    expect(done.status).toBe(0);
    const lines = done.out.split("\r\n");
    expect(lines[1]).toStartWith("name;mail;work;normalized_email;");
    expect(lines[2]).toStartWith("A;Anna <anna@shop.example.com>;;anna@shop.example.com;deliverable;");
    expect(done.err).toContain('with a header, below a title row.\nAddresses: column 1 "mail".');
    expect(done.err).toContain("3 rows (1 empty), 2 addresses");
  });

  test("of a terminal is refused", async () => {
    const done = await verify(["--file", "-", "--out", at("never.csv")]);
    expect(done).toMatchObject({ status: 2, err: expect.stringContaining("pipe a list in") });
  });

  test("as the output cannot be resumed, and says so", async () => {
    const slow: SmtpStubScript = { banner: () => new Promise<never>(() => undefined) };
    const done = await verify(["--file", "-", "--out", "-"], slow, async () => "SIGINT", UNTIDY);
    expect(done).toMatchObject({
      status: 1,
      err: expect.stringContaining("Only a run with --out FILE can be resumed"),
    });
  });
});

describe("--encoding", () => {
  // "name;mail\nŁukasz;…" in Windows-1250.
  const polish = Buffer.from("name;mail\n\xa3ukasz;anna@shop.example.com\n", "latin1");

  test("names the encoding of a list that is not Unicode; without it, the bytes of the columns are kept", async () => {
    writeFileSync(at("polish.csv"), polish);
    const assumed = await verify(["--file", at("polish.csv"), "--out", at("assumed.csv")]);
    expect({ status: assumed.status, err: assumed.err }).toEqual({ status: 0, err: expect.anything() });
    expect(assumed.err).toContain("name the encoding with --encoding");
    expect(readFileSync(at("assumed.csv"), "latin1")).toContain("\r\n\xa3ukasz;anna@shop.example.com;");
    const named = await verify(["--file", at("polish.csv"), "--out", at("named.csv"), "--encoding", "Windows-1250"]);
    expect(named.err).not.toContain("--encoding");
    expect(readFileSync(at("named.csv"), "utf8")).toContain("\r\nŁukasz;anna@shop.example.com;");
    const shown = await verify(["--file", at("polish.csv"), "--dry-run", "--json", "--encoding", "windows-1250"]);
    expect(shown.json).toMatchObject({ format: { encoding: "windows-1250", encoding_assumed: false } });
  });

  test("must be a known name, and needs a list", async () => {
    writeFileSync(at("polish.csv"), polish);
    const unknown = await verify(["--file", at("polish.csv"), "--dry-run", "--encoding", "latin9"]);
    expect(unknown.status).toBe(2);
    expect(unknown.err).toContain('--encoding: "latin9" is not one of utf-8, ');
    expect((await verify(["--encoding", "utf-8", "a@b.example"])).status).toBe(2);
  });
});

describe("--dry-run", () => {
  test("shows how the list is read and what is in it, and asks nobody", async () => {
    const list = at("untidy.csv");
    writeFileSync(list, UNTIDY.join("\r\n"));
    const before = readdirSync(folder);
    const done = await verify(["--file", list, "--dry-run"]);
    expect(done.status).toBe(0);
    expect(done.out).toContain("CSV (utf-8, semicolon), with a header, below a title row.");
    expect(done.out).toContain('Other columns with addresses: 2 "work".');
    expect(done.out).toContain("3 rows, 2 addresses; 0 duplicate, 1 empty, 1 not an address.");
    expect(done.out).toContain("There is more than one address.");
    expect(readdirSync(folder)).toEqual(before);
    const asJson = await verify(["--file", "-", "--dry-run", "--json", "--column", "work"], onlyAnna, never, UNTIDY);
    expect(asJson.json).toMatchObject({
      dry_run: true,
      format: { column: { index: 2, reason: "requested" } },
      rows: { total: 3, empty: 2 },
      first_rows: [{}, {}, { did_you_mean: "x@gmail.com" }],
    });
    expect(asJson.json).not.toHaveProperty("credits");
  });

  test("goes with a file only", async () => {
    for (const args of [["--dry-run"], ["--dry-run", "--file", "x", "--out", "y"]])
      expect((await verify(args)).status).toBe(2);
  });
});

test("an Excel workbook is read as its first sheet", async () => {
  const list = at("customers.xlsx");
  writeFileSync(
    list,
    workbookOf([
      ["Name", "E-Mail"],
      ["Anna", "anna@shop.example.com"],
    ]),
  );
  const done = await verify(["--file", list, "--out", at("customers-results.csv"), "--json"]);
  expect(done.json).toMatchObject({ format: { type: "xlsx" }, rows: 1, verdicts: { deliverable: 1 } });
  expect(readFileSync(at("customers-results.csv"), "utf8")).toStartWith("\ufeffName,E-Mail,normalized_email,");
  expect(readdirSync(folder).filter((name) => name.includes("sheet"))).toEqual([]);
});
