import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { isIP } from "node:net";
import type { Clock } from "../../foundation/base/clock.ts";
import type { Log } from "../../foundation/base/log.ts";
import type { Connector } from "../../foundation/net/connector.ts";

/** One egress of this machine: a local address, or a SOCKS5 proxy. */
export interface Egress {
  /** As the evidence names it: `direct`, the local address, or `socks5://host:port`. Never a password. */
  readonly name: string;
  readonly connector: Connector;
  /** Bound before connecting; null leaves the choice to the system (or to the proxy). */
  readonly localAddress: string | null;
  /** Another machine connects for us, so that a session without a reply may be its fault. */
  readonly isProxy: boolean;
}

/** An address of a mail host, and its provider: an egress that is blocked at one host is blocked at all of the provider's. */
export interface EgressTarget {
  readonly address: string;
  readonly provider: string;
}

/** A blocked egress is on cooldown at the provider for this long, doubling each time up to the second figure. */
const COOLDOWN_MS = 15 * 60 * 1000;
const COOLDOWN_MS_MAX = 4 * 60 * 60 * 1000;
/** Pairs of egress and provider on cooldown; beyond it the oldest are evicted. */
const COOLDOWNS_MAX = 10_000;
/** A broken egress (no such address, no such proxy) is not used anywhere for this long, doubling up to the second figure. */
const BROKEN_MS = 60_000;
const BROKEN_MS_MAX = 8 * 60_000;
/** A broken egress is reported for this long after it was last tried: without probes nobody knows whether it works. */
const REPORTED_MS = 15 * 60_000;

/** How an egress fares. `problem`: why it cannot be used, as a sentence without its subject. */
export interface EgressState {
  readonly name: string;
  readonly problem: string | null;
  /** Providers that it is on cooldown at, the longest first; at most 20. */
  readonly cooldowns: ReadonlyArray<{ readonly provider: string; readonly leftMs: number }>;
  readonly cooldownCount: number;
}

const COOLDOWNS_SHOWN_MAX = 20;

interface Cooldown {
  readonly untilMs: number;
  readonly lengthMs: number;
}

/**
 * Chooses the egress of each session, round-robin. One that a provider blocked is on cooldown there; a broken one is on
 * cooldown everywhere.
 */
export class EgressPool {
  readonly #log: Log | null;
  readonly #cooldowns = new BoundedMap<string, Cooldown>(COOLDOWNS_MAX);
  readonly #broken = new Map<string, Cooldown>();
  /** Why an egress last failed, as a sentence without its subject. */
  readonly #problems = new Map<string, string>();
  #turn = 0;

  /** `log` receives a warning when an egress breaks, and when it works again. */
  constructor(
    private readonly egresses: readonly [Egress, ...Egress[]],
    private readonly clock: Clock,
    log: Log | null = null,
  ) {
    this.#log = log;
  }

  /**
   * The egress for a session: `preferred` (with another one, greylisting begins anew) unless it is on cooldown, else the
   * next that is not, without those in `tried`; null when there is none.
   */
  choose(target: EgressTarget, preferred: string | null, tried: ReadonlySet<string> = new Set()): Egress | null {
    const nowMs = this.clock.monotonicMs();
    const usable = this.#reaching(target).filter(
      (egress) => !tried.has(egress.name) && this.#cooldownUntilMs(egress, target) <= nowMs,
    );
    if (usable.length === 0) return null;
    const next = () => usable[this.#turn++ % usable.length];
    return usable.find(({ name }) => name === preferred) ?? next() ?? null;
  }

  /** The egress whose cooldown ends first, of those that can reach the address at all. */
  chooseAny(target: EgressTarget): Egress | null {
    const untilMs = (egress: Egress): number => this.#cooldownUntilMs(egress, target);
    return this.#reaching(target).toSorted((a, b) => untilMs(a) - untilMs(b))[0] ?? null;
  }

