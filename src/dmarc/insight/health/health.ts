import { createTestResolver } from "../../records/domains/domain-platform.ts";
import { err, AppError } from "../../../foundation/base/errors.ts";
import { withDeadline, mapConcurrently } from "../../../foundation/base/wait.ts";
import { checkTlsRpt, checkMtaSts } from "./inbound.ts";
import { checkMx } from "./mx.ts";
import { auditSpf } from "./spf.ts";
import { commonSelectors, type SelectorToCheck, findSeenSelectors } from "./dkim-key.ts";
import type { DomainHealth, HealthFinding, HealthSection } from "./health-schema.ts";
import { worstStatus, createHealthDns } from "./section-report.ts";
import { checkDmarcRecord, checkBimi } from "./dmarc-health.ts";
import { checkDkim } from "./dkim.ts";
import { keepLastKnown } from "./last-known.ts";
import { observeRecords, type ObservedRecord } from "./observed-records.ts";
import type { RecordHistoryStore } from "./record-history.ts";
import type { Getter } from "../../../foundation/net/fetch-url.ts";
import {
  abortableResolver,
  type DnsResolver,
  type DnsRecordData,
  type DnsResponse,
  type DnsType,
  emptyResponse,
  resolverFor,
} from "../../../foundation/net/dns.ts";
import { dayOfTime, DAY_MS } from "../../../foundation/base/days.ts";
import { type Clock, isoTime } from "../../../foundation/base/clock.ts";
import { spreadOf } from "../../records/domains/domain-state.ts";
import type { HealthStore, DueHealth } from "./health-store.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { createShares, type OnBehalfOf, type Priority } from "../../../foundation/base/on-behalf-of.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { Domains } from "../../records/domains/domains.ts";

/** The domain to check, and how. */
interface HealthCheckRequest {
  /** Lower-case A-labels. */
  readonly domain: string;
  /** Selectors that are in use; without any, common ones are tried. */
  readonly selectors: readonly SelectorToCheck[];
  /** Receives the records that the DNS certainly has. */
  readonly onRecords?: (records: readonly ObservedRecord[]) => void;
  /** The text of the MTA-STS policy that this service serves for the domain. */
  readonly hostedPolicy?: string | null;
  /** Replaces the resolver of the dependencies: one whose queries count for an account. */
  readonly resolver?: DnsResolver;
  readonly signal?: AbortSignal;
}

/** However slow the DNS and the policy server are, a run ends after this; what is open by then is unknown. */
export const HEALTH_MS_MAX = 20_000;

/**
 * Checks what a domain publishes for mail: DMARC, SPF, DKIM, MX, MTA-STS, TLS-RPT and BIMI. Sends at most `HEALTH_QUERIES_MAX` DNS
 * queries and one HTTPS request, and never rejects for anything that the DNS or a server does.
 */
export const createHealthCheck = ({
  resolver,
  get,
  clock,
}: {
  readonly resolver: DnsResolver;
  readonly get: Getter;
  readonly clock: Clock;
}) =>
  async function checkHealth(request: HealthCheckRequest): Promise<DomainHealth> {
    const { domain } = request;
    const checkedAtMs = clock.nowMs();
    return withDeadline(clock, { timeoutMs: HEALTH_MS_MAX, signal: request.signal }, async (signal) => {
      const dns = createHealthDns(abortableResolver(request.resolver ?? resolver, clock, signal));
      const selectors = request.selectors.length > 0 ? request.selectors : commonSelectors(domain);
      const [dmarc, spf, mx, dkim, tlsRpt] = await Promise.all([
        checkDmarcRecord(dns, domain),
        auditSpf(dns, domain),
        checkMx(dns, domain),
        checkDkim(dns, domain, { selectors, today: dayOfTime(checkedAtMs) }),
        checkTlsRpt(dns, domain),
      ]);
      const [mtaSts, bimi] = await Promise.all([
        checkMtaSts({ dns, get, signal, hosted: request.hostedPolicy ?? null }, domain, mx),
        checkBimi(dns, domain, dmarc),
      ]);
      const keys = dkim.keys.filter(({ state }) => state !== "unknown");
      const names = keys.map(({ selector, domain: signer }) => `${selector}._domainkey.${signer}`);
      request.onRecords?.(await observeRecords(dns, domain, names));
      const sections = existingOnly([dmarc, spf, dkim, mx, mtaSts, tlsRpt, bimi]);
      const status = worstStatus(sections.map((section) => section.status));
      return { domain, checked_at: isoTime(checkedAtMs), status, sections };
    });
  };

