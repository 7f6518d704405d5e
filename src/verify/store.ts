import { and, asc, desc, eq, getTableColumns, gt, gte, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { verifications } from "../db/schema.ts";
import type { Evidence } from "./evidence.ts";
import { packEvidence, unpackEvidence } from "./evidence-store.ts";
import type { SubStatus, Verdict } from "./result.ts";

/** A verification as it is stored. `result` is the result object as JSON text, null while pending. */
export type VerificationRow = Readonly<typeof verifications.$inferSelect>;

export interface Completion {
  readonly verdict: Verdict;
  readonly subStatus: SubStatus;
  readonly result: string;
  readonly completedAtMs: number;
  readonly attempts: number;
}

export interface ListFilters {
  readonly status?: "pending" | "completed" | undefined;
  readonly verdict?: string | undefined;
  readonly subStatus?: string | undefined;
  readonly source?: string | undefined;
  /** A normalized address. */
  readonly email?: string | undefined;
  readonly createdAfterMs?: number | undefined;
  readonly createdBeforeMs?: number | undefined;
}

/** Behind every id. */
const AFTER_ALL_IDS = "~";

const table = verifications;

const columns = Object.entries(getTableColumns(table)) as Array<[keyof VerificationRow, { readonly name: string }]>;
const ROW = columns.map(([property, { name }]) => `${name} AS ${property}`).join(", ");
const isPending = sql`status = 'pending'`;

/** Prepared for what every verification needs: drizzle's mapping of rows costs several times as much as SQLite. */
const prepareAll = ({ sqlite }: Db) => ({
  insert: sqlite.prepare<unknown, Array<string | number | null>>(
    `INSERT INTO verifications (${columns.map(([, { name }]) => name).join(", ")})
      VALUES (${columns.map(() => "?").join(", ")})`,
  ),
  find: sqlite.prepare<VerificationRow, [string]>(`SELECT ${ROW} FROM verifications WHERE id = ?`),
  findPending: sqlite.prepare<VerificationRow, [string, KeyMode, string]>(
    `SELECT ${ROW} FROM verifications
      WHERE account_id = ? AND mode = ? AND normalized_email = ? AND status = 'pending'`,
  ),
  complete: sqlite.prepare<unknown, [Verdict, SubStatus, string, number, number, string]>(
    `UPDATE verifications SET status = 'completed', due_at_ms = NULL, verdict = ?, sub_status = ?, result = ?,
      completed_at_ms = ?, attempts = ? WHERE id = ? AND status = 'pending'`,
  ),
  postpone: sqlite.prepare<unknown, [number, number, string]>(
    "UPDATE verifications SET due_at_ms = ?, attempts = ? WHERE id = ? AND status = 'pending'",
  ),
  saveEvidence: sqlite.prepare<unknown, [string, Uint8Array]>(
    `INSERT INTO verification_evidence (verification_id, body) VALUES (?, ?)
      ON CONFLICT (verification_id) DO UPDATE SET body = excluded.body`,
  ),
  findEvidence: sqlite.prepare<{ body: Uint8Array | string }, [string]>(
    "SELECT body FROM verification_evidence WHERE verification_id = ?",
  ),
  remove: sqlite.prepare<unknown, [string]>("DELETE FROM verifications WHERE id = ? AND status <> 'pending'"),
  removeEvidence: sqlite.prepare<unknown, [string]>("DELETE FROM verification_evidence WHERE verification_id = ?"),
  idBehind: sqlite.prepare<{ id: string }, [string, string, number]>(
    "SELECT id FROM verifications WHERE key_id = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
  ),
});

/** The verifications that are not part of a list, with their evidence. */
export class VerificationStore {
  readonly #db: Db;
  readonly #statements: ReturnType<typeof prepareAll>;

  constructor(db: Db) {
    this.#db = db;
    this.#statements = prepareAll(db);
  }

  insert(_tx: Tx, row: VerificationRow): void {
    this.#statements.insert.run(...columns.map(([property]) => row[property]));
  }

  find(id: string): VerificationRow | undefined {
    return this.#statements.find.get(id) ?? undefined;
  }

  findPending(accountId: string, mode: KeyMode, normalizedEmail: string): VerificationRow | undefined {
    return this.#statements.findPending.get(accountId, mode, normalizedEmail) ?? undefined;
  }

  /** Ends a pending verification; false when it had ended already. */
  complete(_tx: Tx, id: string, completion: Completion): boolean {
    const { verdict, subStatus, result, completedAtMs, attempts } = completion;
    return this.#statements.complete.run(verdict, subStatus, result, completedAtMs, attempts, id).changes > 0;
  }

  /** Sets the time of the next attempt; false when the verification has ended already. */
  postpone(_tx: Tx, id: string, dueAtMs: number, attempts: number): boolean {
    return this.#statements.postpone.run(dueAtMs, attempts, id).changes > 0;
  }

  saveEvidence(_tx: Tx, id: string, evidence: Evidence): void {
    this.#statements.saveEvidence.run(id, packEvidence(evidence));
  }

  /** The evidence collected so far; undefined without any, or when it has expired. */
  findEvidence(id: string): Evidence | undefined {
    const body = this.#statements.findEvidence.get(id)?.body;
    return body === undefined ? undefined : unpackEvidence(typeof body === "string" ? Buffer.from(body) : body);
  }

  /** Removes a verification that has ended, with its evidence; false when it is pending or there is none. */
  remove(_tx: Tx, id: string): boolean {
    if (this.#statements.remove.run(id).changes === 0) return false;
    this.#statements.removeEvidence.run(id);
    return true;
  }

  /** Pending verifications that are due by `nowMs`, by their time, after `after`. */
  due(after: { dueAtMs: number; id: string }, nowMs: number, limit: number): VerificationRow[] {
    const isDue = and(
      isPending,
      lte(table.dueAtMs, nowMs),
      gte(table.dueAtMs, after.dueAtMs),
      or(gt(table.dueAtMs, after.dueAtMs), gt(table.id, after.id)),
    );
    return this.#db.orm.select().from(table).where(isDue).orderBy(asc(table.dueAtMs), asc(table.id)).limit(limit).all();
  }

  /** Makes everything that is due later than `latestMs` due at `dueAtMs`. */
  dueAtLatest(latestMs: number, dueAtMs: number): void {
    const isLater = and(isPending, gt(table.dueAtMs, latestMs));
    this.#db.orm.update(table).set({ dueAtMs }).where(isLater).run();
  }

  /** When the next pending verification after `afterMs` is due; null when there is none. */
  nextDueMs(afterMs: number): number | null {
    const row = this.#db.orm
      .select({ dueAtMs: sql<number | null>`min(due_at_ms)` })
      .from(table)
      .where(and(isPending, sql`due_at_ms > ${afterMs}`))
      .get();
    return row?.dueAtMs ?? null;
  }

  /** Of one key: the id this many places behind the newest that is older than `before`; null when there are fewer. */
  idBehind(keyId: string, before: string | null, places: number): string | null {
    return this.#statements.idBehind.get(keyId, before ?? AFTER_ALL_IDS, places)?.id ?? null;
  }

  /** Those of one key, newest first, older than the id `before` and not older than `from`. */
  list(keyId: string, filters: ListFilters, page: IdWindow): VerificationRow[] {
    const isListed = matching(keyId, filters, page);
    return this.#db.orm.select().from(table).where(isListed).orderBy(desc(table.id)).limit(page.limit).all();
  }
}

const matching = (keyId: string, filters: ListFilters, { before, from }: IdWindow): SQL | undefined => {
  const { status, verdict, subStatus, source, email, createdAfterMs, createdBeforeMs } = filters;
  return and(
    eq(table.keyId, keyId),
    before === null ? undefined : lt(table.id, before),
    from === undefined ? undefined : gte(table.id, from),
    status === undefined ? undefined : eq(table.status, status),
    verdict === undefined ? undefined : eq(table.verdict, verdict),
    subStatus === undefined ? undefined : eq(table.subStatus, subStatus),
    source === undefined ? undefined : eq(table.source, source),
    email === undefined ? undefined : eq(table.normalizedEmail, email),
    createdAfterMs === undefined ? undefined : gte(table.createdAtMs, createdAfterMs),
    createdBeforeMs === undefined ? undefined : lt(table.createdAtMs, createdBeforeMs),
  );
};
