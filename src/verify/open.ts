import { IdempotencyStore } from "../foundation/db/idempotency.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import type { ByMode } from "../foundation/base/secrets.ts";
import type { Platform } from "../foundation/net/platform.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import type { CreditHolds } from "../accounts/billing/store.ts";
import { UsageStore } from "../accounts/usage/usage-store.ts";
import { type CatalogueSettings, catalogueOf, openVerdictDnsbl } from "../blocklist/lists/open.ts";
import { classifyAddress } from "./address-evidence.ts";
import { type Attempts, OwnAttempts } from "./attempts.ts";
import { CatchAllCache, RecentAcceptances } from "./findings.ts";
import { Checks } from "./checks.ts";
import { BlocklistCheck, DNSBL_TURN_WAIT_MS } from "./dnsbl-evidence.ts";
import { createDomainLookup, connectionsPerProviderMax, createMailboxProber } from "./domain-evidence.ts";
import { VerificationEngine, type VerificationPlatform } from "./engine.ts";
import { History } from "./history.ts";
import { HistoryStore } from "./history-store.ts";
import { HostProber } from "./host-probe.ts";
import { Runner } from "./runner.ts";
import { Screening } from "./forms/screening.ts";
import { probeTimeMsOf, type SmtpDeps, type SmtpSettings, SmtpSlice, type SmtpView } from "./smtp/open.ts";
import { VerificationStore } from "./store.ts";
import { VerificationWriter } from "./verification-writer.ts";
import { TEST_PLATFORM } from "./test-platform.ts";

/** How addresses are verified. */
export interface VerifySettings extends SmtpSettings, CatalogueSettings {
  /** The envelope sender; empty for the null sender. */
  readonly mailFrom: string;
  readonly smtpPort: number;
  /** Waits before the retries, in seconds. */
  readonly retryWaitsS: readonly number[];
  /** Whether blocklists are part of the evidence. */
  readonly dnsblSignal: boolean;
}

/** What verification needs beside the settings. */
export interface EngineDeps extends Omit<SmtpDeps, "connectionsPerProviderMax"> {
  /** Matches the operator's suppression list; null without a database. */
  readonly matchSuppression: ((normalizedEmail: string) => string | null) | null;
}

/**
 * The check of blocklists, whose catalogue is read when it is first needed: it is large, and the service should not wait
 * for it at start. The operator's own settings about it are checked at once.
 */
const lazyBlocklistCheck = (
  settings: CatalogueSettings,
  platform: Platform,
): NonNullable<VerificationPlatform["checkBlocklists"]> => {
  const create = () =>
    new BlocklistCheck(platform.clock, {
      dnsbl: openVerdictDnsbl(platform, DNSBL_TURN_WAIT_MS),
      lists: catalogueOf(settings).lists,
    });
  const hasOwnSettings = settings.blocklistCataloguePath !== null || settings.blocklistKeys.size > 0;
  let blocklists = hasOwnSettings ? create() : null;
  return async (domain) => {
    blocklists ??= create();
    return blocklists.check(domain);
  };
};

/** How late timers of an event loop are, in milliseconds; `ownMs`: at most by the processor time of its own thread. */
export interface LoopDelay {
  readonly lateMs: number;
  readonly ownMs: number;
}

/** The engines of a service. Live keys are served in this thread or in one of their own (`thread/open.ts`). */
export interface ServiceEngine {
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;
  readonly smtp: SmtpView;
  /** How late the thread that serves live keys was at last, if it is another one; null when it was not measured lately. */
  loopDelay(): LoopDelay | null;
  /** Makes no further attempt (`PoolClosed`); resolves when the last session with a mail host has ended. */
  drain(): Promise<void>;
  /** Ends everything at once. */
  close(): void;
}

/** The engines that verify addresses, for live and for test keys, and the sessions that they use. Needs no database. */
export class EngineSlice implements ServiceEngine {
  readonly smtp: SmtpSlice;
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;

  constructor(platform: Platform, settings: VerifySettings, { matchSuppression, ...deps }: EngineDeps) {
    this.smtp = new SmtpSlice(platform, settings, { ...deps, connectionsPerProviderMax });
    const { clock, random } = platform;
    const { heloName, mailFrom, smtpPort, retryWaitsS, dnsblSignal } = settings;
    const { pool, egresses, outages, resolver } = this.smtp;
    const caches = { catchAllCache: new CatchAllCache(clock), acceptances: new RecentAcceptances(clock) };
    const hostProber = new HostProber({ pool, egresses, ...caches, heloName, mailFrom, retryWaitsS });
    const policy = createAddressPolicy(settings.probeAllowNetworks);
    const live: VerificationPlatform = {
      classify: classifyAddress,
      matchSuppression,
      lookUpDomain: createDomainLookup({ resolver, policy, random, clock }),
      probeMailbox: createMailboxProber(platform, hostProber, { smtpPort, attemptTimeMs: probeTimeMsOf(settings) }),
      checkBlocklists: dnsblSignal ? lazyBlocklistCheck(settings, platform) : null,
      retryWaitsS,
      judgeOutage: (channel) => outages.judge(channel),
      simulation: null,
    };
    this.engines = { live: new VerificationEngine(live, clock), test: new VerificationEngine(TEST_PLATFORM, clock) };
    this.attempts = { live: new OwnAttempts(this.engines.live), test: new OwnAttempts(this.engines.test) };
  }

  loopDelay(): null {
    return null;
  }

  drain(): Promise<void> {
    this.smtp.outages.stop();
    return this.smtp.pool.drain();
  }

  close(): void {
    void this.drain();
  }
}

/** Single verifications, and what lists share with them. */
export class VerifySlice {
  readonly runner: Runner;
  readonly checks: Checks;
  readonly screening: Screening;
  readonly history: History;
  readonly idempotency: IdempotencyStore;

  constructor(
    runtime: Runtime,
    deps: Pick<EngineSlice, "engines" | "attempts"> & { readonly credits: ByMode<CreditHolds> },
  ) {
    const store = new VerificationStore(runtime.db);
    this.idempotency = new IdempotencyStore(runtime);
    const { idempotency } = this;
    const writer = new VerificationWriter(runtime, { store, credits: deps.credits, idempotency });
    this.runner = new Runner(runtime, { store, writer, ...deps });
    this.checks = new Checks(runtime, { store, writer, idempotency, runner: this.runner, ...deps });
    this.screening = new Screening(runtime.clock, deps);
    this.history = new History(new HistoryStore(runtime.db), new UsageStore(runtime.db));
  }
}
