import { Database as Sqlite } from "bun:sqlite";
import { join } from "node:path";
import { systemClock } from "../../src/foundation/base/clock.ts";
import { AccountsSlice } from "../../src/accounts/open.ts";
import { signalsSchema } from "../../src/verify/result.ts";
import { openData, signInOwner } from "./stage.ts";

const ROWS_AT_ONCE = 100_000;
const DAY_MS = 86_400_000;
/** All sizes lie in the same past: a check every 0.7 seconds, ten million in 81 days. */
const EVERY_MS = 700;
const RARE = 9_999;
const SIGNALS = JSON.stringify(Object.fromEntries(signalsSchema.keyof().options.map((name) => [name, "pass"])));

/** An account with a history, and which of its checks is the oldest. */
export interface Owner {
  readonly key: string;
  readonly testKey: string;
  readonly session: string;
  readonly keyId: string;
  readonly accountId: string;
  readonly timeOf: (check: number) => number;
  readonly everyMs: number;
  readonly newestDay: string;
  readonly oldestEmail: string;
  oldest: number;
}

const emailOf = (check: number): string => `u${check}@any${check % 997}.com`;

/** How far back the first check lies, and how much lies between two. */
interface Span {
  readonly days: number;
  readonly everyMs: number;
}

/** Makes the account, its keys and a session of its owner. */
export const createOwner = (dataDir: string, { days, everyMs }: Span = { days: 90, everyMs: EVERY_MS }): Owner => {
  const db = openData(dataDir);
  try {
    const slice = new AccountsSlice({ db, clock: systemClock });
    const { accounts, keys } = slice;
    const created = accounts.create("bench", "scale");
    if (!created.ok) throw new Error("the account could not be made");
    const accountId = created.value.id;
    const keyOf = (mode: "live" | "test") => {
      const issued = keys.create({ account: "bench", mode });
      if (!issued.ok) throw new Error(`no key: ${issued.error}`);
      return issued.value;
    };
    const session = signInOwner(db, slice, accountId);
    const live = keyOf("live");
    const firstMs = Math.floor(Date.now() / DAY_MS - days) * DAY_MS;
    return {
      ...{ key: live.key, keyId: live.id, testKey: keyOf("test").key, session, accountId, everyMs },
      timeOf: (check) => Math.floor(firstMs + check * everyMs),
      newestDay: new Date(Date.now() - DAY_MS).toISOString(),
      get oldestEmail() {
        return emailOf(this.oldest + 5_000);
      },
      oldest: 0,
    };
  } finally {
    db.close();
  }
};

/** Of ten thousand checks one has a rare reason; none is risky. */
const FILL = `INSERT INTO verifications (id, account_id, key_id, mode, email, normalized_email, source, status, verdict, sub_status,
    result, created_at_ms, completed_at_ms, attempts)
  WITH RECURSIVE n(i) AS (SELECT $from UNION ALL SELECT i + 1 FROM n WHERE i + 1 < $to),
    found(i, ms, email, verdict, reason) AS (SELECT i, CAST($firstMs + i * $everyMs AS INTEGER), printf('u%d@any%d.com', i, i % 997),
      iif(i % 10 < 7, 'deliverable', 'undeliverable'),
      CASE WHEN i % 10000 = $rare THEN 'null_mx' WHEN i % 10 < 7 THEN 'mailbox_exists' ELSE 'mailbox_not_found' END FROM n)
  SELECT printf('%08x-%04x-7%03x-9f4c-%012x', ms >> 16, ms & 65535, i & 4095, i), $accountId, $keyId, 'live', email, email,
    'bench', 'completed', verdict, reason,
    json_object('verdict', verdict, 'sub_status', reason, 'email', email, 'normalized_email', email, 'quality_score', 90,
      'confidence', 95, 'signals', json($signals), 'verified_at', '2026-01-01T00:00:00.000Z'), ms, ms, 1 FROM found`;

/** The evidence, and the sums that the service keeps. */
const REST = [
  `INSERT INTO verification_evidence SELECT id, randomblob(400) FROM verifications WHERE rowid > $after ORDER BY rowid`,
  `INSERT INTO usage_daily (account_id, mode, day, key_id, source, sub_status, verdict, verifications, credits)
    SELECT account_id, mode, completed_at_ms / 86400000, key_id, 'single', sub_status, max(verdict), count(*), count(*)
      FROM verifications WHERE rowid > $after GROUP BY 1, 2, 3, 4, 6
    ON CONFLICT DO UPDATE SET verifications = verifications + excluded.verifications`,
];

/** Adds the checks number `from` to `to - 1`, in transactions of bounded size and without syncing. */
export const checksBetween = (dataDir: string, owner: Owner, { from, to }: { from: number; to: number }): void => {
  const sqlite = new Sqlite(join(dataDir, "postwarden.db"), { readwrite: true, strict: true });
  try {
    for (const pragma of ["synchronous = OFF", "temp_store = MEMORY", "cache_size = -65536"])
      sqlite.run(`PRAGMA ${pragma}`);
    const fill = sqlite.prepare(FILL);
    const rest = REST.map((statement) => sqlite.prepare(statement));
    const { accountId, keyId } = owner;
    const add = sqlite.transaction((first: number, end: number) => {
      const { after } = sqlite.query("SELECT coalesce(max(rowid), 0) AS after FROM verifications").get() as {
        after: number;
      };
      const span = { from: first, to: end, firstMs: owner.timeOf(0), everyMs: owner.everyMs, rare: RARE };
      fill.run({ ...span, accountId, keyId, signals: SIGNALS });
      for (const statement of rest) statement.run({ after });
    });
    for (let at = from; at < to; at += ROWS_AT_ONCE) add(at, Math.min(to, at + ROWS_AT_ONCE));
  } finally {
    sqlite.close();
  }
};
