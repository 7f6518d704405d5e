import type { Statement } from "bun:sqlite";
import { cached } from "../foundation/base/bounded-map.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import type { IdWindow } from "../foundation/base/walk.ts";
import type { Db } from "../foundation/db/open.ts";
import { verifications } from "../foundation/db/schema.ts";
import { SUB_STATUSES, type SubStatus, type Verdict, VERDICT_OF } from "./result.ts";
import type { VerificationRow } from "./store.ts";
import { selectionOf } from "../foundation/db/statements.ts";

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

/** Behind every id. */
const END = "~";
/** Behind every other character in the order of the database. */
const LAST_CHARACTER = "\u{10ffff}";
/** The number of milliseconds that the first 12 digits of an id can count (UUIDv7, RFC 9562 §5.7). */
const ID_TIMES = 2 ** 48;

const OWNED = "account_id = $accountId AND mode = $mode";
const ROWS = `SELECT ${selectionOf(verifications)} FROM verifications`;
/** `$ids`: as JSON. */
const BY_IDS = `${ROWS} WHERE id IN (SELECT value FROM json_each($ids)) ORDER BY id DESC`;
const FIRST_FROM = `SELECT created_at_ms createdAtMs FROM verifications WHERE ${OWNED} AND id >= $id ORDER BY id LIMIT 1`;

type Parameters = Readonly<Record<string, string | number>>;

/** Statements that are kept: filters make few. */
const STATEMENTS_KEPT = 100;

/** The least id that was made at a time. */
export const idOfTime = (time: number): string => {
  const digits = time.toString(16).padStart(12, "0");
  return `${digits.slice(0, 8)}-${digits.slice(8)}`;
};

/** Reads the verifications of an account that are not part of a list. */
export class HistoryStore {
  readonly #prepared: (text: string) => Statement<unknown, [Parameters]>;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#prepared = cached(STATEMENTS_KEPT, (text) => sqlite.prepare(text));
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
    const values = { ...valuesOf(owner, filters), ...given({ before, places }) };
    const ids = lanesOf(filters).map(({ lane, ...ofLane }) => {
      const isBehind = [lane, ...inWindow({ before })].join(" AND ");
      const text = `SELECT id FROM verifications WHERE ${isBehind} ORDER BY id DESC LIMIT 1 OFFSET $places`;
      return this.#all<Pick<VerificationRow, "id">>(text, { ...values, ...ofLane })[0]?.id;
    });
    return ids.reduce<string | null>(
      (last, id) => (id !== undefined && (last === null || id > last) ? id : last),
      null,
    );
  }

  /** How many are in the lanes of the filters, counted up to `max`: an index alone answers it. */
  count(owner: HistoryOwner, filters: LaneFilters, max: number): number {
    const values = valuesOf(owner, filters);
    return lanesOf(filters).reduce((sum, { lane, ...ofLane }) => {
      if (sum >= max) return sum;
      const text = `SELECT count(*) rows FROM (SELECT id FROM verifications WHERE ${lane} LIMIT $limit)`;
      const [counted] = this.#all<{ rows: number }>(text, { ...values, ...ofLane, limit: max - sum });
      return sum + (counted?.rows ?? 0);
    }, 0);
  }

  /**
   * The least id of verifications that were requested at or after a time. Ids grow with the time of requests, so that
   * this is found in 48 look-ups.
   */
  firstIdFrom({ accountId, mode }: HistoryOwner, atMs: number): string {
    let [low, high] = [0, ID_TIMES];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const [first] = this.#all<Pick<VerificationRow, "createdAtMs">>(FIRST_FROM, {
        accountId,
        mode,
        id: idOfTime(middle),
      });
      if (first === undefined || first.createdAtMs >= atMs) high = middle;
      else low = middle + 1;
    }
    return low === ID_TIMES ? END : idOfTime(low);
  }

  /** The newest verification of each of the first addresses that begin with a text in lower case. */
  beginning({ accountId, mode }: HistoryOwner, text: string, limit: number): VerificationRow[] {
    const rows: VerificationRow[] = [];
    const end = text + LAST_CHARACTER;
    for (let after: string | null = null; rows.length < limit;) {
      const isBehind: string = after === null ? "normalized_email >= $after" : "normalized_email > $after";
      const [next]: Array<{ email: string }> = this.#all(
        `SELECT normalized_email email FROM verifications WHERE ${OWNED} AND normalized_email < $end AND ${isBehind}
          ORDER BY normalized_email LIMIT 1`,
        { accountId, mode, end, after: after ?? text },
      );
      if (next === undefined) break;
      after = next.email;
      rows.push(...this.list({ accountId, mode }, { email: next.email }, { before: null, limit: 1 }));
    }
    return rows;
  }

  /** The newest first, older than the id `before` and not older than `from`. */
  list(owner: HistoryOwner, filters: LaneFilters, page: IdWindow): VerificationRow[] {
    const values = { ...valuesOf(owner, filters), ...given({ ...page }) };
    const lanes = lanesOf(filters).map(({ lane, ...ofLane }) => {
      const isListed = [lane, ...matching(filters), ...inWindow(page)].join(" AND ");
      return { text: `WHERE ${isListed} ORDER BY id DESC LIMIT $limit`, values: { ...values, ...ofLane } };
    });
    const [lane] = lanes;
    if (lane !== undefined && lanes.length === 1) return this.#all(`${ROWS} ${lane.text}`, lane.values);
    const ids = lanes.flatMap((one) =>
      this.#all<Pick<VerificationRow, "id">>(`SELECT id FROM verifications ${one.text}`, one.values),
    );
    const newest = ids.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1));
    return this.#all(BY_IDS, { ids: JSON.stringify(newest.slice(0, page.limit)) });
  }

  #all<R>(text: string, parameters: Parameters): R[] {
    return this.#prepared(text).all(parameters) as R[];
  }
}

