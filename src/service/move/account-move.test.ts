import { Database as Sqlite } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { copyFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AccountsSlice } from "../../accounts/open.ts";
import { systemClock } from "../../foundation/base/clock.ts";
import { MIGRATIONS } from "../../foundation/db/migrations.ts";
import { type Db, openDb } from "../../foundation/db/open.ts";
import { copyAccount } from "../../testing/account-copy.ts";
import { rowsChangedBy, watchOthers } from "../../testing/other-account.ts";
import { ownerOf } from "../../testing/row-owners.ts";
import { fillTables } from "../../testing/upgrade-rows.ts";
import { writeAccountFile } from "./account-file.ts";
import { movedTables, STAYING } from "./moved-tables.ts";
import { AccountTaking } from "./take-account.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-move-"));
afterAll(() => rmSync(folder, { recursive: true }));
let files = 0;
const newFile = (): string => join(folder, `${++files}.account`);

const openMemory = (): Db => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  fillTables(opened.value.sqlite, "{}");
  return opened.value;
};

/** What an account that is to be moved has no more. */
const END_WORK = [
  "UPDATE verifications SET status = 'completed', due_at_ms = NULL",
  "UPDATE outbox SET delivered_at_ms = 1",
  "UPDATE webhook_deliveries SET status = 'delivered', due_at_ms = NULL",
  "UPDATE dmarc_ingestions SET status = 'done', domain = (SELECT number FROM dmarc_domains LIMIT 1)",
  "DELETE FROM bulk_mails",
  "DELETE FROM blocklist_alerts",
  "DELETE FROM dmarc_alert_mails",
  "DELETE FROM blocklist_removed_targets",
  "UPDATE accounts SET disabled_at_ms = 1",
];
const QUEUES = ["bulk_mails", "blocklist_alerts", "dmarc_alert_mails", "blocklist_removed_targets"];

/** A database with a row in every table, and a copy of each in a second account, which has no open work. */
const openSource = () => {
  const db = openMemory();
  const { sqlite } = db;
  for (const sql of END_WORK) sqlite.run(sql);
  // Reports of an unknown reporter.
  for (const table of ["dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"])
    sqlite.run(`UPDATE ${table} SET is_trusted = (SELECT number + 1 FROM dmarc_reporters)`);
  const id = copyAccount(sqlite, "account-1", { toNewAccount: true });
  const [domain, reporter] = ["dmarc_domains", "dmarc_reporters"].map(
    (table) => sqlite.query<{ n: number }, []>(`SELECT max(number) AS n FROM ${table}`).get()?.n ?? 0,
  );
  // The copy does not know this reference.
  for (const table of ["dmarc_daily", "dmarc_daily_reporters", "dmarc_daily_names"])
    sqlite.run(`UPDATE ${table} SET is_trusted = ? + 1 WHERE domain = ?`, [reporter ?? 0, domain ?? 0]);
  // The triggers replaced only what they had made of the daily counts.
  sqlite.run("UPDATE dmarc_weekly SET is_trusted = 1 WHERE week = 1");
  const name = sqlite.query<{ name: string }, [string]>("SELECT name FROM accounts WHERE id = ?").get(id)?.name ?? "";
  return { db, sqlite, account: { id, name } };
};

type Row = Readonly<Record<string, string | number | null>>;

const rowsOf = (sqlite: Sqlite, table: string, id: string): readonly Row[] => {
  const owner = ownerOf(sqlite, table)?.account ?? "NULL";
  return sqlite.query<Row, [string]>(`SELECT * FROM "${table}" WHERE ${owner} = ?`).all(id);
};

/** Every row of an account, with the place of the row that a number stands for instead of the number. */
const contentOf = (sqlite: Sqlite, id: string): Readonly<Record<string, readonly string[]>> => {
  const tables = movedTables(sqlite);
  const places = new Map(
    tables.flatMap(({ name, key }) => {
      const numbers = key === null ? [] : rowsOf(sqlite, name, id).map((row) => Number(row[key]));
      return numbers.toSorted((a, b) => a - b).map((number, at) => [`${name} ${number}`, `${name} ${at}`]);
    }),
  );
  const plain = ({ name: table, columns }: (typeof tables)[number], row: Row): string =>
    JSON.stringify(
      columns.map(({ name, numbers }) => {
        const value = row[name] ?? null;
        if (`${table}.${name}` === "users.is_operator") return 0;
        if (numbers === null || value === null || (numbers.isVoucher && Number(value) < 2)) return value;
        return places.get(`${numbers.table} ${Number(value) - (numbers.isVoucher ? 1 : 0)}`) ?? "stands for nothing";
      }),
    );
  return Object.fromEntries(
    tables.map((table) => [
      table.name,
      rowsOf(sqlite, table.name, id)
        .map((row) => plain(table, row))
        .toSorted(),
    ]),
  );
};

