import type { Clock } from "../base/clock.ts";
import { newId } from "../base/secrets.ts";
import type { Db } from "../db/open.ts";
import { mapConcurrently } from "../base/wait.ts";
import { type CheckBody, checkBodySchema } from "./check-body.ts";
import type { FinishedCheck, Monitor, RunningCheck } from "./monitor.ts";
import type { RangeStore } from "./range-store.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";

export interface RangeChecksDeps {
  readonly db: Db;
  readonly store: BlocklistStore;
  readonly ranges: RangeStore;
  readonly monitor: Monitor;
  readonly clock: Clock;
}

/** Addresses of one range that are checked at a time: the others' checks have places left. */
const ADDRESSES_AT_ONCE = 8;
const MEMBERS_MAX = 1_024;
/** Results kept of a check of a range, those of listings first. */
const RESULTS_MAX = 200;

/** Checks all addresses of a range when somebody asks for it; who asks again while it goes on gets the same check. */
export const createRangeChecks = ({ db, store, ranges, monitor, clock }: RangeChecksDeps) => {
  const running = new Map<string, RunningCheck>();

  const perform = async (
    rangeId: string,
    begun: Pick<RunningCheck, "id" | "trigger" | "startedAtMs">,
  ): Promise<FinishedCheck | null> => {
    const bodies: CheckBody[] = [];
    const members = ranges.members(rangeId, "", MEMBERS_MAX);
    await mapConcurrently(members, ADDRESSES_AT_ONCE, async (member) => {
      const finished = monitor.isStopping() ? null : await monitor.checkOnDemand(member).done;
      if (finished === null) return;
      bodies.push({ ...checkBodySchema.parse(JSON.parse(finished.check.body)), address: member.value });
    });
    if (monitor.isStopping()) return null;
    return db.commit((tx) => {
      const target = store.findTarget(rangeId);
      if (target === undefined) return null;
      const check = {
        ...begun,
        targetId: rangeId,
        finishedAtMs: clock.nowMs(),
        status: target.status === "pending" ? ("unknown" as const) : target.status,
        isChange: bodies.some(({ added, removed }) => added.length + removed.length > 0),
        body: JSON.stringify(sumOf(bodies, target)),
      };
      store.insertCheck(tx, check);
      return { target, check, changes: [] };
    });
  };

  return {
    /** Begins a check of a range, or joins the one that runs. */
    check(range: TargetRow): RunningCheck {
      const known = running.get(range.id);
      if (known !== undefined) return known;
      const begun = { id: newId(), trigger: "manual", startedAtMs: clock.nowMs() } as const;
      const check = { ...begun, done: perform(range.id, begun).finally(() => running.delete(range.id)) };
      running.set(range.id, check);
      return check;
    },
  };
};

export type RangeChecks = ReturnType<typeof createRangeChecks>;

/** What the checks of all addresses come to; results say of which address they are. */
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
