import { afterEach } from "bun:test";
import type { Random } from "../foundation/base/secrets.ts";
import { err } from "../foundation/base/errors.ts";
import type { OnBehalfOf } from "../foundation/base/on-behalf-of.ts";
import type { Blocklist } from "../blocklist/lists/blocklist.ts";
import { noPacing } from "../blocklist/lists/list-client.ts";
import { createDnsbl } from "../blocklist/lists/open.ts";
import { organisationalDomain } from "../foundation/mail/organisational-domain.ts";
import { type ConnectFailure, type Connector, createDirectConnector } from "../foundation/net/connector.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { openSession } from "../foundation/net/smtp-client.ts";
import { type Egress, EgressPool } from "../verify/smtp/open.ts";
import type { ProbeTarget } from "../verify/smtp/host-queue.ts";
import { Pacing } from "../verify/smtp/pacing.ts";
import type { OutageJudgement } from "../verify/smtp/outages.ts";
import { ProbePool } from "../verify/smtp/pool.ts";
import { CatchAllCache, RecentAcceptances } from "../verify/findings.ts";
import { type ConcludedVerification, concludeVerification } from "../verify/verdict.ts";
import { beginEvidence, classifyAddress } from "../verify/address-evidence.ts";
import { BlocklistCheck } from "../verify/dnsbl-evidence.ts";
import { createDomainLookup, createMailboxProber } from "../verify/domain-evidence.ts";
import { type AttemptedVerification, VerificationEngine, type VerificationPlatform } from "../verify/engine.ts";
import { HostProber } from "../verify/host-probe.ts";
import { createTestClock, type TestClock } from "./clock.ts";
import { createZoneResolver, type Zone, type ZoneRecords } from "./dns-zone.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "./smtp-stub.ts";

/** A mail host: its SMTP behaviour, or why connections to it fail. Listed by preference: 10, 20, …; or by `at`. */
export interface NetworkHost {
  readonly name: string;
  readonly script?: SmtpStubScript;
  readonly unconnectable?: ConnectFailure;
  readonly preference?: number;
  /** The public address of the host; default: one of 203.0.114.0/24. */
  readonly address?: string;
}

/** An egress. Stubs see its connections come from `from`, an address of 127.0.0.0/8. */
export interface NetworkEgress {
  readonly name: string;
  readonly from?: string;
  /** Connections through it fail; read for each connection. */
  broken?: ConnectFailure | null;
  /** Only to say of which IP version it is. */
  readonly localAddress?: string;
  readonly isProxy?: boolean;
}

export interface MailNetworkOptions {
  /** The mail hosts of `x.example`; one that accepts every recipient if none are given. */
  readonly hosts?: readonly NetworkHost[];
  /** Names beside those of `x.example` and its hosts, or instead of them. */
  readonly zone?: Zone;
  readonly retryWaitsS?: readonly number[];
  readonly mailFrom?: string;
  /** The egresses; `direct` if none are given. */
  readonly egresses?: readonly [NetworkEgress, ...NetworkEgress[]];
  readonly limits?: {
    readonly connectionsMax?: number;
    readonly connectionsPerHostMax?: number;
    readonly connectionsPerEgressMax?: number;
  };
  /** Blocklists in the zone of this network; without, the signal is switched off. */
  readonly blocklists?: readonly Blocklist[];
  readonly matchSuppression?: (normalizedEmail: string) => string | null;
  /** What is thought of servers that do not respond: believed, by default. */
  readonly outage?: OutageJudgement;
}

