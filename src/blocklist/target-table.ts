import { nextTurn } from "../foundation/base/clock.ts";
import type { Severity } from "../foundation/base/severity.ts";
import { severityOfRank } from "./severity.ts";
import type { BlocklistStore, Owner, TargetRow } from "./store.ts";
import type {
  RowFilter,
  SortableTarget,
  StateCount,
  StateFilter,
  TargetOrder,
  TargetState,
  TargetTableStore,
} from "./target-table-store.ts";

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

/** The targets of an account as a table: figures, filters, orders, pages. Addresses of ranges are part of their range. */
export class TargetTable {
  constructor(
    private readonly deps: { readonly store: TargetTableStore; readonly targets: Pick<BlocklistStore, "targetsById"> },
  ) {}

  /** Reads an index only: some milliseconds for 10,000 targets. */
  figures(owner: Owner): TargetFigures {
    const counts = this.deps.store.countStates(owner);
    const sum = (passes: (row: StateCount) => boolean): number =>
      counts.filter(passes).reduce((total, { count }) => total + count, 0);
    const inState = (state: TargetState): number =>
      sum((row) => stateOfTarget({ ...row, monitoringEnabled: row.isMonitored === 1 }) === state);
    return {
      total: sum(() => true),
      listed: inState("listed"),
      unknown: inState("unknown"),
      pending: inState("pending"),
      clean: inState("clean"),
      paused: inState("paused"),
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
      return { targets: targets.targetsById(ids), total: store.count(owner, { state, severity }) };
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

  /** The labels in use, for a filter: at most 500. */
  labels(owner: Owner): string[] {
    return this.deps.store.labels(owner, LABELS_MAX);
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
  return ({ sortKey: a }: SortableTarget, { sortKey: b }: SortableTarget): number => {
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
