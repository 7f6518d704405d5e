/**
 * What the product is measured against: a bare `Bun.serve` that selects the key by its hash and inserts the same row
 * into the same tables, with statements of `bun:sqlite` prepared once. As durable as the product: `synchronous = FULL`,
 * the rows of one turn of the event loop in one transaction, the response after its commit. No checks, no limits, no
 * errors. Argument: the data directory. Prints its port.
 */
import { join } from "node:path";
import { openDb } from "../../src/foundation/db/open.ts";

const [dataDir = ""] = process.argv.slice(2);
const opened = openDb(join(dataDir, "postwarden.db"));
if (!opened.ok) throw new Error(opened.error.kind);
const { sqlite } = opened.value;

const findKey = sqlite.prepare<{ id: string; account_id: string }, [string]>(
  `SELECT k.id, k.account_id, k.mode, k.scopes, k.expires_at_ms, k.revoked_at_ms, s.valid_until_ms, a.plan
   FROM key_secrets s JOIN api_keys k ON k.id = s.key_id JOIN accounts a ON a.id = k.account_id WHERE s.hash = ?`,
);
const insert = sqlite.prepare<unknown, Array<string | number | null>>(
  `INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, source, status, verdict, sub_status,
   result, created_at_ms, completed_at_ms, due_at_ms, attempts) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)`,
);

let pending: Array<{ readonly values: Array<string | number | null>; readonly done: () => void }> = [];

/** Writes what is pending in one transaction. */
const writeAll = (): void => {
  const rows = pending;
  pending = [];
  sqlite.run("BEGIN IMMEDIATE");
  for (const { values } of rows) insert.run(...values);
  sqlite.run("COMMIT");
  for (const { done } of rows) done();
};

/** Resolves when the row is durable. */
const store = (values: Array<string | number | null>): Promise<void> =>
  new Promise((done) => {
    if (pending.length === 0) setImmediate(writeAll);
    pending.push({ values, done });
  });

const RESULT = {
  verdict: "deliverable",
  sub_status: "mailbox_exists",
  quality_score: 100,
  confidence: 99,
  signals: {
    ...{ syntax: "pass", domain: "pass", mx: "pass", smtp: "pass", catch_all: "pass" },
    ...{ role_account: "pass", disposable: "pass", dnsbl: "pass", toxic: "pass", greylisting: "pass" },
  },
  verified_at: "2026-01-01T00:00:00.000Z",
};

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  routes: {
    "/v1/email-verifications": {
      POST: async (request) => {
        const { email } = (await request.json()) as { email: string };
        const secret = (request.headers.get("authorization") ?? "").slice("Bearer ".length);
        const key = findKey.get(new Bun.CryptoHasher("sha256").update(secret).digest("hex"));
        if (key === null) return new Response(null, { status: 401 });
        const id = Bun.randomUUIDv7();
        const nowMs = Date.now();
        const result = { email, normalized_email: email, ...RESULT };
        const end = ["completed", "deliverable", "mailbox_exists", JSON.stringify(result), nowMs, nowMs, null, 1];
        await store([id, key.account_id, key.id, "test", email, email, null, ...end]);
        return Response.json({ id, status: "completed", result });
      },
    },
  },
});
console.log(server.port);
