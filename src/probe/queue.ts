import type { Lane, Priority } from "./lane.ts";

/**
 * Lanes that could use a connection while all are taken, in the order they came; those with somebody waiting first.
 * A lane is in it once.
 */
export const createLaneQueue = () => {
  const realtime = new Set<Lane>();
  const bulk = new Set<Lane>();

  return {
    add(lane: Lane): void {
      if (lane.realtime.length > 0) {
        bulk.delete(lane);
        realtime.add(lane);
      } else if (!realtime.has(lane)) {
        bulk.add(lane);
      }
    },
    delete(lane: Lane): void {
      realtime.delete(lane);
      bulk.delete(lane);
    },
    /** Takes the next lane out. */
    shift(): Lane | undefined {
      const [lane] = realtime.size > 0 ? realtime : bulk;
      if (lane !== undefined) this.delete(lane);
      return lane;
    },
    /** Takes all out, in their order. */
    takeAll(): Lane[] {
      const lanes = [...realtime, ...bulk];
      this.clear();
      return lanes;
    },
    /** For what the next lane came; null when nobody waits. */
    priority(): Priority | null {
      if (realtime.size > 0) return "realtime";
      return bulk.size > 0 ? "bulk" : null;
    },
    size: (): number => realtime.size + bulk.size,
    clear(): void {
      realtime.clear();
      bulk.clear();
    },
  };
};

export type LaneQueue = ReturnType<typeof createLaneQueue>;
