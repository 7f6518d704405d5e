import { inSteps } from "../../foundation/base/in-steps.ts";
import type { Db } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { rows, sqlStatements } from "../../foundation/db/statements.ts";
import { type SubStatus, VERDICT_OF } from "../result.ts";
import { providerIn } from "./bounces.ts";

/** Addresses of a list that are looked at in one go: some milliseconds. */
const ADDRESSES_AT_ONCE = 5_000;

interface FoundPromise {
  readonly id: string;
  readonly subStatus: SubStatus;
  readonly atMs: number;
  readonly evidence: Uint8Array | null;
}

const prepareAll = (db: Pick<Db, "sqlite">) =>
  sqlStatements(db, {
    accounts: rows<{ accountId: string }, number>(
      "SELECT DISTINCT account_id AS accountId FROM bounces WHERE sought_at_ms IS NULL AND created_at_ms <= ?",
    ),
    lists: rows<{ job: number; last: number | null }, string>(
      `SELECT number AS job, (SELECT max(position) FROM bulk_addresses WHERE job = number) AS last FROM bulk_jobs
        WHERE account_id = ? AND mode = 'live' AND status IN ('running', 'completed', 'cancelled', 'failed')`,
    ),
    // Addresses of lists have no index by address: each is looked up among the bounces.
    found: rows<FoundPromise, [account: string, job: number, from: number, before: number]>(
      `SELECT b.id, a.sub_status AS subStatus, a.verified_at_ms AS atMs, e.body AS evidence
        FROM bulk_addresses a
        CROSS JOIN bounces b ON b.account_id = ? AND b.email = a.normalized_email
          AND b.sought_at_ms IS NULL AND a.verified_at_ms <= b.bounced_at_ms
        LEFT JOIN bulk_evidence e ON e.job = a.job AND e.position = a.position
        WHERE a.job = ? AND a.position >= ? AND a.position < ? AND a.sub_status IS NOT NULL`,
    ),
    promise: `UPDATE bounces SET promised = ?, promised_at_ms = ?, provider = coalesce(?, provider)
      WHERE id = ? AND coalesce(promised_at_ms, 0) < ?`,
    sought: `UPDATE bounces SET sought_at_ms = ? WHERE id IN (SELECT id FROM bounces
      WHERE account_id = ? AND sought_at_ms IS NULL AND created_at_ms <= ? LIMIT ?)`,
  });

/** Finds out what lists had said about addresses that bounced: at night, in one pass for all bounces of the day. */
export class ListPromises {
  readonly #sql;

  constructor(private readonly runtime: Pick<Runtime, "db" | "clock">) {
    this.#sql = prepareAll(runtime.db);
  }

  async run(isStopping: () => boolean): Promise<void> {
    const startMs = this.runtime.clock.nowMs();
    for (const { accountId } of this.#sql.accounts.all(startMs)) {
      for (const { job, last } of this.#sql.lists.all(accountId))
        await this.#search({ accountId, job, last: last ?? -1 }, isStopping);
      await inSteps(() => this.#conclude(accountId, startMs), { isStopping });
    }
  }

  #conclude(accountId: string, startMs: number): Promise<number> {
    const { sought } = this.#sql;
    return this.runtime.db.commit(() => sought.run(startMs, accountId, startMs, ADDRESSES_AT_ONCE).changes);
  }

  async #search(
    { accountId, job, last }: { readonly accountId: string; readonly job: number; readonly last: number },
    isStopping: () => boolean,
  ): Promise<void> {
    const { found, promise } = this.#sql;
    let from = 0;
    await inSteps(
      async () => {
        if (from > last) return 0;
        const promises = found.all(accountId, job, from, from + ADDRESSES_AT_ONCE);
        from += ADDRESSES_AT_ONCE;
        if (promises.length > 0)
          await this.runtime.db.commit(() => {
            for (const { id, subStatus, atMs, evidence } of promises)
              promise.run(VERDICT_OF[subStatus], atMs, providerIn(evidence), id, atMs);
          });
        return ADDRESSES_AT_ONCE;
      },
      { isStopping },
    );
  }
}
