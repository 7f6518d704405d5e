import { nearestName } from "../foundation/base/nearest.ts";
import type { Tx } from "../foundation/db/open.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { isEnabled } from "./lists/blocklist.ts";
import type { ChangeNotifier } from "./change-notifier.ts";
import { bodyOf } from "./check-result.ts";
import type { Listings } from "./listings.ts";
import type { MuteStore, MuteRow } from "./listing-store.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import type { ListsByMode } from "./target-lookup.ts";
import { AppError } from "../foundation/base/errors.ts";
import type { Owner } from "../foundation/base/secrets.ts";

/** Excludes lists or single listings from the results of a target. */
export class Muting {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: BlocklistStore;
      ranges: RangeStore;
      listings: Listings;
      notifier: ChangeNotifier;
      mutes: MuteStore;
      /** The whole catalogue: any of its lists can be muted. */
      catalogue: ListsByMode;
    },
  ) {}

  /** Sets the muted lists and listings of a target, or of all addresses of a range. */
  mute(tx: Tx, before: TargetRow, ids: readonly string[]) {
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
  #removeMuted(tx: Tx, before: TargetRow, mutedLists: readonly string[]) {
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
      before,
      after: { status, listedOn },
      lists,
      outcomes: [],
      checkId: null,
      atMs,
      range: before.rangeId === "" ? null : (store.findTarget(before.rangeId)?.value ?? null),
    });
    store.updateTarget(tx, before.id, { listedOn, status });
    listings.update(tx, { ...before, listedOn, status }, { outcomes: [], lists, atMs });
  }

  /**
   * Whether a list that is still queried had no entry at the last check. A check does not store the names of such lists:
   * one that is being muted, and did not refuse or fail, may have been among them.
   */
  #isDenied(before: TargetRow, mutedLists: readonly string[]) {
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

/** Why something is muted, and until when (milliseconds since 1970; null: until somebody ends it). */
interface MuteOrder {
  /** Who mutes: an address or the name of a key. */
  readonly by: string;
  readonly reason: string | null;
  readonly untilMs: number | null;
}

/** A muted list or listing. `order` is null when it was muted without a reason and an end. */
export interface MuteView {
  readonly muted: string;
  readonly order: (MuteOrder & { readonly atMs: number }) | null;
}

/** `Targets`, as far as mutes change them. */
interface MutedTargets {
  find(owner: Owner, id: string): TargetRow;
  change(owner: Owner, id: string, change: Pick<TargetRow, "mutedLists">): Promise<TargetRow>;
}

/** Mutes that end in one run; the rest ends in the next, a minute later. */
const ENDED_AT_ONCE = 200;
const FUTURE_MS_MIN = 60_000;

/** Mutes lists and listings of a target for a time and with a reason. */
export class Mutes {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      store: MuteStore;
      blocklists: BlocklistStore;
      ranges: RangeStore;
      targets: MutedTargets;
      muting: Muting;
    },
  ) {}

  /** Throws what `Targets.change` throws, and `Invalid request body` for an end in the past. */
  async mute(owner: Owner, targetId: string, muted: string, { by, reason, untilMs }: MuteOrder): Promise<TargetRow> {
    const { store, targets } = this.deps;
    const { db, clock } = this.runtime;
    const nowMs = clock.nowMs();
    if (untilMs !== null && untilMs < nowMs + FUTURE_MS_MIN)
      throw new AppError("Invalid request body", { issues: [{ path: "until", message: "Must be in the future" }] });
    const { mutedLists } = targets.find(owner, targetId);
    // First: a mute without its end would last forever if the process stopped in between.
    await db.commit((tx) => store.keep(tx, { targetId, muted, reason, untilMs, mutedBy: by, mutedAtMs: nowMs }));
    try {
      return await targets.change(owner, targetId, { mutedLists: [...mutedLists, muted] });
    } catch (error) {
      await db.commit((tx) => store.remove(tx, { targetId, muted }));
      throw error;
    }
  }

  /** The next check shows what is listed. Throws what `Targets.change` throws. */
  async unmute(owner: Owner, targetId: string, muted: string): Promise<TargetRow> {
    const { mutedLists } = this.deps.targets.find(owner, targetId);
    return this.deps.targets.change(owner, targetId, { mutedLists: mutedLists.filter((id) => id !== muted) });
  }

  /** What is muted for a target; addresses of a range have the mutes of their range. */
  of({ id, rangeId, mutedLists }: TargetRow): MuteView[] {
    const known = new Map(this.deps.store.of(rangeId === "" ? id : rangeId).map((row) => [row.muted, row]));
    return mutedLists.map((muted) => {
      const row = known.get(muted);
      return { muted, order: row === undefined ? null : orderOf(row) };
    });
  }

  /** Ends the mutes whose time is over, and checks their targets. */
  async endDue() {
    const nowMs = this.runtime.clock.nowMs();
    for (const row of this.deps.store.ended(nowMs, ENDED_AT_ONCE)) await this.#end(row, nowMs);
  }

  #end(row: MuteRow, nowMs: number) {
    const { store, blocklists, ranges, muting } = this.deps;
    return this.runtime.db.commit((tx) => {
      store.remove(tx, row);
      const target = blocklists.findTarget(row.targetId);
      if (target === undefined || !target.mutedLists.includes(row.muted)) return;
      muting.mute(
        tx,
        target,
        target.mutedLists.filter((id) => id !== row.muted),
      );
      const due = { nextCheckAtMs: nowMs };
      blocklists.updateTarget(tx, target.id, due);
      if (target.members !== null) ranges.updateMembers(tx, target.id, due);
    });
  }
}

const orderOf = ({ mutedBy: by, reason, untilMs, mutedAtMs: atMs }: MuteRow) => ({ by, reason, untilMs, atMs });