const take = (db: Db, file: string) =>
  new AccountTaking(db, new AccountsSlice({ db, clock: systemClock }).audit).run(file);

test("the numbers that each instance gives are known, with all that stand for them", () => {
  const { sqlite } = openMemory();
  const numbered = movedTables(sqlite).flatMap(({ name, columns }) =>
    columns.flatMap((column) => (column.numbers === null ? [] : [[`${name}.${column.name}`, column.numbers.table]])),
  );
  const standsFor = (table: string) => numbered.filter(([, of]) => of === table).map(([column]) => column);
  expect(
    Object.fromEntries([...new Set(numbered.map(([, of]) => String(of)))].toSorted().map((of) => [of, standsFor(of)])),
  ).toMatchInlineSnapshot(`
    {
      "audit_log": [
        "audit_log.id",
      ],
      "bulk_jobs": [
        "bulk_addresses.job",
        "bulk_counts.job",
        "bulk_evidence.job",
        "bulk_jobs.number",
        "bulk_mails.job",
        "bulk_rows.job",
        "bulk_troubles.job",
      ],
      "dmarc_domains": [
        "dmarc_alerts.domain",
        "dmarc_daily.domain",
        "dmarc_daily_names.domain",
        "dmarc_daily_reporters.domain",
        "dmarc_domains.number",
        "dmarc_failure_reports.domain",
        "dmarc_health.domain",
        "dmarc_history.domain",
        "dmarc_ingestions.domain",
        "dmarc_mta_sts.domain",
        "dmarc_names.domain",
        "dmarc_overviews.domain",
        "dmarc_record_history.domain",
        "dmarc_records.domain",
        "dmarc_report_authors.domain",
        "dmarc_reporters.domain",
        "dmarc_reports.domain",
        "dmarc_shares.domain",
        "dmarc_source_words.domain",
        "dmarc_sources.domain",
        "dmarc_tls_reports.domain",
        "dmarc_weekly.domain",
      ],
      "dmarc_reporters": [
        "dmarc_daily.is_trusted",
        "dmarc_daily_names.is_trusted",
        "dmarc_daily_reporters.is_trusted",
        "dmarc_reporters.number",
        "dmarc_reports.voucher",
        "dmarc_tls_reports.voucher",
        "dmarc_weekly.is_trusted",
      ],
      "dmarc_reports": [
        "dmarc_records.report",
        "dmarc_reports.number",
      ],
      "dmarc_sources": [
        "dmarc_daily.source",
        "dmarc_records.source",
        "dmarc_sources.number",
        "dmarc_weekly.source",
      ],
      "ledger": [
        "ledger.id",
      ],
      "webhook_attempts": [
        "webhook_attempts.id",
      ],
    }
  `);
});

test("every row of an account arrives, what stands for it too, and nothing of others changes on both sides", async () => {
  const { db, sqlite, account } = openSource();
  const before = contentOf(sqlite, account.id);
  const empty = Object.entries(before)
    .filter(([, rows]) => rows.length === 0)
    .map(([table]) => table);
  expect(empty.toSorted()).toEqual(QUEUES.toSorted());
  expect(JSON.stringify(before)).not.toContain("stands for nothing");
  const file = newFile();
  const written = await rowsChangedBy(sqlite, () => writeAccountFile(db, account, file));
  expect([written.value.ok, written.rows]).toEqual([true, []]);
  expect(readdirSync(folder).filter((name) => name.includes("partial"))).toEqual([]);

  const other = openMemory();
  const taken = await watchOthers(other.sqlite, { accountId: account.id }, () => take(other, file));
  expect(taken.value).toEqual(written.value);
  // Beside the rows of the file, its own entry in the audit log.
  const { audit_log: [...entries] = [], ...arrived } = contentOf(other.sqlite, account.id);
  const { audit_log: former, ...rest } = before;
  expect(arrived).toEqual(rest);
  expect(entries).toHaveLength((former?.length ?? 0) + 1);
  expect(other.sqlite.query("SELECT name FROM sqlite_schema WHERE name LIKE 'moved%'").all()).toEqual([]);
  for (const table of Object.keys(STAYING))
    expect([table, rowsOf(other.sqlite, table, account.id)]).toEqual([table, []]);
  expect(other.sqlite.query("PRAGMA foreign_key_check").all()).toEqual([]);
  expect(other.sqlite.query("SELECT is_operator FROM users WHERE account_id = ?").all(account.id)).toEqual([
    { is_operator: 0 },
  ]);
});

