import { DAY_MS } from "../../foundation/base/days.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { rows, sqlStatements } from "../../foundation/db/statements.ts";
import type { AddressRange } from "./bounce-store.ts";

/** Providers that are counted apart for an account on one day; the checks of further ones are counted together. */
export const PROVIDERS_PER_DAY_MAX = 500;
/** The provider of those that are counted together. */
const OTHERS = "";

/** Checks that said `deliverable`, and how many of their addresses bounced hard later. */
export interface KeptPromises {
  readonly checks: number;
  readonly bounced: number;
}

interface ProviderCount {
  readonly provider: string | null;
  readonly count: number;
}

const prepareAll = (db: Db) =>
  sqlStatements(db, {
    raise: "UPDATE deliverable_checks SET checks = checks + ? WHERE account_id = ? AND day = ? AND provider = ?",
    insert: `INSERT INTO deliverable_checks (checks, account_id, day, provider) VALUES (?, ?, ?, ?)
      ON CONFLICT (account_id, day, provider) DO UPDATE SET checks = checks + excluded.checks`,
    count: rows<{ count: number }, [account: string, day: number]>(
      "SELECT count(*) AS count FROM deliverable_checks WHERE account_id = ? AND day = ?",
    ),
    first: rows<{ day: number | null }, string>("SELECT min(day) AS day FROM deliverable_checks WHERE account_id = ?"),
    checks: rows<ProviderCount, [account: string, fromDay: number]>(
      `SELECT provider, sum(checks) AS count FROM deliverable_checks WHERE account_id = ? AND day >= ? GROUP BY provider`,
    ),
    bounced: rows<ProviderCount, [account: string, after: string, upTo: string, fromMs: number, fromMs: number]>(
      `SELECT provider, count(DISTINCT email) AS count FROM bounces
        WHERE account_id = ? AND email > ? AND email <= ? AND +bounced_at_ms >= ? AND kind = 'hard' AND promised = 'deliverable' AND promised_at_ms >= ?
        GROUP BY provider`,
    ),
    expire: `DELETE FROM deliverable_checks WHERE rowid IN (SELECT rowid FROM deliverable_checks WHERE day < ? LIMIT ?)`,
  });

/** Counts checks with live keys that said `deliverable`, by day and provider: what bounces are a share of. */
export class PromiseCounts {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = prepareAll(db);
  }

  /** Adds checks of one account on one day, by the provider of each; null: nothing is known about the mail hosts. */
  add(_tx: Tx, accountId: string, day: number, providers: readonly (string | null)[]): void {
    const { raise, insert, count } = this.#sql;
    const checks = new Map<string, number>();
    for (const one of providers) checks.set(one ?? OTHERS, (checks.get(one ?? OTHERS) ?? 0) + 1);
    const isNew = ([provider, some]: readonly [string, number]) =>
      raise.run(some, accountId, day, provider).changes === 0;
    const found = [...checks].filter(isNew);
    if (found.length === 0) return;
    const room = Math.max(0, PROVIDERS_PER_DAY_MAX - (count.get(accountId, day)?.count ?? 0));
    for (const [provider, some] of found.slice(0, room)) insert.run(some, accountId, day, provider);
    const others = found.slice(room).reduce((sum, [, some]) => sum + some, 0);
    if (others > 0) insert.run(others, accountId, day, OTHERS);
  }

  /** The checks of an account from a day on, or from the first day that was counted; by provider, null for all that are counted together. */
  since(accountId: string, day: number): { readonly fromDay: number | null; readonly byProvider: Promises } {
    const { first, checks } = this.#sql;
    const firstDay = first.get(accountId)?.day ?? null;
    if (firstDay === null) return { fromDay: null, byProvider: new Map() };
    const fromDay = Math.max(day, firstDay);
    const counts = checks
      .all(accountId, fromDay)
      .map(({ provider, count }) => [provider === OTHERS ? null : provider, { checks: count, bounced: 0 }] as const);
    return { fromDay, byProvider: new Map(counts) };
  }

  /** Adds the addresses of a range whose promises, since a day, were not kept. */
  addBounced(byProvider: Promises, accountId: string, fromDay: number, { after, upTo }: AddressRange): void {
    const fromMs = fromDay * DAY_MS;
    for (const { provider, count } of this.#sql.bounced.all(accountId, after, upTo, fromMs, fromMs)) {
      const { checks, bounced } = byProvider.get(provider) ?? { checks: 0, bounced: 0 };
      byProvider.set(provider, { checks, bounced: bounced + count });
    }
  }

  /** Removes days before this one, and returns how many rows. */
  expire(_tx: Tx, beforeDay: number, limit: number): number {
    return this.#sql.expire.run(beforeDay, limit).changes;
  }
}

type Promises = Map<string | null, KeptPromises>;

/** The share of `deliverable` addresses that bounced, of 0 to 1; null where no check is counted. */
export const errorRate = ({ checks, bounced }: KeptPromises): number | null =>
  checks === 0 ? null : Math.round((Math.min(bounced, checks) / checks) * 1e6) / 1e6;