type HealthCheck = ReturnType<typeof createHealthCheck>;

/** Where the domain does not exist, that is the one finding: nothing else can be published before it does. */
const existingOnly = (sections: HealthSection[]): HealthSection[] => {
  const isMissing = sections.some(({ findings }) => findings.some(({ code }) => code === "domain_missing"));
  if (!isMissing) return sections;
  return sections.map((section) => (section.code === "mx" ? section : { ...section, status: "ok", findings: [] }));
};

const SELECTOR = "test";
/** An RSA key of 2048 bits that nobody signs with. */
const PUBLIC_KEY =
  "MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEAi/YnLeZHtGLz8PbOxR5YfxCDgHbO+B0iPxwOSDoZHX1wkSeXX2W1WF07oxa1VMe2/rkFi2CoBcADtGWZF6zfTDsMgFe1aOe7//TMvkxSp0blWpnFlYyKCG1y7NoFpgrB6MCGlXkHsN943mFHkcCFQaIo1A+fhvJA+53I2B5fRFOkQxZQVzqJNgwhp2vnnEPmu8LDX2y5K41ceieZpHdlmVEq17DVR1cdjZqyYT0Yrbsa91YlQd0nWfAYEWQ6NWvPeThwQqLFsSCI/H+R4smAt2mIySIbyci7NofAYQLQ8V5MdyEpZSoD0zCvEw82qtjGbK0z92PKFLfB/Hh7mHyzrwIDAQAB";

/** What test keys find at a domain: everything in order, but for the DMARC record of the names that have a bad one. */
const zoneOf = (domain: string, ours: string): DnsResolver => {
  const mailHost = `mail.${domain}`;
  const reportHost = ours.slice(ours.lastIndexOf("@") + 1);
  const dmarc = createTestResolver({ domain, ours, reportHost, isSetUp: true });
  const zone = new Map<string, readonly DnsRecordData[DnsType][]>([
    [`TXT ${domain}`, ["v=spf1 mx -all"]],
    [`MX ${domain}`, [{ preference: 10, exchange: mailHost }]],
    // Not one of the addresses for documentation: those are findings.
    [`A ${mailHost}`, ["192.0.1.10"]],
    [`TXT ${SELECTOR}._domainkey.${domain}`, [`v=DKIM1; k=rsa; p=${PUBLIC_KEY}`]],
    [`TXT _smtp._tls.${domain}`, [`v=TLSRPTv1; rua=mailto:tls@${domain}`]],
  ]);
  return {
    async resolve<T extends DnsType>(name: string, type: T): Promise<DnsResponse<T>> {
      if (/^_dmarc\.|\._report\._dmarc\./.test(name)) return dmarc.resolve(name, type);
      const records = zone.get(`${type} ${name}`) ?? [];
      const outcome = records.length > 0 ? "response" : "no_data";
      // The key of the zone holds the type.
      return { ...emptyResponse(name, type, outcome), records: records as ReadonlyArray<DnsRecordData[T]> };
    },
  };
};

/** The health of a test domain with its reporting address, by the same checks over a made-up zone. No DNS query is sent. */
const checkTestHealth = (domain: string, ours: string, clock: Clock): Promise<DomainHealth> => {
  const check = createHealthCheck({
    resolver: zoneOf(domain, ours),
    get: async () => err({ kind: "dns", problem: "Test domains serve no policy." }),
    clock,
  });
  return check({
    domain,
    selectors: [{ selector: SELECTOR, signer: domain, origin: "request", seen: null }],
  });
};

/** An enrolled domain whose health is checked. */
type HealthSubject = Pick<DomainRow, "number" | "domain" | "accountId" | "mode" | "token">;

