import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { forEachIsolated, inSteps, pagesOf, type StepLimits } from "../../../foundation/base/in-steps.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { DbClock, DbClockLog } from "../../../foundation/db/runtime.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { deletedDomainFinding, ingestionConclusion, parseFindings, type StoredFinding } from "./ingestion-finding.ts";
import type {
  AgeCursor,
  OwnedIngestion,
  RetainedDomain,
  RetentionStore,
  NameRetentionStore,
  SourceAddressName,
} from "./retention-store.ts";

/** `unassignedRawDays` unless the operator sets it. */
export const RAW_DAYS = 90;
/** Days for which ingestions (longer while their bytes are kept), alerts and changes of records are kept. */
export const HISTORY_DAYS = 400;
/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 500;
/** The same for the first bytes of mails: up to 16 KiB each. */
const MAILS_AT_ONCE = 100;
/** Transactions of one run; the next run resumes. */
const CHUNKS_MAX = 20_000;
/** Deleted domains purged in one run. */
const DOMAINS_AT_ONCE = 100;

/** Expires and purges data. Each job works in short transactions and resumes after a crash. */
export class Retention {
  readonly #running = new Set<Promise<unknown>>();
  #isStopping: boolean = false;

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: {
      store: RetentionStore;
      names: NameRetention;
      domains: DomainStore;
      /** Days for which the bytes of ingestions are kept that belong to no domain; null: for ever. */
      unassignedRawDays?: number | null;
    },
  ) {}

  /** Expires the bytes of ingestions, as the domains want it. */
  expireRaw(): Promise<void> {
    return this.#job(() => this.#expireRaw(), undefined);
  }

  /** Expires reports, records, daily counts, and sources that are not seen any more. */
  expireReports(): Promise<void> {
    return this.#job(() => this.#expireReports(), undefined);
  }

  /** Expires ingestions, alerts and the history of records. */
  expireHistory(): Promise<void> {
    return this.#job(() => this.#expireHistory(), undefined);
  }

  /** Purges deleted domains with all their data; returns how many were purged completely. */
  purgeDeleted(): Promise<number> {
    return this.#job(() => this.#purgeDeleted(), 0);
  }

  /** Ends running jobs after their present step. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.deps.names.stop();
    await Promise.allSettled(this.#running);
  }

  /** Runs a job, which resolves with `stopped` when the service ends. */
  async #job<T>(work: () => Promise<T>, stopped: T): Promise<T> {
    if (this.#isStopping) return stopped;
    const done = work().catch((error: unknown) => {
      if (error instanceof RetentionStopped) return stopped;
      throw error;
    });
    this.#running.add(done);
    return done.finally(() => void this.#running.delete(done));
  }

  /** Of one run. A run that is stopped throws `RetentionStopped`. */
  get #limits(): StepLimits {
    const isStopping = () => {
      if (this.#isStopping) throw new RetentionStopped();
      return false;
    };
    return { isStopping, stepsMax: CHUNKS_MAX };
  }

  #beforeMs(days: number) {
    return this.runtime.clock.nowMs() - days * DAY_MS;
  }

  /** Removes rows until there are none left; false when a run may not remove more. */
  async #untilGone(remove: (tx: Tx) => number) {
    const { isComplete } = await inSteps(() => this.runtime.db.commit(remove), this.#limits);
    return isComplete;
  }

  /** Walks through ingestions from the oldest on, and removes something of those that have expired. */
  async #eachAge<R extends AgeCursor & { readonly id: string }>(
    read: (after: AgeCursor) => R[],
    isExpired: (row: R) => boolean,
    remove: (tx: Tx, id: string) => void,
  ) {
    const start: AgeCursor = { receivedAtMs: -1, rowid: 0 };
    for await (const rows of pagesOf({ start, read, positionOf: (row: R): AgeCursor => row }, this.#limits)) {
      const expired = rows.filter(isExpired);
      if (expired.length === 0) continue;
      await this.runtime.db.commit((tx) => {
        for (const { id } of expired) remove(tx, id);
      });
    }
  }

  async #eachDomain<D extends { readonly number: number }>(
    domains: readonly D[],
    work: (domain: D) => Promise<unknown>,
  ) {
    await forEachIsolated(domains, work, {
      onFailure: ({ number }, error) => {
        if (error instanceof RetentionStopped) throw error;
        this.runtime.log.error("expired data of a domain could not be removed; the next run retries", {
          number,
          error,
        });
      },
    });
  }

  async #expireRaw() {
    const { store } = this.deps;
    const domains = store.domains();
    const byNumber = new Map(domains.map(({ number, rawRetentionDays }) => [number, rawRetentionDays]));
    const byId = new Map(domains.map(({ id, rawRetentionDays }) => [id, rawRetentionDays]));
    const { unassignedRawDays = RAW_DAYS } = this.deps;
    const unassigned = unassignedRawDays ?? Number.POSITIVE_INFINITY;
    const youngestMs = this.#beforeMs(Math.min(unassigned, ...byNumber.values()));
    await this.#eachAge(
      (after) => store.holders(after, youngestMs, MAILS_AT_ONCE),
      (holder) => {
        const days = rawDaysOf(
          { domain: holder.domain, findings: parseFindings(holder) },
          { byNumber, byId, unassigned },
        );
        return holder.receivedAtMs < this.#beforeMs(days);
      },
      (tx, id) => store.removeRaw(tx, id),
    );
    await store.raw.removeStray({}, this.#limits);
  }

  async #expireReports() {
    const { store, names } = this.deps;
    await this.#eachDomain(store.domains(), (domain) => this.#expireReportsOf(domain));
    await names.expireReverseNames();
  }

  async #expireReportsOf({ number, retentionDays, rawRetentionDays }: RetainedDomain) {
    const { store, names } = this.deps;
    const day = dayOfTime(this.runtime.clock.nowMs()) - retentionDays;
    await this.#untilGone((tx) => store.removeBeforeDay(tx, number, day, ROWS_AT_ONCE));
    await this.#untilGone((tx) => store.removeTlsBefore(tx, number, this.#beforeMs(retentionDays), ROWS_AT_ONCE));
    await this.#untilGone((tx) =>
      store.removeFailuresBefore(tx, number, this.#beforeMs(rawRetentionDays), ROWS_AT_ONCE),
    );
    await this.#expireSources(number, day);
    await names.expireNames(number, day);
    await names.expireClassifications(number, this.#beforeMs(retentionDays));
  }

  /** Sources that were last seen before a day. */
  async #expireSources(domain: number, day: number) {
    const { store } = this.deps;
    const read = (after: string) => store.sourcesAfter(domain, after, ROWS_AT_ONCE);
    for await (const rows of pagesOf({ start: "", read, positionOf: ({ key }) => key }, this.#limits)) {
      const old = rows.filter(({ lastDay }) => lastDay < day);
      if (old.length === 0) continue;
      await this.runtime.db.commit((tx) => {
        for (const source of old) store.removeSource(tx, source, day);
      });
    }
  }

  async #expireHistory() {
    const { store } = this.deps;
    const oldMs = this.#beforeMs(HISTORY_DAYS);
    await this.#eachAge(
      (after) => store.ingestionsBefore(after, oldMs, ROWS_AT_ONCE),
      ({ isHeld }) => isHeld === 0,
      (tx, id) => store.removeOldIngestion(tx, id),
    );
    await this.#eachDomain(store.domains(), ({ number }) =>
      this.#untilGone((tx) => store.removeHistory(tx, number, oldMs, ROWS_AT_ONCE)),
    );
  }

  async #purgeDeleted(): Promise<number> {
    const { store, domains } = this.deps;
    let purged = 0;
    await this.#eachDomain(domains.deleted(DOMAINS_AT_ONCE), async (domain) => {
      const isEmpty = await this.#untilGone((tx) => store.removeOfDomain(tx, domain.number, ROWS_AT_ONCE));
      if (!isEmpty || !(await this.#purgeIngestions(domain))) return;
      await this.runtime.db.commit((tx) => domains.remove(tx, domain.number));
      purged += 1;
    });
    if (purged > 0) await store.raw.removeStray({}, this.#limits);
    return purged;
  }

  /**
   * Removes the ingestions that came to the address of a deleted domain or are about it. Of those that are also about a
   * domain that is there, only the findings about the deleted one are removed. False while some are pending: they may be
   * about another domain.
   */
  async #purgeIngestions(domain: DomainRow) {
    const { store } = this.deps;
    const isConcerned = (one: OwnedIngestion) =>
      one.domain === domain.number || one.findings?.includes(domain.id) === true;
    let isPending = false;
    let after = "";
    const { isComplete } = await inSteps(async () => {
      const page = await this.runtime.db.commit((tx) => {
        const some = store.ingestionsOf(domain, after, MAILS_AT_ONCE);
        const concerned = some.filter(isConcerned);
        const done = concerned.filter((one) => one.isPending === 0);
        this.#purgePage(tx, domain, done);
        isPending ||= done.length < concerned.length;
        return some;
      });
      after = page.at(-1)?.id ?? after;
      return page.length;
    }, this.#limits);
    return isComplete && !isPending;
  }

  #purgePage(tx: Tx, domain: DomainRow, page: readonly OwnedIngestion[]) {
    const { store } = this.deps;
    const domains = new Set(page.length === 0 ? [] : store.domains().map(({ id }) => id));
    for (const one of page) {
      const before = parseFindings(one);
      if (!before.some(({ domain_id }) => domain_id !== null && domains.has(domain_id))) {
        store.removeIngestion(tx, one.id);
        continue;
      }
      if (one.domain === domain.number) store.detachIngestion(tx, one.id);
      const findings = before.map((finding) =>
        finding.domain_id === domain.id ? deletedDomainFinding(finding) : finding,
      );
      store.conclude(tx, one.id, { ...ingestionConclusion(findings), findings });
    }
  }
}

