import type { Database as Sqlite } from "bun:sqlite";
import { newApiKey, sha256 } from "../foundation/base/secrets.ts";

/** A value of a column. Columns that a schema does not have yet are left out. */
type Row = Readonly<Record<string, string | number | Uint8Array | null>>;

/** Secrets of the keys in the rows. */
export const UPGRADE_KEYS = { live: newApiKey("live"), test: newApiKey("test") } as const;

const AT = Date.UTC(2026, 0, 1);
const DAY = Math.floor(AT / 86_400_000);
const [ACCOUNT, LIVE, TEST] = ["account-1", "key-live", "key-test"];
const SCOPES = ["verifications", "bulk", "blacklist", "dmarc", "webhooks"].flatMap((name) => [
  `${name}:read`,
  `${name}:write`,
]);
const json = (value: unknown): string => JSON.stringify(value);

/** Ids that the API is asked for after an upgrade. */
export const UPGRADED = {
  verification: "019b7600-0000-7000-8000-000000000001",
  pending: "019b7600-0000-7000-8000-000000000002",
  job: "019b7600-0000-7000-8000-000000000003",
  target: "019b7600-0000-7000-8000-000000000004",
  domain: "019b7600-0000-7000-8000-000000000005",
  delivery: "019b7600-0000-7000-8000-000000000006",
} as const;

const owner = { account_id: ACCOUNT, mode: "live" };

const RESULT = {
  ...{ email: "ada@example.com", normalized_email: "ada@example.com", verdict: "deliverable" },
  ...{ sub_status: "mailbox_exists", quality_score: 100, confidence: 98 },
  signals: Object.fromEntries(
    "syntax domain mx smtp catch_all role_account disposable dnsbl toxic greylisting"
      .split(" ")
      .map((n) => [n, "pass"]),
  ),
  verified_at: "2026-01-01T00:00:00.000Z",
};

const verification = {
  ...owner,
  ...{ key_id: LIVE, source: null, created_at_ms: AT, attempts: 1 },
};

const ledger = (
  id: number,
  kind: string,
  [available, held]: readonly [number, number],
  reference: string | null,
): Row => ({
  ...{ id, account_id: ACCOUNT, kind, available, held, reference, note: null, at_ms: AT },
});

const ACCOUNTS: Readonly<Record<string, readonly Row[]>> = {
  accounts: [
    { id: ACCOUNT, name: "main", plan: "scale", credits_available: 98, credits_held: 1, created_at_ms: AT },
    { id: "account-2", name: "other", plan: "free", credits_available: 0, credits_held: 0, created_at_ms: AT },
  ],
  users: [
    {
      ...{ id: "user-1", account_id: ACCOUNT, email: "owner@example.com", role: "owner", is_operator: 1 },
      ...{ recovery_codes: "[]", created_at_ms: AT },
    },
  ],
  sessions: [
    {
      ...{ hash: "session-hash", id: "session-1", user_id: "user-1", csrf_token: "csrf", address: "192.0.2.1" },
      ...{ user_agent: "browser", created_at_ms: AT, last_seen_at_ms: AT },
    },
  ],
  setup_links: [{ hash: "link-hash", account_id: ACCOUNT, created_at_ms: AT, expires_at_ms: AT }],
  api_keys: [
    { id: LIVE, account_id: ACCOUNT, name: "live", mode: "live", scopes: json(SCOPES), created_at_ms: AT },
    { id: TEST, account_id: ACCOUNT, name: "test", mode: "test", scopes: json(SCOPES), created_at_ms: AT },
  ],
  key_secrets: [
    { hash: sha256(UPGRADE_KEYS.live), key_id: LIVE, ending: "AAAA", valid_until_ms: null, created_at_ms: AT },
    { hash: sha256(UPGRADE_KEYS.test), key_id: TEST, ending: "BBBB", valid_until_ms: null, created_at_ms: AT },
  ],
  ledger: [
    ledger(1, "grant", [100, 0], null),
    ledger(2, "hold", [-1, 1], UPGRADED.verification),
    ledger(3, "settle", [0, -1], UPGRADED.verification),
    ledger(4, "hold", [-1, 1], UPGRADED.pending),
  ],
  idempotency_keys: [
    { key_id: LIVE, idempotency_key: "k", request_hash: "h", resource_id: UPGRADED.verification, created_at_ms: AT },
  ],
  verifications: [
    {
      ...verification,
      ...{
        id: UPGRADED.verification,
        email: "ada@example.com",
        normalized_email: "ada@example.com",
        status: "completed",
      },
      ...{ verdict: "deliverable", sub_status: "mailbox_exists", result: json(RESULT), completed_at_ms: AT },
    },
    {
      ...verification,
      ...{ id: UPGRADED.pending, email: "grey@example.com", normalized_email: "grey@example.com", status: "pending" },
      due_at_ms: AT + 60_000,
    },
  ],
  suppressions: [{ entry: "spam@example.com", note: "asked", created_at_ms: AT }],
};

