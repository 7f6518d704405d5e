import type { Clock } from "../base/clock.ts";
import { nearestName } from "../base/nearest.ts";
import type { Tx } from "../db/open.ts";
import { type Blocklist, isEnabled } from "../dnsbl/blocklist.ts";
import type { NotifyChanges } from "./change-notifier.ts";
import { checkBodySchema } from "./check-body.ts";
import type { Listings } from "./listings.ts";
import { listsFor } from "./monitor.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

export interface MutingDeps {
  readonly store: BlocklistStore;
  readonly ranges: RangeStore;
  readonly listings: Listings;
  readonly announce: NotifyChanges;
  /** The whole catalogue: any of its lists can be muted. */
  readonly lists: readonly Blocklist[];
  readonly clock: Clock;
}

/** Leaving lists or single listings out of account for a target. */
export const createMuting = ({ store, ranges, listings, announce, lists, clock }: MutingDeps) => {
  /**
   * Whether a list that goes on being asked said in the last check that it has no entry. A check keeps no name of those
   * that said so: one that is being muted, and did not refuse or fail, may have been among them.
   */
  const isDenied = (before: TargetRow, mutedLists: readonly string[]): boolean => {
    const [last] = store.listChecks(before.id, { before: null, limit: 1 });
    if (last === undefined) return false;
    const { counts, results } = checkBodySchema.parse(JSON.parse(last.body));
    const silenced = listsFor(before.mode, lists.filter(isEnabled)).filter(
      ({ id, kinds }) =>
        kinds.includes(before.kind) &&
        mutedLists.includes(id) &&
        !before.mutedLists.includes(id) &&
        results.every(({ list }) => list !== id),
    );
    return counts.not_listed > silenced.length;
  };

  /** Listings that are being muted, by themselves or with their list, go at once, each with its event. */
  const muteOne = (tx: Tx, before: TargetRow, mutedLists: readonly string[]): void => {
    const known = listsFor(before.mode, lists);
    const isMuted = (listing: string) =>
      mutedLists.includes(listing) ||
      known.some(({ id, codes }) => mutedLists.includes(id) && codes.some((code) => code.id === listing));
    const gone = before.listedOn.filter(isMuted);
    if (gone.length === 0) return;
    const listedOn = before.listedOn.filter((listing) => !gone.includes(listing));
    const isLast = before.status === "listed" && listedOn.length === 0;
    const statusThen = isDenied(before, mutedLists) ? "clean" : "unknown";
    const status = isLast ? statusThen : before.status;
    const atMs = clock.nowMs();
    const context = { before, after: { status, listedOn }, lists: known, outcomes: [], checkId: null, atMs };
    const range = before.rangeId === "" ? null : (store.findTarget(before.rangeId)?.value ?? null);
    const changes = gone.map((listing) => ({ listing, reason: "list_muted", flapping: false }) as const);
    announce(tx, changes, { ...context, range });
    store.updateTarget(tx, before.id, { listedOn, status });
    listings.settle(tx, { ...before, listedOn, status }, { outcomes: [], lists: known, atMs });
  };

  return {
    /** Mutes lists and listings for a target, or for all addresses of a range; what is not named is muted no more. */
    mute(tx: Tx, before: TargetRow, wanted: readonly string[]): void {
      const mutedLists = [...new Set(wanted)].toSorted();
      const checked = before.members === null ? [before] : ranges.listedMembers(before.id);
      for (const target of checked) muteOne(tx, target, mutedLists);
      store.updateTarget(tx, before.id, { mutedLists });
      if (before.members !== null) ranges.updateMembers(tx, before.id, { mutedLists });
    },

    /** Where a wanted id is neither in the catalogue nor was it muted or listed before, and what to do about it; null when all are fine. */
    problemOf(
      before: TargetRow,
      mutedLists: readonly string[],
    ): { readonly at: number; readonly message: string } | null {
      const catalogue = [...lists, ...listsFor(before.mode, lists)];
      const ids = catalogue.flatMap(({ id, codes }) => [id, ...codes.map((code) => code.id)]);
      const known = new Set([...ids, ...before.mutedLists, ...before.listedOn]);
      const at = mutedLists.findIndex((id) => !known.has(id));
      if (at === -1) return null;
      const near = nearestName(mutedLists[at] ?? "", known);
      const advice = near === null ? "GET /v1/blacklist/lists names them all" : `Did you mean "${near}"?`;
      return { at, message: `There is no such list or listing. ${advice}` };
    },
  };
};

export type Muting = ReturnType<typeof createMuting>;