const inWindow = ({ before, from }: Pick<IdWindow, "before" | "from">): readonly string[] => [
  ...(before === null ? [] : ["id < $before"]),
  ...(from === undefined ? [] : ["id >= $from"]),
];

const given = (values: Readonly<Record<string, string | number | boolean | null | undefined>>): Parameters =>
  Object.fromEntries(
    Object.entries(values).filter(
      (entry): entry is [string, string | number] => entry[1] !== undefined && entry[1] !== null,
    ),
  );

/** The parameters of the conditions, named like the filters. */
const valuesOf = ({ accountId, mode }: HistoryOwner, filters: LaneFilters): Parameters =>
  given({ ...filters, text: filters.text?.toLowerCase(), accountId, mode });

/** A condition, and the parameter that only this one has. */
interface Lane {
  readonly lane: string;
  readonly subStatus?: SubStatus;
}

/**
 * What a list is read by: pieces of the history that one index has in the order of ids, so that what a filter keeps out is not
 * looked at. A column with a `+` uses no index.
 */
const lanesOf = (filters: LaneFilters): readonly Lane[] => {
  const { status, keyId, email, source, isReadByKey = true } = filters;
  if (status === "pending")
    return [
      {
        lane: `+account_id = $accountId AND mode = $mode AND id IN (SELECT id FROM verifications
          INDEXED BY verifications_pending_once WHERE ${OWNED} AND status = 'pending')`,
      },
    ];
  if (email !== undefined) return [{ lane: `${OWNED} AND normalized_email = $email` }];
  if (source !== undefined) return [{ lane: `${OWNED} AND source = $source` }];
  const subStatuses = subStatusesOf(filters);
  if (keyId !== undefined && (isReadByKey || subStatuses.length === 0))
    return [{ lane: "+account_id = $accountId AND mode = $mode AND key_id = $keyId" }];
  if (subStatuses.length === 0) return [{ lane: OWNED }];
  return subStatuses.map((subStatus) => ({ lane: `${OWNED} AND sub_status = $subStatus`, subStatus }));
};

const subStatusesOf = ({ verdict, subStatus }: HistoryFilters): readonly SubStatus[] => {
  if (subStatus !== undefined) return [subStatus];
  return verdict === undefined ? [] : SUB_STATUSES.filter((one) => VERDICT_OF[one] === verdict);
};

/** Conditions on the rows of a lane; none of them selects an index. */
const MATCHING = {
  status: "status = $status",
  verdict: "verdict = $verdict",
  subStatus: "+sub_status = $subStatus",
  keyId: "+key_id = $keyId",
  source: "+source = $source",
  email: "+normalized_email = $email",
  fromMs: "created_at_ms >= $fromMs",
  beforeMs: "created_at_ms < $beforeMs",
  text: "(instr(normalized_email, $text) > 0 OR instr(lower(email), $text) > 0)",
} as const satisfies Readonly<Record<keyof HistoryFilters, string>>;

const matching = (filters: HistoryFilters): readonly string[] =>
  Object.entries(MATCHING).flatMap(([name, condition]) =>
    filters[name as keyof HistoryFilters] === undefined ? [] : [condition],
  );
