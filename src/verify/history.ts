import { cached } from "../foundation/base/bounded-map.ts";
import { isoTime } from "../foundation/base/clock.ts";
import { readById, walk, type WalkPage } from "../foundation/base/walk.ts";
import { csvLine } from "../foundation/http/csv.ts";
import type { UsageStore } from "../accounts/usage/usage-store.ts";
import type { HistoryFilters, HistoryOwner, HistoryStore } from "./history-store.ts";
import { resultSchema } from "./result.ts";
import type { VerificationRow } from "./store.ts";

/** Rows looked at in one go: a few milliseconds. */
const STEP = 5_000;
const EXPORTED_AT_ONCE = 500;
/** Keys whose names are kept during an export. */
const NAMES_KEPT = 1_000;
/** By how much the time of a request and that in its id may differ. */
const ID_SLACK_MS = 2_000;

/** Rows looked at for one page. A filter that few rows pass then ends the page early: it has a next one. */
export const HISTORY_WALKED_MAX = 200_000;

export interface HistoryWindow {
  /** The id of the last row of the page before; null: from the newest on. */
  readonly before: string | null;
  readonly limit: number;
}

const COLUMNS = [
  "id",
  "requested_at",
  "completed_at",
  "email",
  "normalized_email",
  "status",
  "verdict",
  "sub_status",
  "quality_score",
  "confidence",
  "source",
  "key_id",
  "key_name",
];

const exportLine = (row: VerificationRow, keyName: string | null): string => {
  const result = row.result === null ? null : resultSchema.parse(JSON.parse(row.result));
  return csvLine([
    row.id,
    isoTime(row.createdAtMs),
    row.completedAtMs === null ? null : isoTime(row.completedAtMs),
    row.email,
    row.normalizedEmail,
    row.status,
    row.verdict,
    row.subStatus,
    result?.quality_score ?? null,
    result?.confidence ?? null,
    row.source,
    row.keyId,
    keyName,
  ]);
};

/** The verifications of an account, of all its keys and users. Those of lists are in their results. */
export class History {
  constructor(
    private readonly store: HistoryStore,
    private readonly usage: Pick<UsageStore, "singleResults">,
  ) {}

  /**
   * A page, the newest first. It can have fewer rows than `limit`, or none, and still a next one (`next` is not null):
   * it ends after `HISTORY_WALKED_MAX` rows that a filter kept out.
   */
  page(
    owner: HistoryOwner,
    filters: HistoryFilters,
    { before, limit }: HistoryWindow,
  ): Promise<WalkPage<VerificationRow, string | null>> {
    const read = this.source(owner, filters);
    const keyOf = ({ id }: VerificationRow): string | null => id;
    const window = { before, limit, account: owner.accountId };
    return walk({ read, keyOf, step: STEP, rowsAtOnce: EXPORTED_AT_ONCE, looksMax: HISTORY_WALKED_MAX }, window);
  }

  /** The newest verification of each of the first addresses that begin with a text, in their order. */
  beginning(owner: HistoryOwner, text: string, limit: number): readonly VerificationRow[] {
    return this.store.beginning(owner, text.toLowerCase(), limit);
  }

  /** How many pass, counted up to `max`; null where no index has just these: with a text, a day, two filters, or all that ended. */
  count(owner: HistoryOwner, filters: HistoryFilters, max: number): number | null {
    const { text, fromMs, beforeMs, ...others } = filters;
    const isFiltered = (text ?? fromMs ?? beforeMs) !== undefined;
    const given = Object.values(others).filter((value) => value !== undefined);
    return isFiltered || given.length > 1 || others.status === "completed"
      ? null
      : this.store.count(owner, filters, max);
  }

  /** Everything that passes the filters as CSV, the newest first. Formulas are defused. */
  async *csv(
    owner: HistoryOwner,
    filters: HistoryFilters,
    keyName: (keyId: string) => string | null,
  ): AsyncGenerator<Uint8Array, void> {
    yield Buffer.from(csvLine(COLUMNS));
    const nameOf = cached(NAMES_KEPT, keyName);
    for (let before: string | null = null; ;) {
      const { rows, next }: WalkPage<VerificationRow, string | null> = await this.page(owner, filters, {
        before,
        limit: EXPORTED_AT_ONCE,
      });
      yield Buffer.from(rows.map((row) => exportLine(row, nameOf(row.keyId))).join(""));
      if (next === null) return;
      before = next;
    }
  }

  /** What passes, for a walk from `before` on. It looks at no more than what one filter lets pass in that time. */
  source(owner: HistoryOwner, wanted: HistoryFilters) {
    const filters = { ...wanted, isReadByKey: this.#hasKeyFewer(owner, wanted) };
    const { fromMs, beforeMs } = filters;
    const oldest = fromMs === undefined ? null : this.store.firstIdFrom(owner, fromMs - ID_SLACK_MS);
    const end = beforeMs === undefined ? null : this.store.firstIdFrom(owner, beforeMs + ID_SLACK_MS);
    const startOf = (before: string | null) => (before === null || (end !== null && end < before) ? end : before);
    return readById<VerificationRow>(
      ({ before, from, limit }) =>
        this.store.list(owner, filters, { before: startOf(before), from: from ?? oldest ?? undefined, limit }),
      // Few are pending: they are read at once.
      (before, places) => {
        const isAtOnce = filters.status === "pending";
        const id = isAtOnce ? null : this.store.idBehind(owner, filters, { before: startOf(before), places });
        return id === null || (oldest !== null && id < oldest) ? null : id;
      },
    );
  }

  /** Whether a key has had fewer results than the account has had of the kind that is wanted. */
  #hasKeyFewer(owner: HistoryOwner, { keyId, verdict, subStatus }: HistoryFilters): boolean {
    if (keyId === undefined || (verdict === undefined && subStatus === undefined)) return true;
    return this.usage.singleResults(owner, { keyId }) < this.usage.singleResults(owner, { verdict, subStatus });
  }
}
