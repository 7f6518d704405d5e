import { and, eq } from "drizzle-orm";
import { AppError } from "../base/errors.ts";
import { inSteps } from "../base/in-steps.ts";
import type { Tx } from "./open.ts";
import type { DbClock } from "./runtime.ts";
import { idempotencyKeys } from "./schema.ts";

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
const PURGED_AT_ONCE = 500;

const PURGE_SOME = `DELETE FROM idempotency_keys WHERE rowid IN
  (SELECT rowid FROM idempotency_keys WHERE created_at_ms < ? ORDER BY created_at_ms LIMIT ?)`;

/** The 422 of an Idempotency-Key whose first request was a different one. */
export const idempotencyKeyReused = (): AppError =>
  new AppError("idempotency_key_reused", {
    message: "This Idempotency-Key was used with a different request. Use a new key.",
  });

/** The Idempotency-Keys of the last 24 hours, each with the resource that its first request created. */
export class IdempotencyStore {
  constructor(private readonly runtime: DbClock) {}

  /**
   * Returns the id of the resource that the first request with this key created; null when the key is new or expired.
   * Throws 422 `idempotency_key_reused` when that was a different request.
   */
  findResource({ keyId, idempotencyKey, requestHash }: IdempotentRequest): string | null {
    const stored = this.runtime.db.orm
      .select()
      .from(idempotencyKeys)
      .where(and(eq(idempotencyKeys.keyId, keyId), eq(idempotencyKeys.idempotencyKey, idempotencyKey)))
      .get();
    if (stored === undefined || stored.createdAtMs <= this.runtime.clock.nowMs() - IDEMPOTENCY_MS) return null;
    if (stored.requestHash === requestHash) return stored.resourceId;
    throw idempotencyKeyReused();
  }

  /** Stores the key; an expired one is replaced. */
  save(_tx: Tx, request: IdempotentRequest, resourceId: string): void {
    const row = { ...request, resourceId, createdAtMs: this.runtime.clock.nowMs() };
    this.runtime.db.orm
      .insert(idempotencyKeys)
      .values(row)
      .onConflictDoUpdate({ target: [idempotencyKeys.keyId, idempotencyKeys.idempotencyKey], set: row })
      .run();
  }

  /** Deletes expired keys, in short transactions, and returns how many there were. */
  async purge(isStopping: () => boolean = () => false): Promise<number> {
    const { db, clock } = this.runtime;
    const beforeMs = clock.nowMs() - IDEMPOTENCY_MS;
    const { count } = await inSteps(() => db.commit((tx) => this.#purgeSome(tx, beforeMs)), { isStopping });
    return count;
  }

  #purgeSome(_tx: Tx, beforeMs: number) {
    const { sqlite } = this.runtime.db;
    return sqlite.query<unknown, [number, number]>(PURGE_SOME).run(beforeMs, PURGED_AT_ONCE).changes;
  }
}
