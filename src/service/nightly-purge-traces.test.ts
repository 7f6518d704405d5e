import { afterEach, beforeEach, expect, test } from "bun:test";
import { Database as Sqlite } from "bun:sqlite";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DAY_MS } from "../foundation/base/days.ts";
import { newId } from "../foundation/base/secrets.ts";
import { createApps, type TestApp } from "../testing/app.ts";
import { BULK_PATH } from "../testing/bulk-requests.ts";

const start = createApps();
let folder = "";
const path = () => join(folder, "a.db");

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "postwarden-traces-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const ROWS = 6_000;
/** IDs in no order, so that pages are split and joined everywhere. */
const idOf = (kind: string, n: number): string => createHash("sha256").update(`${kind}${n}`).digest("hex").slice(0, 32);
const emailOf = (n: number): string => `user${n}@${n % 2 === 0 ? "doomed" : "kept"}-${n % 50}.example`;

/** Inserts a row of some columns; the other columns have their defaults. */
const insert = ({ db }: TestApp, table: string, row: Readonly<Record<string, string | number | null>>): void => {
  const names = Object.keys(row);
  db.sqlite
    .query(`INSERT INTO ${table} (${names.join(", ")}) VALUES (${names.map(() => "?").join(", ")})`)
    .run(...Object.values(row));
};

/** Addresses of rows to delete between rows that stay: checks that ended long ago, a list, and failure reports of a domain. */
const fill = (app: TestApp) => {
  const key = app.newKey({ mode: "live" });
  const owner = { key_id: key.id, account_id: key.accountId, mode: "live", created_at_ms: 1 };
  const nowMs = app.clock.nowMs();
  const jobIds = [newId(), newId()];
  const numbers = ["doomed", "kept"].map((name, at) => {
    insert(app, "bulk_jobs", { ...owner, id: jobIds[at] ?? "", number: at + 1, status: "completed", format: "{}" });
    insert(app, "dmarc_domains", {
      ...{ number: at + 1, id: idOf("domain", at), account_id: key.accountId, mode: "live", domain: `${name}.example` },
      ...{ token: name, status: "active", recipients: "[]", alerts: "{}", digest: "none", retention_days: 400 },
      ...{ raw_retention_days: 1, next_check_at_ms: nowMs, created_at_ms: 1, updated_at_ms: 1 },
      require_authentic_reports: 0,
    });
    return at + 1;
  });
  app.db.transact(() => {
    for (let n = 0; n < ROWS; n++) {
      const [email, number] = [emailOf(n), numbers[n % 2] ?? 0];
      const id = idOf("check", n);
      const ended = { status: "completed", completed_at_ms: n % 2 === 0 ? nowMs - 500 * DAY_MS : nowMs };
      insert(app, "verifications", { ...owner, ...ended, id, email, normalized_email: email, result: "{}" });
      insert(app, "verification_evidence", { verification_id: id, body: `{"email":"${email}"}` });
      insert(app, "bulk_addresses", { job: number, position: n, email, normalized_email: email, rows: 1 });
      insert(app, "bulk_rows", { job: number, row_index: n, position: n, submitted_email: email, cells: null });
      insert(app, "dmarc_failure_reports", {
        ...{ id: idOf("report", n), domain: number, ingestion: "", received_at_ms: nowMs, is_redacted: 0 },
        ...{ body: `{"to":"${email}"}`, sameness: idOf("sameness", n) },
      });
    }
  });
  return { key, list: jobIds[0] };
};

const traces = ({ db }: TestApp): number => {
  db.sqlite.query("PRAGMA wal_checkpoint(PASSIVE)").all();
  const log = existsSync(`${path()}-wal`) ? readFileSync(`${path()}-wal`, "latin1") : "";
  return new Set((readFileSync(path(), "latin1") + log).match(/user\d+@doomed/g)).size;
};
const TABLES = ["verifications", "verification_evidence", "bulk_addresses", "bulk_rows", "dmarc_failure_reports"];
const counts = ({ db }: TestApp): unknown =>
  TABLES.map((table) => db.sqlite.query(`SELECT count(*) FROM ${table}`).values()[0]?.[0]);

test("after the nightly purge, nothing that was deleted is in the file or its log", async () => {
  const app = start({ path: path() });
  const { key, list } = fill(app);
  expect((await app.request("DELETE", `${BULK_PATH}/${list}`, { key })).status).toBe(204);
  await app.service.bulk.jobs.removed();
  app.db.sqlite.run("UPDATE dmarc_domains SET deleted_at_ms = 1 WHERE number = 1");
  for (let run = 0; run < 50 && counts(app)?.toString() !== "6000,6000,3000,3000,3000"; run++)
    await app.service.dmarc.jobs.purgeDeletedDomains();
  expect(counts(app)).toEqual([ROWS, ROWS, ROWS / 2, ROWS / 2, ROWS / 2]);
  expect(await app.service.purge.run()).toMatchObject({ verifications: ROWS / 2 });
  expect(counts(app)).toEqual(TABLES.map(() => ROWS / 2));
  expect(traces(app)).toBe(0);
  expect(app.db.sqlite.query("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
});

test("beside a program that reads the database, the purge warns that unused space is left", async () => {
  const app = start({ path: path() });
  fill(app);
  app.db.sqlite.query("PRAGMA wal_checkpoint(TRUNCATE)").all();
  const reader = new Sqlite(path(), { readonly: true });
  app.db.sqlite.run("UPDATE verifications SET attempts = attempts + 1");
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM accounts").get();
  const purged = app.service.purge.run();
  let isDone = false;
  void purged.finally(() => {
    isDone = true;
  });
  while (!isDone) await app.advance(250);
  reader.close();
  expect(app.logged.join("\n")).toContain("unused space of the database was not cleared");
});
