import { afterAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Command } from "commander";
import { type KeyMode, newId } from "../foundation/base/secrets.ts";
import { RecordHistoryStore } from "../dmarc/insight/health/record-history.ts";
import { IngestionStore } from "../dmarc/reports/ingest/ingestion-store.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { SAMPLE_DAY_S, sampleReportMail, sampleReportXml } from "../testing/dmarc-reports.ts";
import { encodeResponse, startDnsServer } from "../testing/dns-server.ts";
import { insertDomain } from "../testing/ingest-harness.ts";
import { addTrees } from "./command.ts";
import { dmarcCommands } from "./dmarc.ts";
import type { Io } from "./io.ts";
import { FILE_BYTES_MAX, piecesOf } from "./dmarc-files.ts";
import { openDatabaseAt } from "./data-directory.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-import-"));
afterAll(() => rmSync(folder, { recursive: true }));

interface Options {
  readonly stdin?: string;
  /** Called with every line of standard output; answers true to interrupt. */
  readonly interrupts?: (line: string) => boolean;
  /** Beside the data directory. */
  readonly settings?: Readonly<Record<string, string>>;
}

/** A data directory with the accounts named, and the commands on it. */
const newWorld = async (...accounts: string[]) => {
  const { dataDir, run: runCommand } = createCommandLine();
  await runCommand(["migrate"]);
  for (const account of accounts) await runCommand(["accounts", "create", account]);
  /** Enrols a domain for the first account. */
  const enrol = (domain: string, mode: KeyMode = "live"): void => {
    const db = openDatabaseAt(join(dataDir, "postwarden.db"));
    const account = db.sqlite.query<{ id: string }, []>("SELECT id FROM accounts").get();
    insertDomain(db, domain, { accountId: account?.id ?? "", mode });
    db.close();
  };
  const run = async (args: readonly string[], { stdin = "", interrupts = () => false, settings }: Options = {}) => {
    const out: string[] = [];
    const err: string[] = [];
    const signal = Promise.withResolvers<string>();
    const program = new Command("postwarden").exitOverride();
    const io: Io = {
      environment: { POSTWARDEN_DATA_DIR: dataDir, POSTWARDEN_WORKERS: "0", ...settings },
      settingsFile: null,
      out(line) {
        out.push(line);
        if (interrupts(line)) signal.resolve("SIGINT");
      },
      err: (line) => err.push(line),
      status: null,
      write: async () => undefined,
      stdin: () =>
        (async function* (): AsyncIterable<Uint8Array> {
          yield* [];
        })(),
      stdinLines: () =>
        (async function* (): AsyncIterable<string> {
          yield* [];
        })(),
      stdinIsTerminal: false,
      stdoutKind: "terminal",
      columns: 80,
      untilSignal: () => signal.promise,
      onHangup: () => undefined,
    };
    const commands = dmarcCommands(() => new Response(stdin).body ?? new ReadableStream());
    addTrees(program, { io, readEnvironment: () => io.environment, wholeProgram: async () => program }, commands);
    const failure = await program.parseAsync(["dmarc", ...args], { from: "user" }).then(
      () => null,
      (error: unknown) => error,
    );
    return {
      code: failure === null ? null : (failure as { code: unknown }).code,
      out: out.join("\n"),
      err: err.join("\n"),
      json: () => out.map((line) => JSON.parse(line)),
    };
  };
  return Object.assign(run, { enrol, dataDir });
};

const write = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  mkdirSync(join(path, ".."), { recursive: true });
  writeFileSync(path, content);
  return path;
};

test("dmarc record-history says what was not published", async () => {
  const run = await newWorld("main");
  run.enrol("example.com");
  const db = openDatabaseAt(join(run.dataDir, "postwarden.db"));
  const { number } = db.sqlite.query<{ number: number }, []>("SELECT number FROM dmarc_domains").get() ?? { number: 0 };
  const store = new RecordHistoryStore(db);
  const host = "_mta-sts.example.com";
  for (const values of [[], ["v=STSv1; id=1"], []]) {
    db.transact((tx) => store.observe(tx, number, [{ kind: "mta_sts", host, values }], SAMPLE_DAY_S * 1_000));
  }
  db.close();
  const { out } = await run(["record-history", "example.com"]);
  expect(out.split("\n").map((line) => line.split(/\s{2,}/).slice(2))).toEqual([
    ["HOST", "BEFORE", "RECORDS"],
    [host, "v=STSv1; id=1", "(none)"],
    [host, "(none)", "v=STSv1; id=1"],
    [host, "(first seen)", "(none)"],
  ]);
});

