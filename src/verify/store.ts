import dictionary1 from "../../fixtures/evidence-dictionary-1.txt" with { type: "text" };
import dictionary2 from "../../fixtures/evidence-dictionary-2.txt" with { type: "text" };
import dictionary3 from "../../fixtures/evidence-dictionary-3.txt" with { type: "text" };
import dictionary4 from "../../fixtures/evidence-dictionary-4.txt" with { type: "text" };
import { and, asc, getTableColumns, gt, gte, lte, or, sql } from "drizzle-orm";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { verifications } from "../foundation/db/schema.ts";
import { type Evidence, evidenceSchema } from "./evidence.ts";
import type { SubStatus, Verdict } from "./result.ts";
import { deflateRawSync, inflateRawSync, zstdDecompressSync } from "node:zlib";
import type { Database as Sqlite } from "bun:sqlite";
import { prepareRowInsert, statements } from "../foundation/db/statements.ts";

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
const prepareAll = ({ sqlite }: Db) =>
  statements({
    insert: () => {
      const names = columns.map(([, { name }]) => name).join(", ");
      return prepareRowInsert({ sqlite }, { into: `verifications (${names})`, columns: columns.length });
    },
    find: () => sqlite.prepare<VerificationRow, [string]>(`SELECT ${ROW} FROM verifications WHERE id = ?`),
    findPending: () =>
      sqlite.prepare<VerificationRow, [string, KeyMode, string]>(
        `SELECT ${ROW} FROM verifications
      WHERE account_id = ? AND mode = ? AND normalized_email = ? AND status = 'pending'`,
      ),
    complete: () =>
      sqlite.prepare<unknown, [Verdict, SubStatus, string, number, number, string]>(
        `UPDATE verifications SET status = 'completed', due_at_ms = NULL, verdict = ?, sub_status = ?, result = ?,
      completed_at_ms = ?, attempts = ? WHERE id = ? AND status = 'pending'`,
      ),
    postpone: () =>
      sqlite.prepare<unknown, [number, number, string]>(
        "UPDATE verifications SET due_at_ms = ?, attempts = ? WHERE id = ? AND status = 'pending'",
      ),
    saveEvidence: () =>
      prepareRowInsert(
        { sqlite },
        {
          into: "verification_evidence (verification_id, body)",
          columns: 2,
          ending: "ON CONFLICT (verification_id) DO UPDATE SET body = excluded.body",
        },
      ),
    findEvidence: () =>
      sqlite.prepare<{ body: Uint8Array | string }, [string]>(
        "SELECT body FROM verification_evidence WHERE verification_id = ?",
      ),
    remove: () => sqlite.prepare<unknown, [string]>("DELETE FROM verifications WHERE id = ? AND status <> 'pending'"),
    removeEvidence: () =>
      sqlite.prepare<unknown, [string]>("DELETE FROM verification_evidence WHERE verification_id = ?"),
  });

/** The verifications that are not part of a list, with their evidence. */
export class VerificationStore {
  readonly #statements;

  constructor(private readonly db: Db) {
    this.#statements = prepareAll(db);
  }

