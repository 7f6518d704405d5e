import type { Lane } from "./lane.ts";

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
  const providers = new Map<string, { open: number; readonly hungry: Set<Lane> }>();
  let total = 0;

  return {
    total: (): number => total,
    /** Whether all connections are taken, for a lane's next question. */
    isFull: (lane?: Lane): boolean =>
      total >= (lane === undefined || lane.realtime.length > 0 ? connectionsMax : bulkMax),

    /** Takes a connection for a lane. `provider`: its provider has enough, and the lane is kept until one is given back. */
    take(lane: Lane): "taken" | "all" | "provider" {
      if (this.isFull(lane)) return "all";
      const { provider } = lane.target;
      const max = connectionsPerProviderMax(provider);
      if (Number.isFinite(max)) {
        const shared = providers.get(provider) ?? { open: 0, hungry: new Set() };
        providers.set(provider, shared);
        if (shared.open >= max) {
          shared.hungry.add(lane);
          return "provider";
        }
        shared.open++;
      }
      total++;
      return "taken";
    },

    /** Gives a connection back, and answers the lanes that waited for one of its provider's. */
    give({ target: { provider } }: Lane): readonly Lane[] {
      total--;
      const shared = providers.get(provider);
      if (shared === undefined) return [];
      shared.open--;
      const waiting = [...shared.hungry];
      shared.hungry.clear();
      if (shared.open === 0) providers.delete(provider);
      return waiting;
    },
  };
};

export type Ceilings = ReturnType<typeof createCeilings>;
