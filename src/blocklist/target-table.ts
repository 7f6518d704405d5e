import { nextTurn } from "../foundation/base/clock.ts";
import type { Severity } from "../foundation/base/severity.ts";
import { severityOfRank, severityRankOf, countEach } from "./lists/blocklist.ts";
import type { BlocklistStore, TargetRow, TargetStatus } from "./store.ts";
import { z } from "zod";
import type { Db } from "../foundation/db/open.ts";
import { ReadMemo } from "../foundation/db/read-memo.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import type { FiltersOf } from "../foundation/base/walk.ts";

/** What a person is shown as the state of a target. `listed` also while its lists do not respond; `paused` wins. */
export const TARGET_STATES = ["listed", "unknown", "pending", "clean", "paused"] as const;
export type TargetState = (typeof TARGET_STATES)[number];

/** How many targets have the same properties. */
export interface StateCount {
  readonly isMonitored: 0 | 1;
  readonly severityRank: number;
  readonly status: TargetStatus;
  readonly count: number;
}

/** Conditions that the index by state answers. */
export type StateFilter = FiltersOf<{
  state: TargetState;
  /** With a listing of exactly this severity as the worst. */
  severity: Severity;
}>;

/** Conditions for which the rows themselves are read. */
export type RowFilter = FiltersOf<{
  /** Part of the target or its label, in any case. */
  text: string;
  label: string;
  /** Ids of listings: at least one of them. */
  listings: readonly string[];
}>;

export const TARGET_ORDERS = ["worst", "name", "label", "checked", "next", "newest"] as const;
export type TargetOrder = (typeof TARGET_ORDERS)[number];

/** A target in the order from the worst to paused ones. `sortKey`: what another order sorts by. */
export interface SortableTarget {
  readonly id: string;
  readonly isMonitored: 0 | 1;
  readonly severityRank: number;
  readonly status: TargetStatus;
  readonly sortKey: string | number | null;
}

/** How many targets are on the same listings. */
export interface ListedOnCount {
  readonly listedOn: readonly string[];
  readonly count: number;
}

/** Changes since a time. */
export interface ChangeCounts {
  readonly listed: number;
  readonly delisted: number;
  /** False if there were too many events to look at all of them. */
  readonly isComplete: boolean;
}

const listedOnSchema = z.array(z.string());

type Value = string | number;

interface Condition {
  readonly sql: string;
  readonly values: readonly Value[];
}

const WORST_FIRST = "monitoring_enabled DESC, severity_rank DESC, status DESC, id DESC" satisfies string;

/** Statuses happen to sort as they should: unknown, pending, listed, clean from the end of the alphabet. */
const STATE_CONDITIONS: Readonly<Record<TargetState, string>> = {
  listed: "monitoring_enabled = 1 AND severity_rank > 0",
  unknown: "monitoring_enabled = 1 AND severity_rank = 0 AND status = 'unknown'",
  pending: "monitoring_enabled = 1 AND severity_rank = 0 AND status = 'pending'",
  clean: "monitoring_enabled = 1 AND severity_rank = 0 AND status NOT IN ('unknown', 'pending')",
  paused: "monitoring_enabled = 0",
};

const SORT_KEYS: Readonly<Record<TargetOrder, string>> = {
  worst: "NULL",
  name: "value",
  label: "label",
  checked: "last_checked_at_ms",
  next: "next_check_at_ms",
  newest: "id",
};

const ofState = ({ accountId, mode }: Owner, { state, severity }: StateFilter): Condition => ({
  sql: [
    "account_id = ? AND mode = ? AND range_id = ''",
    ...(state === undefined ? [] : [STATE_CONDITIONS[state]]),
    // The index has the monitored targets first: without both values it could not be searched.
    ...(severity === undefined ? [] : ["monitoring_enabled IN (0, 1) AND severity_rank = ?"]),
  ].join(" AND "),
  values: [accountId, mode, ...(severity === undefined ? [] : [severityRankOf(severity)])],
});

const likePattern = (text: string) => `%${text.replace(/[\\%_]/g, (character) => `\\${character}`)}%`;

