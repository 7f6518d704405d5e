import { nextTurn } from "../foundation/base/clock.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, Owner } from "./store.ts";
import type { Targets } from "./targets.ts";

export interface TargetActionsDeps {
  readonly blocklists: Pick<BlocklistStore, "updateTarget">;
  readonly ranges: Pick<RangeStore, "updateMembers">;
  readonly targets: Pick<Targets, "find" | "change" | "remove">;
}

/** What is done with many targets at once. Each throws `not_found` for a target that is not the caller's, before it changes any. */
export class TargetActions {
  constructor(
    private readonly runtime: Runtime,
    private readonly deps: TargetActionsDeps,
  ) {}

  /** Makes targets due, so that the next run of scheduled checks takes them, within a minute. Paused ones stay as they are. */
  async checkSoon(owner: Owner, ids: readonly string[]): Promise<void> {
    const { blocklists, ranges, targets } = this.deps;
    const { db, clock } = this.runtime;
    const found = ids.map((id) => targets.find(owner, id));
    const due = { nextCheckAtMs: clock.nowMs() };
    await db.commit((tx) => {
      for (const { id, members } of found) {
        blocklists.updateTarget(tx, id, due);
        if (members !== null) ranges.updateMembers(tx, id, due);
      }
    });
  }

  async setMonitoring(owner: Owner, ids: readonly string[], monitoringEnabled: boolean): Promise<void> {
    for (const id of ids) this.deps.targets.find(owner, id);
    for (const id of ids) await this.deps.targets.change(owner, id, { monitoringEnabled });
  }

  /** Removes targets with their history. */
  async remove(owner: Owner, ids: readonly string[]): Promise<void> {
    for (const id of ids) this.deps.targets.find(owner, id);
    for (const id of ids) {
      await this.deps.targets.remove(owner, id);
      await nextTurn();
    }
  }
}
