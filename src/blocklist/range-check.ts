import { newId } from "../foundation/base/secrets.ts";
import { mapConcurrently } from "../foundation/base/wait.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { bodyOf, type CheckBody } from "./check-body.ts";
import type { BlocklistMonitor, FinishedCheck, RunningCheck } from "./monitor.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

export interface RangeChecksDeps {
  readonly store: BlocklistStore;
  readonly ranges: RangeStore;
  readonly monitor: BlocklistMonitor;
}

/** Addresses of one range that are checked at a time, so that other checks get their share. */
const ADDRESSES_AT_ONCE = 8;
const MEMBERS_MAX = 1_024;
/** Results stored of a check of a range, listings first. */
const RESULTS_MAX = 200;

/** Checks all addresses of a range on request; a request during a check gets that check. */
export class RangeChecks {
  readonly #running = new Map<string, RunningCheck>();

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: RangeChecksDeps,
  ) {}

  /** Whether a check of this range is running. */
  isChecking(rangeId: string): boolean {
    return this.#running.has(rangeId);
  }

  /** Begins a check of a range, or joins the one that runs. */
  check({ id: rangeId }: TargetRow): RunningCheck {
    const known = this.#running.get(rangeId);
    if (known !== undefined) return known;
    const begun = { id: newId(), trigger: "manual", startedAtMs: this.runtime.clock.nowMs() } as const;
    const check = { ...begun, done: this.#perform(rangeId, begun).finally(() => this.#running.delete(rangeId)) };
    this.#running.set(rangeId, check);
    return check;
  }

  async #perform(
    rangeId: string,
    begun: Pick<RunningCheck, "id" | "trigger" | "startedAtMs">,
  ): Promise<FinishedCheck | null> {
    const { store, ranges, monitor } = this.deps;
    const bodies: CheckBody[] = [];
    await mapConcurrently(ranges.members(rangeId, MEMBERS_MAX), ADDRESSES_AT_ONCE, async (member) => {
      const finished = monitor.isStopping ? null : await monitor.checkOnDemand(member).done;
      if (finished !== null) bodies.push({ ...bodyOf(finished.check), address: member.value });
    });
    if (monitor.isStopping) return null;
    return this.runtime.db.commit((tx) => {
      const target = store.findTarget(rangeId);
      if (target === undefined) return null;
      const check = {
        ...begun,
        targetId: rangeId,
        finishedAtMs: this.runtime.clock.nowMs(),
        status: target.status === "pending" ? ("unknown" as const) : target.status,
        isChange: bodies.some(({ added, removed }) => added.length + removed.length > 0),
        body: JSON.stringify(sumOf(bodies, target)),
      };
      store.insertCheck(tx, check);
      return { target, check, changes: [] };
    });
  }
}

/** The checks of all addresses as one; every result names its address. */
const sumOf = (bodies: readonly CheckBody[], { listedOn }: TargetRow): CheckBody => {
  const total = (outcome: keyof CheckBody["counts"]): number =>
    bodies.reduce((sum, { counts }) => sum + counts[outcome], 0);
  const each = (field: "added" | "removed"): string[] => [...new Set(bodies.flatMap((body) => body[field]))].toSorted();
  const results = bodies.flatMap((body) => body.results.map((result) => ({ ...result, address: body.address })));
  const listedFirst = results.toSorted((a, b) => Number(b.outcome === "listed") - Number(a.outcome === "listed"));
  return {
    listed_on: [...listedOn],
    added: each("added"),
    removed: each("removed"),
    counts: {
      listed: total("listed"),
      not_listed: total("not_listed"),
      unproven: total("unproven"),
      refused: total("refused"),
      failed: total("failed"),
      skipped: total("skipped"),
    },
    results: listedFirst.slice(0, RESULTS_MAX),
  };
};
