import { readFileSync } from "node:fs";
import { err, type Result } from "../foundation/base/errors.ts";
import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { Log } from "../foundation/base/log.ts";
import type { Platform } from "./compose-platform.ts";
import { type Config, SettingsError } from "./config.ts";
import type { Catalogue } from "../blocklist/lists/blocklist.ts";
import { createDnsblPacing } from "../blocklist/lists/budget.ts";
import { parseCatalogue } from "../blocklist/lists/catalogue.ts";
import { createDnsbl, type Dnsbl } from "../blocklist/lists/dnsbl.ts";
import { EMBEDDED_CATALOGUE } from "../blocklist/lists/embedded-catalogue.ts";
import { applyKeys } from "../blocklist/lists/list-keys.ts";
import { applySwitches } from "../blocklist/lists/list-switches.ts";
import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";
import type { NetworkMetrics } from "./metrics/network-metrics.ts";
import { type DnsResolver, isDefinite, resolverFor } from "../foundation/net/dns.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { openSession } from "../foundation/net/smtp-client.ts";
import { createSocksConnector, describeSocksProblem, type SocksProblem } from "../foundation/net/socks-connector.ts";
import { EgressPool, type Egress } from "../verify/smtp/egress.ts";
import type { ProbeTarget } from "../verify/smtp/host-queue.ts";
import { type DnsQuery, Outages } from "../verify/smtp/outages.ts";
import { Pacing } from "../verify/smtp/pacing.ts";
import { ProbePool } from "../verify/smtp/pool.ts";
import { formatProxy } from "./setting-parsers.ts";
import { CatchAllCache } from "../verify/catch-all-cache.ts";
import { BlocklistCheck, DNSBL_TURN_WAIT_MS } from "../verify/dnsbl-evidence.ts";
import { createDomainLookup } from "../verify/domain-evidence.ts";
import { VerificationEngine, type VerificationPlatform } from "../verify/engine.ts";
import { HostProber } from "../verify/host-probe.ts";
import { createMailboxProber } from "../verify/mailbox-evidence.ts";
import { RecentAcceptances } from "../verify/recent-acceptances.ts";
import { connectionsPerProviderMax } from "../verify/providers.ts";
import { TEST_PLATFORM } from "../verify/test-platform.ts";
import { classifyAddress } from "../verify/address-evidence.ts";

/** A probe may take its connect, and a reply timeout for each of this many replies; then it is aborted. */
const REPLIES_PER_PROBE = 4;
/** A connection is not used longer than this many probes may take. */
const PROBES_PER_CONNECTION = 3;

/** Two accounts at one proxy are `socks5://host:port` and `socks5://host:port#2`. */
const uniqueNames = (names: readonly string[]): string[] =>
  names.map((name, at) => {
    const earlier = names.slice(0, at).filter((other) => other === name).length;
    return earlier === 0 ? name : `${name}#${earlier + 1}`;
  });

/** The egresses: source addresses and proxies, or a direct connection when there are none. */
export const egressesOf = (
  config: Config,
  { clock, connector }: Platform,
  noteProblem: (egress: string, problem: SocksProblem) => void = () => undefined,
): readonly [Egress, ...Egress[]] => {
  const mayConnect = createAddressPolicy(config.probeAllowNetworks).isAllowed;
  const names = uniqueNames(config.socksProxies.map(formatProxy));
  const [first, ...rest]: Egress[] = [
    ...[...new Set(config.sourceAddresses)].map((localAddress) => ({
      ...{ name: localAddress, connector, localAddress, isProxy: false },
    })),
    ...config.socksProxies.map((proxy, at) => {
      const name = names[at] ?? formatProxy(proxy);
      const note = (problem: SocksProblem) => noteProblem(name, problem);
      const connect = createSocksConnector({ clock, mayConnect, proxy, noteProblem: note });
      return { name, connector: connect, localAddress: null, isProxy: true };
    }),
  ];
  return first === undefined ? [{ name: "direct", connector, localAddress: null, isProxy: false }] : [first, ...rest];
};

