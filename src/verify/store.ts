import { and, asc, desc, eq, getTableColumns, gt, gte, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { verificationEvidence, verifications } from "../db/schema.ts";
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

/** A placeholder for each column. */
const placeholders = () => {
  const values = {} as Record<keyof VerificationRow, ReturnType<typeof sql.placeholder>>;
  for (const name of Object.keys(getTableColumns(table)) as Array<keyof VerificationRow>)
    values[name] = sql.placeholder(name);
  return values;
};
const param = (name: string) => sql`${sql.placeholder(name)}`;
const byId = eq(table.id, sql.placeholder("id"));
const isPending = sql`status = 'pending'`;

const prepareAll = ({ orm }: Db) => ({
  insert: orm.insert(table).values(placeholders()).prepare(),
  find: orm.select().from(table).where(byId).prepare(),
  findPending: orm
    .select()
    .from(table)
    .where(
      and(
        eq(table.accountId, sql.placeholder("accountId")),
        eq(table.mode, sql.placeholder("mode")),
        eq(table.normalizedEmail, sql.placeholder("normalizedEmail")),
        isPending,
      ),
    )
    .prepare(),
  complete: orm
    .update(table)
    .set({
      ...{ status: "completed", dueAtMs: null, verdict: param("verdict"), subStatus: param("subStatus") },
      ...{ result: param("result"), completedAtMs: param("completedAtMs"), attempts: param("attempts") },
    })
    .where(and(byId, isPending))
    .returning({ id: table.id })
    .prepare(),
  postpone: orm
    .update(table)
    .set({ dueAtMs: param("dueAtMs"), attempts: param("attempts") })
    .where(and(byId, isPending))
    .returning({ id: table.id })
    .prepare(),
  saveEvidence: orm
    .insert(verificationEvidence)
    .values({ verificationId: sql.placeholder("id"), body: sql.placeholder("body") })
    .onConflictDoUpdate({ target: verificationEvidence.verificationId, set: { body: sql`excluded.body` } })
    .prepare(),
  findEvidence: orm
    .select({ body: verificationEvidence.body })
    .from(verificationEvidence)
    .where(eq(verificationEvidence.verificationId, sql.placeholder("id")))
    .prepare(),
  remove: orm
    .delete(table)
    .where(and(byId, sql`status <> 'pending'`))
    .returning({ id: table.id })
    .prepare(),
  removeEvidence: orm
    .delete(verificationEvidence)
    .where(eq(verificationEvidence.verificationId, sql.placeholder("id")))
    .prepare(),
  idBehind: orm
    .select({ id: table.id })
    .from(table)
    .where(and(eq(table.keyId, sql.placeholder("keyId")), lt(table.id, sql.placeholder("before"))))
    .orderBy(desc(table.id))
    .limit(1)
    .offset(sql.placeholder("places"))
    .prepare(),
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
    this.#statements.insert.run({ ...row });
  }

  find(id: string): VerificationRow | undefined {
    return this.#statements.find.get({ id });
  }

  findPending(accountId: string, mode: KeyMode, normalizedEmail: string): VerificationRow | undefined {
    return this.#statements.findPending.get({ accountId, mode, normalizedEmail });
  }

  /** Ends a pending verification; false when it had ended already. */
  complete(_tx: Tx, id: string, completion: Completion): boolean {
    return this.#statements.complete.get({ id, ...completion }) !== undefined;
  }

  /** Sets the time of the next attempt; false when the verification has ended already. */
  postpone(_tx: Tx, id: string, dueAtMs: number, attempts: number): boolean {
    return this.#statements.postpone.get({ id, dueAtMs, attempts }) !== undefined;
  }

  saveEvidence(_tx: Tx, id: string, evidence: Evidence): void {
    this.#statements.saveEvidence.run({ id, body: packEvidence(evidence) });
  }

  /** The evidence collected so far; undefined without any, or when it has expired. */
  findEvidence(id: string): Evidence | undefined {
    const body = this.#statements.findEvidence.get({ id })?.body;
    return body === undefined ? undefined : unpackEvidence(typeof body === "string" ? Buffer.from(body) : body);
  }

  /** Removes a verification that has ended, with its evidence; false when it is pending or there is none. */
  remove(_tx: Tx, id: string): boolean {
    if (this.#statements.remove.get({ id }) === undefined) return false;
    this.#statements.removeEvidence.run({ id });
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
    return this.#statements.idBehind.get({ keyId, before: before ?? AFTER_ALL_IDS, places })?.id ?? null;
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
