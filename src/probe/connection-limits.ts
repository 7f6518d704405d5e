import type { OnBehalfOf, Priority } from "../base/on-behalf-of.ts";
import { createShares } from "../base/shares.ts";
import { type HostQueue, type QueuedProbe, WaitingHosts } from "./host-queue.ts";

export interface ConnectionLimitOptions {
  readonly connectionsMax: number;
  /** For all hosts of one provider; infinite for an unknown one. */
  readonly connectionsPerProviderMax: (provider: string) => number;
}

/** This share of all connections is reserved for single verifications, so that a person never waits behind a list. */
const REALTIME_SHARE = 0.1;

interface ProviderConnections {
  open: number;
  /** Queues that wait for one of them. */
  readonly waiting: WaitingHosts;
}

/** Counts the connections of the pool in total, by account and by provider. */
export class ConnectionLimits {
  readonly #connectionsPerProviderMax: ConnectionLimitOptions["connectionsPerProviderMax"];
  readonly #shares;
  /** Only providers that have a limit, and connections. */
  readonly #providers = new Map<string, ProviderConnections>();
  #total = 0;

  constructor({ connectionsMax, connectionsPerProviderMax }: ConnectionLimitOptions) {
    this.#connectionsPerProviderMax = connectionsPerProviderMax;
    this.#shares = createShares({ placesMax: connectionsMax, realtimeShare: REALTIME_SHARE });
  }

  get total(): number {
    return this.#total;
  }

  /** Whether one more connection may be used for somebody, be it an idle one. */
  readonly mayUse = (who: OnBehalfOf): boolean => this.#shares.mayHold(who);

  /** Whether one more connection may be opened for somebody. */
  readonly mayOpen = (who: OnBehalfOf): boolean =>
    this.#total < this.#shares.maxFor(who.priority) && this.#shares.mayHold(who);

  /** A connection is in use for somebody, until `release`. */
  use(who: OnBehalfOf): void {
    this.#shares.hold(who);
  }

  release(who: OnBehalfOf): void {
    this.#shares.release(who);
  }

  /**
   * Counts a connection for a queue's next probe and returns that probe; or the limit that forbids it: that of the
   * waiting accounts (`account`), of all connections (`total`), or of the provider.
   */
  open(queue: HostQueue): QueuedProbe | "account" | "total" | "provider" {
    if (!queue.hasProbeFor(this.mayUse)) return "account";
    if (!queue.hasProbeFor(this.mayOpen)) return "total";
    const { provider } = queue.target;
    const max = this.#connectionsPerProviderMax(provider);
    if (Number.isFinite(max)) {
      const connections = this.#providers.get(provider) ?? { open: 0, waiting: new WaitingHosts() };
      if (connections.open >= max) return "provider";
      this.#providers.set(provider, connections);
      connections.open++;
    }
    const probe = queue.take(this.mayOpen);
    if (probe === undefined) throw new Error("a connection was counted for no probe");
    this.#total++;
    return probe;
  }

  /** Lets a queue wait for a connection of its provider. */
  awaitProvider(queue: HostQueue): void {
    this.#providers.get(queue.target.provider)?.waiting.add(queue);
  }

  /** The most urgent probe that waits for a connection of the queue's provider. */
  priorityAtProvider({ target: { provider } }: HostQueue): Priority | null {
    return this.#providers.get(provider)?.waiting.priority(this.mayUse) ?? null;
  }

  /** A connection was closed. Returns the queues that waited for one of its provider's. */
  close({ target: { provider } }: HostQueue): readonly HostQueue[] {
    this.#total--;
    const connections = this.#providers.get(provider);
    if (connections === undefined) return [];
    connections.open--;
    if (connections.open === 0) this.#providers.delete(provider);
    return connections.waiting.takeAll();
  }
}