describe("dmarc import", () => {
  test("stores reports once, and keeps those about strangers until they are enrolled", async () => {
    const run = await newWorld("main");
    run.enrol("example.com");
    const ours = write("ours/a.eml", sampleReportMail());
    expect((await run(["import", ours])).out).toMatch(/stored\s+1\n/);
    expect((await run(["import", join(ours, "..")])).out).toMatch(/duplicate\s+1\n/);
    const file = write("one/a.xml", sampleReportXml({ domain: "nobody.example" }));
    const first = await run(["import", file]);
    expect(first.code).toBe("quarantined");
    expect(first.out).toMatch(/quarantined\s+1\s+foreign_domain/);
    expect(first.out).toMatch(/total\s+1/);
    expect(first.err).toContain(`${file}: quarantined foreign_domain`);
    expect(first.err).toContain("postwarden dmarc retry --all");
    run.enrol("nobody.example");
    const again = await run(["retry", "--all", "--json"]);
    expect(again.json()).toMatchObject([{ retried: 1, outcomes: { stored: 1, rejected: 0 }, ingestions: [] }]);
    expect((await run(["retry", "--all"])).out).toBe("0 read again.");
    await run(["import", write("one/junk", "junk")]);
    const told = await run(["retry", "--all"]);
    expect(told.out).toMatch(/^1 read again\.\n.*\nrejected\s+1\s+no_report/);
    expect(told.err).toContain("It contains no report.");
    expect((await run(["import", file])).out).toMatch(/duplicate\s+1\n/);
  });

  test("says what a report lacks, and that a complaint is none", async () => {
    const run = await newWorld("main");
    run.enrol("example.com");
    const [unread, complaint] = [
      write("part/unread.xml", sampleReportXml({ rows: [{ count: -5 }, { count: 7 }] })),
      write(
        "part/complaint.eml",
        [
          'Content-Type: multipart/report; report-type=feedback-report; boundary="b"',
          "",
          "--b",
          "Content-Type: message/feedback-report",
          "",
          "Feedback-Type: abuse",
          "Reported-Domain: example.com",
          "",
          "--b--",
          "",
        ].join("\r\n"),
      ),
    ];
    const { out, err } = await run(["import", unread, complaint]);
    expect(out).toMatch(/stored\s+1\n/);
    expect(err).toContain(`${unread}: The report is stored. One of its rows cannot be read`);
    expect(err).toContain(`${complaint}: quarantined failure_report. A complaint of a recipient`);
    expect(err).not.toContain("more");
    expect((await run(["retry", "--all"])).err).toContain("quarantined failure_report. A complaint of a recipient");
  });

  test("goes through directories in the order of names, without hidden files and links", async () => {
    const run = await newWorld("main");
    const place = join(folder, "tree");
    for (const name of ["b/2.xml", "a/1.xml", "c.xml", ".hidden", "b/.hidden"]) write(`tree/${name}`, "x");
    symlinkSync(join(place, "c.xml"), join(place, "z.xml"));
    const { code, json } = await run(["import", place, "--json"]);
    expect(code).toBe("rejected");
    expect(json().map(({ input }) => input)).toEqual(["a/1.xml", "b/2.xml", "c.xml"].map((name) => join(place, name)));
    expect(json()[0]).toMatchObject({ outcome: "rejected", reason: "no_report", findings: [{ outcome: "rejected" }] });
  });

  test("takes a mailbox apart, also from standard input, and one file of it too", async () => {
    const run = await newWorld("main");
    const mailbox = [1, 2, 3]
      .map((id) => `From a@b Thu Jan  1 00:00:00 2026\n${sampleReportMail({ reportId: String(id) })}\n`)
      .join("");
    const { json } = await run(["import", "-", "--json"], { stdin: mailbox });
    expect(json().map(({ input, outcome }) => [input, outcome])).toEqual([
      ["-", "quarantined"],
      ["-#2", "quarantined"],
      ["-#3", "quarantined"],
    ]);
    const one = await run(["import", "-", "--json"], { stdin: sampleReportXml() });
    expect(one.json()).toMatchObject([{ input: "-", outcome: "quarantined" }]);
  });

  test("goes on after what cannot be read, and says so at the end", async () => {
    const run = await newWorld("main");
    const large = write("large.bin", "");
    await Bun.write(large, new Uint8Array(FILE_BYTES_MAX + 1));
    const good = write("good.xml", sampleReportXml());
    const { code, out } = await run(["import", large, good]);
    expect(code).toBe("rejected");
    expect(out).toMatch(/rejected\s+1\s+file_too_large/);
    expect(out).toMatch(/quarantined\s+1/);
    rmSync(large);
  });

  test("imports the others when a path is not there, and says which that is", async () => {
    const run = await newWorld("main");
    run.enrol("example.com");
    const [a, b, nope] = [
      write("some/a.xml", sampleReportXml()),
      write("some/b.eml", sampleReportMail({ reportId: "2" })),
      join(folder, "nope.xml"),
    ];
    const { code, out, err } = await run(["import", a, nope, b]);
    expect(code).toBe("rejected");
    expect(out).toMatch(/stored\s+2\n/);
    expect(err).toContain(`${nope}: rejected no_such_file. No such file.`);
  });

  test("takes the mails of a Maildir, and nothing that stands beside them", async () => {
    const run = await newWorld("main");
    run.enrol("example.com");
    for (const name of ["cur/1:2,S", "new/2", "tmp/3"]) write(`Maildir/${name}`, sampleReportMail({ reportId: name }));
    for (const name of ["dovecot.index", "dovecot-uidlist", ".nfs0001", "cur/.nfs0002"])
      write(`Maildir/${name}`, "junk");
    const { code, json } = await run(["import", join(folder, "Maildir"), "--json"]);
    expect(code).toBeNull();
    expect(json().map(({ input, outcome }) => [input, outcome])).toEqual(
      ["cur/1:2,S", "new/2"].map((name) => [join(folder, "Maildir", name), "stored"]),
    );
    expect(json()[0].findings[0].message).toBe("The report is stored.");
  });

  test("asks whose the reports are when that is not clear", async () => {
    const file = write("whose.xml", sampleReportXml());
    expect((await (await newWorld())(["import", file])).code).toBe("unknown_account");
    const run = await newWorld("a", "b");
    expect((await run(["import", file])).code).toBe("account");
    expect((await run(["import", file, "--account", "c"])).code).toBe("unknown_account");
    const other = await run(["import", file, "--account", "b"]);
    expect([other.code, other.out]).toEqual(["quarantined", expect.stringMatching(/quarantined\s+1/)]);
  });

  test("stores the reports of live or of test keys", async () => {
    const run = await newWorld("main");
    run.enrol("example.com", "test");
    const file = write("mode.xml", sampleReportXml());
    expect((await run(["import", file])).out).toMatch(/quarantined\s+1\s+foreign_domain/);
    const stored = await run(["import", file, "--mode", "test"]);
    expect([stored.code, stored.out]).toEqual([null, expect.stringMatching(/stored\s+1\n/)]);
  });

  test("ends when it is interrupted, and keeps what is stored", async () => {
    const run = await newWorld("main");
    for (let at = 0; at < 600; at += 1)
      write(`many/${String(at).padStart(3, "0")}.xml`, sampleReportXml({ reportId: String(at) }));
    const { code, json } = await run(["import", join(folder, "many"), "--json"], { interrupts: () => true });
    expect(code).toBe("interrupted");
    expect(json().length).toBeLessThan(600);
    const rest = await run(["retry", "--all", "--json"]);
    expect(rest.json()[0].retried).toBe(json().length);
  });
});