const LISTS: Readonly<Record<string, readonly Row[]>> = {
  bulk_jobs: [
    {
      ...owner,
      ...{ number: 1, id: UPGRADED.job, key_id: LIVE, name: "customers", source: null, status: "completed" },
      format: json({
        header: ["email"],
        column: 0,
        width: 1,
        delimiter: ",",
        encoding: { name: "utf-8", bom: false },
        titles: [],
      }),
      ...{ rows_total: 2, rows_finished: 2, addresses_total: 2, addresses_finished: 2, credits_charged: 2 },
      ...{ created_at_ms: AT, started_at_ms: AT, completed_at_ms: AT },
    },
  ],
  bulk_addresses: ["ada@example.com", "bob@example.com"].map((email, position) => ({
    ...{ job: 1, position, email, normalized_email: email, rows: 1, sub_status: "mailbox_exists" },
    ...{ quality_score: 100, confidence: 98, signals: "pppppppppp", verified_at_ms: AT },
  })),
  bulk_rows: [0, 1].map((n) => ({ job: 1, row_index: n, position: n, submitted_email: null, cells: null })),
  bulk_counts: [{ job: 1, sub_status: "mailbox_exists", rows: 2 }],
};

const TARGETS: Readonly<Record<string, readonly Row[]>> = {
  blocklist_targets: [
    {
      ...owner,
      ...{ id: UPGRADED.target, kind: "ipv4", value: "8.8.8.8", status: "listed", listed_on: json(["spamhaus-sbl"]) },
      ...{ muted_lists: "[]", monitoring_enabled: 1, recipients: "[]", last_checked_at_ms: AT },
      ...{ next_check_at_ms: AT, created_at_ms: AT },
    },
  ],
  blocklist_checks: [
    {
      ...{ id: "check-1", target_id: UPGRADED.target, trigger: "scheduled", started_at_ms: AT, finished_at_ms: AT },
      ...{ status: "listed", is_change: 1, body: json({ added: ["spamhaus-sbl"], removed: [] }) },
    },
  ],
  outbox: [
    {
      ...owner,
      ...{ id: "event-1", type: "bulk.completed", data: json({ id: UPGRADED.job }), url: "https://hooks.example/" },
      ...{ created_at_ms: AT, delivered_at_ms: AT },
    },
  ],
  webhook_deliveries: [
    {
      ...owner,
      ...{ id: UPGRADED.delivery, url: "https://hooks.example/", type: "bulk.completed", status: "delivered" },
      ...{
        body: json({ type: "bulk.completed", timestamp: "2026-01-01T00:00:00.000Z", data: { id: UPGRADED.job } }),
        attempts: 1,
        event_id: UPGRADED.delivery,
      },
      ...{ created_at_ms: AT, finished_at_ms: AT },
    },
  ],
  webhook_secrets: [{ ...owner, id: "secret-1", secret: "whsec_AAAA", created_at_ms: AT, valid_until_ms: null }],
};

const DOMAINS: Readonly<Record<string, readonly Row[]>> = {
  dmarc_domains: [
    {
      ...owner,
      ...{ number: 1, id: UPGRADED.domain, domain: "example.com", token: "token", status: "pending", recipients: "[]" },
      ...{ alerts: "{}", digest: "off", retention_days: 400, raw_retention_days: 90, require_authentic_reports: 0 },
      ...{ next_check_at_ms: AT, created_at_ms: AT, updated_at_ms: AT },
    },
  ],
  dmarc_daily: [
    {
      ...{ domain: 1, day: DAY, source: 1, messages: 5, aligned: 4, aligned_dkim: 4, aligned_spf: 3, forwarded: 0 },
      ...{ authenticated: 4, quarantined: 0, rejected: 1 },
    },
  ],
  dmarc_sources: [
    { number: 1, domain: 1, key: "ip:192.0.2.1", first_day: DAY, last_day: DAY, first_seen_at_ms: AT, is_reviewed: 1 },
  ],
};

