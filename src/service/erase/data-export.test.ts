import { describe, expect, test } from "bun:test";
import { createFullAccounts } from "../../testing/full-account.ts";
import { createApps } from "../../testing/app.ts";
import { copyAccount } from "../../testing/account-copy.ts";
import { ownerOf } from "../../testing/row-owners.ts";
import { tablesOf } from "../../testing/upgrade-rows.ts";
import { evidenceWith } from "../../testing/evidence.ts";
import { packEvidence } from "../../verify/store.ts";
import { unzipped } from "../../testing/zip.ts";
import type { Db } from "../../foundation/db/open.ts";
import { IngestionStore } from "../../dmarc/reports/ingest/ingestion-store.ts";
import { newId } from "../../foundation/base/secrets.ts";
import { createAddressPattern } from "./address-pattern.ts";
import { type ExportSubject, writeExport } from "./data-export.ts";
import { openAddressSearch } from "./open.ts";
import { isSecretColumn, StoredRows } from "./stored-rows.ts";

const startAccount = createFullAccounts(createApps());
const ADDRESS = "mailbox_exists@a.example";
const NOW_MS = Date.UTC(2026, 0, 2, 3, 4, 6);

const exported = async (db: Db, subject: ExportSubject) => {
  const pieces: Uint8Array[] = [];
  for await (const piece of writeExport(db, subject, NOW_MS)) pieces.push(piece);
  return unzipped(Buffer.concat(pieces));
};

const rowsIn = (files: ReadonlyMap<string, string>, table: string): Array<Record<string, unknown>> =>
  JSON.parse(files.get(`${table}.json`) ?? "[]");

/** An account with everything, beside another with copies of all its rows. */
const begin = async () => {
  const { app, verification } = await startAccount();
  const { sqlite } = app.db;
  const base = evidenceWith();
  const evidence = packEvidence({ ...base, address: { ...base.address, normalized_email: ADDRESS } });
  sqlite.query("INSERT INTO verification_evidence VALUES (?, ?)").run(String(verification), evidence);
  copyAccount(sqlite, app.accountId(), { toNewAccount: true });
  return { app, sqlite, db: app.db, accountId: app.accountId() };
};

describe("the export of an account", () => {
  test("has every row of the account, and none of another", async () => {
    const { db, sqlite, accountId } = await begin();
    const files = await exported(db, { accountId, address: null });
    expect(files.get("about.txt")).toContain(`of the account ${accountId}`);
    for (const table of tablesOf(sqlite)) {
      const owner = ownerOf(sqlite, table);
      const count =
        owner === null
          ? 0
          : sqlite
              .query<{ n: number }, [string]>(`SELECT count(*) AS n FROM "${table}" WHERE ${owner.account} = ?`)
              .get(accountId)?.n;
      expect([table, rowsIn(files, table).length]).toEqual([table, count ?? 0]);
    }
    const others = sqlite
      .query<{ id: string }, [string]>("SELECT id FROM accounts WHERE id <> ?")
      .all(accountId)
      .map(({ id }) => id);
    expect(others.length).toBeGreaterThan(1);
    const text = [...files.values()].join("");
    for (const id of others) expect(text).not.toContain(id);
    expect(files.size).toBeGreaterThan(25);
  });

  test("has no secret, and times, days, JSON and evidence that a person can read", async () => {
    const { db, accountId } = await begin();
    const text = [...(await exported(db, { accountId, address: null })).entries()];
    for (const [name, content] of text) {
      if (!name.endsWith(".json")) continue;
      for (const column of [
        "password_hash",
        "totp_secret",
        "recovery_codes",
        "csrf_token",
        "request_hash",
        "secret",
        '"hash"',
      ])
        expect([name, content.includes(`"${column.replaceAll('"', "")}":`)]).toEqual([name, false]);
    }
    const files = new Map(text);
    expect(rowsIn(files, "accounts")).toMatchObject([{ id: accountId, created_at: expect.stringMatching(/^\d{4}-/) }]);
    expect(rowsIn(files, "verifications")[0]).toMatchObject({ result: expect.any(Object) });
    expect(rowsIn(files, "verification_evidence")[0]).toMatchObject({ body: { address: expect.any(Object) } });
    expect(rowsIn(files, "usage_daily")[0]?.day).toMatch(/^\d{4}-\d\d-\d\d$/);
  });

  test("leaves out exactly these columns", async () => {
    const { db } = await begin();
    const left = new StoredRows(db)
      .tables()
      .flatMap(({ name, columns }) =>
        columns.filter((column) => isSecretColumn(name, column)).map((column) => `${name}.${column}`),
      );
    expect(left).toEqual([
      ...["dmarc_shares.hash", "idempotency_keys.request_hash", "key_secrets.hash", "mail_subscriptions.token"],
      ...["sessions.hash", "sessions.csrf_token", "setup_links.hash"],
      ...["users.password_hash", "users.totp_secret", "users.totp_last_counter", "users.recovery_codes"],
      "webhook_secrets.secret",
    ]);
  });
});

describe("the export of an address", () => {
  test("has the rows with the address, of one account or of all", async () => {
    const { db, accountId } = await begin();
    const own = await exported(db, { accountId, address: ADDRESS.toUpperCase() });
    const all = await exported(db, { accountId: null, address: ADDRESS });
    expect(rowsIn(own, "verifications")).toMatchObject([{ normalized_email: ADDRESS, account_id: accountId }]);
    expect(rowsIn(all, "verifications")).toHaveLength(2);
    expect(rowsIn(own, "verification_evidence")).toHaveLength(1);
    expect([...own.values()].join("")).not.toContain("pending@a.example");
  });

  test("is what the search counts", async () => {
    const { db, accountId } = await begin();
    const pattern = createAddressPattern(ADDRESS);
    if (!pattern.ok) throw new Error(pattern.error);
    const { tables } = await openAddressSearch(db, { pattern: pattern.value, accountId }).count();
    const files = await exported(db, { accountId, address: ADDRESS });
    expect(Object.keys(tables).length).toBeGreaterThan(1);
    for (const [table, count] of Object.entries(tables))
      expect([table, rowsIn(files, table).length]).toEqual([table, count]);
    expect(files.size).toBe(Object.keys(tables).length + 1);
  });

  test("has all bytes of a large report mail, as that of its account has", async () => {
    const { db, accountId } = await begin();
    const bytes = Buffer.from(`From: a@b.example\r\n\r\n${"line\r\n".repeat(400_000)}${ADDRESS}\r\n`);
    const nobody = { domain: null, name: null, client: null, helo: null, mailFrom: null };
    const mail = { ...nobody, id: newId(), accountId, mode: "live", via: "smtp", bytes } as const;
    db.transact((tx) => new IngestionStore(db).insertPending(tx, { ...mail, receivedAtMs: NOW_MS }));
    for (const address of [ADDRESS, null]) {
      const rows = rowsIn(await exported(db, { accountId, address }), "dmarc_raw");
      const stored = rows.find(({ ingestion }) => ingestion === mail.id)?.bytes;
      expect(Buffer.compare(Buffer.from(String(stored), "base64"), bytes)).toBe(0);
    }
  });

  test("of what is no address is refused", async () => {
    const { db } = await begin();
    expect(() => writeExport(db, { accountId: null, address: "nobody" }, NOW_MS)).toThrow("is not an address");
  });
});