test("dmarc retry wants ids, or all", async () => {
  const run = await newWorld("main");
  const codes = await Promise.all(
    [["retry"], ["retry", "x"], ["retry", "--all", "x"]].map(async (args) => (await run(args)).code),
  );
  expect(codes).toEqual(["ids", "ids", "ids"]);
  const [file] = (await run(["import", "-", "--json"], { stdin: "junk" })).json();
  const { json } = await run(["retry", file.id, "--json"]);
  expect(json()[0].ingestions).toMatchObject([{ id: file.id, outcome: "rejected", reason: "no_report" }]);
});

test("dmarc retry judges mail as the service does, and reads nothing but what it was told to", async () => {
  const run = await newWorld("main", "other");
  // The reporter is known to send from nowhere.
  const published = new Map([
    ["_dmarc.receiver.example", "v=DMARC1; p=reject"],
    ["receiver.example", "v=spf1 -all"],
  ]);
  const dns = await startDnsServer((query) => {
    const data = query.type === "TXT" ? published.get(query.name.toLowerCase()) : undefined;
    if (data === undefined) return encodeResponse(query, { rcode: 3 });
    return encodeResponse(query, { answers: [{ name: query.name, type: "TXT", ttl: 60, data: [data] }] });
  });
  const db = openDatabaseAt(join(run.dataDir, "postwarden.db"));
  try {
    const [main = "", other = ""] = ["main", "other"].map(
      (name) => db.sqlite.query<{ id: string }, [string]>("SELECT id FROM accounts WHERE name = ?").get(name)?.id,
    );
    const store = new IngestionStore(db);
    const ids = [main, main, other].map((accountId, n) => {
      const domain = insertDomain(db, `d${n}.example`, { accountId, requireAuthenticReports: true }).number;
      const mail = { id: newId(), accountId, mode: "live" as const, domain, via: "smtp" as const, name: null };
      const client = {
        client: "8.8.8.8",
        helo: "mx.example",
        mailFrom: "a@receiver.example",
        receivedAtMs: SAMPLE_DAY_S * 1000,
      };
      const row = { ...mail, ...client, bytes: sampleReportMail({ domain: `d${n}.example` }) };
      db.transact((tx) => store.insertPending(tx, row));
      return row.id;
    });
    const [forged = "", ...others] = ids;
    const settings = { POSTWARDEN_DNS_SERVERS: `${dns.server.address}:${dns.server.port}` };
    const args = ["retry", forged, "--account", "main", "--json"];
    for (const told of [args, args]) {
      const { json } = await run(told, { settings });
      expect(json()).toMatchObject([{ ingestions: [{ outcome: "quarantined", reason: "not_authentic" }] }]);
    }
    const all = await run(["retry", "--all", "--account", "main", "--json"], { settings });
    expect(all.json()).toMatchObject([{ retried: 1, outcomes: { quarantined: 1 }, ingestions: [] }]);
    expect(store.find({ accountId: main, mode: "live" }, forged)?.reason).toBe("not_authentic");
    expect(others.map((id) => store.isPending(id))).toEqual([true, true]);
    expect(db.sqlite.query("SELECT * FROM dmarc_reports").all()).toEqual([]);
  } finally {
    dns.stop();
    db.close();
  }
});