const ROWS: Readonly<Record<string, readonly Row[]>> = { ...ACCOUNTS, ...LISTS, ...TARGETS, ...DOMAINS };

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly dflt_value: string | null;
  readonly pk: number;
}

type Facts = Map<string, unknown>;

const factsBySchema = new Map<string, Facts>();
const known = new WeakMap<Sqlite, { readonly version: number; readonly facts: Facts }>();

/** The facts about a connection's schema: databases with the same tables and indexes share them. */
const factsOf = (sqlite: Sqlite): Facts => {
  const version = sqlite.query<{ schema_version: number }, []>("PRAGMA schema_version").get()?.schema_version ?? 0;
  const last = known.get(sqlite);
  if (last?.version === version) return last.facts;
  const objects = sqlite.query("SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'index') ORDER BY name");
  const schema = JSON.stringify(objects.values());
  const facts: Facts = factsBySchema.get(schema) ?? new Map();
  factsBySchema.set(schema, facts);
  known.set(sqlite, { version, facts });
  return facts;
};

/** A fact that follows from the schema alone: found once for all databases with the same schema. */
export const schemaFact = <T>(sqlite: Sqlite, name: string, find: () => T): T => {
  const facts = factsOf(sqlite);
  if (!facts.has(name)) facts.set(name, find());
  return facts.get(name) as T;
};

/** The names of all tables. */
export const tablesOf = (sqlite: Sqlite): readonly string[] =>
  schemaFact(sqlite, "tables", () =>
    sqlite
      .query<{ name: string }, []>("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
      .all()
      .map(({ name }) => name),
  );

/** The columns of a table. */
export const columnsOf = (sqlite: Sqlite, table: string): readonly Column[] =>
  schemaFact(sqlite, `columns of ${table}`, () => sqlite.query<Column, []>(`PRAGMA table_info("${table}")`).all());

/** Columns that make a plain row one of the account. */
const PLAIN_OWNER: Row = {
  ...owner,
  ...{ key_id: LIVE, target_id: UPGRADED.target, delivery_id: UPGRADED.delivery, range_id: "" },
};

/** A row for a table without rows of its own: text `{}`, which is also valid JSON, and the number 1; of the account, where it says whose it is. */
const plainRow = (columns: readonly Column[]): Row =>
  Object.fromEntries(
    columns
      .filter(
        ({ name, notnull, dflt_value, pk }) => pk > 0 || name in PLAIN_OWNER || (notnull === 1 && dflt_value === null),
      )
      .map(({ name, type }) => [name, PLAIN_OWNER[name] ?? (/int/i.test(type) ? 1 : "{}")]),
  );

const insert = (sqlite: Sqlite, table: string, row: Row): void => {
  const known = columnsOf(sqlite, table).filter(({ name }) => name in row);
  const names = known.map(({ name }) => `"${name}"`).join(", ");
  const values = known.map(({ name, type }) => {
    const value = row[name] ?? null;
    return type.toLowerCase() === "blob" && typeof value === "string" ? Buffer.from(value) : value;
  });
  sqlite.query(`INSERT INTO "${table}" (${names}) VALUES (${values.map(() => "?").join(", ")})`).run(...values);
};

/** Puts rows into every table of a database of any schema, parents before children. `evidence` is that of the verification. */
export const fillTables = (sqlite: Sqlite, evidence: string): void => {
  const own: Readonly<Record<string, readonly Row[]>> = {
    ...ROWS,
    verification_evidence: [{ verification_id: UPGRADED.verification, body: evidence }],
    bulk_evidence: [0, 1].map((position) => ({ job: 1, position, body: evidence })),
  };
  const tables = tablesOf(sqlite);
  const ordered = [
    ...Object.keys(own).filter((table) => tables.includes(table)),
    ...tables.filter((table) => !(table in own)),
  ];
  for (const table of ordered)
    for (const row of own[table] ?? [plainRow(columnsOf(sqlite, table))]) insert(sqlite, table, row);
};