/**
 * Days for which the bytes of an ingestion are kept: the longest setting of the domains that it is about. For what is about no
 * domain, the domain decides whose address it came to, if any.
 */
export const rawDaysOf = (
  { domain, findings }: { domain: number | null; findings: readonly StoredFinding[] },
  {
    byNumber,
    byId,
    unassigned,
  }: {
    byNumber: ReadonlyMap<number, number>;
    byId: ReadonlyMap<string, number>;
    /** For what belongs to no domain. */
    unassigned: number;
  },
): number => {
  const own = (domain === null ? undefined : byNumber.get(domain)) ?? unassigned;
  const days = findings.flatMap(({ domain_id }) => (domain_id === null ? own : (byId.get(domain_id) ?? [])));
  return days.length === 0 ? own : Math.max(...days);
};

/** What the retention of names uses beside the runtime. */
export interface NameRetentionDeps {
  readonly store: NameRetentionStore;
  /** The keys under which a stored source may be classified. */
  readonly keysOf: (key: string, address: SourceAddressName | null) => readonly string[];
}

/** Names looked up in one transaction: each may require reading every stored day. */
const NAMES_AT_ONCE = 20;
const CLASSIFICATIONS_AT_ONCE = 500;
/** Rows read before others have their turn. */
const ROWS_READ_AT_ONCE = 2_000;
/** Reverse names examined in one run. */
const REVERSE_NAMES_MAX = 10_000;
const REMOVED_AT_ONCE = 500;
/** A little more than the time between two runs. */
const AHEAD_MS = 2 * 3_600_000;

