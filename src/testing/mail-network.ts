import { afterEach } from "bun:test";
import type { Random } from "../base/secrets.ts";
import { err } from "../base/errors.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import type { Blocklist } from "../dnsbl/blocklist.ts";
import { noPacing } from "../dnsbl/budget.ts";
import { createDnsbl } from "../dnsbl/dnsbl.ts";
import { organisationalDomain } from "../mail/organisational-domain.ts";
import { type ConnectFailure, type Connector, createDirectConnector } from "../net/connector.ts";
import { createAddressPolicy } from "../net/public-address.ts";
import { openSession } from "../net/smtp-client.ts";
import { createEgressPool, type Egress } from "../probe/egress.ts";
import type { ProbeTarget } from "../probe/host-queue.ts";
import { createPacing } from "../probe/pacing.ts";
import { createProbePool, type ProbePool } from "../probe/pool.ts";
import { createCatchAllCache } from "../verify/catch-all-cache.ts";
import { type ConcludedVerification, concludeVerification } from "../verify/verdict.ts";
import { createDnsblCheck } from "../verify/dnsbl-evidence.ts";
import { createDomainLookup } from "../verify/domain-evidence.ts";
import { beginEvidence, createVerificationEngine, type VerificationEngine } from "../verify/engine.ts";
import type { Evidence } from "../verify/evidence.ts";
import { createHostProber } from "../verify/host-probe.ts";
import { createMailboxProber } from "../verify/mailbox-evidence.ts";
import { createTestClock, type TestClock } from "./clock.ts";
import { createZoneResolver, type Zone, type ZoneRecords } from "./dns-zone.ts";
import { type SmtpStub, type SmtpStubScript, startSmtpStub } from "./smtp-stub.ts";

/** A mail host: how it speaks, or why nobody can connect to it. Listed by preference: 10, 20, …; or by `at`. */
export interface NetworkHost {
  readonly name: string;
  readonly script?: SmtpStubScript;
  readonly unconnectable?: ConnectFailure;
  readonly preference?: number;
  /** Its public address; default: one of 203.0.114.0/24. */
  readonly address?: string;
}

/** A way out. Stubs see it come from `from`, an address of 127.0.0.0/8. */
export interface NetworkEgress {
  readonly name: string;
  readonly from?: string;
  /** Nothing can leave by it; looked at for each connection. */
  broken?: ConnectFailure | null;
  /** Only to say of which IP version it is. */
  readonly localAddress?: string;
}

export interface MailNetworkOptions {
  /** The mail hosts of `x.example`; one that accepts everybody if none are given. */
  readonly hosts?: readonly NetworkHost[];
  /** Names beside those of `x.example` and its hosts, or instead of them. */
  readonly zone?: Zone;
  readonly retryWaitsS?: readonly number[];
  readonly mailFrom?: string;
  /** The ways out; `direct` if none are given. */
  readonly egresses?: readonly [NetworkEgress, ...NetworkEgress[]];
  readonly limits?: { readonly connectionsMax?: number; readonly connectionsPerHostMax?: number };
  /** Blocklists that are asked in the zone of this world; without, the signal is switched off. */
  readonly blocklists?: readonly Blocklist[];
  readonly matchSuppression?: (normalizedEmail: string) => string | null;
}

