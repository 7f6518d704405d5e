import type { Clock } from "../../foundation/base/clock.ts";
import type { Log } from "../../foundation/base/log.ts";
import { type DnsResolver, isDefinite } from "../../foundation/net/dns.ts";
import type { Platform } from "../../foundation/net/platform.ts";
import { createAddressPolicy } from "../../foundation/net/public-address.ts";
import { openSession } from "../../foundation/net/smtp-client.ts";
import {
  createSocksConnector,
  describeSocksProblem,
  formatProxy,
  type SocksProblem,
  type SocksProxy,
} from "../../foundation/net/socks-connector.ts";
import type { ProbeTarget } from "./host-queue.ts";
import { type DnsQuery, Outages } from "./outages.ts";
import { Pacing } from "./pacing.ts";
import { ProbePool } from "./pool.ts";
import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { isIP } from "node:net";
import type { Connector } from "../../foundation/net/connector.ts";

/** A probe may take its connect, and a reply timeout for each of this many replies; then it is aborted. */
const REPLIES_PER_PROBE = 4;
/** A connection is not used longer than this many probes may take. */
const PROBES_PER_CONNECTION = 3;

/** From where mail hosts are dialled. */
export interface EgressSettings {
  readonly probeAllowNetworks: readonly string[];
  readonly sourceAddresses: readonly string[];
  readonly socksProxies: readonly SocksProxy[];
}

/** How mail hosts are dialled. */
export interface SmtpSettings extends EgressSettings {
  readonly heloName: string;
  readonly connectTimeoutMs: number;
  readonly replyTimeoutMs: number;
  readonly connectionsMax: number;
  readonly connectionsPerHostMax: number;
  /** Null: no limit. */
  readonly connectionsPerEgressMax: number | null;
  readonly rcptPerConnectionMax: number;
}

/** Two accounts at one proxy are `socks5://host:port` and `socks5://host:port#2`. */
const uniqueNames = (names: readonly string[]): string[] =>
  names.map((name, at) => {
    const earlier = names.slice(0, at).filter((other) => other === name).length;
    return earlier === 0 ? name : `${name}#${earlier + 1}`;
  });

/** The egresses: source addresses and proxies, or a direct connection when there are none. */
export const egressesOf = (
  { probeAllowNetworks, sourceAddresses, socksProxies }: EgressSettings,
  { clock, connector }: Pick<Platform, "clock" | "connector">,
  noteProblem: (egress: string, problem: SocksProblem) => void = () => undefined,
): readonly [Egress, ...Egress[]] => {
  const mayConnect = createAddressPolicy(probeAllowNetworks).isAllowed;
  const names = uniqueNames(socksProxies.map(formatProxy));
  const [first, ...rest]: Egress[] = [
    ...[...new Set(sourceAddresses)].map((localAddress) => ({
      name: localAddress,
      connector,
      localAddress,
      isProxy: false,
    })),
    ...socksProxies.map((proxy, at) => {
      const name = names[at] ?? formatProxy(proxy);
      const note = (problem: SocksProblem) => noteProblem(name, problem);
      const connect = createSocksConnector({ clock, mayConnect, proxy, noteProblem: note });
      return { name, connector: connect, localAddress: null, isProxy: true };
    }),
  ];
  return first === undefined ? [{ name: "direct", connector, localAddress: null, isProxy: false }] : [first, ...rest];
};

/** How long one probe may take. */
export const probeTimeMsOf = ({
  connectTimeoutMs,
  replyTimeoutMs,
}: Pick<SmtpSettings, "connectTimeoutMs" | "replyTimeoutMs">): number =>
  connectTimeoutMs + REPLIES_PER_PROBE * replyTimeoutMs;

type Open = ConstructorParameters<typeof ProbePool>[1]["open"];

/** What sessions with mail hosts need beside the settings. */
export interface SmtpDeps {
  readonly log: Log;
  /** A resolver without a cache, which checks whether DNS responds; default: that of the platform. */
  readonly fresh?: DnsResolver;
  /** Observes sessions. */
  readonly watchSessions?: (open: Open) => Open;
  readonly connectionsPerProviderMax: (provider: string) => number;
}

