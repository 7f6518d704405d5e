import { expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { evidenceWith } from "../testing/evidence.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { packEvidence } from "../verify/store.ts";

const ADDRESS = "Ada.Lovelace@Example.com";
const NORMALIZED = ADDRESS.toLowerCase();
/** An identifier, an enum or a number that is stored as text: it never contains what a user wrote. */
const IDENTIFIER =
  /^(id|.*_id|reference|mode|status|sub_status|kind|plan|hash|token|via|trigger|outcome|classification|digest|uid_validity)$/;
/** Configuration that other data refers to: reported, not changed. */
const KEPT =
  /^(accounts\.name|users\.email|audit_log\.(user|host|action)|(dmarc|bounce)_mailboxes\.mailbox|suppressions\.entry|.*\.(webhook_)?url)$/;
/** Filled by the tests in their own way. */
const OWN = new Set([
  "dmarc_raw",
  "dmarc_raw_chunks",
  "verification_evidence",
  "bulk_evidence",
  "bulk_jobs",
  "bulk_addresses",
  "bulk_rows",
]);

const MAIL = `From: reporter@example.net\r\nContent-Type: text/plain\r\nContent-Transfer-Encoding: base64\r\n\r\n${btoa(`to ${ADDRESS}`)}\r\n`;

interface Column {
  readonly name: string;
  readonly type: string;
  readonly pk: number;
}

const { dataDir, run } = createCommandLine();
const path = join(dataDir, "postwarden.db");

const withSqlite = <T>(work: (sqlite: Sqlite) => T): T => {
  const sqlite = new Sqlite(path);
  try {
    sqlite.run("PRAGMA foreign_keys = OFF");
    sqlite.run("PRAGMA secure_delete = ON");
    return work(sqlite);
  } finally {
    sqlite.close();
  }
};

const textOf = (table: string, { name }: Column, n: number): string => {
  if (name === "recipients") return JSON.stringify([ADDRESS, "bob@example.com"]);
  if (IDENTIFIER.test(name) || KEPT.test(`${table}.${name}`)) return `${name}-${n}`;
  return JSON.stringify({ text: `${n}\n${ADDRESS}, <${NORMALIZED}>` });
};

/** A row in a table with the address in every text that may contain one; returns those columns. */
const fillTable = (sqlite: Sqlite, table: string): string[] => {
  const columns = sqlite.query<Column, []>(`PRAGMA table_info(${table})`).all();
  const values = columns.map((column) => {
    if (column.type.toLowerCase() === "text") return textOf(table, column, 7);
    return column.type.toLowerCase() === "blob" ? Buffer.from("x") : 7;
  });
  const marks = columns.map(() => "?").join(", ");
  sqlite.query(`INSERT INTO ${table} VALUES (${marks})`).run(...values);
  return columns
    .filter((column) => column.type.toLowerCase() === "text" && textOf(table, column, 7).includes("@"))
    .map(({ name }) => `${table}.${name}`);
};

const fillOwn = (sqlite: Sqlite): void => {
  const format = {
    header: ["id", ADDRESS],
    column: 1,
    width: 2,
    delimiter: ",",
    encoding: { name: "utf-8", bom: false },
    titles: [],
  };
  const insertJob =
    "INSERT INTO bulk_jobs (id, account_id, key_id, mode, name, status, format, addresses_total, completed_at_ms, created_at_ms) VALUES ('j1', 'a', 'k', 'test', ?, 'completed', ?, 2, 1, 1)";
  sqlite.query(insertJob).run(`list of ${ADDRESS}`, JSON.stringify(format));
  const address = sqlite.query(
    "INSERT INTO bulk_addresses (job, position, email, normalized_email, rows, sub_status) VALUES (1, ?, ?, ?, 1, 'mailbox_exists')",
  );
  address.run(0, ADDRESS, NORMALIZED);
  address.run(1, "bob@example.com", "bob@example.com");
  const row = sqlite.query("INSERT INTO bulk_rows VALUES (1, ?, ?, ?, ?)");
  row.run(0, 0, null, JSON.stringify(["Ada King", ADDRESS]));
  row.run(1, 0, NORMALIZED.toUpperCase(), JSON.stringify(["again", NORMALIZED.toUpperCase()]));
  row.run(2, 1, null, JSON.stringify([`wife of ${ADDRESS}`, "bob@example.com"]));
  const base = evidenceWith();
  const evidence = packEvidence({ ...base, address: { ...base.address, suggestion: NORMALIZED } });
  sqlite.query("INSERT INTO bulk_evidence VALUES (1, 1, ?)").run(evidence);
  sqlite.query("INSERT INTO verification_evidence VALUES ('other', ?)").run(evidence);
  sqlite.query("INSERT INTO verification_evidence VALUES ('older', ?)").run(JSON.stringify({ old: ADDRESS }));
  storeMail(sqlite, { id: "mail", status: "done", text: MAIL });
  storeMail(sqlite, { id: "plain", status: "done", text: `To: ${ADDRESS}\r\n\r\nx` });
};

const storeMail = (sqlite: Sqlite, { id, status, text }: Readonly<Record<"id" | "status" | "text", string>>) => {
  sqlite
    .query(
      `INSERT INTO dmarc_ingestions (id, account_id, mode, via, received_at_ms, bytes, status)
        VALUES (?, 'a', 'live', 'smtp', 1, 1, ?)`,
    )
    .run(id, status);
  // In the middle of the address.
  const end = text.indexOf(ADDRESS) + 3;
  sqlite.query("INSERT INTO dmarc_raw VALUES (?, ?)").run(id, Buffer.from(text.slice(0, end)));
  sqlite.query("INSERT INTO dmarc_raw_chunks VALUES (?, 0, ?)").run(id, Buffer.from(text.slice(end)));
};

/** Files below the data directory that contain the address. */
const grep = (): string[] =>
  readdirSync(dataDir).filter((name) =>
    readFileSync(join(dataDir, name)).toString("latin1").toLowerCase().includes(NORMALIZED),
  );

const cellsOf = (sqlite: Sqlite) => sqlite.query<object, []>("SELECT submitted_email, cells FROM bulk_rows").all();

test("an address in every table is gone from every file, and the figures say from where", async () => {
  await run(["migrate"]);
  await run(["suppress", "add", ADDRESS, "--note", "asked us by phone"]);
  const filled = withSqlite((sqlite) => {
    const tables = sqlite
      .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'")
      .all()
      .map(({ name }) => name);
    fillOwn(sqlite);
    return tables
      .filter((name) => !OWN.has(name) && name !== "suppressions")
      .flatMap((name) => fillTable(sqlite, name));
  });
  expect(filled.length).toBeGreaterThan(50);
  expect(grep()).not.toEqual([]);

  const { status, json, err } = await run(["erase", "--yes", "ADA.LOVELACE@EXAMPLE.COM", "--json"]);
  expect(err).toBe("");
  expect(status).toBe(0);
  expect(json).toMatchObject({
    address: NORMALIZED,
    ...{ verifications: 1, cancelled: 0, list_rows: 2, lists: 1, evidence: 3, report_mails: 2, suppression: "hashed" },
    waiting: { lists: 0, report_mails: 0 },
    ...{ fields_kept: {}, files: [] },
    fields_redacted: { "bulk_rows.cells": 1, "bulk_jobs.name": 1, "ledger.note": 1, "outbox.data": 1 },
    rows_removed: { "dmarc_failure_reports.body": 1, "dmarc_alert_mails.recipient": 1 },
  });
  expect(grep()).toEqual([]);
  withSqlite((sqlite) => {
    expect(cellsOf(sqlite)).toEqual([
      { submitted_email: null, cells: '["","[erased]"]' },
      { submitted_email: null, cells: '["","[erased]"]' },
      { submitted_email: null, cells: '["wife of [erased]","bob@example.com"]' },
    ]);
    expect(sqlite.query("SELECT recipients FROM dmarc_domains").get()).toEqual({ recipients: '["bob@example.com"]' });
    expect(sqlite.query("SELECT count(*) AS n FROM ledger").get()).toEqual({ n: 1 });
  });
  expect((await run(["suppress", "list", "--json"])).json).toMatchObject({
    suppressions: [{ entry: expect.stringMatching(/^sha256:[0-9a-f]{64}$/), note: null }],
  });
  expect((await run(["erase", "--yes", ADDRESS, "--drop-suppression", "--json"])).json).toMatchObject({
    ...{ verifications: 0, list_rows: 0, suppression: "removed", fields_redacted: {} },
  });
});

test("what is configuration is left and named, with exit status 1", async () => {
  await run(["accounts", "create", ADDRESS]);
  const { status, err } = await run(["erase", "--yes", ADDRESS]);
  expect(status).toBe(1);
  expect(err).toContain("Not everything was erased:\n  accounts.name (1) is in use and was not changed");
  withSqlite((sqlite) => sqlite.run("UPDATE accounts SET name = 'acme' WHERE deleted_at_ms IS NULL"));
});

test("a report mail that waits to be read is left, and the command says so", async () => {
  withSqlite((sqlite) => storeMail(sqlite, { id: "new", status: "pending", text: MAIL }));
  expect(await run(["erase", "--yes", ADDRESS])).toMatchObject({
    status: 1,
    err: expect.stringContaining("1 report mails wait to be read. Erase the address again"),
  });
  withSqlite((sqlite) => sqlite.run("UPDATE dmarc_ingestions SET status = 'done'"));
  expect((await run(["erase", "--yes", ADDRESS, "--json"])).json).toMatchObject({ report_mails: 1 });
});

test("other files in the data directory and the backup directory are named", async () => {
  const backups = join(dataDir, "..", "backups");
  mkdirSync(backups);
  const copies = [join(dataDir, "postwarden.db.before-restore"), join(backups, "postwarden-2026.db")];
  for (const copy of copies) writeFileSync(copy, `x${ADDRESS}`);
  const { status, out } = await run(["erase", "--yes", ADDRESS], { settings: { BACKUP_DIR: backups } });
  expect(status).toBe(0);
  for (const copy of copies) expect(out).toContain(`${copy} still contains the address.`);
});

test("a text that is no address is a usage error", async () => {
  expect(await run(["erase", "--yes", "example.com"])).toMatchObject({
    status: 2,
    err: 'postwarden: "example.com" is not an address.',
  });
});

test("an address that was left in free pages is found, and compact removes it", async () => {
  const trace = "deleted.before@example.com";
  withSqlite((sqlite) => {
    sqlite.run("PRAGMA secure_delete = OFF");
    sqlite.query("INSERT INTO dmarc_raw VALUES ('trace', ?)").run(Buffer.from(trace.repeat(2_000)));
    sqlite.run("DELETE FROM dmarc_raw WHERE ingestion = 'trace'");
  });
  expect(await run(["erase", "--yes", trace])).toMatchObject({
    status: 1,
    err: expect.stringContaining(
      `Unused space of ${path} contains the address. Stop the server and run: postwarden compact`,
    ),
  });
  expect((await run(["compact"])).status).toBe(0);
  expect((await run(["erase", "--yes", trace])).status).toBe(0);
});

test("an address that SQLite left where it moved a row is removed without downtime", async () => {
  await run(["migrate"]);
  const emailOf = (n: number): string =>
    `moved${Bun.hash(String(n)).toString(36)}@${n % 2 === 0 ? "doomed" : "kept"}-${n % 50}.example`;
  withSqlite((sqlite) => {
    sqlite.run("PRAGMA secure_delete = ON");
    sqlite.run("CREATE TABLE moved (id TEXT PRIMARY KEY, email TEXT, more TEXT) WITHOUT ROWID");
    sqlite.run("CREATE INDEX moved_by_email ON moved (email)");
    const [add, remove] = ["INSERT INTO moved VALUES (?, ?, ?)", "DELETE FROM moved WHERE email = ?"].map((sql) =>
      sqlite.prepare(sql),
    );
    sqlite.transaction(() => {
      for (let n = 0; n < 12_000; n++) add?.run(Bun.hash(String(n)).toString(36), emailOf(n), "x".repeat((n % 4) * 30));
    })();
    for (let n = 0; n < 12_000; n += 400)
      sqlite.transaction(() => {
        for (let step = 0; step < 400; step += 2) remove?.run(emailOf(n + step));
      })();
    sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  });
  const [left] = readFileSync(path, "latin1").match(/moved\w+@doomed-\d+\.example/) ?? [];
  expect(left).toBeString();
  expect((await run(["erase", "--yes", left ?? ""])).status).toBe(0);
  expect(readFileSync(path, "latin1")).not.toContain("@doomed-");
  withSqlite((sqlite) => sqlite.run("DROP TABLE moved"));
});

test("the audit log has the counts of an erasure, never the address", async () => {
  await run(["erase", "--yes", ADDRESS]);
  const { entries } = (await run(["audit", "--json"])).json as { entries: { action: string; after: object }[] };
  expect(entries[0]).toMatchObject({ action: "erase.done", after: { verifications: 0, list_rows: 0 } });
  expect(entries[1]).toMatchObject({ action: "erase", subject: null, after: null });
  expect(JSON.stringify(entries).toLowerCase()).not.toContain(NORMALIZED);
  expect((await run(["audit"])).out).toContain("list_rows 0, report_mails 0, rows_removed none, fields_redacted none");
});

test("the audit log changes by an erasure only", async () => {
  await run(["migrate"]);
  withSqlite((sqlite) => {
    for (const change of ["action = 'x'", "after = NULL", "subject = 'x'", "after = '[erased]', user = 'x'"])
      expect(() => sqlite.run(`UPDATE audit_log SET ${change}`)).toThrow("append-only");
    sqlite.run("UPDATE audit_log SET after = '[erased]'");
  });
});

test("asks on a terminal, shows what is found, and erases nothing without the address typed again", async () => {
  await run(["suppress", "add", "asked@example.com"]);
  const asked = await run(["erase", "asked@example.com"]);
  expect(asked.status).toBe(1);
  expect(asked.err).toContain("Found: 1 in suppressions.");
  expect(asked.err).toContain("Not confirmed: nothing was erased.");
  expect((await run(["suppress", "list"])).out).toContain("asked@example.com");
  expect((await run(["erase", "asked@example.com", "--drop-suppression"], { stdin: [] })).status).toBe(0);
  expect((await run(["suppress", "list"])).out).not.toContain("asked@example.com");
});