test("numbers whose rows have expired stand for nothing of others", () => {
  const { db, sqlite, account } = openSource();
  const reads =
    "SELECT d.source, d.is_trusted FROM dmarc_daily d JOIN dmarc_domains o ON o.number = d.domain WHERE o.account_id = ?";
  sqlite.run(
    "UPDATE dmarc_daily SET source = 1, is_trusted = 2 WHERE domain IN (SELECT number FROM dmarc_domains WHERE account_id = ?)",
    [account.id],
  );
  const file = newFile();
  expect(writeAccountFile(db, account, file).ok).toBe(true);
  const other = openMemory();
  const last = (table: string) =>
    other.sqlite.query<{ n: number }, []>(`SELECT max(number) AS n FROM ${table}`).get()?.n ?? 0;
  const [source, reporter] = [last("dmarc_sources"), last("dmarc_reporters")];
  expect(take(other, file).ok).toBe(true);
  const [row] = other.sqlite.query<{ source: number; is_trusted: number }, [string]>(reads).all(account.id);
  expect(row?.source).toBeGreaterThan(source);
  expect(row?.is_trusted).toBeGreaterThan(reporter + 1);
  const owned = other.sqlite.query("SELECT 1 FROM dmarc_sources WHERE number = ?").all(row?.source ?? 0);
  expect(owned).toEqual([]);
});

describe("an account is not written", () => {
  test.each([
    [
      "1 pending verifications",
      "UPDATE verifications SET status = 'pending' WHERE rowid = (SELECT max(rowid) FROM verifications)",
    ],
    [
      "1 unfinished lists",
      "UPDATE bulk_jobs SET status = 'running' WHERE number = (SELECT max(number) FROM bulk_jobs)",
    ],
    ["1 unfinished lists", "UPDATE bulk_jobs SET is_resetting = 1 WHERE number = (SELECT max(number) FROM bulk_jobs)"],
    [
      "1 unread report mails",
      "UPDATE dmarc_ingestions SET status = 'pending' WHERE rowid = (SELECT max(rowid) FROM dmarc_ingestions)",
    ],
    [
      "1 events without deliveries",
      "UPDATE outbox SET delivered_at_ms = NULL WHERE rowid = (SELECT max(rowid) FROM outbox)",
    ],
    [
      "1 waiting webhooks (`postwarden webhooks cancel` ends them)",
      "UPDATE webhook_deliveries SET status = 'pending' WHERE rowid = (SELECT max(rowid) FROM webhook_deliveries)",
    ],
    [
      "1 waiting mails",
      "INSERT INTO dmarc_alert_mails SELECT 'x', 'a@b.example', 'digest:' || max(number) || ':daily:1:2', 1 FROM dmarc_domains",
    ],
    [
      "1 waiting mails",
      "INSERT INTO dmarc_alert_mails SELECT 'x', 'a@b.example', id, 1 FROM dmarc_alerts ORDER BY rowid DESC LIMIT 1",
    ],
    [
      "1 removed targets and domains whose history is still being deleted",
      "UPDATE dmarc_domains SET deleted_at_ms = 1 WHERE number = (SELECT max(number) FROM dmarc_domains)",
    ],
  ])("with %s", (work, sql) => {
    const { db, sqlite, account } = openSource();
    sqlite.run(sql);
    const file = newFile();
    expect(writeAccountFile(db, account, file)).toEqual({ ok: false, error: { kind: "open_work", work: [work] } });
    expect(existsSync(file)).toBe(false);
  });

  test("while it is enabled, and over another file", () => {
    const { db, sqlite, account } = openSource();
    const file = newFile();
    const enableAt = (atMs: number | null) => sqlite.run("UPDATE accounts SET disabled_at_ms = ?", [atMs]);
    enableAt(null);
    expect(writeAccountFile(db, account, file)).toMatchObject({ ok: false, error: { kind: "enabled" } });
    expect(existsSync(file)).toBe(false);
    enableAt(1);
    writeFileSync(file, "mine");
    expect(writeAccountFile(db, account, file)).toMatchObject({ ok: false, error: { kind: "file_exists" } });
    expect(readFileSync(file, "utf8")).toBe("mine");
  });
});

