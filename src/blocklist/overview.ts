import { z } from "zod";
import { isoTime, nextTurn } from "../foundation/base/clock.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { type Blocklist, CATEGORIES, TARGET_KINDS, type TargetKind, worstRank, countEach } from "./lists/blocklist.ts";
import { SEVERITIES, type Severity } from "../foundation/base/severity.ts";
import type { DnsblHealth } from "./lists/health.ts";
import { type BlocklistStore, TARGET_STATUSES, type TargetStatus } from "./store.ts";
import type { Targets } from "./targets.ts";
import {
  countField,
  flagField,
  nullableText,
  textField,
  timeField,
  enumField,
  idField,
  listField,
  namedResponse,
  nullableEnum,
} from "../foundation/http/schema-fields.ts";
import { targetSchema, TARGET_EXAMPLE } from "./schemas.ts";
import type { Db } from "../foundation/db/open.ts";
import type { Owner } from "../foundation/base/secrets.ts";

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
  constructor(private readonly db: Db) {}

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

/** The query of the overview; `since` is parsed to milliseconds since 1970. */
export const overviewQuerySchema = z.strictObject({
  since: z.iso
    .datetime({ offset: true, error: "A time is needed, as 2026-01-01T00:00:00Z" })
    .transform((text) => Date.parse(text))
    .optional()
    .meta({ description: "Changes since this time. Default: the last 24 hours. Events are kept for 30 days." }),
});

const changeSchema = z.object({
  event_id: idField("The id of the event."),
  at: timeField("When it was found."),
  change: enumField(["listed", "delisted"], "Whether the listing was added or removed."),
  target_id: idField("The id of the target; of an address, that of its range."),
  target: textField("The domain or address."),
  label: nullableText("The label of the target."),
  listing: textField("The id of the listing."),
  listing_name: textField("The name of the listing."),
  severity: nullableEnum(SEVERITIES, "The severity of the listing."),
  category: nullableEnum(CATEGORIES, "Why something is on this list."),
  reason: nullableText("Why a listing was removed; null for a new one."),
});

const targetCountsSchema = z.object({
  total: countField("Targets, without the addresses of ranges."),
  addresses_in_ranges: countField("Addresses of ranges."),
  ranges: countField("Ranges."),
  listed: countField("Targets that `?status=listed` returns, including those that are `unknown` now."),
  paused: countField("Targets that are not monitored."),
  by_status: z
    .record(z.enum(TARGET_STATUSES), countField("Targets of this status."))
    .meta({ description: "By status." }),
  by_kind: z.record(z.enum(TARGET_KINDS), countField("Targets of this kind.")).meta({ description: "By kind." }),
});

const listingCountsSchema = z.object({
  total: countField("All listings, including those of addresses in ranges."),
  acknowledged: countField("Listings that were acknowledged."),
  by_severity: z
    .record(z.enum(SEVERITIES), countField("Listings of this severity."))
    .meta({ description: "By severity." }),
});

const changesSchema = z.object({
  listed: countField("New listings."),
  delisted: countField("Removed listings."),
  is_complete: flagField("False if there were too many to count; the feed has all."),
  recent: listField(changeSchema, "The latest 50, newest first."),
  feed: textField("The URL of the event feed since that time."),
});

const troubledListSchema = z.object({
  list: textField("The id of the list."),
  name: textField("The name of the list."),
  kind: enumField(TARGET_KINDS, "The kind of target that was tested."),
  state: textField("The state of the list, as in `GET /v1/blacklist/lists`."),
  reason: nullableText("Why the list cannot be used."),
  remedy: nullableText("What the operator of this service can do."),
  tested_at: timeField("When the list was last tested."),
});

