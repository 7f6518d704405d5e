import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import type { Clock } from "../../foundation/base/clock.ts";
import type { SmtpFailure } from "../../foundation/net/smtp-failure.ts";
import { type OnBehalfOf, type Priority, createShares } from "../../foundation/base/on-behalf-of.ts";
import { type HostQueue, type QueuedProbe, WaitingHosts } from "./host-queue.ts";

/** How a session ended, as far as it matters for dialling again. */
export type SessionOutcome =
  /** The host replied to the probe, whatever it said. */
  | { readonly kind: "answered" }
  /** The host replied that it limits our rate. */
  | { readonly kind: "rate_limited" }
  /** The host has banned this egress: send nothing for `pauseMs`. */
  | { readonly kind: "shut_out"; readonly pauseMs: number }
  /** The host did not accept the connection, or never sent a banner. */
  | { readonly kind: "unresponsive"; readonly failure: SmtpFailure };

export type Admission =
  | { readonly kind: "go"; readonly connectionsMax: number }
  /** Dial again after `waitMs`. */
  | { readonly kind: "wait"; readonly waitMs: number }
  /** Send nothing for this time, not even on open connections. */
  | { readonly kind: "pause"; readonly waitMs: number }
  /** Do not dial: it kept timing out, with this failure. */
  | { readonly kind: "cooldown"; readonly failure: SmtpFailure; readonly sinceMs: number };

interface HostCooldown {
  readonly failure: SmtpFailure;
  /** Wall time. */
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly lengthMs: number;
}

interface HostState {
  /** Timeouts in a row. */
  timeouts: number;
  cooldown: HostCooldown | null;
  /** Rate limits in a row, and when the host may be dialled again because of them. */
  rateLimits: number;
  dialAtMs: number;
  connectionsMax: number;
  /** Pauses in a row because it shut us out, and until when the last one is. */
  pauses: number;
  pausedUntilMs: number;
  usedAtMs: number;
}

/** One timeout may be due to the network; this many in a row are due to the host. */
const TIMEOUTS_BEFORE_COOLDOWN = 3;
const COOLDOWN_MS = 60_000;
const COOLDOWN_MS_MAX = 10 * 60_000;
/** After a rate limit the host is dialled no sooner than this, doubling while it goes on. */
const RATE_LIMIT_WAIT_MS = 500;
const RATE_LIMIT_WAIT_MS_MAX = 5_000;
const PAUSES_IN_A_ROW_MAX = 5;
/** Hosts kept; those that were not dialled for long are evicted first. */
const HOSTS_MAX = 50_000;
const EXPIRE_MS = 60 * 60_000;

/**
 * When a host may be dialled, by its recent behaviour. A host that limits our rate gets fewer connections and pauses; one
 * that has shut us out gets nothing for a while; one that keeps timing out is on cooldown, so that thousands of probes do not wait for it.
 */
export class Pacing {
  readonly #hosts = new BoundedMap<string, HostState>(HOSTS_MAX);

  constructor(
    private readonly clock: Clock,
    private readonly connectionsPerHostMax: number,
  ) {}

  /** Whether a host may be dialled now, and with how many connections at a time. */
  admit(host: string): Admission {
    const state = this.#hosts.get(host);
    if (state === undefined) return { kind: "go", connectionsMax: this.connectionsPerHostMax };
    const nowMs = this.clock.monotonicMs();
    const { cooldown, dialAtMs, connectionsMax, pausedUntilMs } = state;
    if (cooldown !== null && cooldown.untilMs > nowMs)
      return { kind: "cooldown", failure: cooldown.failure, sinceMs: cooldown.sinceMs };
    if (pausedUntilMs > nowMs) return { kind: "pause", waitMs: pausedUntilMs - nowMs };
    return dialAtMs > nowMs ? { kind: "wait", waitMs: dialAtMs - nowMs } : { kind: "go", connectionsMax };
  }

  note(host: string, outcome: SessionOutcome): void {
    if (outcome.kind === "answered" && !this.#hosts.has(host)) return;
    const state = this.#stateOf(host);
    state.usedAtMs = this.clock.monotonicMs();
    if (outcome.kind === "answered") this.#noteAnswer(state);
    else if (outcome.kind === "rate_limited") this.#noteRateLimit(state);
    else if (outcome.kind === "shut_out") this.#noteShutOut(state, outcome.pauseMs);
    else this.#noteTimeout(state, outcome.failure);
  }

  /** Ends the cooldown of every host, after an outage that was not the hosts' fault. */
  endCooldowns(): void {
    for (const state of this.#hosts.values()) {
      state.timeouts = 0;
      state.cooldown = null;
    }
  }

  /** Hosts that are not dialled because they kept timing out. */
  countCooldowns(): number {
    const nowMs = this.clock.monotonicMs();
    let count = 0;
    for (const { cooldown } of this.#hosts.values()) if (cooldown !== null && cooldown.untilMs > nowMs) count++;
    return count;
  }

  get size(): number {
    return this.#hosts.size;
  }

  #stateOf(host: string): HostState {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    if (this.#hosts.size >= HOSTS_MAX) this.#dropExpired();
    const connectionsMax = this.connectionsPerHostMax;
    const fresh = {
      timeouts: 0,
      cooldown: null,
      rateLimits: 0,
      dialAtMs: 0,
      connectionsMax,
      pauses: 0,
      pausedUntilMs: 0,
      usedAtMs: 0,
    };
    this.#hosts.set(host, fresh);
    return fresh;
  }

  #dropExpired(): void {
    const beforeMs = this.clock.monotonicMs() - EXPIRE_MS;
    for (const [host, { usedAtMs }] of this.#hosts) if (usedAtMs < beforeMs) this.#hosts.delete(host);
  }

  #noteAnswer(state: HostState): void {
    state.timeouts = 0;
    state.cooldown = null;
    state.rateLimits = 0;
    state.pauses = 0;
    state.connectionsMax = Math.min(this.connectionsPerHostMax, state.connectionsMax + 1);
  }

  #noteRateLimit(state: HostState): void {
    const waitMs = Math.min(RATE_LIMIT_WAIT_MS * 2 ** state.rateLimits, RATE_LIMIT_WAIT_MS_MAX);
    state.rateLimits++;
    state.dialAtMs = this.clock.monotonicMs() + waitMs;
    state.connectionsMax = Math.max(1, Math.floor(state.connectionsMax / 2));
  }

  /** A host that shuts us out after every pause gets no more of them: a list must end. */
  #noteShutOut(state: HostState, pauseMs: number): void {
    const nowMs = this.clock.monotonicMs();
    if (state.pausedUntilMs <= nowMs) state.pauses++;
    if (state.pauses > PAUSES_IN_A_ROW_MAX) this.#noteRateLimit(state);
    else state.pausedUntilMs = Math.max(state.pausedUntilMs, nowMs + pauseMs);
  }

  #noteTimeout(state: HostState, failure: SmtpFailure): void {
    state.timeouts++;
    if (state.timeouts < TIMEOUTS_BEFORE_COOLDOWN) return;
    const before = state.cooldown?.lengthMs;
    const lengthMs = before === undefined ? COOLDOWN_MS : Math.min(before * 2, COOLDOWN_MS_MAX);
    const untilMs = this.clock.monotonicMs() + lengthMs;
    state.cooldown = { failure, sinceMs: this.clock.nowMs(), untilMs, lengthMs };
  }
}

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