const readCatalogueFile = (path: string): Result<Catalogue, readonly string[]> => {
  try {
    return parseCatalogue(JSON.parse(readFileSync(path, "utf8")));
  } catch (error) {
    return err([`${path} cannot be read: ${error instanceof Error ? error.message : error}.`]);
  }
};

/** The blocklist catalogue in force, with its keys. Throws `SettingsError` when the file or the keys are invalid. */
export const catalogueOf = (config: Config): Catalogue => {
  const { blocklistCataloguePath: path, blocklistKeys } = config;
  const read = path === null ? null : readCatalogueFile(path);
  if (read !== null && !read.ok)
    throw new SettingsError(read.error.map((problem) => `POSTWARDEN_BLOCKLIST_CATALOGUE: ${problem}`));
  const applied = applyKeys(read?.value ?? EMBEDDED_CATALOGUE, blocklistKeys);
  if (!applied.ok) throw new SettingsError(applied.error.map((problem) => `POSTWARDEN_BLOCKLIST_KEYS: ${problem}`));
  const switches = { enable: config.blocklistsEnable, disable: config.blocklistsDisable };
  const switched = applySwitches(applied.value, switches);
  if (!switched.ok)
    throw new SettingsError([
      ...switched.error.enable.map((problem) => `POSTWARDEN_BLOCKLISTS_ENABLE: ${problem}`),
      ...switched.error.disable.map((problem) => `POSTWARDEN_BLOCKLISTS_DISABLE: ${problem}`),
    ]);
  return switched.value;
};

/** Responses of blocklists are shared by all accounts; at the DNS, their lookups count as one account. */
const BLOCKLISTS: OnBehalfOf = { account: "blocklists", priority: "realtime" };

/** Lookups on blocklists, with a wait for a slot that a verdict can afford. */
const composeDnsbl = ({ clock, random, resolver }: Platform): Dnsbl => {
  const pacing = createDnsblPacing({ clock, waitMsMax: DNSBL_TURN_WAIT_MS });
  const forAll = resolverFor(resolver, BLOCKLISTS);
  return createDnsbl({ clock, random, resolver: forAll, registrableDomain: organisationalDomain, pacing });
};

/** The settings of one connection to a mail host. */
const sessionTimes = ({ connectTimeoutMs, replyTimeoutMs }: Config) => {
  const probeTimeMs = connectTimeoutMs + REPLIES_PER_PROBE * replyTimeoutMs;
  return {
    connectTimeoutMs,
    replyTimeoutMs,
    probeTimeMs,
    sessionDeadlineMs: probeTimeMs * PROBES_PER_CONNECTION,
  };
};

/** Dials mail hosts, and detects outages meanwhile. `fresh` resolves without a cache. */
const composeDialling = (config: Config, platform: Platform, { log, fresh, metrics }: EngineSurroundings) => {
  const { clock, resolver } = platform;
  const noteProblem = (name: string, problem: SocksProblem): void =>
    egresses.noteProblem(name, describeSocksProblem(problem));
  const egresses = new EgressPool(egressesOf(config, platform, noteProblem), clock, log);
  const { probeTimeMs: _, ...times } = sessionTimes(config);
  const dial = ({ address, port, host, egress }: ProbeTarget) => {
    const { connector, localAddress } = egresses.get(egress);
    return openSession({
      ...{ connector, clock, address, port, localAddress, serverName: host, heloName: config.heloName },
      ...times,
    });
  };
  const outages = new Outages({
    clock,
    log,
    reachesDns: async (known) => {
      const resolve = ({ name, type }: DnsQuery) => (fresh ?? resolver).resolve(name, type);
      const responses = await Promise.all(
        [{ name: ".", type: "NS" } as const, ...(known === null ? [] : [known])].map(resolve),
      );
      return responses.some(({ outcome, fromCache }) => isDefinite(outcome) && !fromCache);
    },
    reachesHost: async (target) => {
      const session = await dial(target);
      if (session.ok) session.value.close();
      return session.ok || session.error.receivedAnything;
    },
    isLargeProvider: (provider) => Number.isFinite(connectionsPerProviderMax(provider)),
  });
  const dialWatched = metrics?.watchSessions(dial) ?? dial;
  const open = async (target: ProbeTarget) => {
    const session = await dialWatched(target);
    outages.noteConnect(target, session.ok ? null : session.error);
    return session;
  };
  const watched: DnsResolver = {
    async resolve(name, type, options) {
      const reply = await resolver.resolve(name, type, options);
      outages.noteDns(reply);
      return reply;
    },
  };
  return { egresses, outages, open, resolver: watched };
};

