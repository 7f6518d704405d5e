import { readFileSync } from "node:fs";
import { createAccounts } from "./accounts/accounts.ts";
import { createAuthenticator, createKeys } from "./accounts/keys.ts";
import { ACCOUNT_OPERATIONS, createAccountRoutes } from "./accounts/routes.ts";
import { createAccountStore } from "./accounts/store.ts";
import { type Clock, systemClock } from "./base/clock.ts";
import { createTokenBuckets } from "./base/limits.ts";
import type { Log } from "./base/log.ts";
import { type Random, systemRandom } from "./base/secrets.ts";
import { createLedger } from "./billing/store.ts";
import type { Config } from "./config.ts";
import type { Db } from "./db/open.ts";
import { createGuard } from "./http/guard.ts";
import { type Connector, createDirectConnector } from "./net/connector.ts";
import type { DnsResolver } from "./net/dns.ts";
import { createDnsResolver } from "./net/dns-resolver.ts";
import { createAddressPolicy } from "./net/public-address.ts";
import { parseResolvConf } from "./net/resolv-conf.ts";
import { openSession } from "./net/smtp-client.ts";
import { createEgressWatch } from "./probe/egress.ts";
import { createProbePool, type ProbeTarget } from "./probe/pool.ts";
import { createServer } from "./server.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { createChecks } from "./verify/checks.ts";
import { createDomainInquiry } from "./verify/domain-evidence.ts";
import { createEngine } from "./verify/engine.ts";
import { createMailboxInquiry } from "./verify/mailbox-evidence.ts";
import { VERIFY_OPERATIONS } from "./verify/operations.ts";
import { createVerifyRoutes } from "./verify/routes.ts";
import { createRunner } from "./verify/runner.ts";
import { createVerificationStore } from "./verify/store.ts";
import { VERSION } from "./version.ts";

/** What tests replace: time, chance, DNS, and the way out. */
export interface Outside {
  readonly clock: Clock;
  readonly random: Random;
  readonly resolver: DnsResolver;
  readonly connector: Connector;
}

const RESOLV_CONF = "/etc/resolv.conf";
/** A dialogue may take its connect, and a reply timeout for each of so many replies; then it is cut off. */
const REPLIES_PER_DIALOGUE = 4;
/** A connection is not used longer than so many dialogues would last. */
const DIALOGUES_PER_CONNECTION = 3;

const systemDnsServers = () => {
  try {
    return parseResolvConf(readFileSync(RESOLV_CONF, "utf8"));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return parseResolvConf("");
    throw error;
  }
};

/** The name servers in force: those of the settings, else the system's. */
export const dnsServersOf = (config: Config) => config.dnsServers ?? systemDnsServers();

/** The real outside: the system's clock and randomness, the configured DNS servers, TCP. */
export const realOutside = (config: Config): Outside & { close(): void } => {
  const resolver = createDnsResolver({ servers: dnsServersOf(config), clock: systemClock });
  const policy = createAddressPolicy(config.probeAllowNetworks);
  const connector = createDirectConnector({ clock: systemClock, mayConnect: policy.isAllowed });
  return { clock: systemClock, random: systemRandom, resolver, connector, close: () => resolver.close() };
};

/** Everything that finds out about an address; needs no database. */
export const composeEngine = (config: Config, { clock, random, resolver, connector }: Outside) => {
  const { heloName, connectTimeoutMs, replyTimeoutMs, mailFrom, smtpPort, retryWaitsS } = config;
  const { connectionsMax, connectionsPerHostMax, rcptPerConnectionMax } = config;
  const egress = createEgressWatch(clock);
  const dialogueTimeMs = connectTimeoutMs + REPLIES_PER_DIALOGUE * replyTimeoutMs;

  const open = async ({ address, port, host }: ProbeTarget) => {
    const sessionDeadlineMs = dialogueTimeMs * DIALOGUES_PER_CONNECTION;
    const timeouts = { connectTimeoutMs, replyTimeoutMs, sessionDeadlineMs };
    const session = await openSession({ connector, clock, address, port, serverName: host, heloName, ...timeouts });
    if (!session.ok && session.error.kind === "connect_timeout") egress.noteSilence(address);
    else egress.noteAnswered();
    return session;
  };

  const pool = createProbePool({ clock, open, connectionsMax, connectionsPerHostMax, rcptPerConnectionMax });
  const policy = createAddressPolicy(config.probeAllowNetworks);
  const inquireDomain = createDomainInquiry({ resolver, policy, random });
  const mailbox = { pool, clock, smtpPort, heloName, mailFrom, attemptTimeMs: dialogueTimeMs };
  const inquireMailbox = createMailboxInquiry(mailbox);
  return { engine: createEngine({ clock, random, inquireDomain, inquireMailbox, retryWaitsS }), pool, egress };
};

/** Accounts, keys and credits: what the administration on the command line needs. */
export const composeAccounts = (db: Db, clock: Clock) => {
  const store = createAccountStore(db);
  const ledger = createLedger(db);
  return {
    store,
    ledger,
    accounts: createAccounts({ db, store, ledger, clock }),
    keys: createKeys({ db, store, clock }),
    authenticate: createAuthenticator({ db, store, clock }),
  };
};

export interface ServiceDeps {
  readonly config: Config;
  readonly db: Db;
  readonly log: Log;
  readonly outside: Outside;
  readonly baseUrl: string;
}

/** The whole service, not yet listening. */
export const composeService = ({ config, db, log, outside, baseUrl }: ServiceDeps) => {
  const { clock } = outside;
  const { engine, pool, egress } = composeEngine(config, outside);
  const administration = composeAccounts(db, clock);
  const { ledger, authenticate } = administration;
  const store = createVerificationStore(db);
  const runner = createRunner({ db, store, ledger, engine, clock, log });
  const checks = createChecks({ db, store, ledger, runner, clock });
  const guard = createGuard({ authenticate, buckets: createTokenBuckets(clock) });
  const description = "Verifies email addresses by asking their mail servers, and shows the evidence.";
  const app = createServer({
    log,
    clock,
    routes: [
      createVerifyRoutes({ guard, checks, runner, clock }),
      createAccountRoutes({ guard, store: administration.store, ledger }),
      createServiceRoutes({
        db,
        operations: [...VERIFY_OPERATIONS, ...ACCOUNT_OPERATIONS],
        info: { version: VERSION, baseUrl, description },
        findings: () => [egress.finding()].filter((finding) => finding !== null),
      }),
    ],
  });
  return { app, runner, checks, pool, ...administration };
};

export type Service = ReturnType<typeof composeService>;