/** The real engine, pool and SMTP client between a literal DNS zone and scripted SMTP servers, with a manual clock. */
export interface MailNetwork {
  readonly clock: TestClock;
  readonly engine: VerificationEngine;
  readonly pool: ProbePool;
  /** The accounts that DNS queries and probes were made for. */
  readonly queriedFor: ReadonlyArray<OnBehalfOf | undefined>;
  readonly probedFor: ReadonlyArray<OnBehalfOf | undefined>;
  /** Every DNS query, as `MX x.example`. */
  readonly asked: readonly string[];
  /** Changes take effect at the next query. */
  readonly zone: Record<string, Zone[string]>;
  stub(name: string): SmtpStub;
  /** One attempt from the start, concluded. */
  verify(email?: string): Promise<ConcludedVerification>;
  /** Attempts and waits until nothing more is planned. */
  verifyWithRetries(email?: string): Promise<ConcludedVerification>;
}

export const NETWORK_CONNECT_TIMEOUT_MS = 10_000;
export const NETWORK_REPLY_TIMEOUT_MS = 30_000;
const ATTEMPT_TIME_MS = 130_000;
const FIRST: Random = { integer: () => 0 };

/** Another number at each call. */
const createCounting = (): Random => {
  let next = 0;
  return { integer: (below) => next++ % below };
};

/** Makes networks for the tests of one file, and stops their servers after each test. */
export const createMailNetworks = (): ((options?: MailNetworkOptions) => MailNetwork) => {
  const running: SmtpStub[] = [];
  afterEach(() => {
    for (const stub of running.splice(0)) stub.stop();
  });
  return (options = {}) => {
    const network = networkOf(options);
    running.push(...network.stubs.values());
    return network;
  };
};

const addressOf = ({ address }: NetworkHost, at: number): string => address ?? `203.0.114.${at + 1}`;
const recordsOf = (address: string): ZoneRecords => (address.includes(":") ? { AAAA: [address] } : { A: [address] });
const DIRECT: NetworkEgress = { name: "direct" };

/** The result of an attempt, dated alike in every test. */
const concluded = (attempted: AttemptedVerification): ConcludedVerification => {
  if (attempted.kind !== "concluded") throw new Error("the attempt was not concluded");
  return concludeVerification(attempted.evidence, "2026-01-01T00:00:00.000Z");
};

/** The stubs of the hosts by their addresses, the zone that names them, and egresses that connect to them. */
const startHosts = (clock: TestClock, { hosts = [{ name: "mx.x.example" }], zone = {} }: MailNetworkOptions) => {
  const stubs = new Map(hosts.map((host, at) => [addressOf(host, at), startSmtpStub(host.script)]));
  const named = Object.fromEntries(hosts.map((host, at) => [host.name, recordsOf(addressOf(host, at))]));
  const exchanges = hosts.map(({ name, preference }, at) => [preference ?? (at + 1) * 10, name] as const);
  const names: Record<string, Zone[string]> = { "x.example": { MX: exchanges }, ...named, ...zone };
  const direct = createDirectConnector({ clock, mayConnect: () => true });
  const egressOf = (egress: NetworkEgress): Egress => {
    const connector: Connector = async (target) => {
      const failure = egress.broken ?? hosts.find((host, at) => addressOf(host, at) === target.address)?.unconnectable;
      if (failure !== undefined) return err(failure);
      const stub = stubs.get(target.address);
      if (stub === undefined) return err("refused_or_unreachable");
      return direct({ ...target, address: stub.hostname, port: stub.port, localAddress: egress.from ?? null });
    };
    return {
      ...{ name: egress.name, connector },
      ...{ localAddress: egress.localAddress ?? null, isProxy: egress.isProxy ?? false },
    };
  };
  const stub = (name: string): SmtpStub => {
    const at = hosts.findIndex((host) => host.name === name);
    const found = stubs.get(hosts[at] === undefined ? "" : addressOf(hosts[at], at));
    if (found === undefined) throw new Error(`no such host: ${name}`);
    return found;
  };
  return { stubs, names, egressOf, stub };
};

