import { and, asc, count, desc, eq, gt, gte, inArray, lt, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { IdWindow } from "../foundation/base/walk.ts";
import type { Db } from "../foundation/db/open.ts";
import { verifications } from "../foundation/db/schema.ts";
import { SUB_STATUSES, type SubStatus, type Verdict, VERDICT_OF } from "./result.ts";
import type { VerificationRow } from "./store.ts";
import { statements } from "../foundation/db/statements.ts";

/** Whose verifications: those of all keys and users of an account. */
export interface HistoryOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface HistoryFilters {
  readonly status?: "pending" | "completed" | undefined;
  readonly verdict?: Verdict | undefined;
  readonly subStatus?: SubStatus | undefined;
  /** An API key, or a user of the dashboard (`user:<id>`). */
  readonly keyId?: string | undefined;
  /** The label of the request. */
  readonly source?: string | undefined;
  /** A normalized address. */
  readonly email?: string | undefined;
  /** Part of an address; upper and lower case are the same. */
  readonly text?: string | undefined;
  /** Requested at or after this time. */
  readonly fromMs?: number | undefined;
  /** Requested before this time. */
  readonly beforeMs?: number | undefined;
}

/** `isReadByKey`: the key has fewer rows than the results that are wanted. */
export interface LaneFilters extends HistoryFilters {
  readonly isReadByKey?: boolean;
}

const table = verifications;
/** Behind every id. */
const END = "~";
/** Behind every other character in the order of the database. */
const LAST_CHARACTER = "\u{10ffff}";
/** The number of milliseconds that the first 12 digits of an id can count (UUIDv7, RFC 9562 §5.7). */
const ID_TIMES = 2 ** 48;

const ownedBy = and(eq(table.accountId, sql.placeholder("accountId")), eq(table.mode, sql.placeholder("mode"))) as SQL;

const prepareAll = (db: Db) =>
  statements({
    firstFrom: () =>
      db.orm
        .select({ createdAtMs: table.createdAtMs })
        .from(table)
        .where(and(ownedBy, gte(table.id, sql.placeholder("id"))))
        .orderBy(asc(table.id))
        .limit(1)
        .prepare(),
  });

/** The least id that was made at a time. */
export const idOfTime = (time: number): string => {
  const digits = time.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
};

/** Reads the verifications of an account that are not part of a list. */
export class HistoryStore {
  readonly #statements;

  constructor(private readonly db: Db) {
    this.#statements = prepareAll(db);
  }

  /**
   * The id this many places behind the newest that is older than `before`, in one of the lanes of the filters; null when there
   * are fewer in each.
   */
  idBehind(
    owner: HistoryOwner,
    filters: LaneFilters,
    { before, places }: { readonly before: string | null; readonly places: number },
  ): string | null {
    const ids = lanesOf(owner, filters).map((lane) => {
      const isBehind = and(lane, before === null ? undefined : lt(table.id, before));
      const found = this.db.orm.select({ id: table.id }).from(table).where(isBehind).orderBy(desc(table.id));
      return found.limit(1).offset(places).get()?.id;
    });
    return ids.reduce<string | null>(
      (last, id) => (id !== undefined && (last === null || id > last) ? id : last),
      null,
    );
  }

  /** How many are in the lanes of the filters, counted up to `max`: an index alone answers it. */
  count(owner: HistoryOwner, filters: LaneFilters, max: number): number {
    return lanesOf(owner, filters).reduce((sum, lane) => {
      if (sum >= max) return sum;
      const found = this.db.orm.select({ id: table.id }).from(table).where(lane);
      const [counted] = this.db.orm
        .select({ rows: count() })
        .from(found.limit(max - sum).as("found"))
        .all();
      return sum + (counted?.rows ?? 0);
    }, 0);
  }

  /**
   * The least id of verifications that were requested at or after a time. Ids grow with the time of requests, so that
   * this is found in 48 look-ups.
   */
  firstIdFrom(owner: HistoryOwner, atMs: number): string {
    let [low, high] = [0, ID_TIMES];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const first = this.#statements.firstFrom.get({ ...owner, id: idOfTime(middle) });
      if (first === undefined || first.createdAtMs >= atMs) high = middle;
      else low = middle + 1;
    }
    return low === ID_TIMES ? END : idOfTime(low);
  }

  /** The newest verification of each of the first addresses that begin with a text in lower case. */
  beginning(owner: HistoryOwner, text: string, limit: number): VerificationRow[] {
    const rows: VerificationRow[] = [];
    const ofOwner = and(eq(table.accountId, owner.accountId), eq(table.mode, owner.mode));
    const isBeginning = and(ofOwner, lt(table.normalizedEmail, text + LAST_CHARACTER));
    for (let after: string | null = null; rows.length < limit;) {
      const isBehind = after === null ? gte(table.normalizedEmail, text) : gt(table.normalizedEmail, after);
      const found = this.db.orm.select({ email: table.normalizedEmail }).from(table).where(and(isBeginning, isBehind));
      const next = found.orderBy(asc(table.normalizedEmail)).limit(1).get();
      if (next === undefined) break;
      after = next.email;
      rows.push(...this.list(owner, { email: next.email }, { before: null, limit: 1 }));
    }
    return rows;
  }

  /** The newest first, older than the id `before` and not older than `from`. */
  list(owner: HistoryOwner, filters: LaneFilters, page: IdWindow): VerificationRow[] {
    const { orm } = this.db;
    const lanes = lanesOf(owner, filters).map((lane) => and(lane, matching(filters), inWindow(page)));
    const [lane] = lanes;
    if (lanes.length === 1) return orm.select().from(table).where(lane).orderBy(desc(table.id)).limit(page.limit).all();
    const ids = lanes.flatMap((one) =>
      orm.select({ id: table.id }).from(table).where(one).orderBy(desc(table.id)).limit(page.limit).all(),
    );
    const newest = ids.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1));
    const isListed = inArray(table.id, newest.slice(0, page.limit));
    return orm.select().from(table).where(isListed).orderBy(desc(table.id)).all();
  }
}