interface HealthRequest {
  /** Checks again although the last result is fresh. */
  readonly refresh: boolean;
  /** Selectors to check beside those in the reports. */
  readonly selectors: readonly string[];
  readonly priority: Priority;
}

/** A stored result is returned for this long. */
export const HEALTH_FRESH_MS = 10 * 60_000;

/** A result with something unknown is refreshed sooner. */
const UNKNOWN_MS = 2 * 3_600_000;
/** Concurrent checks of all callers; scheduled checks get half of them. */
const RUNS_MAX = 8;
const REALTIME_SHARE = 0.5;

/**
 * Checks the health of enrolled domains, one run at a time for each and `RUNS_MAX` in all. Results of live domains are stored; those of
 * test domains are made up without DNS.
 */
export class HealthRuns {
  readonly #running = new Map<number, Promise<DomainHealth>>();
  readonly #shares = createShares({ placesMax: RUNS_MAX, realtimeShare: REALTIME_SHARE });
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: {
      readonly store: HealthStore;
      readonly history: RecordHistoryStore;
      readonly check: HealthCheck;
      /** A resolver without a cache, so that a record that was just published is found. */
      readonly resolver: DnsResolver;
      /** The text of the MTA-STS policy that this service serves for a domain. */
      readonly hostedPolicy?: (subject: HealthSubject) => string | null;
      readonly domains: Pick<Domains, "testAddressOf">;
    },
  ) {}

  /** The last result, however old it is; null before the first check. Sends no DNS query. */
  async lastOf(subject: HealthSubject): Promise<DomainHealth | null> {
    if (subject.mode === "test") return this.#testHealthOf(subject);
    return this.deps.store.readHealth(subject.number);
  }

  /** The health of a domain. Throws `unavailable` when too many checks are running, or the service stops. */
  async healthOf(subject: HealthSubject, request: HealthRequest): Promise<DomainHealth> {
    const { store } = this.deps;
    const { clock } = this.runtime;
    if (subject.mode === "test") return this.#testHealthOf(subject);
    if (request.selectors.length > 0) return this.#admit(subject, request);
    const kept = request.refresh ? null : store.readHealth(subject.number);
    if (kept !== null && clock.nowMs() - Date.parse(kept.checked_at) < HEALTH_FRESH_MS) return kept;
    const joined = this.#running.get(subject.number);
    if (joined !== undefined) return joined;
    const run = this.#admit(subject, request);
    this.#running.set(subject.number, run);
    try {
      return await run;
    } finally {
      this.#running.delete(subject.number);
    }
  }

  /** Whether no further check is started. */
  isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Aborts running checks; no further check is started. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.allSettled(this.#running.values());
  }

  #testHealthOf(subject: HealthSubject) {
    return checkTestHealth(subject.domain, this.deps.domains.testAddressOf(subject), this.runtime.clock);
  }

  async #admit(subject: HealthSubject, request: HealthRequest) {
    const who: OnBehalfOf = { account: subject.accountId, priority: request.priority };
    if (this.isStopping() || !this.#shares.mayHold(who)) {
      const message = "Too many domain checks are running. Try again in a few seconds.";
      throw new AppError("unavailable", { message, headers: { "retry-after": String(HEALTH_MS_MAX / 4_000) } });
    }
    this.#shares.hold(who);
    try {
      return await this.#run(subject, request.selectors, who);
    } finally {
      this.#shares.release(who);
    }
  }

  async #run(subject: HealthSubject, given: readonly string[], who: OnBehalfOf): Promise<DomainHealth> {
    const { store, history, check, resolver } = this.deps;
    const { db, clock } = this.runtime;
    const seen = await findSeenSelectors(store, subject, dayOfTime(clock.nowMs()));
    let records: readonly ObservedRecord[] = [];
    const checked = await check({
      onRecords: (found) => {
        records = found;
      },
      domain: subject.domain,
      hostedPolicy: this.deps.hostedPolicy?.(subject) ?? null,
      selectors: [...requested(subject.domain, given, seen), ...seen],
      resolver: resolverFor(resolver, who),
      signal: this.#stopping.signal,
    });
    const before = store.readHealth(subject.number);
    const health = keepLastKnown(before, checked);
    if (given.length > 0 || this.isStopping()) return health;
    const isKnown = health.sections.every(({ unchecked }) => unchecked.length === 0);
    const dueAtMs = clock.nowMs() + (isKnown ? DAY_MS : UNKNOWN_MS);
    await db.commit((tx) => {
      store.save(tx, subject.number, health, dueAtMs);
      if (problemsIn(health) !== problemsIn(before)) store.makeOverviewDue(tx, subject.number);
      history.observe(tx, subject.number, records, clock.nowMs());
    });
    return health;
  }
}