const composePool = (config: Config, { clock }: Platform, { open, outages }: ReturnType<typeof composeDialling>) => {
  const { connectionsMax, connectionsPerHostMax, rcptPerConnectionMax } = config;
  const connectionsPerEgressMax = config.connectionsPerEgressMax ?? Number.POSITIVE_INFINITY;
  const pacing = new Pacing(clock, connectionsPerHostMax);
  // Hosts that timed out during the outage may respond now.
  outages.onChange(() => {
    if (outages.current() === null) pacing.endCooldowns();
  });
  const limits = {
    ...{ connectionsMax, connectionsPerHostMax, connectionsPerProviderMax, connectionsPerEgressMax },
    rcptPerConnectionMax,
  };
  return { pacing, pool: new ProbePool(clock, { open, pacing, ...limits }) };
};

/**
 * The check of blocklists, whose catalogue is read when it is first needed: it is large, and the service should not wait
 * for it at start. The operator's own settings about it are checked at once.
 */
const lazyBlocklistCheck = (config: Config, platform: Platform): VerificationPlatform["checkBlocklists"] => {
  const create = () =>
    new BlocklistCheck(platform.clock, { dnsbl: composeDnsbl(platform), lists: catalogueOf(config).lists });
  const hasOwnSettings = config.blocklistCataloguePath !== null || config.blocklistKeys.size > 0;
  let blocklists = hasOwnSettings ? create() : null;
  return async (domain) => {
    blocklists ??= create();
    return blocklists.check(domain);
  };
};

/** Matches the operator's suppression list; null without a database. */
export type MatchSuppression = ((normalizedEmail: string) => string | null) | null;

/** The log; a resolver without cache, which checks whether DNS responds (default: that of the platform); what observes sessions. */
export interface EngineSurroundings {
  readonly log: Log;
  readonly fresh?: DnsResolver;
  readonly metrics?: NetworkMetrics;
}

/** The engines that verify addresses, for live and for test keys. Needs no database. */
export const composeEngine = (
  config: Config,
  platform: Platform,
  matchSuppression: MatchSuppression,
  surroundings: EngineSurroundings,
) => {
  const { clock, random } = platform;
  const { heloName, mailFrom, smtpPort, retryWaitsS } = config;
  const dialling = composeDialling(config, platform, surroundings);
  const { egresses, outages, resolver } = dialling;
  const { pool, pacing } = composePool(config, platform, dialling);
  const { probeTimeMs } = sessionTimes(config);
  const policy = createAddressPolicy(config.probeAllowNetworks);
  const caches = { catchAllCache: new CatchAllCache(clock), acceptances: new RecentAcceptances(clock) };
  const hostProber = new HostProber({ pool, egresses, ...caches, heloName, mailFrom, retryWaitsS });
  const live = new VerificationEngine(
    {
      classify: classifyAddress,
      matchSuppression,
      lookUpDomain: createDomainLookup({ resolver, policy, random, clock }),
      probeMailbox: createMailboxProber(platform, hostProber, { smtpPort, attemptTimeMs: probeTimeMs }),
      checkBlocklists: config.dnsblSignal ? lazyBlocklistCheck(config, platform) : null,
      retryWaitsS,
      judgeOutage: (channel) => outages.judge(channel),
      simulation: null,
    },
    clock,
  );
  const engines: ByMode<VerificationEngine> = { live, test: new VerificationEngine(TEST_PLATFORM, clock) };
  return { engines, pool, pacing, outages, egresses };
};
