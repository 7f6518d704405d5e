import type { OnBehalfOf, Priority } from "../base/on-behalf-of.ts";
import { createShares } from "../base/shares.ts";
import { type QueuedProbe, type HostQueue, takeProbe } from "./host-queue.ts";
import { createWaitingQueue, type WaitingQueue } from "./waiting-queue.ts";

export interface CeilingDeps {
  readonly connectionsMax: number;
  /** For all hosts of one provider; infinite where nothing is known about it. */
  readonly connectionsPerProviderMax: (provider: string) => number;
}

/** This part of all connections is kept free of bulk questions, so that a person never waits behind a list. */
const REALTIME_SHARE = 0.1;

/** Counts the connections of the pool, in all and by provider. */
export const createCeilings = ({ connectionsMax, connectionsPerProviderMax }: CeilingDeps) => {
  const shares = createShares({ placesMax: connectionsMax, realtimeShare: REALTIME_SHARE });
  /** Providers with a ceiling: connections, and the lanes that wait for one of them. */
  const providers = new Map<string, { open: number; readonly waiting: WaitingQueue }>();
  let total = 0;

  const mayTake = (who: OnBehalfOf): boolean => total < shares.maxFor(who.priority) && shares.mayHold(who);

  return {
    total: (): number => total,
    /** Providers that are counted at the moment. */
    providers: (): number => providers.size,
    /** Whether one more connection may be used for somebody, be it one that rests. */
    mayHold: shares.mayHold,
    /** Whether one more connection may be opened for somebody. */
    mayTake,
    /** Somebody's question is put over a connection. */
    hold: shares.hold,
    release: shares.release,

    /**
     * Takes a connection for a lane's next question, and that question; or says which ceiling forbids it: that of the
     * accounts that ask (`share`), of all connections, or of the provider.
     */
    take(lane: HostQueue): QueuedProbe | "share" | "all" | "provider" {
      if (lane.jobs.peek(shares.mayHold) === null) return "share";
      if (lane.jobs.peek(mayTake) === null) return "all";
      const { provider } = lane.target;
      const max = connectionsPerProviderMax(provider);
      if (Number.isFinite(max)) {
        const shared = providers.get(provider) ?? { open: 0, waiting: createWaitingQueue() };
        if (shared.open >= max) return "provider";
        providers.set(provider, shared);
        shared.open++;
      }
      const job = takeProbe(lane, mayTake);
      if (job === undefined) throw new Error("a connection was taken for no question");
      total++;
      return job;
    },

    /** Keeps a lane until a connection of its provider is given back. */
    awaitProvider: (lane: HostQueue): void => providers.get(lane.target.provider)?.waiting.add(lane),

    /** The most urgent question that waits for a connection of the lane's provider. */
    awaitedAtProvider: (lane: HostQueue): Priority | null =>
      providers.get(lane.target.provider)?.waiting.priority(shares.mayHold) ?? null,

    /** Gives a connection back, and answers the lanes that waited for one of its provider's. */
    give({ target: { provider } }: HostQueue): readonly HostQueue[] {
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
