import { and, asc, desc, eq, gt, gte, lt, lte, or, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { verificationEvidence, verifications } from "../db/schema.ts";
import type { SubStatus, Verdict } from "./result.ts";

/** A verification as it is stored. `result` is the result object as JSON text, null while pending. */
export interface VerificationRow {
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly mode: KeyMode;
  readonly email: string;
  readonly normalizedEmail: string;
  readonly source: string | null;
  readonly status: "pending" | "completed";
  readonly verdict: string | null;
  readonly subStatus: string | null;
  readonly result: string | null;
  readonly createdAtMs: number;
  readonly completedAtMs: number | null;
  readonly dueAtMs: number | null;
  readonly attempts: number;
}

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

const placeholders = <N extends string>(names: readonly N[]) => {
  const values = {} as Record<N, ReturnType<typeof sql.placeholder>>;
  for (const name of names) values[name] = sql.placeholder(name);
  return values;
};

const COLUMNS = [
  "id",
  "accountId",
  "keyId",
  "mode",
  "email",
  "normalizedEmail",
  "source",
  "status",
  "verdict",
  "subStatus",
  "result",
  "createdAtMs",
  "completedAtMs",
  "dueAtMs",
  "attempts",
] as const;

export const createVerificationStore = (db: Db) => {
  const table = verifications;
  const insert = db.orm.insert(table).values(placeholders(COLUMNS)).prepare();
  const byId = db.orm
    .select()
    .from(table)
    .where(eq(table.id, sql.placeholder("id")))
    .prepare();
  const pendingFor = db.orm
    .select()
    .from(table)
    .where(
      and(
        eq(table.accountId, sql.placeholder("accountId")),
        eq(table.mode, sql.placeholder("mode")),
        eq(table.normalizedEmail, sql.placeholder("normalizedEmail")),
        sql`status = 'pending'`,
      ),
    )
    .prepare();
  const isPending = and(eq(table.id, sql.placeholder("id")), sql`status = 'pending'`);
  const end = db.orm
    .update(table)
    .set({
      status: "completed",
      dueAtMs: null,
      verdict: sql`${sql.placeholder("verdict")}`,
      subStatus: sql`${sql.placeholder("subStatus")}`,
      result: sql`${sql.placeholder("result")}`,
      completedAtMs: sql`${sql.placeholder("completedAtMs")}`,
      attempts: sql`${sql.placeholder("attempts")}`,
    })
    .where(isPending)
    .returning({ id: table.id })
    .prepare();
  const later = db.orm
    .update(table)
    .set({ dueAtMs: sql`${sql.placeholder("dueAtMs")}`, attempts: sql`${sql.placeholder("attempts")}` })
    .where(isPending)
    .returning({ id: table.id })
    .prepare();
  const putEvidence = db.orm
    .insert(verificationEvidence)
    .values({ verificationId: sql.placeholder("id"), body: sql.placeholder("body") })
    .onConflictDoUpdate({ target: verificationEvidence.verificationId, set: { body: sql`excluded.body` } })
    .prepare();
  const behind = db.orm
    .select({ id: table.id })
    .from(table)
    .where(and(eq(table.keyId, sql.placeholder("keyId")), lt(table.id, sql.placeholder("before"))))
    .orderBy(desc(table.id))
    .limit(1)
    .offset(sql.placeholder("places"))
    .prepare();
  const readEvidence = db.orm
    .select({ body: verificationEvidence.body })
    .from(verificationEvidence)
    .where(eq(verificationEvidence.verificationId, sql.placeholder("id")))
    .prepare();

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

  return {
    insert: (_tx: Tx, row: VerificationRow): void => void insert.run({ ...row }),
    find: (id: string): VerificationRow | undefined => byId.get({ id }),
    findPending: (accountId: string, mode: KeyMode, normalizedEmail: string): VerificationRow | undefined =>
      pendingFor.get({ accountId, mode, normalizedEmail }),

    /** Ends a pending verification; false when it had ended already. */
    complete: (_tx: Tx, id: string, completion: Completion): boolean => end.get({ id, ...completion }) !== undefined,
    /** Sets the time of the next attempt; false when the verification has ended already. */
    postpone: (_tx: Tx, id: string, dueAtMs: number, attempts: number): boolean =>
      later.get({ id, dueAtMs, attempts }) !== undefined,

    saveEvidence: (_tx: Tx, id: string, body: string): void => void putEvidence.run({ id, body }),
    findEvidence: (id: string): string | undefined => readEvidence.get({ id })?.body,

    /** Pending verifications due up to `nowMs`, in the order of their time, from behind `after`. */
    due: (after: { dueAtMs: number; id: string }, nowMs: number, limit: number): VerificationRow[] =>
      db.orm
        .select()
        .from(table)
        .where(
          and(
            sql`status = 'pending'`,
            lte(table.dueAtMs, nowMs),
            gte(table.dueAtMs, after.dueAtMs),
            or(gt(table.dueAtMs, after.dueAtMs), gt(table.id, after.id)),
          ),
        )
        .orderBy(asc(table.dueAtMs), asc(table.id))
        .limit(limit)
        .all(),
    /** Whatever is due later than `latestMs` is due at `dueAtMs`. */
    dueAtLatest: (latestMs: number, dueAtMs: number): void =>
      void db.orm
        .update(table)
        .set({ dueAtMs })
        .where(and(sql`status = 'pending'`, gt(table.dueAtMs, latestMs)))
        .run(),
    /** When the next pending verification after `afterMs` is due. */
    nextDueMs: (afterMs: number): number | null =>
      db.orm
        .select({ dueAtMs: sql<number | null>`min(due_at_ms)` })
        .from(table)
        .where(and(sql`status = 'pending'`, sql`due_at_ms > ${afterMs}`))
        .get()?.dueAtMs ?? null,

    /** Of one key: the id so many places behind the newest older than `before`; null when there are no so many. */
    idBehind: (keyId: string, before: string | null, places: number): string | null =>
      behind.get({ keyId, before: before ?? AFTER_ALL_IDS, places })?.id ?? null,
    /** Newest first, those of one key, older than the id `before` and not older than `from`. */
    list: (keyId: string, filters: ListFilters, page: IdWindow): VerificationRow[] =>
      db.orm
        .select()
        .from(table)
        .where(matching(keyId, filters, page))
        .orderBy(desc(table.id))
        .limit(page.limit)
        .all(),
  };
};

export type VerificationStore = ReturnType<typeof createVerificationStore>;
