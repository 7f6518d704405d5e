import { historyBodySchema, type StatePolicy } from "../domains/domain-state.ts";
import type { DomainRow, DomainStore, HistoryRow } from "../domains/domain-store.ts";

const ROWS_AT_ONCE = 50;
/** So much of the history is read; a domain whose DNS changes more often has had its policy since the oldest of it. */
const PAGES_MAX = 20;

const bodySchema = historyBodySchema.pick({ policy: true });

/**
 * Since when the policy (`p` and `t`) has stood without a change: the oldest of the newest rows of the history that say it, but no
 * further back than `fromMs`. Without a history that is the enrolment. Where the newest row says something else, the policy came
 * after it, nobody knows when.
 */
export const policySinceMs = (
  { number, createdAtMs }: Pick<DomainRow, "number" | "createdAtMs">,
  policy: StatePolicy | null,
  { domains, fromMs }: { readonly domains: Pick<DomainStore, "listHistory">; readonly fromMs: number },
): number => {
  let sinceMs = createdAtMs;
  let before: string | null = null;
  let isNewest = true;
  for (let page = 0; page < PAGES_MAX; page++) {
    const rows: HistoryRow[] = domains.listHistory(number, { before, limit: ROWS_AT_ONCE });
    for (const row of rows) {
      if (!says(row, policy)) return isNewest ? row.atMs : sinceMs;
      isNewest = false;
      sinceMs = row.atMs;
      if (sinceMs <= fromMs) return sinceMs;
    }
    before = rows.at(-1)?.id ?? null;
    if (rows.length < ROWS_AT_ONCE) break;
  }
  return sinceMs;
};

/** What cannot be read says nothing. */
const says = ({ body }: HistoryRow, policy: StatePolicy | null): boolean => {
  const read = bodySchema.safeParse(JSON.parse(body));
  return read.success && read.data.policy?.p === policy?.p && read.data.policy?.t === policy?.t;
};
