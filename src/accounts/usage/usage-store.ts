import type { Database as Sqlite } from "bun:sqlite";
import type { DayRange } from "../../foundation/base/days.ts";
import type { rateLimitedDaily, usageDaily } from "../../foundation/db/schema-users.ts";
import type { Owner } from "../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { prepareRowInsert, statements } from "../../foundation/db/statements.ts";

/** Verifications of one day, key, source and result: negative when results are removed because the addresses are verified again. */
export type UsageEntry = Readonly<typeof usageDaily.$inferSelect>;

export type RateLimitedEntry = Readonly<typeof rateLimitedDaily.$inferSelect>;

/** What a range of days sums up by. */
export type UsageColumn = "day" | "keyId" | "verdict" | "subStatus";

/** Verifications of one group and verdict. */
export interface UsageSum {
  readonly group: string | number;
  readonly verdict: string;
  readonly verifications: number;
  readonly credits: number;
}

const COLUMNS: Readonly<Record<UsageColumn, string>> = {
  day: "day",
  keyId: "key_id",
  verdict: "verdict",
  subStatus: "sub_status",
};

type SingleParameters = [string, string, string | null, string | null, string | null];
type RangeParameters = [string, string, number, number];

const sumsBy = (sqlite: Sqlite, column: string) =>
  sqlite.prepare<UsageSum, RangeParameters>(
    `SELECT ${column} AS "group", verdict, sum(verifications) AS verifications, sum(credits) AS credits FROM usage_daily
      WHERE account_id = ? AND mode = ? AND day >= ? AND day <= ? GROUP BY ${column}, verdict ORDER BY ${column}, verdict`,
  );

const prepareAll = ({ sqlite }: Db) =>
  statements({
    add: () =>
      prepareRowInsert(
        { sqlite },
        {
          into: "usage_daily (account_id, mode, day, key_id, source, sub_status, verdict, verifications, credits)",
          columns: 9,
          ending: `ON CONFLICT (account_id, mode, day, key_id, source, sub_status) DO UPDATE SET
      verifications = verifications + excluded.verifications, credits = credits + excluded.credits`,
        },
      ),
    // An account that was deleted meanwhile gets no new rows.
    addRateLimited: () =>
      sqlite.prepare<unknown, [string, number, string, number, string]>(
        `INSERT INTO rate_limited_daily (account_id, mode, day, key_id, requests)
      SELECT id, ?, ?, ?, ? FROM accounts WHERE id = ? AND deleted_at_ms IS NULL
      ON CONFLICT (account_id, mode, day, key_id) DO UPDATE SET requests = requests + excluded.requests`,
      ),
    sums: () => ({
      day: sumsBy(sqlite, COLUMNS.day),
      keyId: sumsBy(sqlite, COLUMNS.keyId),
      verdict: sumsBy(sqlite, COLUMNS.verdict),
      subStatus: sumsBy(sqlite, COLUMNS.subStatus),
    }),
    firstDay: () =>
      sqlite.prepare<{ day: number | null }, [string, string]>(
        "SELECT min(day) AS day FROM usage_daily WHERE account_id = ? AND mode = ?",
      ),
    hasAny: () =>
      sqlite.prepare<object, RangeParameters>(
        "SELECT 1 FROM usage_daily WHERE account_id = ? AND mode = ? AND day >= ? AND day <= ? LIMIT 1",
      ),
    singleResults: () =>
      sqlite.prepare<{ count: number }, SingleParameters>(
        `SELECT coalesce(sum(verifications), 0) AS count FROM usage_daily WHERE account_id = ?1 AND mode = ?2 AND source = 'single'
      AND (?3 IS NULL OR key_id = ?3) AND (?4 IS NULL OR verdict = ?4) AND (?5 IS NULL OR sub_status = ?5)`,
      ),
    rateLimited: () =>
      sqlite.prepare<{ day: number; keyId: string; requests: number }, RangeParameters>(
        `SELECT day, key_id AS keyId, requests FROM rate_limited_daily
      WHERE account_id = ? AND mode = ? AND day >= ? AND day <= ? ORDER BY day, key_id`,
      ),
  });

const added = (sum: UsageEntry, { verifications, credits }: UsageEntry): UsageEntry => ({
  ...sum,
  verifications: sum.verifications + verifications,
  credits: sum.credits + credits,
});

/** Daily sums of verifications and of requests that the rate limit refused. */
export class UsageStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = prepareAll(db);
  }

  add(_tx: Tx, ...entries: readonly UsageEntry[]) {
    const sums = new Map<string, UsageEntry>();
    for (const entry of entries) {
      const { accountId, mode, day, keyId, source, subStatus } = entry;
      const group = `${accountId} ${mode} ${day} ${keyId} ${source} ${subStatus}`;
      const sum = sums.get(group);
      sums.set(group, sum === undefined ? entry : added(sum, entry));
    }
    this.#sql.add(
      [...sums.values()].map(({ accountId, mode, day, keyId, source, subStatus, verdict, verifications, credits }) => {
        return [accountId, mode, day, keyId, source, subStatus, verdict, verifications, credits];
      }),
    );
  }

  addRateLimited(_tx: Tx, { accountId, mode, day, keyId, requests }: RateLimitedEntry) {
    this.#sql.addRateLimited.run(mode, day, keyId, requests, accountId);
  }

  /** The verifications of a range of days by a column and verdict, in the order of the column. */
  sums({ accountId, mode }: Owner, column: UsageColumn, { fromDay, toDay }: DayRange): UsageSum[] {
    return this.#sql.sums[column].all(accountId, mode, fromDay, toDay);
  }

  /** The first day with a verification; null without any. */
  firstDay({ accountId, mode }: Owner): number | null {
    return this.#sql.firstDay.get(accountId, mode)?.day ?? null;
  }

  hasAny({ accountId, mode }: Owner, { fromDay, toDay }: DayRange): boolean {
    return this.#sql.hasAny.get(accountId, mode, fromDay, toDay) !== null;
  }

  /** Single verifications that have ever ended with such a result, also those that have expired since. */
  singleResults(
    { accountId, mode }: Owner,
    {
      keyId,
      verdict,
      subStatus,
    }: {
      keyId?: string | undefined;
      verdict?: string | undefined;
      subStatus?: string | undefined;
    },
  ): number {
    const wanted = [keyId ?? null, verdict ?? null, subStatus ?? null] as const;
    return this.#sql.singleResults.get(accountId, mode, ...wanted)?.count ?? 0;
  }

  /** The requests that the rate limit refused in a range of days. */
  rateLimited({ accountId, mode }: Owner, { fromDay, toDay }: DayRange): Omit<RateLimitedEntry, keyof Owner>[] {
    return this.#sql.rateLimited.all(accountId, mode, fromDay, toDay);
  }
}
