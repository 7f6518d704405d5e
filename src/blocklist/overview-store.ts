import type { Db } from "../foundation/db/open.ts";
import type { TargetKind } from "./lists/blocklist.ts";
import type { Severity } from "../foundation/base/severity.ts";
import type { Owner, TargetStatus } from "./store.ts";

/** How many targets (`isOwn`) or addresses of ranges have the same properties. */
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

/** An event of the outbox; `data` is JSON text. */
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

/** Greater and less than every id. With bounds that are always set, SQLite searches the index instead of reading all of it. */
const [LAST, FIRST] = ["~", ""];
const OF_OWNER = "t.account_id = ? AND t.mode = ? AND t.id < ? AND t.id >= ?";
type OwnerWindow = [string, string, string, string];

const valuesOf = ({ accountId, mode }: Owner, { before, from }: CountWindow): OwnerWindow => [
  accountId,
  mode,
  before ?? LAST,
  from ?? FIRST,
];

const TARGETS = `SELECT t.range_id = '' isOwn, t.members IS NOT NULL isRange, t.listed_on <> '[]' isListed,
    t.monitoring_enabled = 0 isPaused, t.status, t.kind, count(*) count
  FROM blocklist_targets t WHERE ${OF_OWNER} GROUP BY 1, 2, 3, 4, 5, 6`;
const LISTINGS = `SELECT l.severity, l.acknowledged_at_ms IS NOT NULL isAcknowledged, count(*) count
  FROM blocklist_targets t JOIN blocklist_listings l ON l.target_id = t.id
  WHERE ${OF_OWNER} AND t.listed_on <> '[]' GROUP BY 1, 2`;

/** Reads for the overview, each of as many rows as the caller says. */
export class OverviewStore {
  constructor(private readonly db: Pick<Db, "sqlite">) {}

  /** The id `places` positions after `before`, including addresses of ranges; null when there are fewer rows. */
  idBehind({ accountId, mode }: Owner, before: string | null, places: number): string | null {
    const row = this.db.sqlite
      .query<{ id: string }, [string, string, string, number]>(
        "SELECT t.id FROM blocklist_targets t WHERE t.account_id = ? AND t.mode = ? AND t.id < ? ORDER BY t.id DESC LIMIT 1 OFFSET ?",
      )
      .get(accountId, mode, before ?? LAST, places);
    return row?.id ?? null;
  }

  countTargets(owner: Owner, window: CountWindow): TargetCount[] {
    return this.db.sqlite.query<TargetCount, OwnerWindow>(TARGETS).all(...valuesOf(owner, window));
  }

  countListings(owner: Owner, window: CountWindow): ListingCount[] {
    return this.db.sqlite.query<ListingCount, OwnerWindow>(LISTINGS).all(...valuesOf(owner, window));
  }

  /** Events of every type, newest first, older than the id `before`. */
  events({ accountId, mode }: Owner, before: string | null, limit: number): ChangeEvent[] {
    return this.db.sqlite
      .query<ChangeEvent, [string, string, string, number]>(
        "SELECT id, type, data, created_at_ms createdAtMs FROM outbox WHERE account_id = ? AND mode = ? AND id < ? ORDER BY id DESC LIMIT ?",
      )
      .all(accountId, mode, before ?? LAST, limit);
  }
}