const inWindow = ({ before, from }: IdWindow): SQL | undefined =>
  and(before === null ? undefined : lt(table.id, before), from === undefined ? undefined : gte(table.id, from));

/**
 * What a list is read by: pieces of the history that one index has in the order of ids, so that what a filter keeps out is not
 * looked at. A column with a `+` uses no index.
 */
const lanesOf = ({ accountId, mode }: HistoryOwner, filters: LaneFilters): readonly SQL[] => {
  const { status, keyId, email, source, isReadByKey = true } = filters;
  const ofOwner = (...more: Array<SQL | undefined>) =>
    and(eq(table.accountId, accountId), eq(table.mode, mode), ...more) as SQL;
  if (status === "pending")
    return [
      sql`+${table.accountId} = ${accountId} and ${table.mode} = ${mode}
        and ${table.id} in (select id from verifications indexed by verifications_pending_once
          where account_id = ${accountId} and mode = ${mode} and status = 'pending')`,
    ];
  if (email !== undefined) return [ofOwner(eq(table.normalizedEmail, email))];
  if (source !== undefined) return [ofOwner(eq(table.source, source))];
  const subStatuses = subStatusesOf(filters);
  if (keyId !== undefined && (isReadByKey || subStatuses.length === 0))
    return [sql`+${table.accountId} = ${accountId} and ${table.mode} = ${mode} and ${table.keyId} = ${keyId}`];
  if (subStatuses.length === 0) return [ofOwner()];
  return subStatuses.map((subStatus) => ofOwner(eq(table.subStatus, subStatus)));
};

const subStatusesOf = ({ verdict, subStatus }: HistoryFilters): readonly SubStatus[] => {
  if (subStatus !== undefined) return [subStatus];
  return verdict === undefined ? [] : SUB_STATUSES.filter((one) => VERDICT_OF[one] === verdict);
};

/** Conditions on the rows of a lane; none of them selects an index. */
const matching = (filters: HistoryFilters): SQL | undefined => {
  const { status, verdict, subStatus, keyId, source, email, fromMs, beforeMs } = filters;
  const text = filters.text?.toLowerCase();
  return and(
    status === undefined ? undefined : eq(table.status, status),
    verdict === undefined ? undefined : eq(table.verdict, verdict),
    subStatus === undefined ? undefined : sql`+${table.subStatus} = ${subStatus}`,
    keyId === undefined ? undefined : sql`+${table.keyId} = ${keyId}`,
    source === undefined ? undefined : sql`+${table.source} = ${source}`,
    email === undefined ? undefined : sql`+${table.normalizedEmail} = ${email}`,
    fromMs === undefined ? undefined : gte(table.createdAtMs, fromMs),
    beforeMs === undefined ? undefined : lt(table.createdAtMs, beforeMs),
    text === undefined
      ? undefined
      : sql`(instr(${table.normalizedEmail}, ${text}) > 0 or instr(lower(${table.email}), ${text}) > 0)`,
  );
};
