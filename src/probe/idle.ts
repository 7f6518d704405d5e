import type { Clock } from "../base/clock.ts";
import type { Connection } from "./smtp-probe.ts";
import type { HostQueue } from "./host-queue.ts";

/** A connection with nothing to ask stays open this long: the next recipient of the host then costs one round trip. */
export const IDLE_MS = 1_000;

/** The connections that rest between two questions. `onClosed` hears of each that was closed, when it is no longer there. */
export const createIdleConnections = (clock: Clock, onClosed: (lane: HostQueue) => void) => {
  /** HostQueues with resting connections; the one that has had them longest comes first. */
  const lanes = new Set<HostQueue>();

  const closeOldest = (lane: HostQueue): void => {
    const idle = lane.idle.shift();
    if (lane.idle.length === 0) lanes.delete(lane);
    if (idle === undefined) return;
    idle.cancel();
    idle.connection.session.close();
    onClosed(lane);
  };

  const findLane = (provider: string | null): HostQueue | undefined => {
    for (const lane of lanes) if (provider === null || lane.target.provider === provider) return lane;
    return undefined;
  };

  return {
    /** Every connection rests equally long, so that the timer which fires is the oldest one's. */
    rest(lane: HostQueue, connection: Connection): void {
      lane.idle.push({ connection, cancel: clock.after(IDLE_MS, () => closeOldest(lane)) });
      lanes.add(lane);
    },

    /** The connection that rested last: it is the least likely to have been closed by the other side. */
    take(lane: HostQueue): Connection | null {
      const idle = lane.idle.pop();
      if (lane.idle.length === 0) lanes.delete(lane);
      idle?.cancel();
      return idle?.connection ?? null;
    },

    /** Gives up a resting connection, of that provider if one is named, so that another host can be dialled. False: none rests. */
    closeOne(provider: string | null): boolean {
      const lane = findLane(provider);
      if (lane !== undefined) closeOldest(lane);
      return lane !== undefined;
    },

    closeAll(): void {
      for (const lane of [...lanes]) while (lane.idle.length > 0) closeOldest(lane);
    },
  };
};
