import { expect, spyOn, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../foundation/base/clock.ts";
import { AccountsSlice } from "../accounts/open.ts";
import { createCommandLine } from "../testing/command-line.ts";
import { openDatabaseAt } from "./data-directory.ts";

const { dataDir, run } = createCommandLine();
const path = join(dataDir, "postwarden.db");

const withSqlite = <T>(work: (sqlite: Sqlite) => T): T => {
  const sqlite = new Sqlite(path);
  try {
    sqlite.run("PRAGMA foreign_keys = OFF");
    return work(sqlite);
  } finally {
    sqlite.close();
  }
};

const idOf = async (name: string): Promise<string> => String((await run(["accounts", "show", name, "--json"])).json.id);

interface Column {
  readonly name: string;
  readonly type: string;
}

const FIXED: Readonly<Record<string, string | number>> = {
  ...{ mode: "live", recipients: "[]", alerts: "{}", alert_thresholds: "{}", source_rules: "[]", findings: "[]" },
  ...{ bulk_senders: "[]", tags: "[]", hidden_steps: "[]" },
};
const STATUS: Readonly<Record<string, string>> = {
  ...{ verifications: "pending", bulk_jobs: "completed", dmarc_ingestions: "done", dmarc_domains: "active" },
};

/** A row of an account in every table that has accounts, and rows that belong to those. */
const fill = (sqlite: Sqlite, account: string): void => {
  const tables = sqlite
    .query<{ name: string }, []>(
      "SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c WHERE c.name = 'account_id' AND m.type = 'table'",
    )
    .all()
    .filter(({ name }) => name !== "ledger" && name !== "audit_log");
  for (const { name } of tables) insert(sqlite, name, { account_id: account, key_id: `key-${account}` });
  const [job, domain] = ["bulk_jobs", "dmarc_domains"].map((table) =>
    sqlite.query<{ number: number }, [string]>(`SELECT number FROM ${table} WHERE account_id = ?`).get(account),
  );
  for (const table of ["bulk_rows", "bulk_addresses", "bulk_evidence", "bulk_counts"])
    insert(sqlite, table, { job: job?.number ?? 0, id: `${table}-${account}` });
  for (const table of ["dmarc_reports", "dmarc_sources", "dmarc_history", "dmarc_alerts", "dmarc_failure_reports"])
    insert(sqlite, table, { domain: domain?.number ?? 0, id: `${table}-${account}`, number: null });
  insert(sqlite, "verification_evidence", { verification_id: `verifications-${account}` });
  for (const table of ["dmarc_raw", "dmarc_raw_chunks"])
    insert(sqlite, table, { ingestion: `dmarc_ingestions-${account}` });
  for (const table of ["blocklist_checks", "blocklist_listings", "blocklist_mutes"])
    insert(sqlite, table, { id: `${table}-${account}`, target_id: `blocklist_targets-${account}` });
};

const insert = (sqlite: Sqlite, table: string, given: Readonly<Record<string, string | number | null>>): void => {
  const columns = sqlite.query<Column, []>(`PRAGMA table_info(${table})`).all();
  const values = columns.map(({ name, type }) => {
    if (given[name] !== undefined) return given[name];
    if (FIXED[name] !== undefined) return FIXED[name];
    if (name === "status") return STATUS[table] ?? "done";
    if (name === "number" || name === "deleted_at_ms") return null;
    // SQLite numbers the rows itself.
    if (name === "id" && type.toLowerCase() === "integer") return null;
    return type.toLowerCase() === "text" ? `${table}-${given.account_id ?? "x"}` : 1;
  });
  sqlite.query(`INSERT INTO ${table} VALUES (${columns.map(() => "?").join(", ")})`).run(...values);
};

/** How many rows each table has, without empty ones. */
const counts = (sqlite: Sqlite): Record<string, number> => {
  const tables = sqlite.query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const all = tables.map(({ name }) => [
    name,
    sqlite.query<{ n: number }, []>(`SELECT count(*) AS n FROM ${name}`).get()?.n ?? 0,
  ]);
  return Object.fromEntries(all.filter(([name, n]) => n !== 0 && !String(name).startsWith("sqlite")));
};

test("an account is deleted with all its rows; its ledger keeps the amounts, and other accounts everything", async () => {
  for (const name of ["acme", "other"]) await run(["accounts", "create", name]);
  await run(["credits", "grant", "acme", "50", "--note", "paid by Ada"]);
  const { key } = (await run(["keys", "create", "--account", "acme", "--mode", "live", "--json"])).json;
  const [acme, other] = [await idOf("acme"), await idOf("other")];
  const before = withSqlite((sqlite) => {
    fill(sqlite, other);
    const without = counts(sqlite);
    fill(sqlite, acme);
    sqlite.run(
      "INSERT INTO ledger (account_id, kind, available, held, reference, at_ms) VALUES (?, 'hold', -1, 1, ?, 1)",
      [acme, `verifications-${acme}`],
    );
    sqlite.run("UPDATE accounts SET credits_available = 149, credits_held = 1 WHERE id = ?", [acme]);
    return without;
  });

  const { status, json } = await run(["accounts", "delete", "acme", "--yes", "--json"]);
  expect(status).toBe(0);
  expect(json).toMatchObject({ account: "acme", id: acme, verifications: 1, lists: 1, report_mails: 1, left: [] });
  withSqlite((sqlite) => {
    // Made before the other rows of the account, but its own.
    const { api_keys: keys = 0, key_secrets: _secrets, ledger: entries = 0, audit_log: actions = 0, ...rest } = before;
    expect(counts(sqlite)).toEqual({ ...rest, api_keys: keys - 1, ledger: entries + 2, audit_log: actions + 2 });
    expect(
      sqlite.query("SELECT name, credits_available AS a, credits_held AS h FROM accounts WHERE id = ?").get(acme),
    ).toEqual({ name: `deleted-${acme}`, a: 150, h: 0 });
    expect(sqlite.query("SELECT kind, available, held, note FROM ledger WHERE account_id = ?").all(acme)).toEqual([
      { kind: "grant", available: 100, held: 0, note: null },
      { kind: "grant", available: 50, held: 0, note: null },
      { kind: "hold", available: -1, held: 1, note: null },
      { kind: "release", available: 1, held: -1, note: null },
    ]);
  });
  expect((await run(["accounts", "list"])).out).not.toContain("deleted-");
  expect(await run(["accounts", "show", "acme"])).toMatchObject({ status: 1 });
  const db = openDatabaseAt(path);
  expect(new AccountsSlice({ db, clock: systemClock }).authenticate(`Bearer ${String(key)}`)).toBeUndefined();
  db.close();
  expect((await run(["accounts", "create", "acme"])).status).toBe(0);
});

/** Checks of two accounts in turn, with IDs in no order, so that the deletion of one splits and joins pages everywhere. */
const addChecks = (sqlite: Sqlite, accounts: readonly string[], count: number): void =>
  sqlite.transaction(() => {
    for (let n = 0; n < count; n++) {
      const account = accounts[n % accounts.length] ?? "";
      const [id, email] = [Bun.hash(account + String(n)).toString(36), `user${n}@${account}.example`];
      const check = { id, account_id: account, key_id: `key-${account}`, email, normalized_email: email };
      insert(sqlite, "verifications", { ...check, status: "completed" });
      insert(sqlite, "verification_evidence", { verification_id: id, body: `{"email":"${email}"}` });
    }
  })();
const addressesIn = (file: string, account: string): number =>
  new Set(readFileSync(file, "latin1").match(new RegExp(`user\\d+@${account}`, "g"))).size;

test("nothing of a deleted account is left in the file, nor in its log", async () => {
  for (const name of ["gone", "stays"]) await run(["accounts", "create", name]);
  const [gone, stays] = [await idOf("gone"), await idOf("stays")];
  withSqlite((sqlite) => addChecks(sqlite, [gone, stays], 6_000));
  // The log stays while a connection is open.
  const beside = new Sqlite(path, { readonly: true });
  beside.query("SELECT count(*) FROM accounts").get();
  expect((await run(["accounts", "delete", "gone", "--yes", "--json"])).json).toMatchObject({
    ...{ verifications: 3_000, unused_space: "cleared" },
  });
  expect([path, `${path}-wal`].map((file) => addressesIn(file, gone))).toEqual([0, 0]);
  expect(addressesIn(path, stays)).toBe(3_000);
  beside.close();
  withSqlite((sqlite) => expect(sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" }));
}, 60_000);

test("while another program reads the database, the command says how long deleted data may be left", async () => {
  for (const name of ["gone", "read"]) await run(["accounts", "create", name, "--json"]);
  const id = await idOf("read");
  withSqlite((sqlite) => addChecks(sqlite, [id], 200));
  const reader = new Sqlite(path, { readonly: true });
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM accounts").get();
  // The waits between its tries are over in the next turn.
  const waits: number[] = [];
  const after = spyOn(systemClock, "after").mockImplementation((ms, task) => {
    waits.push(ms);
    setImmediate(task);
    return () => undefined;
  });
  const { status, err } = await run(["accounts", "delete", "read", "--yes"]);
  after.mockRestore();
  reader.close();
  expect(waits.reduce((sum, ms) => sum + ms, 0)).toBeGreaterThanOrEqual(5_000);
  expect([status, err]).toEqual([
    0,
    `postwarden: warning: Another program, such as a backup or Litestream, is reading ${path}: its unused space may contain deleted data until a purge (03:07 UTC) finds no such reader.`,
  ]);
}, 60_000);

test("a deletion that was interrupted continues under the name that the account has then", async () => {
  await run(["accounts", "create", "half"]);
  const id = await idOf("half");
  expect((await run(["accounts", "delete", "half", "--yes"])).out).toContain(
    `Its ledger stays, without notes, as deleted-${id}.`,
  );
  withSqlite((sqlite) => insert(sqlite, "outbox", { account_id: id, id: "late" }));
  expect((await run(["accounts", "delete", `deleted-${id}`, "--yes", "--json"])).json).toMatchObject({ other_rows: 1 });
});

test("a list that is being received and mails that wait to be read are left, and the command says so", async () => {
  await run(["accounts", "create", "busy"]);
  const id = await idOf("busy");
  withSqlite((sqlite) => {
    insert(sqlite, "bulk_jobs", { account_id: id, id: "receiving-1", status: "receiving", reading: null });
    insert(sqlite, "dmarc_ingestions", { account_id: id, id: "pending-1", status: "pending" });
  });
  const { status, err } = await run(["accounts", "delete", "busy", "--yes"]);
  expect([status, err]).toEqual([
    1,
    `postwarden: A list of the account is being received. Report mails of the account wait to be read. Run in a few minutes: postwarden accounts delete deleted-${id}`,
  ]);
  withSqlite((sqlite) => {
    sqlite.run("UPDATE bulk_jobs SET status = 'running' WHERE id = 'receiving-1'");
    sqlite.run("UPDATE dmarc_ingestions SET status = 'done' WHERE id = 'pending-1'");
  });
  expect((await run(["accounts", "delete", `deleted-${id}`, "--yes", "--json"])).json).toMatchObject({
    ...{ lists: 1, report_mails: 1, left: [] },
  });
});

test("an unfinished list of a deleted account gives back the credits that it held", async () => {
  await run(["accounts", "create", "halfway"]);
  const id = await idOf("halfway");
  withSqlite((sqlite) => {
    const given = { id: "halfway-1", status: "running", reading: null, round: 0 };
    insert(sqlite, "bulk_jobs", { ...given, account_id: id, addresses_total: 3, addresses_finished: 1 });
    sqlite.run(
      "INSERT INTO ledger (account_id, kind, available, held, reference, at_ms) VALUES (?, 'hold', -2, 2, 'halfway-1', 1)",
      [id],
    );
    sqlite.run("UPDATE accounts SET credits_available = 98, credits_held = 2 WHERE id = ?", [id]);
  });
  expect((await run(["accounts", "delete", "halfway", "--yes", "--json"])).json).toMatchObject({ lists: 1, left: [] });
  withSqlite((sqlite) =>
    expect(
      sqlite.query("SELECT credits_available AS available, credits_held AS held FROM accounts WHERE id = ?").get(id),
    ).toEqual({ available: 100, held: 0 }),
  );
});

test("the name has to be typed, or --yes given", async () => {
  await run(["accounts", "create", "careful"]);
  for (const stdin of [["carefull"], ["yes"], []]) {
    expect(await run(["accounts", "delete", "careful"], { stdin })).toMatchObject({
      status: 1,
      err: expect.stringContaining("Not confirmed: nothing was deleted. Scripts pass --yes."),
    });
  }
  expect((await run(["accounts", "show", "careful"])).status).toBe(0);
  expect((await run(["accounts", "delete", "careful"], { stdin: ["careful"] })).status).toBe(0);
  expect(await run(["accounts", "delete", "careful", "--yes"])).toMatchObject({
    status: 1,
    err: expect.stringContaining('There is no account "careful".'),
  });
});

test("without a database nothing is created", async () => {
  const elsewhere = join(dataDir, "none");
  expect((await run(["accounts", "delete", "acme", "--yes", "--data-dir", elsewhere])).status).toBe(1);
  expect(existsSync(elsewhere)).toBe(false);
});