describe("a mailbox", () => {
  const mails = [
    "From a\r\nSubject: 1\r\n\r\nFrom here it is text\r\n\r\n",
    "From b\nSubject: 2\n\n>From c\nno\nFrom d\n\n",
    "From e\n\n",
  ];
  const inPieces = async (text: string, size: number): Promise<string[]> => {
    const bytes = Buffer.from(text);
    async function* chunks() {
      for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
    }
    const pieces = await Array.fromAsync(piecesOf(chunks()));
    return pieces.map((piece) => Buffer.from(piece ?? []).toString());
  };

  test("is the same wherever the stream is split", async () => {
    const text = mails.join("");
    // A line that begins with "From " behind an empty one begins a mail, whoever wrote it.
    const expected = ["From a\r\nSubject: 1\r\n\r\n", "From here it is text\r\n\r\n", ...mails.slice(1)];
    for (let size = 1; size <= text.length; size += 1) expect(await inPieces(text, size)).toEqual(expected);
  });

  test("is none when it does not begin as one", async () => {
    const text = "Subject: x\n\nFrom a\n\nFrom b\n";
    for (const size of [1, 3, 100]) expect(await inPieces(text, size)).toEqual([text]);
    expect(await inPieces("", 1)).toEqual([]);
    expect(await inPieces("Fr", 1)).toEqual(["Fr"]);
  });
});