  /** The egress of that name; the first one when it was removed from the settings since. */
  get(name: string): Egress {
    return this.egresses.find((egress) => egress.name === name) ?? this.egresses[0];
  }

  /** The provider blocks this egress, and not others: it is on cooldown there. */
  block(egress: string, provider: string): void {
    const key = `${egress} ${provider}`;
    const before = this.#cooldowns.get(key);
    const lengthMs = before === undefined ? COOLDOWN_MS : Math.min(before.lengthMs * 2, COOLDOWN_MS_MAX);
    this.#cooldowns.set(key, { untilMs: this.clock.monotonicMs() + lengthMs, lengthMs });
  }

  /** Why an egress fails, as a sentence without its subject; it is shown while the egress is broken. */
  noteProblem(egress: string, problem: string): void {
    this.#problems.set(egress, problem);
  }

  /**
   * Nothing can leave by this egress at the moment, whatever the destination. Failures of sessions that were under way
   * when it broke do not prolong its cooldown.
   */
  markBroken(egress: string): void {
    const nowMs = this.clock.monotonicMs();
    const before = this.#broken.get(egress);
    if (before !== undefined && nowMs < before.untilMs) return;
    const lengthMs = before === undefined ? BROKEN_MS : Math.min(before.lengthMs * 2, BROKEN_MS_MAX);
    this.#broken.set(egress, { untilMs: nowMs + lengthMs, lengthMs });
    if (before === undefined) this.#log?.warn("an egress is not usable", { egress, problem: this.#problemOf(egress) });
  }

  /** A mail host replied to a probe from this egress: it works, and its cooldown at the provider ends. */
  markWorking(egress: string, provider: string): void {
    this.#cooldowns.delete(`${egress} ${provider}`);
    if (this.#broken.delete(egress)) this.#log?.warn("the egress is usable again", { egress });
  }

  /** Every egress with its state, for people. Times are milliseconds from now. */
  states(): readonly EgressState[] {
    const nowMs = this.clock.monotonicMs();
    return this.egresses.map(({ name }) => {
      const cooldowns = [...this.#cooldowns]
        .filter(([key, { untilMs }]) => key.startsWith(`${name} `) && untilMs > nowMs)
        .map(([key, { untilMs }]) => ({ provider: key.slice(name.length + 1), leftMs: untilMs - nowMs }));
      return {
        name,
        problem: this.#broken.has(name) ? this.#problemOf(name) : null,
        cooldowns: cooldowns.toSorted((a, b) => b.leftMs - a.leftMs).slice(0, COOLDOWNS_SHOWN_MAX),
        cooldownCount: cooldowns.length,
      };
    });
  }

  /** A sentence about each egress that is broken. */
  findings(): string[] {
    const nowMs = this.clock.monotonicMs();
    return this.egresses
      .filter(({ name }) => nowMs < (this.#broken.get(name)?.untilMs ?? Number.NEGATIVE_INFINITY) + REPORTED_MS)
      .map(({ name, isProxy }) =>
        isProxy
          ? `The proxy ${name} (POSTWARDEN_SOCKS_PROXIES) ${this.#problemOf(name)}`
          : `No connection can be opened from ${name} (POSTWARDEN_SOURCE_ADDRESSES).`,
      );
  }

  #problemOf(egress: string): string {
    return this.#problems.get(egress) ?? "is not usable.";
  }

  /** The egresses that can reach the address: a local address of the other IP version never could. */
  #reaching({ address }: EgressTarget): Egress[] {
    return this.egresses.filter(({ localAddress }) => localAddress === null || isIP(localAddress) === isIP(address));
  }

  #cooldownUntilMs({ name }: Egress, { provider }: EgressTarget): number {
    return Math.max(this.#cooldowns.get(`${name} ${provider}`)?.untilMs ?? 0, this.#broken.get(name)?.untilMs ?? 0);
  }
}