  insert(_tx: Tx, ...rows: readonly VerificationRow[]): void {
    this.#statements.insert(rows.map((row) => columns.map(([property]) => row[property])));
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

  /** Stores evidence as `packEvidence` returned it, each with the id of its verification; it replaces what was stored before. */
  saveEvidence(_tx: Tx, ...packed: ReadonlyArray<readonly [id: string, body: Uint8Array]>): void {
    this.#statements.saveEvidence(packed);
  }

  /** The evidence collected so far; undefined without any, or when it has expired. */
  findEvidence(id: string): Evidence | undefined {
    const packed = this.findPackedEvidence(id);
    return packed === undefined ? undefined : unpackEvidence(packed);
  }

  findPackedEvidence(id: string): Uint8Array | undefined {
    const body = this.#statements.findEvidence.get(id)?.body;
    return typeof body === "string" ? Buffer.from(body) : body;
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
    return this.db.orm.select().from(table).where(isDue).orderBy(asc(table.dueAtMs), asc(table.id)).limit(limit).all();
  }

  /** Makes everything that is due later than `latestMs` due at `dueAtMs`. */
  dueAtLatest(latestMs: number, dueAtMs: number): void {
    const isLater = and(isPending, gt(table.dueAtMs, latestMs));
    this.db.orm.update(table).set({ dueAtMs }).where(isLater).run();
  }

  /** When the next pending verification after `afterMs` is due; null when there is none. */
  nextDueMs(afterMs: number): number | null {
    const row = this.db.orm
      .select({ dueAtMs: sql<number | null>`min(due_at_ms)` })
      .from(table)
      .where(and(isPending, sql`due_at_ms > ${afterMs}`))
      .get();
    return row?.dueAtMs ?? null;
  }
}

/** Typical evidence. It must not change: what was compressed with it could not be read any more. */
const DICTIONARIES = [dictionary1, dictionary2, dictionary3, dictionary4].map((text) => Buffer.from(text));
const [ZSTD_DICTIONARY, SECOND_DICTIONARY, THIRD_DICTIONARY, DICTIONARY] = DICTIONARIES;

/** How evidence is read, by the number that precedes it. One that was ever written stays; a better one gets the next number. */
const READERS = new Map<number, (packed: Uint8Array) => string>([
  [1, (packed) => withPresentNames(zstdDecompressSync(packed, { dictionary: ZSTD_DICTIONARY }).toString())],
  [2, (packed) => withPresentNames(inflateRawSync(packed, { dictionary: SECOND_DICTIONARY }).toString())],
  [3, (packed) => withPresentNames(inflateRawSync(packed, { dictionary: THIRD_DICTIONARY }).toString())],
  [4, (packed) => inflateRawSync(packed, { dictionary: DICTIONARY }).toString()],
]);
const CURRENT = 4;
/** Stronger levels save a tenth and take twice as long. A window of 16 kB covers the dictionary and ordinary evidence. */
const DEFLATE_OPTIONS = { level: 1, memLevel: 4, windowBits: 14, chunkSize: 1024, dictionary: DICTIONARY };

/** Names in the JSON of the formats before 4, and their present names. Inside a text, these quotes are escaped. */
const FORMER_NAMES: ReadonlyArray<readonly [former: string, present: string]> = [
  ['"dialogues":', '"sessions":'],
  ['"questions":', '"dns_queries":'],
  ['"exit":', '"egress":'],
  ['"remembered_since":', '"cooldown_since":'],
  ['"rule":"dialogue-out-of-step"', '"rule":"replies-out-of-sync"'],
  ['"rule":"no_exit"', '"rule":"no_egress"'],
  ['"outcome":"answer"', '"outcome":"response"'],
];

const withPresentNames = (json: string): string =>
  FORMER_NAMES.reduce((text, [former, present]) => text.replaceAll(former, present), json);

/** First byte of evidence that was stored as plain JSON. */
const BRACE = 0x7b;

/**
 * Evidence as it is stored: the number of a format, then its JSON compressed by DEFLATE (RFC 1951) with a dictionary. 3 kB of
 * JSON come to 300 to 500 bytes, as with zstd (format 1), which takes twice as long for texts as short as these.
 */
export const packEvidence = (evidence: Evidence): Buffer =>
  Buffer.concat([Buffer.of(CURRENT), deflateRawSync(JSON.stringify(evidence), DEFLATE_OPTIONS)]);

/** Reads what `packEvidence` returned, or plain JSON. Throws when it is neither. */
export const unpackEvidence = (stored: Uint8Array): Evidence => evidenceSchema.parse(JSON.parse(evidenceJson(stored)));

/** The JSON of stored evidence. Throws when it cannot be unpacked. */
export const evidenceJson = (stored: Uint8Array): string => {
  if (stored[0] === BRACE) return withPresentNames(Buffer.from(stored).toString());
  const read = READERS.get(stored[0] ?? 0);
  if (read === undefined) throw new Error(`evidence packed in the unknown format ${stored[0]}`);
  return read(stored.subarray(1));
};

/** A row in the order of creation, as far as its expiry needs it. */
export interface AgedRow {
  readonly rowid: number;
  /** When the verification ended; null while it is pending. For evidence without a verification: 0. */
  readonly endedAtMs: number | null;
}

const prepareExpiry = (sqlite: Sqlite) =>
  statements({
    verifications: () =>
      sqlite.prepare<AgedRow, [number, number]>(
        `SELECT rowid, iif(status = 'pending', NULL, coalesce(completed_at_ms, created_at_ms)) AS endedAtMs
      FROM verifications WHERE rowid > ? ORDER BY rowid LIMIT ?`,
      ),
    evidence: () =>
      sqlite.prepare<AgedRow, [number, number]>(
        `SELECT e.rowid, CASE v.status WHEN 'pending' THEN NULL ELSE coalesce(v.completed_at_ms, v.created_at_ms, 0) END
      AS endedAtMs FROM verification_evidence e LEFT JOIN verifications v ON v.id = e.verification_id
      WHERE e.rowid > ? ORDER BY e.rowid LIMIT ?`,
      ),
    removeVerification: () => sqlite.prepare<unknown, [number]>("DELETE FROM verifications WHERE rowid = ?"),
    removeEvidenceOf: () =>
      sqlite.prepare<unknown, [number]>(
        "DELETE FROM verification_evidence WHERE verification_id = (SELECT id FROM verifications WHERE rowid = ?)",
      ),
    removeEvidence: () => sqlite.prepare<unknown, [number]>("DELETE FROM verification_evidence WHERE rowid = ?"),
  });

/** Verifications and their evidence in the order of creation (`rowid`), to remove those that have expired. */
export class VerificationExpiryStore {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareExpiry(sqlite);
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
