import { type Lane, type Priority, priorityOf } from "./lane.ts";
import { createLaneQueue, type LaneQueue } from "./queue.ts";

export interface CeilingDeps {
  readonly connectionsMax: number;
  /** For all hosts of one provider; infinite where nothing is known about it. */
  readonly connectionsPerProviderMax: (provider: string) => number;
}

/** This part of all connections is kept free of bulk questions, so that a person never waits behind a list. */
const REALTIME_SHARE = 0.1;

/** Counts the connections of the pool, in all and by provider. */
export const createCeilings = ({ connectionsMax, connectionsPerProviderMax }: CeilingDeps) => {
  const bulkMax = Math.max(1, connectionsMax - Math.ceil(connectionsMax * REALTIME_SHARE));
  /** Providers with a ceiling: connections, and the lanes that wait for one of them. */
  const providers = new Map<string, { open: number; readonly waiting: LaneQueue }>();
  let total = 0;

  const isFull = (priority: Priority): boolean => total >= (priority === "realtime" ? connectionsMax : bulkMax);

  return {
    total: (): number => total,
    /** Providers that are counted at the moment. */
    providers: (): number => providers.size,
    /** Whether all connections that such a question may have are taken. */
    isFull,

    /** Takes a connection for a lane's next question, or says which ceiling forbids it: that of all, or its provider's. */
    take(lane: Lane): "taken" | "all" | "provider" {
      if (isFull(priorityOf(lane))) return "all";
      const { provider } = lane.target;
      const max = connectionsPerProviderMax(provider);
      if (Number.isFinite(max)) {
        const shared = providers.get(provider) ?? { open: 0, waiting: createLaneQueue() };
        if (shared.open >= max) return "provider";
        providers.set(provider, shared);
        shared.open++;
      }
      total++;
      return "taken";
    },

    /** Keeps a lane until a connection of its provider is given back. */
    awaitProvider: (lane: Lane): void => providers.get(lane.target.provider)?.waiting.add(lane),

    /** The most urgent question that waits for a connection of the lane's provider. */
    awaitedAtProvider: (lane: Lane): Priority | null => providers.get(lane.target.provider)?.waiting.priority() ?? null,

    /** Gives a connection back, and answers the lanes that waited for one of its provider's. */
    give({ target: { provider } }: Lane): readonly Lane[] {
      total--;
      const shared = providers.get(provider);
      if (shared === undefined) return [];
      shared.open--;
      if (shared.open === 0) providers.delete(provider);
      return shared.waiting.takeAll();
    },
  };
};

export type Ceilings = ReturnType<typeof createCeilings>;