const ofRow = ({ text, label, listings }: RowFilter): Condition => {
  const pattern = text === undefined ? "" : likePattern(text);
  return {
    sql: [
      ...(text === undefined ? [] : [String.raw`(value LIKE ? ESCAPE '\' OR label LIKE ? ESCAPE '\')`]),
      ...(label === undefined ? [] : ["label = ?"]),
      ...(listings === undefined
        ? []
        : [
            "severity_rank > 0 AND EXISTS (SELECT 1 FROM json_each(listed_on) l WHERE l.value IN (SELECT value FROM json_each(?)))",
          ]),
    ]
      .map((condition) => ` AND ${condition}`)
      .join(""),
    values: [
      ...(text === undefined ? [] : [pattern, pattern]),
      ...(label === undefined ? [] : [label]),
      ...(listings === undefined ? [] : [JSON.stringify(listings)]),
    ],
  };
};

/** Reads for the table of targets, without the addresses of ranges. */
export class TargetTableStore {
  constructor(private readonly db: Db) {}

  /** Counts of all targets by their properties; reads the index only. */
  countStates({ accountId, mode }: Owner): StateCount[] {
    return this.db.sqlite
      .query<StateCount, [string, string]>(
        `SELECT monitoring_enabled isMonitored, severity_rank severityRank, status, count(*) count FROM blocklist_targets
          WHERE account_id = ? AND mode = ? AND range_id = '' GROUP BY monitoring_enabled, severity_rank, status`,
      )
      .all(accountId, mode);
  }

  count(owner: Owner, filter: StateFilter): number {
    const { sql, values } = ofState(owner, filter);
    const row = this.db.sqlite
      .query<{ count: number }, Value[]>(`SELECT count(*) count FROM blocklist_targets WHERE ${sql}`)
      .get(...values);
    return row?.count ?? 0;
  }

  /** Ids, the worst first; reads the index only. */
  worstFirst(owner: Owner, filter: StateFilter, page: { offset: number; limit: number }): string[] {
    const { sql, values } = ofState(owner, filter);
    return this.db.sqlite
      .query<{ id: string }, Value[]>(
        `SELECT id FROM blocklist_targets WHERE ${sql} ORDER BY ${WORST_FIRST} LIMIT ? OFFSET ?`,
      )
      .all(...values, page.limit, page.offset)
      .map(({ id }) => id);
  }

  /** The position `places` behind `after` in that order, whatever passes; null when there are fewer rows. */
  positionBehind(owner: Owner, after: SortableTarget | null, places: number): SortableTarget | null {
    const { sql, values } = between(owner, after, null);
    return this.db.sqlite
      .query<SortableTarget, Value[]>(
        `${SELECT_SORTABLE("NULL")} WHERE ${sql} ORDER BY ${WORST_FIRST} LIMIT 1 OFFSET ?`,
      )
      .get(...values, places - 1);
  }

  /** What passes behind `after`, up to and including `upTo`, in that order. */
  matching(
    owner: Owner,
    filter: StateFilter & RowFilter & { order: TargetOrder },
    { after, upTo }: { after: SortableTarget | null; upTo: SortableTarget | null },
  ): SortableTarget[] {
    const [window, state, row] = [between(owner, after, upTo), ofState(owner, filter), ofRow(filter)];
    return this.db.sqlite
      .query<SortableTarget, Value[]>(
        `${SELECT_SORTABLE(SORT_KEYS[filter.order])} WHERE ${window.sql} AND ${state.sql}${row.sql} ORDER BY ${WORST_FIRST}`,
      )
      .all(...window.values, ...state.values, ...row.values);
  }

  /** Targets by what they are listed on: there are few different combinations. */
  countListedOn({ accountId, mode }: Owner): ListedOnCount[] {
    return this.db.sqlite
      .query<{ listedOn: string; count: number }, [string, string]>(
        `SELECT listed_on listedOn, count(*) count FROM blocklist_targets WHERE account_id = ? AND mode = ? AND range_id = ''
          AND monitoring_enabled IN (0, 1) AND severity_rank > 0 GROUP BY listed_on`,
      )
      .all(accountId, mode)
      .map(({ listedOn, count }) => ({ listedOn: listedOnSchema.parse(JSON.parse(listedOn)), count }));
  }

