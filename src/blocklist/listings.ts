import { isoTime } from "../foundation/base/clock.ts";
import type { Tx } from "../foundation/db/open.ts";
import { type Blocklist, severityRankOf, worstRank } from "./lists/blocklist.ts";
import type { Severity } from "../foundation/base/severity.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import type { ListingRow, ListingStore, ListingNotes } from "./listing-store.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { Runtime } from "../foundation/db/runtime.ts";

/** How many listings of a range are shown with it; the rest are shown with its addresses. */
const SHOWN_OF_RANGE_MAX = 100;

/** What the catalogue says about a listing; nulls for an unknown id. The most severe of several codes counts. */
const describeListing = (listing: string, lists: readonly Blocklist[]) => {
  const list = lists.find(({ codes }) => codes.some(({ id }) => id === listing));
  const codes = list?.codes.filter(({ id }) => id === listing) ?? [];
  const worst = codes.toSorted((a, b) => severityRankOf(b.severity) - severityRankOf(a.severity))[0];
  return {
    list: list?.id ?? null,
    name: worst?.name ?? listing,
    severity: worst?.severity ?? null,
    category: worst?.category ?? null,
    meaning: [...new Set(codes.map(({ meaning }) => meaning))].join(" "),
    delistUrl: list?.delistUrl ?? null,
  };
};

const noteOf = (atMs: number | null, by: string | null) => (atMs === null ? null : { at: isoTime(atMs), by });

/** A listing as the API returns it; `address` is set for a listing of a range. */
export const listingView = (row: ListingRow, lists: readonly Blocklist[], address: string | null) => {
  const known = describeListing(row.listing, lists);
  return {
    id: row.listing,
    list: known.list,
    name: known.name,
    severity: row.severity ?? known.severity,
    category: known.category,
    meaning: row.meaning ?? known.meaning,
    address,
    since: isoTime(row.sinceMs),
    last_seen_at: isoTime(row.seenAtMs),
    delist_url: known.delistUrl,
    acknowledged: noteOf(row.acknowledgedAtMs, row.acknowledgedBy),
    delisting_requested: noteOf(row.delistingRequestedAtMs, row.delistingRequestedBy),
    note: row.note === null ? null : { text: row.note, at: isoTime(row.noteAtMs ?? row.sinceMs), by: row.noteBy },
  };
};
export type ListingView = ReturnType<typeof listingView>;

/** When a list last confirmed one of these listings; null without listings. */
export const lastSeenOf = (listings: readonly ListingView[]): string | null =>
  listings
    .map(({ last_seen_at }) => last_seen_at)
    .toSorted()
    .at(-1) ?? null;

const worstFirst = (a: ListingView, b: ListingView) =>
  worstRank([b.severity]) - worstRank([a.severity]) || b.since.localeCompare(a.since) || a.id.localeCompare(b.id);

/** The listings of targets: kept consistent with `listedOn`, and shown. */
export class Listings {
  constructor(
    private readonly deps: {
      store: ListingStore;
      targets: BlocklistStore;
      ranges: RangeStore;
    },
  ) {}

  /** Adds, refreshes and removes listings after `listedOn` of a target changed, in the transaction of the change. */
  update(
    tx: Tx,
    target: TargetRow,
    {
      outcomes,
      lists,
      atMs,
    }: {
      outcomes: readonly ListOutcome[];
      lists: readonly Blocklist[];
      atMs: number;
    },
  ) {
    const seen = new Map(outcomes.flatMap(({ listings }) => listings.map((listing) => [listing.id, listing] as const)));
    const known = new Map(this.deps.store.of(target.id).map((row) => [row.listing, row]));
    const severities: Array<Severity | null> = [];
    for (const listing of target.listedOn) {
      const found = seen.get(listing);
      const before = known.get(listing);
      const described = describeListing(listing, lists);
      const severity = found?.severity ?? before?.severity ?? described.severity;
      severities.push(severity);
      const facts = { severity, meaning: found?.meanings.join(" ") ?? before?.meaning ?? described.meaning };
      if (before === undefined) {
        const { id: targetId, rangeId } = target;
        this.deps.store.insert(tx, { targetId, listing, rangeId, sinceMs: atMs, seenAtMs: atMs, ...facts });
      } else if (found !== undefined) this.deps.store.update(tx, target.id, listing, { ...facts, seenAtMs: atMs });
    }
    const removed = [...known.keys()].filter((listing) => !target.listedOn.includes(listing));
    this.deps.store.remove(tx, target.id, removed);
    const severityRank = worstRank(severities);
    if (severityRank !== target.severityRank) this.deps.targets.updateTarget(tx, target.id, { severityRank });
    if (target.rangeId !== "") this.#updateRange(tx, target.rangeId);
  }

