import type { Db } from "../db/open.ts";
import type { Severity, TargetKind } from "../dnsbl/blocklist.ts";
import type { Owner, TargetStatus } from "./store.ts";

/** How many rows are alike. A row is a target (`isOwn`) or an address of a range. */
export interface TargetCount {
  readonly isOwn: 0 | 1;
  readonly isRange: 0 | 1;
  readonly isListed: 0 | 1;
  readonly isPaused: 0 | 1;
  readonly status: TargetStatus;
  readonly kind: TargetKind;
  readonly count: number;
}

export interface ListingCount {
  readonly severity: Severity | null;
  readonly isAcknowledged: 0 | 1;
  readonly count: number;
}

/** A change of a listing as its event tells it; `data` is JSON text. */
export interface ChangeEvent {
  readonly id: string;
  readonly type: "blacklist.listed" | "blacklist.delisted";
  readonly data: string;
  readonly createdAtMs: number;
}

/** Rows with ids below `before` (null: from the newest on) and not below `from` (null: to the oldest). */
export interface CountWindow {
  readonly before: string | null;
  readonly from: string | null;
}

/** Behind every id and before every id: bounds that are always there let SQLite search the index instead of reading all of it. */
const [LAST, FIRST] = ["~", ""];
const OF_OWNER = "t.account_id = ? AND t.mode = ? AND t.id < ? AND t.id >= ?";
type OwnerWindow = [string, string, string, string];

const valuesOf = ({ accountId, mode }: Owner, { before, from }: CountWindow): OwnerWindow => [
  accountId,
  mode,
  before ?? LAST,
  from ?? FIRST,
];

/** Reads for the overview, each of as many rows as the caller says. */
export const createOverviewStore = ({ sqlite }: Db) => {
  const behind = sqlite.prepare<{ id: string }, [string, string, string, number]>(
    "SELECT t.id FROM blocklist_targets t WHERE t.account_id = ? AND t.mode = ? AND t.id < ? ORDER BY t.id DESC LIMIT 1 OFFSET ?",
  );
  const targets = sqlite.prepare<TargetCount, OwnerWindow>(
    `SELECT t.range_id = '' isOwn, t.members IS NOT NULL isRange, t.listed_on <> '[]' isListed, t.monitoring_enabled = 0 isPaused, t.status,
        t.kind, count(*) count
      FROM blocklist_targets t WHERE ${OF_OWNER} GROUP BY 1, 2, 3, 4, 5, 6`,
  );
  const listings = sqlite.prepare<ListingCount, OwnerWindow>(
    `SELECT l.severity, l.acknowledged_at_ms IS NOT NULL isAcknowledged, count(*) count
      FROM blocklist_targets t JOIN blocklist_listings l ON l.target_id = t.id
      WHERE ${OF_OWNER} AND t.listed_on <> '[]' GROUP BY 1, 2`,
  );
  const changes = sqlite.prepare<ChangeEvent, [string, string, string, number]>(
    `SELECT id, type, data, created_at_ms createdAtMs FROM outbox
      WHERE account_id = ? AND mode = ? AND id < ? ORDER BY id DESC LIMIT ?`,
  );

  return {
    /** The id so many places behind `before`, addresses of ranges counted; null when there are no so many. */
    idBehind: ({ accountId, mode }: Owner, before: string | null, places: number): string | null =>
      behind.get(accountId, mode, before ?? LAST, places)?.id ?? null,
    countTargets: (owner: Owner, window: CountWindow): TargetCount[] => targets.all(...valuesOf(owner, window)),
    countListings: (owner: Owner, window: CountWindow): ListingCount[] => listings.all(...valuesOf(owner, window)),
    /** Events of every type, the newest first, older than the id `before`. */
    events: ({ accountId, mode }: Owner, before: string | null, limit: number): ChangeEvent[] =>
      changes.all(accountId, mode, before ?? LAST, limit),
  };
};

export type OverviewStore = ReturnType<typeof createOverviewStore>;