  /** The changes since a time among the newest `looks` events of every type. */
  countChanges({ accountId, mode }: Owner, sinceMs: number, looks: number): ChangeCounts {
    const row = this.db.sqlite
      .query<Omit<ChangeCounts, "isComplete"> & { readonly isComplete: 0 | 1 }, [string, string, number, number]>(
        `SELECT coalesce(sum(type = 'blacklist.listed' AND created_at_ms >= ?4), 0) listed,
          coalesce(sum(type = 'blacklist.delisted' AND created_at_ms >= ?4), 0) delisted,
          count(*) < ?3 OR min(created_at_ms) < ?4 isComplete
          FROM (SELECT type, created_at_ms FROM outbox WHERE account_id = ?1 AND mode = ?2 ORDER BY id DESC LIMIT ?3)`,
      )
      .get(accountId, mode, looks, sinceMs);
    return { listed: row?.listed ?? 0, delisted: row?.delisted ?? 0, isComplete: row?.isComplete !== 0 };
  }

  /** The labels in use, each once, sorted. */
  labels({ accountId, mode }: Owner, limit: number): string[] {
    return this.db.sqlite
      .query<{ label: string }, [string, string, number]>(
        `SELECT DISTINCT label FROM blocklist_targets
          WHERE account_id = ? AND mode = ? AND range_id = '' AND label IS NOT NULL ORDER BY label LIMIT ?`,
      )
      .all(accountId, mode, limit)
      .map(({ label }) => label);
  }
}

const SELECT_SORTABLE = (sortKey: string) =>
  `SELECT id, monitoring_enabled isMonitored, severity_rank severityRank, status, ${sortKey} sortKey FROM blocklist_targets`;

const POSITION = "(monitoring_enabled, severity_rank, status, id)";
const positionOf = ({ isMonitored, severityRank, status, id }: SortableTarget): Value[] => [
  isMonitored,
  severityRank,
  status,
  id,
];

const between = ({ accountId, mode }: Owner, after: SortableTarget | null, upTo: SortableTarget | null): Condition => ({
  sql: [
    "account_id = ? AND mode = ? AND range_id = ''",
    ...(after === null ? [] : [`${POSITION} < (?, ?, ?, ?)`]),
    ...(upTo === null ? [] : [`${POSITION} >= (?, ?, ?, ?)`]),
  ].join(" AND "),
  values: [accountId, mode, ...(after === null ? [] : positionOf(after)), ...(upTo === null ? [] : positionOf(upTo))],
});

/** How many targets are in which state; ranges count as one. */
export interface TargetFigures extends Readonly<Record<TargetState, number>> {
  readonly total: number;
  /** Of the targets that are listed now; null when there is none. */
  readonly worst: Severity | null;
}

export interface TargetQuery extends StateFilter, RowFilter {
  readonly order?: TargetOrder | undefined;
  /** From 1. */
  readonly page: number;
  readonly perPage: number;
}

export interface TargetTablePage {
  readonly targets: readonly TargetRow[];
  /** How many there are on all pages. */
  readonly total: number;
}

/** Rows examined in one step: some milliseconds. */
const STEP = 5_000;
const LABELS_MAX = 500;
/** Owners whose figures are remembered. */
const OWNERS_MAX = 100;
/** Events that are counted for a page. */
const COUNTED_MAX = 1_000;

/** The state of a target as a person is shown it. */
export const stateOfTarget = ({
  monitoringEnabled,
  severityRank,
  status,
}: Pick<TargetRow, "monitoringEnabled" | "severityRank" | "status">): TargetState => {
  if (!monitoringEnabled) return "paused";
  if (severityRank > 0) return "listed";
  return status === "listed" ? "clean" : status;
};

const nameOf = ({ accountId, mode }: Owner): string => `${accountId} ${mode}`;

/** The targets of an account as a table: figures, filters, orders, pages. Addresses of ranges are part of their range. */
export class TargetTable {
  readonly #figures: ReadMemo<TargetFigures>;
  readonly #labels: ReadMemo<readonly string[]>;
  readonly #counts: ReadMemo<number>;

