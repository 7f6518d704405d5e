import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createCommandLine } from "../testing/command-line.ts";
import { encodeResponse, type ScriptedDnsServer, startDnsServer, soaFor } from "../testing/dns-server.ts";
import { type SmtpStub, startSmtpStub } from "../testing/smtp-stub.ts";

const { dataDir, run } = createCommandLine();
const TIME = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);

/** Each test has a data directory of its own. */
const inDir = async (name: string, hasDatabase = true) => {
  const settings = { DATA_DIR: join(dataDir, "..", name) };
  if (hasDatabase) await run(["migrate"], { settings });
  const file = (text: string): string => {
    const path = join(dataDir, "..", `${name}.txt`);
    writeFileSync(path, text);
    return path;
  };
  const entries = async () => {
    const { suppressions } = (await run(["suppress", "list", "--json"], { settings })).json;
    return (suppressions as Array<{ entry: string; note: string | null }>).map(({ entry, note }) => [entry, note]);
  };
  return { settings, file, entries, suppress: (...args: string[]) => run(["suppress", ...args], { settings }) };
};

describe("suppress", () => {
  test("adds addresses and domains in their normal form, lists them, and takes them off", async () => {
    const { suppress } = await inDir("life");
    const added = await suppress("add", "Trap@Example.com", "bücher.example", "--note", "complaints", "--json");
    expect(added).toMatchObject({ status: 0, err: "", json: { added: 2, known: 0 } });
    expect((await suppress("add", "trap@example.com", "example.org", "--json")).json).toEqual({ added: 1, known: 1 });
    expect((await suppress("list", "--json")).json).toEqual({
      suppressions: [
        { entry: "example.org", note: null, created_at: TIME },
        { entry: "trap@example.com", note: "complaints", created_at: TIME },
        { entry: "xn--bcher-kva.example", note: "complaints", created_at: TIME },
      ],
    });
    const removed = await suppress("remove", "TRAP@example.com", "nobody@example.com", "--json");
    expect(removed).toMatchObject({ status: 0, json: { removed: ["trap@example.com"] } });
    expect((await suppress("remove", "example.org", "bücher.example")).out).toBe("2 of 2 removed.");
    expect((await suppress("list", "--json")).json).toEqual({ suppressions: [] });
  });

  test("speaks to people in a sentence and a table", async () => {
    const { suppress } = await inDir("people");
    expect((await suppress("add", "a@example.com", "b@example.com", "--note", "why")).out).toBe(
      "2 added, 0 already on the list.",
    );
    expect((await suppress("list")).out).toMatch(
      /^ENTRY +SINCE +NOTE\na@example\.com +[-0-9]{10} [:0-9]{8} +why\nb@example\.com/,
    );
  });

  test("reads a file: one a line, # begins a comment, in any line ends, beside arguments", async () => {
    const { suppress, file, entries } = await inDir("file");
    const path = file("# complaints\r\na@example.com  # twice\r\n\r\n  example.org\nA@example.com\n");
    expect((await suppress("add", "c@example.com", "--file", path, "--json")).json).toEqual({ added: 3, known: 0 });
    expect(await entries()).toEqual([
      ["a@example.com", null],
      ["c@example.com", null],
      ["example.org", null],
    ]);
    expect((await suppress("remove", "--file", path, "--json")).json).toEqual({
      removed: ["a@example.com", "example.org"],
    });
  });

  test("adds nothing when an entry is wrong, and names each up to twenty", async () => {
    const { suppress, file, entries } = await inDir("wrong");
    const one = await suppress("add", "good@example.com", "no at", "localhost");
    expect(one).toMatchObject({ status: 1, out: "" });
    expect(one.err.split("\n")).toEqual([
      "postwarden: Nothing was added:",
      '  entry 2: "no at" is not a domain',
      '  entry 3: "localhost" is not a domain',
    ]);
    const many = await suppress("add", "--file", file("x@@y\n".repeat(30)), "--json");
    expect(JSON.parse(many.err)).toMatchObject({ error: "entries", message: expect.stringMatching(/and 10 more$/) });
    const note = await suppress("add", "good@example.com", "--note", "x".repeat(201));
    expect([note.status, note.err]).toEqual([
      1,
      "postwarden: Nothing was added:\n  A note must have at most 200 characters.",
    ]);
    expect(await entries()).toEqual([]);
  });

  test("says in a sentence what it cannot do", async () => {
    const { suppress, file, settings } = await inDir("errors");
    const absent = await suppress("add", "--file", join(settings.DATA_DIR, "none.txt"));
    expect([absent.status, absent.err]).toEqual([1, expect.stringMatching(/none\.txt: no such file/)]);
    expect((await suppress("add")).status).toBe(2);
    expect((await suppress("remove")).status).toBe(2);
    expect((await suppress("add", "--file", file("# nothing\n"))).status).toBe(2);
    const unknown = await suppress("remove", "nobody@example.com", "--json");
    expect([unknown.status, JSON.parse(unknown.err)]).toEqual([
      1,
      { error: "unknown_entry", message: "None of these entries is on the list." },
    ]);
  });
});

describe("verify on the command line", () => {
  let dns: ScriptedDnsServer;
  let stub: SmtpStub;
  beforeAll(async () => {
    dns = await startDnsServer((query) => {
      const name = query.name.toLowerCase();
      if (query.type === "MX" && name === "shop.example.com") {
        const data = { preference: 10, exchange: "mx.example.com" };
        return encodeResponse(query, { answers: [{ type: "MX", name, ttl: 60, data }] });
      }
      const isA = query.type === "A" && name === "mx.example.com";
      return encodeResponse(
        query,
        isA ? { answers: [{ type: "A", name, ttl: 60, data: "127.0.0.1" }] } : { authorities: [soaFor(name)] },
      );
    });
    stub = startSmtpStub({
      rcpt: (address) => (/^(anna|bert)@/.test(address) ? "250 2.1.5 Ok" : "550 5.1.1 User unknown"),
    });
  });
  afterAll(() => {
    dns.stop();
    stub.stop();
  });

  test("uses the list of the database, where there is one", async () => {
    const { settings, suppress } = await inDir("verify", false);
    const verify = async () => {
      const { out } = await run(["verify", "--json", "anna@shop.example.com", "bert@shop.example.com"], {
        settings: {
          ...settings,
          DNS_SERVERS: `127.0.0.1:${dns.server.port}`,
          SMTP_PORT: String(stub.port),
          PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
          HELO_NAME: "probe.example.com",
          DNSBL_SIGNAL: "off",
        },
      });
      return out.split("\n").map((line) => {
        const { sub_status, signals } = JSON.parse(line);
        return [sub_status, signals.toxic];
      });
    };
    expect(await verify()).toEqual([
      ["mailbox_exists", "skipped"],
      ["mailbox_exists", "skipped"],
    ]);
    await run(["migrate"], { settings });
    await suppress("add", "anna@shop.example.com");
    expect(await verify()).toEqual([
      ["toxic", "fail"],
      ["mailbox_exists", "pass"],
    ]);
    await suppress("add", "example.com");
    expect(await verify()).toEqual([
      ["toxic", "fail"],
      ["toxic", "fail"],
    ]);
  });
});
