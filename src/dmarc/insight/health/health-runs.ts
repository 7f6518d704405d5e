import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { type OnBehalfOf, type Priority, createShares } from "../../../foundation/base/on-behalf-of.ts";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { type DnsResolver, resolverFor } from "../../../foundation/net/dns.ts";
import { checkTestHealth, HEALTH_MS_MAX, type HealthCheck } from "./health.ts";
import type { DomainHealth } from "./health-schema.ts";
import type { HealthStore, DueHealth } from "./health-store.ts";
import { findSeenSelectors, type SelectorToCheck } from "./selectors.ts";
import { mapConcurrently } from "../../../foundation/base/wait.ts";
import { spreadOf } from "../../records/domains/domain-state.ts";

export interface HealthRunsOptions {
  readonly store: HealthStore;
  readonly check: HealthCheck;
  /** A resolver without a cache, so that a record that was just published is found. */
  readonly resolver: DnsResolver;
}

/** An enrolled domain whose health is checked. */
export interface HealthSubject {
  readonly number: number;
  readonly domain: string;
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface HealthRequest {
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
    private readonly options: HealthRunsOptions,
  ) {}

  /** The last result, however old it is; null before the first check. Sends no DNS query. */
  async lastOf(subject: HealthSubject): Promise<DomainHealth | null> {
    if (subject.mode === "test") return checkTestHealth(subject.domain, this.runtime.clock);
    return this.options.store.readHealth(subject.number);
  }

  /** The health of a domain. Throws `unavailable` when too many checks are running, or the service stops. */
  async healthOf(subject: HealthSubject, request: HealthRequest): Promise<DomainHealth> {
    const { store } = this.options;
    const { clock } = this.runtime;
    if (subject.mode === "test") return checkTestHealth(subject.domain, clock);
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

  async #admit(subject: HealthSubject, request: HealthRequest): Promise<DomainHealth> {
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
    const { store, check, resolver } = this.options;
    const { db, clock } = this.runtime;
    const seen = await findSeenSelectors(store, subject, dayOfTime(clock.nowMs()));
    const health = await check({
      domain: subject.domain,
      selectors: [...requested(subject.domain, given, seen), ...seen],
      resolver: resolverFor(resolver, who),
      signal: this.#stopping.signal,
    });
    if (given.length > 0 || this.isStopping()) return health;
    const isKnown = health.sections.every(({ unchecked }) => unchecked.length === 0);
    const dueAtMs = clock.nowMs() + (isKnown ? DAY_MS : UNKNOWN_MS);
    await db.commit((tx) => store.save(tx, subject.number, health, dueAtMs));
    return health;
  }
}

/** The selectors that a caller names, without those in reports. */
const requested = (
  domain: string,
  given: readonly string[],
  seen: readonly SelectorToCheck[],
): readonly SelectorToCheck[] =>
  [...new Set(given.map((selector) => selector.toLowerCase()))]
    .filter((selector) => !seen.some((each) => each.selector === selector && each.signer === domain))
    .map((selector) => ({ selector, signer: domain, origin: "request", seen: null }));

type HealthRuntime = Pick<Runtime, "db" | "clock" | "log">;

interface HealthJobOptions {
  readonly store: HealthStore;
  readonly runs: Pick<HealthRuns, "healthOf" | "isStopping">;
}

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
    private readonly runtime: HealthRuntime,
    private readonly options: HealthJobOptions,
  ) {}

  /** Checks the domains that are due, 200 at most. */
  async run(): Promise<void> {
    const { store, runs } = this.options;
    if (runs.isStopping()) return;
    await this.#planNewDomains();
    await mapConcurrently(store.due(this.runtime.clock.nowMs(), DUE_MAX), CONCURRENCY_MAX, async (domain) => {
      if (!runs.isStopping()) await this.#check(domain);
    });
  }

  async #planNewDomains(): Promise<void> {
    const { store } = this.options;
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

  async #check(domain: DueHealth): Promise<void> {
    if (!domain.isActive) return this.#postpone(domain, DAY_MS);
    try {
      await this.options.runs.healthOf(domain, { refresh: true, selectors: [], priority: "bulk" });
    } catch (error) {
      // An AppError: callers use all concurrent checks.
      if (!(error instanceof AppError)) {
        this.runtime.log.error("health check of a domain failed", { domain: domain.id, error });
      }
      await this.#postpone(domain, RETRY_MS);
    }
  }

  #postpone({ number }: DueHealth, afterMs: number): Promise<void> {
    const { db, clock } = this.runtime;
    return db.commit((tx) => this.options.store.postpone(tx, number, clock.nowMs() + afterMs));
  }
}
