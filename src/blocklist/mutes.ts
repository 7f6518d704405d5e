import { AppError } from "../foundation/base/errors.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { Muting } from "./muting.ts";
import type { MuteRow, MuteStore } from "./mute-store.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, Owner, TargetRow } from "./store.ts";
import type { Targets } from "./targets.ts";

/** Why something is muted, and until when (milliseconds since 1970; null: until somebody ends it). */
export interface MuteOrder {
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

export interface MutesDeps {
  readonly store: MuteStore;
  readonly blocklists: BlocklistStore;
  readonly ranges: Pick<RangeStore, "updateMembers">;
  readonly targets: Pick<Targets, "find" | "change">;
  readonly muting: Muting;
}

/** Mutes that end in one run; the rest ends in the next, a minute later. */
const ENDED_AT_ONCE = 200;
const FUTURE_MS_MIN = 60_000;

/** Mutes lists and listings of a target for a time and with a reason. */
export class Mutes {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: MutesDeps,
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
  async endDue(): Promise<void> {
    const nowMs = this.runtime.clock.nowMs();
    for (const row of this.deps.store.ended(nowMs, ENDED_AT_ONCE)) await this.#end(row, nowMs);
  }

  #end(row: MuteRow, nowMs: number): Promise<void> {
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
