import { type OnBehalfOf, type Priority, createShares } from "../../foundation/base/on-behalf-of.ts";
import { type HostQueue, type QueuedProbe, WaitingHosts } from "./host-queue.ts";

export interface ConnectionLimitOptions {
  readonly connectionsMax: number;
  /** For all hosts of one provider; infinite for an unknown one. */
  readonly connectionsPerProviderMax: (provider: string) => number;
  /** From one egress to all hosts; infinite without a limit. */
  readonly connectionsPerEgressMax: number;
}

/** This share of all connections is reserved for single verifications, so that a person never waits behind a list. */
const REALTIME_SHARE = 0.1;

/** What many hosts have in common, and a limit of its own: their provider, or the egress to them. */
export interface ConnectionGroup {
  readonly kind: "provider" | "egress";
  readonly name: string;
}

interface GroupConnections {
  readonly group: ConnectionGroup;
  open: number;
  /** Queues that wait for one of them. */
  readonly waiting: WaitingHosts;
}

/** Whether the connections of a queue count for a group. */
export const isInGroup = ({ target }: HostQueue, { kind, name }: ConnectionGroup): boolean => target[kind] === name;

const keyOf = ({ kind, name }: ConnectionGroup): string => `${kind} ${name}`;

/** Counts the connections of the pool in total, by account, by provider and by egress. */
export class ConnectionLimits {
  readonly #shares;
  /** Only those that have a limit: known providers, and all egresses where there is one. */
  readonly #groups = new Map<string, GroupConnections>();
  #total = 0;

  constructor(private readonly options: ConnectionLimitOptions) {
    this.#shares = createShares({ placesMax: options.connectionsMax, realtimeShare: REALTIME_SHARE });
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
   * waiting accounts (`account`), of all connections (`total`), or of a group.
   */
  open(queue: HostQueue): { readonly probe: QueuedProbe } | "account" | "total" | ConnectionGroup {
    if (!queue.hasProbeFor(this.mayUse)) return "account";
    if (!queue.hasProbeFor(this.mayOpen)) return "total";
    const groups = this.#limitedGroups(queue);
    const full = groups.find(({ group, max }) => (this.#groups.get(keyOf(group))?.open ?? 0) >= max);
    if (full !== undefined) return full.group;
    for (const { group } of groups) {
      const connections = this.#groups.get(keyOf(group)) ?? { group, open: 0, waiting: new WaitingHosts() };
      this.#groups.set(keyOf(group), connections);
      connections.open++;
    }
    const probe = queue.take(this.mayOpen);
    if (probe === undefined) throw new Error("a connection was counted for no probe");
    this.#total++;
    return { probe };
  }

  /** The egresses at their limit, except where one of the queues has an idle connection. */
  fullEgresses(withIdle: Iterable<HostQueue>): ReadonlySet<string> {
    const { connectionsPerEgressMax: max } = this.options;
    const groups = [...this.#groups.values()].filter(({ group, open }) => group.kind === "egress" && open >= max);
    const full = new Set(groups.map(({ group }) => group.name));
    if (full.size > 0) for (const { target } of withIdle) full.delete(target.egress);
    return full;
  }

  /** Lets a queue wait for a connection of a group. */
  awaitGroup(queue: HostQueue, group: ConnectionGroup): void {
    this.#groups.get(keyOf(group))?.waiting.add(queue);
  }

  /** The priorities of the most urgent probes that wait for a connection of the queue's groups. */
  prioritiesInGroups(queue: HostQueue): readonly (Priority | null)[] {
    return this.#limitedGroups(queue).map(
      ({ group }) => this.#groups.get(keyOf(group))?.waiting.priority(this.mayUse) ?? null,
    );
  }

  /** A connection was closed. Returns the queues that waited for one of its groups. */
  close(queue: HostQueue): readonly HostQueue[] {
    this.#total--;
    return this.#limitedGroups(queue).flatMap(({ group }) => {
      const connections = this.#groups.get(keyOf(group));
      if (connections === undefined) return [];
      connections.open--;
      return connections.waiting.takeAll();
    });
  }

  #limitedGroups({ target: { provider, egress } }: HostQueue) {
    const groups = [
      { group: { kind: "provider", name: provider }, max: this.options.connectionsPerProviderMax(provider) },
      { group: { kind: "egress", name: egress }, max: this.options.connectionsPerEgressMax },
    ] as const;
    return groups.filter(({ max }) => Number.isFinite(max));
  }
}
