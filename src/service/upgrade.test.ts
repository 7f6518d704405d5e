import { Database as Sqlite } from "bun:sqlite";
import { afterAll, describe, expect, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { migrate } from "../foundation/db/migrate.ts";
import { MIGRATIONS } from "../foundation/db/migrations.ts";
import { TestApp } from "../testing/app.ts";
import { evidenceWith } from "../testing/evidence.ts";
import { columnsOf, fillTables, tablesOf, UPGRADE_KEYS, UPGRADED } from "../testing/upgrade-rows.ts";

const folder = mkdtempSync(join(tmpdir(), "postwarden-upgrade-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** What migrations change on purpose, beside new columns: tables, or single columns. */
const CHANGED: ReadonlySet<string> = new Set([
  // 0006: live and test keys have separate URLs.
  "webhook_gone",
  // 0011: a row for each listing of a target.
  "blocklist_listings",
  // 0015: counted by author.
  "dmarc_daily_reporters",
  // 0006, 0010: the first delivery of each new queue is due.
  "webhook_deliveries.due_at_ms",
  // 0010: events without a receiver count as delivered.
  "outbox.delivered_at_ms",
  // 0014: networks are looked up over a day.
  "dmarc_reverse_names.network_due_at_ms",
  // 0009, 0015: reports of unproven origin.
  "dmarc_reports.sameness",
]);

/** Tables that a migration drops on purpose. */
const DROPPED: ReadonlySet<string> = new Set(["dmarc_source_addresses"]);

const comparable = (value: unknown): unknown => (value instanceof Uint8Array ? Buffer.from(value).toString() : value);

/** Every row of the tables, with the columns of `schema`, sorted. */
const contentOf = (sqlite: Sqlite, schema: ReadonlyMap<string, readonly string[]>): Record<string, readonly string[]> =>
  Object.fromEntries(
    [...schema].map(([table, columns]) => {
      const names = columns.map((name) => `"${name}"`).join(", ");
      const rows = sqlite.query<Record<string, unknown>, []>(`SELECT ${names} FROM "${table}"`).all();
      return [table, rows.map((row) => JSON.stringify(Object.values(row).map(comparable))).toSorted()];
    }),
  );

/** Tables and columns that must be the same after an upgrade. */
const keptSchema = (sqlite: Sqlite): ReadonlyMap<string, readonly string[]> =>
  new Map(
    tablesOf(sqlite)
      .filter((table) => !CHANGED.has(table) && !DROPPED.has(table))
      .map((table) => [
        table,
        columnsOf(sqlite, table)
          .map(({ name }) => name)
          .filter((name) => !CHANGED.has(`${table}.${name}`)),
      ]),
  );

const QUERY = { name: "x.example", type: "MX", outcome: "response", records: ["10 mx.x.example"], ttl_s: 300 };
const SENT_TO = { server: "192.0.2.53:53", from_cache: false, elapsed_ms: 1 };
/** Evidence under the names of earlier versions. */
const FORMER_EVIDENCE = JSON.stringify(evidenceWith({ domain: { dns_queries: [{ ...QUERY, ...SENT_TO }] } }))
  .replace('"dns_queries":', '"questions":')
  .replace('"outcome":"response"', '"outcome":"answer"')
  .replaceAll('"sessions":', '"dialogues":');

/** A database with the first `version` migrations and rows in every table. */
const oldDatabase = (version: number) => {
  const path = join(folder, `${version}.db`);
  const sqlite = new Sqlite(path, { create: true, readwrite: true });
  for (const pragma of ["foreign_keys = ON", "synchronous = OFF", "journal_mode = MEMORY"])
    sqlite.run(`PRAGMA ${pragma}`);
  expect(migrate(sqlite, MIGRATIONS.slice(0, version)).ok).toBe(true);
  fillTables(sqlite, FORMER_EVIDENCE);
  const tables = tablesOf(sqlite);
  for (const table of tables)
    expect([table, sqlite.query(`SELECT 1 FROM "${table}"`).all().length]).not.toEqual([table, 0]);
  const schema = keptSchema(sqlite);
  const before = contentOf(sqlite, schema);
  sqlite.close();
  return { path, tables, schema, before };
};

const VERSIONS = MIGRATIONS.map(({ name }, at) => [at + 1, name] as const);

describe.each(VERSIONS)("an upgrade from schema %d (%s)", (version) => {
  test("keeps every row, with valid references, and the service answers with them", async () => {
    const { path, tables, schema, before } = oldDatabase(version);
    const app = new TestApp({ path });
    try {
      const { sqlite } = app.db;
      expect(contentOf(sqlite, schema)).toEqual(before);
      expect(sqlite.query("PRAGMA foreign_key_check").all()).toEqual([]);
      expect(sqlite.query("PRAGMA integrity_check").all()).toEqual([{ integrity_check: "ok" }]);
      await expectAnswers(app, new Set(tables));
    } finally {
      app.close();
    }
  });
});

const expectAnswers = async (app: TestApp, tables: ReadonlySet<string>): Promise<void> => {
  const get = (path: string) => app.request("GET", path, { key: UPGRADE_KEYS.live });
  expect(await get("/v1/account")).toMatchObject({ body: { name: "main", credits: { available: 98, held: 1 } } });
  const id = UPGRADED.verification;
  const verification = await get(`/v1/email-verifications/${id}`);
  expect(verification).toMatchObject({ status: 200, body: { result: { verdict: "deliverable" } } });
  const evidence = await get(`/v1/email-verifications/${id}/evidence`);
  expect(evidence).toMatchObject({
    status: 200,
    body: { domain: { dns_queries: [QUERY] }, attempts: [{ sessions: [] }] },
  });
  expect((await get("/v1/email-verifications")).text).toContain(UPGRADED.pending);
  const expected: Readonly<Record<string, readonly [string, object]>> = {
    bulk_jobs: [`/v1/bulk-verifications/${UPGRADED.job}`, { status: "completed", rows: { total: 2, finished: 2 } }],
    bulk_addresses: [
      `/v1/bulk-verifications/${UPGRADED.job}/items`,
      { emails: [{ result: { email: "ada@example.com" } }, { result: { email: "bob@example.com" } }] },
    ],
    bulk_evidence: [`/v1/bulk-verifications/${UPGRADED.job}/items/0/evidence`, {}],
    blocklist_targets: [`/v1/blacklist/targets/${UPGRADED.target}`, {}],
    webhook_deliveries: ["/v1/webhooks/deliveries", { deliveries: [{ id: UPGRADED.delivery, status: "delivered" }] }],
    dmarc_domains: [`/v1/dmarc/domains/${UPGRADED.domain}`, {}],
    dmarc_daily: [`/v1/dmarc/domains/${UPGRADED.domain}/summary?from=2025-12-31&to=2026-01-02`, {}],
  };
  for (const [table, [path, body]] of Object.entries(expected)) {
    if (!tables.has(table)) continue;
    const answer = await get(path);
    expect([path, answer.status, app.logged]).toEqual([path, 200, []]);
    expect(answer.body).toMatchObject(body);
  }
  const checked = await app.request("POST", "/v1/email-verifications", {
    key: UPGRADE_KEYS.test,
    body: { email: "mailbox_exists@any.example" },
  });
  expect(checked).toMatchObject({ status: 200, body: { status: "completed" } });
};