/** A pool over the egresses, and the accounts that it was used for. */
const poolOver = (clock: TestClock, egresses: EgressPool, limits: MailNetworkOptions["limits"]) => {
  const open = ({ address, port, host, egress }: ProbeTarget) =>
    openSession({
      ...{ connector: egresses.get(egress).connector, clock, address, port, serverName: host },
      heloName: "probe.example",
      connectTimeoutMs: NETWORK_CONNECT_TIMEOUT_MS,
      replyTimeoutMs: NETWORK_REPLY_TIMEOUT_MS,
    });
  const allLimits = { connectionsMax: 20, connectionsPerHostMax: 4, rcptPerConnectionMax: 50, ...limits };
  const pacing = new Pacing(clock, allLimits.connectionsPerHostMax);
  const connectionsPerProviderMax = () => Number.POSITIVE_INFINITY;
  const connectionsPerEgressMax = limits?.connectionsPerEgressMax ?? Number.POSITIVE_INFINITY;
  const pool = new ProbePool(clock, { open, pacing, connectionsPerProviderMax, ...allLimits, connectionsPerEgressMax });
  const probedFor: Array<OnBehalfOf | undefined> = [];
  const recordingPool: Pick<ProbePool, "probe" | "notePace" | "fullEgresses"> = {
    probe(target, probe, onBehalfOf) {
      probedFor.push(onBehalfOf);
      return pool.probe(target, probe, onBehalfOf);
    },
    notePace: (target, outcome) => pool.notePace(target, outcome),
    fullEgresses: () => pool.fullEgresses(),
  };
  return { pool, probedFor, recordingPool };
};

const networkOf = (options: MailNetworkOptions) => {
  const clock = createTestClock();
  const { stubs, names, egressOf, stub } = startHosts(clock, options);
  const [firstEgress, ...otherEgresses] = options.egresses ?? [DIRECT];
  const egresses = new EgressPool([egressOf(firstEgress), ...otherEgresses.map(egressOf)], clock);
  const { pool, probedFor, recordingPool } = poolOver(clock, egresses, options.limits);
  const resolver = createZoneResolver(names);
  const hostProber = new HostProber({
    ...{ pool: recordingPool, egresses, catchAllCache: new CatchAllCache(clock) },
    ...{ acceptances: new RecentAcceptances(clock), retryWaitsS: options.retryWaitsS ?? [60] },
    ...{ heloName: "probe.example", mailFrom: options.mailFrom ?? "" },
  });
  const random = createCounting();
  const dnsbl = createDnsbl({ resolver, clock, random, registrableDomain: organisationalDomain, pacing: noPacing });
  const blocklists = options.blocklists ? new BlocklistCheck(clock, { dnsbl, lists: options.blocklists }) : null;
  const platform: VerificationPlatform = {
    classify: classifyAddress,
    matchSuppression: options.matchSuppression ?? null,
    lookUpDomain: createDomainLookup({ resolver, policy: createAddressPolicy([]), random: FIRST, clock }),
    probeMailbox: createMailboxProber({ clock, random }, hostProber, { smtpPort: 25, attemptTimeMs: ATTEMPT_TIME_MS }),
    checkBlocklists: blocklists === null ? null : (domain) => blocklists.check(domain),
    retryWaitsS: options.retryWaitsS ?? [60],
    judgeOutage: async () => options.outage ?? "believed",
    simulation: null,
  };
  const engine = new VerificationEngine(platform, clock);
  const withoutRetries = new VerificationEngine({ ...platform, retryWaitsS: [] }, clock);

  return {
    ...{ clock, engine, pool, probedFor, zone: names, stubs, stub },
    ...{ asked: resolver.queries, queriedFor: resolver.queriedFor },
    /** The verdict after one attempt. */
    verify: async (email = "ada@x.example") => concluded(await withoutRetries.verify(beginEvidence(email))),
    /** The verdict after as many attempts as it takes. */
    async verifyWithRetries(email = "ada@x.example") {
      let attempted = await engine.verify(beginEvidence(email));
      while (attempted.kind === "retry") {
        await clock.advance(Date.parse(attempted.retry.due_at) - clock.nowMs());
        attempted = await engine.verify(attempted.evidence);
      }
      return concluded(attempted);
    },
  };
};
