import { nearestName } from "../foundation/base/nearest.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { isEnabled } from "./lists/blocklist.ts";
import type { ChangeNotifier } from "./change-notifier.ts";
import { bodyOf } from "./check-body.ts";
import type { Listings } from "./listings.ts";
import type { MuteStore } from "./mute-store.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { ListsByMode } from "./test-list.ts";

export interface MutingDeps {
  readonly store: BlocklistStore;
  readonly ranges: RangeStore;
  readonly listings: Listings;
  readonly notifier: ChangeNotifier;
  readonly mutes: Pick<MuteStore, "keepOnly">;
  /** The whole catalogue: any of its lists can be muted. */
  readonly catalogue: ListsByMode;
}

/** Excludes lists or single listings from the results of a target. */
export class Muting {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: MutingDeps,
  ) {}

  /** Sets the muted lists and listings of a target, or of all addresses of a range. */
  mute(tx: Tx, before: TargetRow, ids: readonly string[]): void {
    const { store, ranges } = this.deps;
    const mutedLists = [...new Set(ids)].toSorted();
    const checked = before.members === null ? [before] : ranges.listedMembers(before.id);
    for (const target of checked) this.#removeMuted(tx, target, mutedLists);
    store.updateTarget(tx, before.id, { mutedLists });
    this.deps.mutes.keepOnly(tx, before.id, mutedLists);
    if (before.members !== null) ranges.updateMembers(tx, before.id, { mutedLists });
  }

  /** Finds the first id that is neither in the catalogue nor was muted or listed before, and what to do; null when all are known. */
  problemOf(
    before: TargetRow,
    mutedLists: readonly string[],
  ): { readonly at: number; readonly message: string } | null {
    const { catalogue } = this.deps;
    const ids = [...catalogue.live, ...catalogue[before.mode]].flatMap(({ id, codes }) => [
      id,
      ...codes.map((code) => code.id),
    ]);
    const known = new Set([...ids, ...before.mutedLists, ...before.listedOn]);
    const at = mutedLists.findIndex((id) => !known.has(id));
    if (at === -1) return null;
    return { at, message: unknownListMessage(nearestName(mutedLists[at] ?? "", known)) };
  }

  /** Removes the listings that are being muted, by themselves or with their list, each with its event. */
  #removeMuted(tx: Tx, before: TargetRow, mutedLists: readonly string[]): void {
    const { store, listings, notifier, catalogue } = this.deps;
    const lists = catalogue[before.mode];
    const isMuted = (listing: string) =>
      mutedLists.includes(listing) ||
      lists.some(({ id, codes }) => mutedLists.includes(id) && codes.some((code) => code.id === listing));
    const removed = before.listedOn.filter(isMuted);
    if (removed.length === 0) return;
    const listedOn = before.listedOn.filter((listing) => !removed.includes(listing));
    const isLast = before.status === "listed" && listedOn.length === 0;
    const statusThen = this.#isDenied(before, mutedLists) ? "clean" : "unknown";
    const status = isLast ? statusThen : before.status;
    const atMs = this.runtime.clock.nowMs();
    const changes = removed.map((listing) => ({ listing, reason: "list_muted", flapping: false }) as const);
    notifier.notify(tx, changes, {
      ...{ before, after: { status, listedOn }, lists, outcomes: [], checkId: null, atMs },
      range: before.rangeId === "" ? null : (store.findTarget(before.rangeId)?.value ?? null),
    });
    store.updateTarget(tx, before.id, { listedOn, status });
    listings.update(tx, { ...before, listedOn, status }, { outcomes: [], lists, atMs });
  }

  /**
   * Whether a list that is still queried had no entry at the last check. A check does not store the names of such lists:
   * one that is being muted, and did not refuse or fail, may have been among them.
   */
  #isDenied(before: TargetRow, mutedLists: readonly string[]): boolean {
    const [last] = this.deps.store.listChecks(before.id, { before: null, limit: 1 });
    if (last === undefined) return false;
    const { counts, results } = bodyOf(last);
    const lists = this.deps.catalogue[before.mode];
    const queried = before.mode === "test" ? lists : lists.filter(isEnabled);
    const silenced = queried.filter(
      ({ id, kinds }) =>
        kinds.includes(before.kind) &&
        mutedLists.includes(id) &&
        !before.mutedLists.includes(id) &&
        results.every(({ list }) => list !== id),
    );
    return counts.not_listed > silenced.length;
  }
}

/** The error for an id that is no list or listing; `near` is the most similar known id. */
export const unknownListMessage = (near: string | null): string =>
  `There is no such list or listing. ${near === null ? "GET /v1/blacklist/lists returns all of them" : `Did you mean "${near}"?`}`;