  /** A range has the worst status of its addresses, and all of their listings. */
  #updateRange(tx: Tx, rangeId: string) {
    const range = this.deps.targets.findTarget(rangeId);
    if (range === undefined) return;
    const { statuses, severityRank, lastCheckedAtMs, nextCheckAtMs } = this.deps.ranges.summarize(rangeId);
    const status = (["listed", "unknown", "pending"] as const).find((worst) => statuses.includes(worst)) ?? "clean";
    const listedOn = this.deps.store.namesOfRange(rangeId);
    this.deps.targets.updateTarget(tx, rangeId, {
      status,
      severityRank,
      listedOn,
      lastCheckedAtMs,
      nextCheckAtMs: nextCheckAtMs ?? range.nextCheckAtMs,
    });
  }

  /** The listings of many targets by the id of the target, as `view` has them; those of one page are read at once. */
  viewMany(targets: readonly TargetRow[], lists: readonly Blocklist[]): ReadonlyMap<string, readonly ListingView[]> {
    const listed = targets.filter(({ listedOn }) => listedOn.length > 0);
    const single = listed.filter(({ members }) => members === null).map(({ id }) => id);
    const rows = single.length === 0 ? [] : this.deps.store.ofMany(single);
    const byTarget = Map.groupBy(rows, ({ targetId }) => targetId);
    return new Map(
      listed.map((target) => {
        if (target.members !== null) return [target.id, this.view(target, lists).listings];
        const views = (byTarget.get(target.id) ?? []).map((row) => listingView(row, lists, null));
        return [target.id, views.toSorted(worstFirst)];
      }),
    );
  }

  /** The listings of a target, most severe first; of a range those of its addresses, and how many there are in all. */
  view(target: TargetRow, lists: readonly Blocklist[]): { listings: ListingView[]; count: number } {
    if (target.listedOn.length === 0) return { listings: [], count: 0 };
    if (target.members !== null) {
      const rows = this.deps.store.ofRange(target.id, SHOWN_OF_RANGE_MAX);
      const listings = rows.map((row) => listingView(row, lists, row.address));
      return { listings, count: this.deps.store.countOfRange(target.id) };
    }
    const listings = this.deps.store.of(target.id).map((row) => listingView(row, lists, null));
    return { listings: listings.toSorted(worstFirst), count: listings.length };
  }
}

/** A change of the notes about a listing; missing fields stay as they are, false and null remove. */
interface NotesChange {
  readonly acknowledged?: boolean | undefined;
  readonly delisting_requested?: boolean | undefined;
  readonly note?: string | null | undefined;
}

const notesOf = ({ acknowledged, delisting_requested, note }: NotesChange, by: string, atMs: number): ListingNotes => {
  const mark = (isSet: boolean) => ({ by: isSet ? by : null, atMs: isSet ? atMs : null });
  const [known, requested, noted] = [acknowledged, delisting_requested, note].map((value) =>
    value === undefined ? null : mark(value !== false && value !== null),
  );
  return {
    ...(known && { acknowledgedBy: known.by, acknowledgedAtMs: known.atMs }),
    ...(requested && { delistingRequestedBy: requested.by, delistingRequestedAtMs: requested.atMs }),
    ...(noted && { note: note ?? null, noteBy: noted.by, noteAtMs: noted.atMs }),
  };
};

/** Changes the notes about listings: acknowledged, delisting requested, free text. They are removed with the listing. */
export class ListingNotesEditor {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: { store: BlocklistStore; listings: ListingStore },
  ) {}

  /** Annotates a listing of a target, or of all addresses of a range. `by` is the name of the key. Throws `not_found` when it is not listed. */
  async change(
    target: TargetRow,
    listing: string,
    { by, change }: { by: string; change: NotesChange },
  ): Promise<TargetRow> {
    const notes = notesOf(change, by, this.runtime.clock.nowMs());
    const isRange = target.members !== null;
    const changed = await this.runtime.db.commit((tx) => {
      if (!target.listedOn.includes(listing)) return 0;
      if (Object.keys(notes).length === 0) return 1;
      return this.deps.listings.annotate(tx, { id: target.id, isRange }, listing, notes);
    });
    const current = this.deps.store.findTarget(target.id);
    if (changed > 0 && current !== undefined) return current;
    throw new AppError("not_found", { message: `The target is not listed on "${listing.slice(0, 100)}".` });
  }
}
