import { createFairQueue } from "../base/fair-queue.ts";
import type { OnBehalfOf, Priority } from "../base/on-behalf-of.ts";
import type { Lane } from "./lane.ts";

interface Entry {
  readonly lane: Lane;
  readonly onBehalfOf: OnBehalfOf;
  isOver: boolean;
}

type May = (who: OnBehalfOf) => boolean;
const anybody: May = () => true;

/**
 * Lanes that could use a connection while all are taken: those first in which somebody waits, the accounts in turn, in
 * the order in which they came. A lane is in it once for each account and priority that it has questions of.
 */
export const createLaneQueue = () => {
  const queue = createFairQueue<Entry>(({ lane, onBehalfOf, isOver }) => isOver || !lane.jobs.has(onBehalfOf));
  const entries = new Map<Lane, Entry[]>();

  const remove = (lane: Lane): void => {
    for (const entry of entries.get(lane) ?? []) entry.isOver = true;
    entries.delete(lane);
  };
  const shift = (may: May): Lane | undefined => {
    const lane = queue.take(may)?.item.lane;
    if (lane !== undefined) remove(lane);
    return lane;
  };

  return {
    add(lane: Lane): void {
      const known = entries.get(lane) ?? [];
      entries.set(lane, known);
      for (const who of lane.jobs.waitingFor()) {
        const { account, priority } = who;
        if (known.some((entry) => entry.onBehalfOf.account === account && entry.onBehalfOf.priority === priority))
          continue;
        const entry = { lane, onBehalfOf: who, isOver: false };
        known.push(entry);
        queue.add(who, entry);
      }
    },
    delete: remove,
    /** Takes the next lane out that has a question of one for whom `may` says yes. */
    shift,
    /** Takes all out, in their order. */
    takeAll(): Lane[] {
      const lanes: Lane[] = [];
      for (let lane = shift(anybody); lane !== undefined; lane = shift(anybody)) lanes.push(lane);
      entries.clear();
      return lanes;
    },
    /** For what the next lane came, among those of whom `may` says yes; null when there is none. */
    priority: (may: May = anybody): Priority | null => queue.peek(may)?.priority ?? null,
    size: (): number => entries.size,
  };
};

export type LaneQueue = ReturnType<typeof createLaneQueue>;