/** Response of `GET /v1/blacklist/overview`. */
export const overviewSchema = namedResponse("BlacklistOverview", {
  generated_at: timeField("When the overview was made."),
  since: timeField("The start of the changes."),
  targets: targetCountsSchema.meta({ description: "Counts of targets." }),
  listings: listingCountsSchema.meta({ description: "Counts of listings." }),
  worst: listField(
    targetSchema.pick({
      id: true,
      kind: true,
      value: true,
      label: true,
      status: true,
      severity: true,
      listings: true,
      listings_count: true,
    }),
    "The ten targets with the most severe unacknowledged listings, with five listings each.",
  ),
  changes: changesSchema.meta({ description: "Listings and delistings." }),
  lists_in_trouble: listField(
    troubledListSchema,
    "Lists that cannot be used at present through the resolver of this service.",
  ),
});

const { id, kind, value, label, status, severity, listings, listings_count } = TARGET_EXAMPLE;
const WORST_EXAMPLE = { id, kind, value, label, status, severity, listings, listings_count };

export const OVERVIEW_EXAMPLE = {
  generated_at: "2026-01-01T06:00:00.000Z",
  since: "2025-12-31T06:00:00.000Z",
  targets: {
    total: 60,
    addresses_in_ranges: 0,
    ranges: 0,
    listed: 1,
    paused: 0,
    by_status: { pending: 0, clean: 58, listed: 1, unknown: 1 },
    by_kind: { ipv4: 40, ipv6: 0, domain: 20 },
  },
  listings: { total: 1, acknowledged: 0, by_severity: { critical: 1, high: 0, medium: 0, low: 0, info: 0 } },
  worst: [WORST_EXAMPLE],
  changes: {
    listed: 1,
    delisted: 0,
    is_complete: true,
    recent: [
      {
        event_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a54",
        at: "2025-12-31T18:00:02.310Z",
        change: "listed",
        target_id: id,
        target: value,
        label,
        listing: "spamhaus-sbl",
        listing_name: "Spamhaus SBL",
        severity: "critical",
        category: "spam",
        reason: null,
      },
    ],
    feed: "/v1/events?since=2025-12-31T06%3A00%3A00.000Z",
  },
  lists_in_trouble: [
    {
      list: "uribl",
      name: "URIBL",
      kind: "domain",
      state: "refused",
      reason: "The list refuses queries from public resolvers.",
      remedy: "Use your own recursive resolver.",
      tested_at: "2026-01-01T05:50:00.500Z",
    },
  ],
};

/** Rows counted in one step: some milliseconds. */
const STEP = 5_000;
const WORST_READ = 50;
const WORST_MAX = 10;
const LISTINGS_OF_WORST_MAX = 5;
const CHANGES_SHOWN_MAX = 50;
/** Events read for changes; there may be more in the feed. */
const EVENTS_MAX = 20_000;
const EVENTS_AT_ONCE = 500;

const eventDataSchema = z.object({
  target_id: z.string(),
  target: z.string(),
  label: z.string().nullable(),
  listing: z.string(),
  listing_name: z.string(),
  severity: z.enum(SEVERITIES).nullable(),
  category: z.enum(CATEGORIES).nullable(),
  reason: z.string().optional(),
});

const targetsOf = (counts: readonly TargetCount[]) => {
  const sum = (passes: (row: TargetCount) => boolean) =>
    counts.filter(passes).reduce((total, { count }) => total + count, 0);
  return {
    total: sum(({ isOwn }) => isOwn === 1),
    addresses_in_ranges: sum(({ isOwn }) => isOwn === 0),
    ranges: sum(({ isRange }) => isRange === 1),
    listed: sum(({ isOwn, isListed }) => isOwn === 1 && isListed === 1),
    paused: sum(({ isOwn, isPaused }) => isOwn === 1 && isPaused === 1),
    by_status: countEach(TARGET_STATUSES, (status) => sum((row) => row.isOwn === 1 && row.status === status)),
    by_kind: countEach(TARGET_KINDS, (kind) => sum((row) => row.isOwn === 1 && row.kind === kind)),
  };
};

