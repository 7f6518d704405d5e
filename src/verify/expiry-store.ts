import type { Database as Sqlite } from "bun:sqlite";
import type { Db, Tx } from "../foundation/db/open.ts";

/** A row in the order of creation, as far as its expiry needs it. */
export interface AgedRow {
  readonly rowid: number;
  /** When the verification ended; null while it is pending. For evidence without a verification: 0. */
  readonly endedAtMs: number | null;
}

const prepareAll = (sqlite: Sqlite) => ({
  verifications: sqlite.prepare<AgedRow, [number, number]>(
    `SELECT rowid, iif(status = 'pending', NULL, coalesce(completed_at_ms, created_at_ms)) AS endedAtMs
      FROM verifications WHERE rowid > ? ORDER BY rowid LIMIT ?`,
  ),
  evidence: sqlite.prepare<AgedRow, [number, number]>(
    `SELECT e.rowid, CASE v.status WHEN 'pending' THEN NULL ELSE coalesce(v.completed_at_ms, v.created_at_ms, 0) END
      AS endedAtMs FROM verification_evidence e LEFT JOIN verifications v ON v.id = e.verification_id
      WHERE e.rowid > ? ORDER BY e.rowid LIMIT ?`,
  ),
  removeVerification: sqlite.prepare<unknown, [number]>("DELETE FROM verifications WHERE rowid = ?"),
  removeEvidenceOf: sqlite.prepare<unknown, [number]>(
    "DELETE FROM verification_evidence WHERE verification_id = (SELECT id FROM verifications WHERE rowid = ?)",
  ),
  removeEvidence: sqlite.prepare<unknown, [number]>("DELETE FROM verification_evidence WHERE rowid = ?"),
});

/** Verifications and their evidence in the order of creation (`rowid`), to remove those that have expired. */
export class VerificationExpiryStore {
  readonly #sql: ReturnType<typeof prepareAll>;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareAll(sqlite);
  }

  verificationsAfter(rowid: number, limit: number): AgedRow[] {
    return this.#sql.verifications.all(rowid, limit);
  }

  evidenceAfter(rowid: number, limit: number): AgedRow[] {
    return this.#sql.evidence.all(rowid, limit);
  }

  /** Removes a verification that has ended, with its evidence. */
  removeVerification(_tx: Tx, { rowid }: AgedRow): void {
    this.#sql.removeEvidenceOf.run(rowid);
    this.#sql.removeVerification.run(rowid);
  }

  removeEvidence(_tx: Tx, { rowid }: AgedRow): void {
    this.#sql.removeEvidence.run(rowid);
  }
}
