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
import { type Egress, EgressPool } from "./egress.ts";
import type { ProbeTarget } from "./host-queue.ts";
import { type DnsQuery, Outages } from "./outages.ts";
import { Pacing } from "./pacing.ts";
import { ProbePool } from "./pool.ts";

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

/** Sessions with mail hosts: egresses, the pool with its pacing, and the outages that they show. */
export class SmtpSlice {
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