/** The overview of one account and mode. It is read in steps, with other work in between. */
export class Overview {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: OverviewStore;
      blocklists: BlocklistStore;
      targets: Targets;
      /** The lists in use. */
      lists: readonly Blocklist[];
      health: DnsblHealth;
    },
  ) {}

  async read(owner: Owner, sinceMs: number) {
    const { counts, listings } = await this.#countAll(owner);
    const sum = (isCounted: (row: (typeof listings)[number]) => boolean) =>
      listings.filter(isCounted).reduce((total, { count }) => total + count, 0);
    const since = isoTime(sinceMs);
    const feed = `/v1/events?since=${encodeURIComponent(since)}`;
    return {
      generated_at: isoTime(this.runtime.clock.nowMs()),
      since,
      targets: targetsOf(counts),
      listings: {
        total: sum(() => true),
        acknowledged: sum(({ isAcknowledged }) => isAcknowledged === 1),
        by_severity: countEach(SEVERITIES, (severity) => sum((row) => row.severity === severity)),
      },
      worst: this.#worst(owner),
      changes: { ...(await this.changesSince(owner, sinceMs)), feed },
      lists_in_trouble: this.listsInTrouble(owner),
    };
  }

  /** Counts of changes since a time, and the latest ones. */
  async changesSince(owner: Owner, sinceMs: number) {
    const recent = [];
    const counts = { listed: 0, delisted: 0 };
    let read = 0;
    for (let before: string | null = null; read < EVENTS_MAX;) {
      const events = this.deps.store.events(owner, before, EVENTS_AT_ONCE);
      read += events.length;
      for (const event of events) {
        if (event.createdAtMs < sinceMs) return { ...counts, is_complete: true, recent };
        if (event.type !== "blacklist.listed" && event.type !== "blacklist.delisted") continue;
        const change = event.type === "blacklist.listed" ? "listed" : "delisted";
        counts[change] += 1;
        if (recent.length === CHANGES_SHOWN_MAX) continue;
        const { reason = null, ...facts } = eventDataSchema.parse(JSON.parse(event.data));
        recent.push({ event_id: event.id, at: isoTime(event.createdAtMs), change, ...facts, reason } as const);
      }
      if (events.length < EVENTS_AT_ONCE) return { ...counts, is_complete: true, recent };
      before = events.at(-1)?.id ?? null;
      await nextTurn();
    }
    return { ...counts, is_complete: false, recent };
  }

  /** Lists that cannot be used at present; none for test keys. */
  listsInTrouble({ mode }: Owner) {
    if (mode === "test") return [];
    return this.deps.lists.flatMap((list) =>
      list.kinds.flatMap((kind) => {
        const { state, reason, remedy, testedAtMs } = this.deps.health.of(list, kind);
        if (state === "healthy" || state === "unknown" || testedAtMs === null) return [];
        return [{ list: list.id, name: list.name, kind, state, reason, remedy, tested_at: isoTime(testedAtMs) }];
      }),
    );
  }

  async #countAll(owner: Owner) {
    const { store } = this.deps;
    const counts = [];
    const listings = [];
    for (let before: string | null = null; ;) {
      const from = store.idBehind(owner, before, STEP - 1);
      counts.push(...store.countTargets(owner, { before, from }));
      listings.push(...store.countListings(owner, { before, from }));
      if (from === null) return { counts, listings };
      before = from;
      await nextTurn();
    }
  }

  /** The targets with the most severe listings that nobody has acknowledged, then the others. */
  #worst(owner: Owner) {
    const { blocklists, targets } = this.deps;
    const page = { before: null, upTo: null, limit: WORST_READ };
    const views = blocklists.listWorst(owner, { severityRankMin: 1 }, page).map((row) => {
      const { id, kind, value, label, status, severity, listings, listings_count } = targets.view(row);
      const open = listings.filter(({ acknowledged }) => acknowledged === null).map((listing) => listing.severity);
      const shown = listings.slice(0, LISTINGS_OF_WORST_MAX);
      return {
        rank: worstRank(open),
        view: { id, kind, value, label, status, severity, listings: shown, listings_count },
      };
    });
    return views
      .toSorted((a, b) => b.rank - a.rank)
      .slice(0, WORST_MAX)
      .map(({ view }) => view);
  }
}