/** The real engine, pool and SMTP client between a literal DNS zone and scripted SMTP servers, with a clock that stands still. */
export interface MailNetwork {
  readonly clock: TestClock;
  readonly engine: VerificationEngine;
  readonly pool: ProbePool;
  /** For whom DNS was asked, and mail hosts. */
  readonly queriedFor: ReadonlyArray<OnBehalfOf | undefined>;
  readonly probedFor: ReadonlyArray<OnBehalfOf | undefined>;
  /** Every question to DNS, as `MX x.example`. */
  readonly asked: readonly string[];
  /** Changes take effect at the next question. */
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

/** Makes worlds for the tests of one file, and stops their servers after each test. */
export const createMailNetworks = (): ((options?: MailNetworkOptions) => MailNetwork) => {
  const running: SmtpStub[] = [];
  afterEach(() => {
    for (const stub of running.splice(0)) stub.stop();
  });
  return (options = {}) => {
    const world = networkOf(options);
    running.push(...world.stubs.values());
    return world;
  };
};

const addressOf = ({ address }: NetworkHost, at: number): string => address ?? `203.0.114.${at + 1}`;
const recordsOf = (address: string): ZoneRecords => (address.includes(":") ? { AAAA: [address] } : { A: [address] });
const DIRECT: NetworkEgress = { name: "direct" };

const networkOf = ({
  hosts = [{ name: "mx.x.example" }],
  zone = {},
  retryWaitsS = [60],
  ...rest
}: MailNetworkOptions) => {
  const clock = createTestClock();
  const stubs = new Map(hosts.map((host, at) => [addressOf(host, at), startSmtpStub(host.script)]));
  const named = Object.fromEntries(hosts.map((host, at) => [host.name, recordsOf(addressOf(host, at))]));
  const exchanges = hosts.map(({ name, preference }, at) => [preference ?? (at + 1) * 10, name] as const);
  const names: Record<string, Zone[string]> = { "x.example": { MX: exchanges }, ...named, ...zone };

  const direct = createDirectConnector({ clock, mayConnect: () => true });
  const exitOf = (exit: NetworkEgress): Egress => {
    const connector: Connector = async (target) => {
      const failure = exit.broken ?? hosts.find((host, at) => addressOf(host, at) === target.address)?.unconnectable;
      if (failure !== undefined) return err(failure);
      const stub = stubs.get(target.address);
      if (stub === undefined) return err("refused_or_unreachable");
      return direct({ ...target, address: stub.hostname, port: stub.port, localAddress: exit.from ?? null });
    };
    return { name: exit.name, connector, localAddress: exit.localAddress ?? null };
  };
  const [firstExit, ...otherExits] = rest.egresses ?? [DIRECT];
  const egresses = createEgressPool([exitOf(firstExit), ...otherExits.map(exitOf)], clock);
  const open = ({ address, port, host, exit }: ProbeTarget) =>
    openSession({
      ...{ connector: egresses.get(exit).connector, clock, address, port, serverName: host, heloName: "probe.example" },
      connectTimeoutMs: NETWORK_CONNECT_TIMEOUT_MS,
      replyTimeoutMs: NETWORK_REPLY_TIMEOUT_MS,
    });
  const limits = { connectionsMax: 20, connectionsPerHostMax: 4, rcptPerConnectionMax: 50, ...rest.limits };
  const pacing = createPacing(clock, limits.connectionsPerHostMax);
  const connectionsPerProviderMax = () => Number.POSITIVE_INFINITY;
  const pool = createProbePool({ clock, open, pacing, connectionsPerProviderMax, ...limits });
  const resolver = createZoneResolver(names);
  const lookUpDomain = createDomainLookup({ resolver, policy: createAddressPolicy([]), random: FIRST, clock });
  const envelope = { heloName: "probe.example", mailFrom: rest.mailFrom ?? "" };
  const probedFor: Array<OnBehalfOf | undefined> = [];
  const ask: ProbePool["ask"] = (target, question, onBehalfOf) => {
    probedFor.push(onBehalfOf);
    return pool.ask(target, question, onBehalfOf);
  };
  const asking = { ...pool, ask };
  const probeHost = createHostProber({
    pool: asking,
    egresses,
    catchAllCache: createCatchAllCache(clock),
    ...envelope,
  });
  const probeMailbox = createMailboxProber({ probeHost, clock, smtpPort: 25, attemptTimeMs: ATTEMPT_TIME_MS });
  const random = createCounting();
  const dnsbl = createDnsbl({ resolver, clock, random, registrableDomain: organisationalDomain, pacing: noPacing });
  const checkBlocklists = rest.blocklists ? createDnsblCheck({ dnsbl, lists: rest.blocklists, clock }) : null;
  const inquiries = { lookUpDomain, probeMailbox, checkBlocklists, matchSuppression: rest.matchSuppression ?? null };
  const engine = createVerificationEngine({ clock, random, ...inquiries, retryWaitsS });
  const concluded = (evidence: Evidence) => concludeVerification(evidence, "2026-01-01T00:00:00.000Z");

  return {
    clock,
    engine,
    pool,
    asked: resolver.queries,
    queriedFor: resolver.queriedFor,
    probedFor,
    zone: names,
    stubs,
    stub(name: string): SmtpStub {
      const at = hosts.findIndex((host) => host.name === name);
      const stub = stubs.get(hosts[at] === undefined ? "" : addressOf(hosts[at], at));
      if (stub === undefined) throw new Error(`no such host: ${name}`);
      return stub;
    },
    verify: async (email = "ada@x.example") => concluded(await engine.attempt(beginEvidence(email))),
    async verifyWithRetries(email = "ada@x.example") {
      let evidence = await engine.attempt(beginEvidence(email));
      for (let retry = engine.planRetry(evidence); retry !== null; retry = engine.planRetry(evidence)) {
        await clock.advance(Date.parse(retry.due_at) - clock.nowMs());
        evidence = await engine.attempt({ ...evidence, retries: [...evidence.retries, retry] });
      }
      return concluded(evidence);
    },
  };
};
