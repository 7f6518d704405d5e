import { AppError } from "../base/errors.ts";
import { inSteps } from "../base/in-steps.ts";
import type { Tx } from "./open.ts";
import type { DbClock } from "./runtime.ts";
import type { idempotencyKeys } from "./schema.ts";
import { rows, sqlStatements } from "./statements.ts";

/** A request that its client may repeat. */
export interface IdempotentRequest {
  /** The API key: Idempotency-Keys of different API keys are independent. */
  readonly keyId: string;
  readonly idempotencyKey: string;
  /** Hash of the content of the request. */
  readonly requestHash: string;
}

/** How long an Idempotency-Key is kept (contract §4). */
const IDEMPOTENCY_MS = 24 * 60 * 60 * 1000;

/** Keys deleted in one transaction: it holds the event loop for a few milliseconds. */
const PURGED_AT_ONCE = 100;

/** The 422 of an Idempotency-Key whose first request was a different one. */
export const idempotencyKeyReused = (): AppError =>
  new AppError("idempotency_key_reused", {
    message: "This Idempotency-Key was used with a different request. Use a new key.",
  });

type StoredKey = Pick<typeof idempotencyKeys.$inferSelect, "requestHash" | "resourceId" | "createdAtMs">;

const STATEMENTS = {
  find: rows<StoredKey, [keyId: string, idempotencyKey: string]>(
    `SELECT request_hash AS requestHash, resource_id AS resourceId, created_at_ms AS createdAtMs FROM idempotency_keys
      WHERE key_id = ? AND idempotency_key = ?`,
  ),
  save: `INSERT INTO idempotency_keys (key_id, idempotency_key, request_hash, resource_id, created_at_ms)
      VALUES (?, ?, ?, ?, ?) ON CONFLICT (key_id, idempotency_key) DO UPDATE SET
      request_hash = excluded.request_hash, resource_id = excluded.resource_id, created_at_ms = excluded.created_at_ms`,
  purgeSome: `DELETE FROM idempotency_keys WHERE rowid IN
      (SELECT rowid FROM idempotency_keys WHERE created_at_ms < ? ORDER BY created_at_ms LIMIT ?)`,
};

/** The Idempotency-Keys of the last 24 hours, each with the resource that its first request created. */
export class IdempotencyStore {
  readonly #sql;

  constructor(private readonly runtime: DbClock) {
    this.#sql = sqlStatements(runtime.db, STATEMENTS);
  }

  /**
   * Returns the id of the resource that the first request with this key created; null when the key is new or expired.
   * Throws 422 `idempotency_key_reused` when that was a different request.
   */
  findResource({ keyId, idempotencyKey, requestHash }: IdempotentRequest): string | null {
    const stored = this.#sql.find.get(keyId, idempotencyKey);
    if (stored === null || stored.createdAtMs <= this.runtime.clock.nowMs() - IDEMPOTENCY_MS) return null;
    if (stored.requestHash === requestHash) return stored.resourceId;
    throw idempotencyKeyReused();
  }

  /** Stores the key; an expired one is replaced. */
  save(_tx: Tx, { keyId, idempotencyKey, requestHash }: IdempotentRequest, resourceId: string): void {
    this.#sql.save.run(keyId, idempotencyKey, requestHash, resourceId, this.runtime.clock.nowMs());
  }

  /** Deletes expired keys, in short transactions, and returns how many there were. */
  async purge(isStopping: () => boolean = () => false): Promise<number> {
    const { db, clock } = this.runtime;
    const beforeMs = clock.nowMs() - IDEMPOTENCY_MS;
    const { count } = await inSteps(() => db.commit((tx) => this.#purgeSome(tx, beforeMs)), { isStopping });
    return count;
  }

  #purgeSome(_tx: Tx, beforeMs: number) {
    return this.#sql.purgeSome.run(beforeMs, PURGED_AT_ONCE).changes;
  }
}