/** Keys that do not depend on the reverse name of an address. */
const NAMELESS = /^(?:dkim|spf|ip|net):/;

/** The service ends. The next run resumes. */
export class RetentionStopped extends Error {}

/** Expires header_from domains, classifications and reverse names that nothing refers to any more. */
export class NameRetention {
  #isStopping: boolean = false;

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: NameRetentionDeps,
  ) {}

  /** The running work throws `RetentionStopped` before its next step. */
  stop(): void {
    this.#isStopping = true;
  }

  /** Expires the header_from domains of a domain under which nothing is counted; `day` is the first that is kept. */
  async expireNames(domain: number, day: number): Promise<void> {
    const { store } = this.deps;
    for await (const names of this.#pages((after) => store.namesBefore(domain, after, day, NAMES_AT_ONCE))) {
      await this.runtime.db.commit((tx) => {
        for (const name of names) if (!store.isCounted(domain, name)) store.removeName(tx, domain, name);
      });
    }
  }

  /** Expires classifications from before a time that apply to no source. */
  async expireClassifications(domain: number, beforeMs: number): Promise<void> {
    const { store } = this.deps;
    const pages = this.#pages((after) => store.classifiedBefore(domain, after, beforeMs, CLASSIFICATIONS_AT_ONCE));
    for await (const keys of pages) {
      const unused = new Set(keys);
      await this.#keepUsedKeys(domain, unused);
      await this.runtime.db.commit((tx) => {
        for (const key of unused) store.removeClassification(tx, domain, key, beforeMs);
      });
    }
  }

  /** Expires reverse names that are due for another lookup soon and that no source needs. */
  async expireReverseNames(): Promise<void> {
    const { store } = this.deps;
    const beforeMs = this.runtime.clock.nowMs() + AHEAD_MS;
    const unused = new Set(store.reverseNamesDue(beforeMs, REVERSE_NAMES_MAX));
    await this.#keepUsedAddresses(unused);
    const expired = [...unused];
    await inSteps(async () => {
      const some = expired.splice(-REMOVED_AT_ONCE);
      await this.runtime.db.commit((tx) => {
        for (const ip of some) store.removeReverseName(tx, ip, beforeMs);
      });
      return some.length;
    }, this.#limits);
  }

  /** Pages of texts in their order, each after the last one of the page before. */
  #pages(read: (after: string) => string[]) {
    return pagesOf({ start: "", read, positionOf: (text) => text }, this.#limits);
  }

  /** Removes the keys from a set that some source has, or may have after further DNS lookups of its address. */
  async #keepUsedKeys(domain: number, keys: Set<string>) {
    const { store, keysOf } = this.deps;
    let isOneUnnamed = false;
    const read = (after: string) => store.sourcesAfter(domain, after, ROWS_READ_AT_ONCE);
    for await (const sources of pagesOf({ start: "", read, positionOf: ({ key }) => key }, this.#limits)) {
      for (const { key, address } of sources) {
        if (keys.size === 0) return;
        for (const used of keysOf(key, address)) keys.delete(used);
        if (address === null) continue;
        // A classification of a network applies to all addresses in it.
        for (const used of keysOf(key, { ...address, name: null, isConfirmed: false })) keys.delete(used);
        isOneUnnamed ||= !address.isConfirmed;
      }
    }
    // A reverse name may be missing for a week, and with it the key.
    if (isOneUnnamed) for (const key of keys) if (!NAMELESS.test(key)) keys.delete(key);
  }

  /** Removes the addresses from a set that some source has. */
  async #keepUsedAddresses(ips: Set<string>) {
    if (ips.size === 0) return;
    const read = (after: number) => this.deps.store.addressesAfter(after, ROWS_READ_AT_ONCE);
    for await (const some of pagesOf({ start: 0, read, positionOf: ({ number }) => number }, this.#limits)) {
      for (const { ip } of some) if (ip !== null) ips.delete(ip);
      if (ips.size === 0) return;
    }
  }

  get #limits(): StepLimits {
    return {
      isStopping: () => {
        if (this.#isStopping) throw new RetentionStopped();
        return false;
      },
    };
  }
}