/** What others read of the sessions with mail hosts, wherever these are. */
export interface SmtpView {
  readonly outages: Pick<Outages, "current" | "findings" | "lastShortageMs" | "onChange" | "takeTurn">;
  readonly egresses: Pick<EgressPool, "states" | "findings">;
  readonly pacing: Pick<Pacing, "countCooldowns">;
  readonly pool: Pick<ProbePool, "connections" | "waiting" | "hosts">;
}

/** Sessions with mail hosts: egresses, the pool with its pacing, and the outages that they show. */
export class SmtpSlice implements SmtpView {
  readonly egresses: EgressPool;
  readonly outages: Outages;
  readonly pacing: Pacing;
  readonly pool: ProbePool;
  /** The platform's, watched for outages. */
  readonly resolver: DnsResolver;
  readonly #clock: Clock;

  constructor(
    platform: Platform,
    private readonly settings: SmtpSettings,
    deps: SmtpDeps,
  ) {
    const { clock, resolver } = platform;
    this.#clock = clock;
    const noteProblem = (name: string, problem: SocksProblem): void =>
      this.egresses.noteProblem(name, describeSocksProblem(problem));
    this.egresses = new EgressPool(egressesOf(settings, platform, noteProblem), clock, deps.log);
    this.outages = new Outages({
      clock,
      log: deps.log,
      reachesDns: (known) => this.#reachesDns(deps.fresh ?? resolver, known),
      reachesHost: (target) => this.#reachesHost(target),
      isLargeProvider: (provider) => Number.isFinite(deps.connectionsPerProviderMax(provider)),
    });
    this.resolver = this.#watched(resolver);
    this.pacing = new Pacing(clock, settings.connectionsPerHostMax);
    // Hosts that timed out during the outage may respond now.
    this.outages.onChange(() => {
      if (this.outages.current() === null) this.pacing.endCooldowns();
    });
    this.pool = this.#openPool(deps);
  }

  #openPool({ watchSessions, connectionsPerProviderMax }: SmtpDeps): ProbePool {
    const { connectionsMax, connectionsPerHostMax, connectionsPerEgressMax, rcptPerConnectionMax } = this.settings;
    const dial: Open = (target) => this.#dial(target);
    const dialWatched = watchSessions?.(dial) ?? dial;
    return new ProbePool(this.#clock, {
      open: async (target) => {
        const session = await dialWatched(target);
        this.outages.noteConnect(target, session.ok ? null : session.error);
        return session;
      },
      pacing: this.pacing,
      connectionsMax,
      connectionsPerHostMax,
      connectionsPerProviderMax,
      rcptPerConnectionMax,
      connectionsPerEgressMax: connectionsPerEgressMax ?? Number.POSITIVE_INFINITY,
    });
  }

  #dial({ address, port, host, egress }: ProbeTarget): ReturnType<Open> {
    const { connector, localAddress } = this.egresses.get(egress);
    const { connectTimeoutMs, replyTimeoutMs, heloName } = this.settings;
    return openSession({
      connector,
      clock: this.#clock,
      address,
      port,
      localAddress,
      serverName: host,
      heloName,
      connectTimeoutMs,
      replyTimeoutMs,
      sessionDeadlineMs: probeTimeMsOf(this.settings) * PROBES_PER_CONNECTION,
    });
  }

  async #reachesDns(resolver: DnsResolver, known: DnsQuery | null): Promise<boolean> {
    const resolve = ({ name, type }: DnsQuery) => resolver.resolve(name, type);
    const queries = [{ name: ".", type: "NS" } as const, ...(known === null ? [] : [known])];
    const responses = await Promise.all(queries.map(resolve));
    return responses.some(({ outcome, fromCache }) => isDefinite(outcome) && !fromCache);
  }

  async #reachesHost(target: ProbeTarget): Promise<boolean> {
    const session = await this.#dial(target);
    if (session.ok) session.value.close();
    return session.ok || session.error.receivedAnything;
  }

  #watched(resolver: DnsResolver): DnsResolver {
    return {
      resolve: async (name, type, options) => {
        const reply = await resolver.resolve(name, type, options);
        this.outages.noteDns(reply);
        return reply;
      },
    };
  }
}

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