  constructor(
    private readonly deps: {
      readonly db: Pick<Db, "sqlite">;
      readonly store: TargetTableStore;
      readonly targets: Pick<BlocklistStore, "targetsById">;
    },
  ) {
    this.#figures = new ReadMemo(deps.db, OWNERS_MAX);
    this.#labels = new ReadMemo(deps.db, OWNERS_MAX);
    this.#counts = new ReadMemo(deps.db, OWNERS_MAX);
  }

  /** Reads an index only: some milliseconds for 10,000 targets, once for several readers between two writes. */
  figures(owner: Owner): TargetFigures {
    return this.#figures.get(nameOf(owner), () => this.#count(owner));
  }

  #count(owner: Owner): TargetFigures {
    const counts = this.deps.store.countStates(owner);
    const sum = (passes: (row: StateCount) => boolean) =>
      counts.filter(passes).reduce((total, { count }) => total + count, 0);
    const inState = (state: TargetState) =>
      sum((row) => stateOfTarget({ ...row, monitoringEnabled: row.isMonitored === 1 }) === state);
    return {
      total: sum(() => true),
      ...countEach(TARGET_STATES, inState),
      worst: severityOfRank(Math.max(0, ...counts.map((row) => (row.isMonitored === 1 ? row.severityRank : 0)))),
    };
  }

  /** One page. From the worst to paused targets it reads an index; other orders and filters read the rows, in steps. */
  async page(owner: Owner, query: TargetQuery): Promise<TargetTablePage> {
    const { store, targets } = this.deps;
    const { page, perPage, order = "worst", state, severity, text, label, listings } = query;
    const offset = (page - 1) * perPage;
    const isIndexed = order === "worst" && text === undefined && label === undefined && listings === undefined;
    if (isIndexed) {
      const ids = store.worstFirst(owner, { state, severity }, { offset, limit: perPage });
      const name = `${nameOf(owner)} ${state} ${severity}`;
      return {
        targets: targets.targetsById(ids),
        total: this.#counts.get(name, () => store.count(owner, { state, severity })),
      };
    }
    const found = await this.#collect(owner, query);
    const ids = found.slice(offset, offset + perPage).map(({ id }) => id);
    return { targets: targets.targetsById(ids), total: found.length };
  }

  /** All that pass, in portions of their order, for a file. */
  async *all(owner: Owner, query: Omit<TargetQuery, "page" | "perPage">, atOnce: number): AsyncGenerator<TargetRow[]> {
    const found = await this.#collect(owner, query);
    for (let from = 0; from < found.length; from += atOnce) {
      yield this.deps.targets.targetsById(found.slice(from, from + atOnce).map(({ id }) => id));
      await nextTurn();
    }
  }

  /** Listings and delistings since a time, among the newest 1,000 events. */
  changeCounts(owner: Owner, sinceMs: number): ChangeCounts {
    return this.deps.store.countChanges(owner, sinceMs, COUNTED_MAX);
  }

  /** The labels in use, for a filter: at most 500. */
  labels(owner: Owner): readonly string[] {
    return this.#labels.get(nameOf(owner), () => this.deps.store.labels(owner, LABELS_MAX));
  }

  async #collect(owner: Owner, query: Omit<TargetQuery, "page" | "perPage">): Promise<SortableTarget[]> {
    const { store } = this.deps;
    const { order = "worst" } = query;
    const found: SortableTarget[] = [];
    for (let after: SortableTarget | null = null; ;) {
      const upTo = store.positionBehind(owner, after, STEP);
      found.push(...store.matching(owner, { ...query, order }, { after, upTo }));
      if (upTo === null) return order === "worst" ? found : found.toSorted(byKey(order));
      after = upTo;
      await nextTurn();
    }
  }
}

const collator = new Intl.Collator("en", { numeric: true });

/** Names and labels from A to Z with numbers by their value; the longest unchecked and the next due first; the newest first. */
const byKey = (order: TargetOrder) => {
  const sign = order === "newest" ? -1 : 1;
  return ({ sortKey: a }: SortableTarget, { sortKey: b }: SortableTarget) => {
    if (a === b) return 0;
    // Targets without a label come last; targets that were never checked come first.
    if (a === null) return order === "label" ? 1 : -1;
    if (b === null) return order === "label" ? -1 : 1;
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return (
      sign * (order === "newest" ? String(a).localeCompare(String(b), "en") : collator.compare(String(a), String(b)))
    );
  };
};
