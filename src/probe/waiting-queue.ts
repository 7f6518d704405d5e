import { createFairQueue } from "../base/fair-queue.ts";
import type { OnBehalfOf, Priority } from "../base/on-behalf-of.ts";
import type { HostQueue } from "./host-queue.ts";

interface Entry {
  readonly lane: HostQueue;
  readonly onBehalfOf: OnBehalfOf;
  isOver: boolean;
}

type May = (who: OnBehalfOf) => boolean;
const anybody: May = () => true;

/**
 * HostQueues that could use a connection while all are taken: those first in which somebody waits, the accounts in turn, in
 * the order in which they came. A lane is in it once for each account and priority that it has questions of.
 */
export const createWaitingQueue = () => {
  const queue = createFairQueue<Entry>(({ lane, onBehalfOf, isOver }) => isOver || !lane.jobs.has(onBehalfOf));
  const entries = new Map<HostQueue, Entry[]>();

  const remove = (lane: HostQueue): void => {
    for (const entry of entries.get(lane) ?? []) entry.isOver = true;
    entries.delete(lane);
  };
  const shift = (may: May): HostQueue | undefined => {
    const lane = queue.take(may)?.item.lane;
    if (lane !== undefined) remove(lane);
    return lane;
  };

  return {
    add(lane: HostQueue): void {
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
    takeAll(): HostQueue[] {
      const lanes: HostQueue[] = [];
      for (let lane = shift(anybody); lane !== undefined; lane = shift(anybody)) lanes.push(lane);
      entries.clear();
      return lanes;
    },
    /** For what the next lane came, among those of whom `may` says yes; null when there is none. */
    priority: (may: May = anybody): Priority | null => queue.peek(may)?.priority ?? null,
    size: (): number => entries.size,
  };
};

export type WaitingQueue = ReturnType<typeof createWaitingQueue>;