/** The errors and warnings of a health check, to compare. */
const problemsIn = (health: DomainHealth | null): string =>
  JSON.stringify(
    (health?.sections ?? [])
      .flatMap<Pick<HealthFinding, "message" | "severity">>(({ findings }) => findings)
      .flatMap(({ message, severity }) => (severity === "info" ? [] : message)),
  );

/** The selectors that a caller names, without those in reports. */
const requested = (
  domain: string,
  given: readonly string[],
  seen: readonly SelectorToCheck[],
): readonly SelectorToCheck[] =>
  [...new Set(given.map((selector) => selector.toLowerCase()))]
    .filter((selector) => !seen.some((each) => each.selector === selector && each.signer === domain))
    .map((selector) => ({ selector, signer: domain, origin: "request", seen: null }));

const LISTED_AT_ONCE = 1_000;
/** Fewer new domains than this are checked at once; more (after an update, or an import) are spread over a day. */
const BACKLOG_MIN = 20;

const RETRY_MS = 30 * 60_000;
/** Domains of one run. */
const DUE_MAX = 200;
const CONCURRENCY_MAX = 3;

/** The scheduled job for health: checks every live domain that is monitored once a day, spread over the day. */
export class HealthJob {
  /** Domains up to this number have a check planned. */
  #plannedTo = 0;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: {
      readonly store: HealthStore;
      readonly runs: Pick<HealthRuns, "healthOf" | "isStopping">;
    },
  ) {}

  /** Checks the domains that are due, 200 at most. */
  async run(): Promise<void> {
    const { store, runs } = this.deps;
    if (runs.isStopping()) return;
    await this.#planNewDomains();
    await mapConcurrently(store.due(this.runtime.clock.nowMs(), DUE_MAX), CONCURRENCY_MAX, async (domain) => {
      if (!runs.isStopping()) await this.#check(domain);
    });
  }

  async #planNewDomains() {
    const { store } = this.deps;
    const { db, clock } = this.runtime;
    for (;;) {
      const listed = store.domainsAfter(this.#plannedTo, LISTED_AT_ONCE);
      const added = listed.filter(({ isPlanned }) => !isPlanned);
      const spreadMs = added.length < BACKLOG_MIN ? 0 : DAY_MS;
      const nowMs = clock.nowMs();
      if (added.length > 0) {
        await db.commit((tx) => {
          for (const { number, id } of added) store.plan(tx, number, Math.round(nowMs + spreadMs * spreadOf(id)));
        });
      }
      this.#plannedTo = listed.at(-1)?.number ?? this.#plannedTo;
      if (listed.length < LISTED_AT_ONCE) return;
    }
  }

  async #check(domain: DueHealth) {
    if (!domain.isActive) return this.#postpone(domain, DAY_MS);
    try {
      await this.deps.runs.healthOf(domain, { refresh: true, selectors: [], priority: "bulk" });
    } catch (error) {
      // An AppError: callers use all concurrent checks.
      if (!(error instanceof AppError)) {
        this.runtime.log.error("health check of a domain failed", { domain: domain.id, error });
      }
      await this.#postpone(domain, RETRY_MS);
    }
  }

  #postpone({ number }: DueHealth, afterMs: number) {
    const { db, clock } = this.runtime;
    return db.commit((tx) => this.deps.store.postpone(tx, number, clock.nowMs() + afterMs));
  }
}
