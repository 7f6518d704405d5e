import { and, asc, getTableColumns, gt, gte, lte, or, sql } from "drizzle-orm";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { verifications } from "../foundation/db/schema.ts";
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
}