describe("an account is not taken", () => {
  const { db, account } = openSource();
  const file = newFile();
  writeAccountFile(db, account, file);

  /** A copy of the file, without its checksum, that was changed. */
  const changed = (sql: string): string => {
    const copy = newFile();
    copyFileSync(file, copy);
    const sqlite = new Sqlite(copy);
    for (const statement of sql.split(" && ")) sqlite.run(statement);
    sqlite.close();
    return copy;
  };
  const refused = (from: string, other: Db) => {
    const before = other.sqlite.serialize();
    const taken = take(other, from);
    expect(before.equals(other.sqlite.serialize())).toBe(true);
    return taken.ok ? "taken" : taken.error;
  };

  test("from what is no such file, or damaged", () => {
    const other = openMemory();
    const text = newFile();
    writeFileSync(text, "no database".repeat(1_000));
    const flipped = newFile();
    const bytes = readFileSync(file);
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 20) ^ 1, bytes.length - 20);
    writeFileSync(flipped, bytes);
    copyFileSync(`${file}.sha256`, `${flipped}.sha256`);
    const cut = newFile();
    writeFileSync(cut, bytes.subarray(0, bytes.length / 2));
    const damaged = (detail: string) => ({ kind: "damaged", detail });
    const CASES: ReadonlyArray<readonly [from: string, problem: unknown]> = [
      [folder, { kind: "no_account_file" }],
      [text, { kind: "no_account_file" }],
      [changed("PRAGMA application_id = 0"), { kind: "no_account_file" }],
      [changed("PRAGMA user_version = 3"), { kind: "other_schema", has: 3, knows: MIGRATIONS.length }],
      [flipped, damaged(`it does not match ${flipped}.sha256`)],
      [cut, damaged("database disk image is malformed")],
      [changed("UPDATE moved_account SET manifest = '{}'"), damaged("it does not say whose rows it has")],
      [changed("DROP TABLE ledger"), damaged("the columns of ledger are others")],
      [changed("UPDATE ledger SET available = available + 1"), damaged("ledger.available: the sums differ")],
      [changed("DELETE FROM bulk_rows"), damaged("bulk_rows: 0 rows, 2 on the other side")],
      [
        changed("UPDATE verifications SET account_id = 'account-1'"),
        damaged("verification_evidence has rows of another account"),
      ],
      [
        changed(`UPDATE moved_account SET manifest = replace(manifest, '"name":"', '"name":"x')`),
        damaged("it does not have one account"),
      ],
      [changed("CREATE TRIGGER t AFTER INSERT ON ledger BEGIN SELECT 1; END"), damaged("it has t, which is no table")],
      [changed("DROP TABLE ledger && CREATE VIEW ledger AS SELECT 1"), damaged("it has ledger, which is no table")],
    ];
    for (const [from, problem] of CASES) expect([from, refused(from, other)]).toEqual([from, problem as never]);
  });

  test("over what is there already", () => {
    const { id, name } = account;
    const add =
      (sql: string, ...values: readonly string[]) =>
      (sqlite: Sqlite) =>
        void sqlite.run(sql, [...values]);
    const addAccount =
      "INSERT INTO accounts (id, name, plan, created_at_ms, deleted_at_ms) VALUES (?, ?, 'free', 1, ?)";
    const from = db.sqlite
      .query<{ email: string; token: string; hash: string }, [string]>(
        `SELECT (SELECT email FROM users WHERE account_id = ?1) AS email, (SELECT token FROM dmarc_domains WHERE account_id = ?1) AS token,
        (SELECT s.hash FROM key_secrets s JOIN api_keys k ON k.id = s.key_id WHERE k.account_id = ?1) AS hash`,
      )
      .get(id);
    const CASES: ReadonlyArray<readonly [before: (sqlite: Sqlite) => void, problem: unknown]> = [
      [
        (sqlite) => void sqlite.run(addAccount, [id, "former", null]),
        { kind: "account_exists", name, isDeleted: false },
      ],
      [(sqlite) => void sqlite.run(addAccount, [id, "deleted", 1]), { kind: "account_exists", name, isDeleted: true }],
      [(sqlite) => void sqlite.run(addAccount, ["other", name, null]), { kind: "name_exists", name }],
      [add("UPDATE users SET email = ?", from?.email ?? ""), { kind: "users_exist", emails: [from?.email] }],
      [add("UPDATE key_secrets SET hash = ? WHERE rowid = 1", from?.hash ?? ""), { kind: "keys_exist", keys: 1 }],
      [
        add("UPDATE dmarc_domains SET token = ?", from?.token ?? ""),
        { kind: "row_exists", detail: "UNIQUE constraint failed: dmarc_domains.token" },
      ],
    ];
    for (const [before, problem] of CASES) {
      const other = openMemory();
      before(other.sqlite);
      expect(refused(file, other)).toEqual(problem as never);
      expect(other.sqlite.inTransaction).toBe(false);
    }
    const other = openMemory();
    expect(take(other, file).ok).toBe(true);
    expect(refused(file, other)).toEqual({ kind: "account_exists", name, isDeleted: false });
  });
});
