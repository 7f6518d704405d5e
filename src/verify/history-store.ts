import { and, asc, desc, eq, gte, lt, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../base/secrets.ts";
import type { IdWindow } from "../base/walk.ts";
import type { Db } from "../db/open.ts";
import { verifications } from "../db/schema.ts";
import type { SubStatus, Verdict } from "./result.ts";
import type { VerificationRow } from "./store.ts";

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

const table = verifications;
/** Behind every id. */
const END = "~";
/** The number of milliseconds that the first 12 digits of an id can count (UUIDv7, RFC 9562 §5.7). */
const ID_TIMES = 2 ** 48;

const ownedBy = and(eq(table.accountId, sql.placeholder("accountId")), eq(table.mode, sql.placeholder("mode"))) as SQL;

const prepareBehind = ({ orm }: Db, isOfOwner: SQL) =>
  orm
    .select({ id: table.id })
    .from(table)
    .where(and(isOfOwner, lt(table.id, sql.placeholder("before"))))
    .orderBy(desc(table.id))
    .limit(1)
    .offset(sql.placeholder("places"))
    .prepare();

const prepareAll = (db: Db) => ({
  behindOfAccount: prepareBehind(db, ownedBy),
  behindOfKey: prepareBehind(db, eq(table.keyId, sql.placeholder("keyId"))),
  firstFrom: db.orm
    .select({ createdAtMs: table.createdAtMs })
    .from(table)
    .where(and(ownedBy, gte(table.id, sql.placeholder("id"))))
    .orderBy(asc(table.id))
    .limit(1)
    .prepare(),
});

/** The least id that was made at a time. */
const idOfTime = (time: number): string => {
  const digits = time.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
};

/** Reads the verifications of an account that are not part of a list. */
export class HistoryStore {
  readonly #db: Db;
  readonly #statements: ReturnType<typeof prepareAll>;

  constructor(db: Db) {
    this.#db = db;
    this.#statements = prepareAll(db);
  }

  /**
   * The id this many places behind the newest that is older than `before`, among those of a key or of the account; null when
   * there are fewer.
   */
  idBehind(
    owner: HistoryOwner,
    { keyId }: HistoryFilters,
    { before, places }: { readonly before: string | null; readonly places: number },
  ): string | null {
    const { behindOfAccount, behindOfKey } = this.#statements;
    const place = { before: before ?? END, places };
    const found =
      keyId === undefined ? behindOfAccount.get({ ...owner, ...place }) : behindOfKey.get({ keyId, ...place });
    return found?.id ?? null;
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

  /** The newest first, older than the id `before` and not older than `from`. */
  list(owner: HistoryOwner, filters: HistoryFilters, page: IdWindow): VerificationRow[] {
    const isListed = and(isOf(owner, filters), matching(filters), inWindow(page));
    return this.#db.orm.select().from(table).where(isListed).orderBy(desc(table.id)).limit(page.limit).all();
  }
}

const inWindow = ({ before, from }: IdWindow): SQL | undefined =>
  and(before === null ? undefined : lt(table.id, before), from === undefined ? undefined : gte(table.id, from));

/** Names the one index by which a window is read: a column with a `+` uses none. */
const isOf = ({ accountId, mode }: HistoryOwner, { status, keyId }: HistoryFilters): SQL | undefined => {
  const isOfAccount = sql`+${table.accountId} = ${accountId} and ${table.mode} = ${mode}`;
  if (status === "pending")
    return and(
      isOfAccount,
      keyId === undefined ? undefined : sql`+${table.keyId} = ${keyId}`,
      sql`${table.id} in (select id from verifications indexed by verifications_pending_once
        where account_id = ${accountId} and mode = ${mode} and status = 'pending')`,
    );
  if (keyId !== undefined) return and(isOfAccount, eq(table.keyId, keyId));
  return and(eq(table.accountId, accountId), eq(table.mode, mode));
};

const matching = (filters: HistoryFilters): SQL | undefined => {
  const { status, verdict, subStatus, source, email, fromMs, beforeMs } = filters;
  const text = filters.text?.toLowerCase();
  return and(
    status === undefined ? undefined : eq(table.status, status),
    verdict === undefined ? undefined : eq(table.verdict, verdict),
    subStatus === undefined ? undefined : eq(table.subStatus, subStatus),
    source === undefined ? undefined : eq(table.source, source),
    // Not by the index of pending ones, which has no order.
    email === undefined ? undefined : sql`+${table.normalizedEmail} = ${email}`,
    fromMs === undefined ? undefined : gte(table.createdAtMs, fromMs),
    beforeMs === undefined ? undefined : lt(table.createdAtMs, beforeMs),
    text === undefined
      ? undefined
      : sql`(instr(${table.normalizedEmail}, ${text}) > 0 or instr(lower(${table.email}), ${text}) > 0)`,
  );
};
