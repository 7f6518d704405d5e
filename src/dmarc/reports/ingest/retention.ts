import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { forEachIsolated, inSteps, pagesOf, type StepLimits } from "../../../foundation/base/in-steps.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import { deletedDomainFinding, ingestionConclusion, parseFindings, type StoredFinding } from "./ingestion-finding.ts";
import { type NameRetention, RetentionStopped } from "./retention-names.ts";
import type { AgeCursor, OwnedIngestion, RetainedDomain, RetentionStore } from "./retention-store.ts";

/** What retention uses beside the runtime. */
export interface RetentionParts {
  readonly store: RetentionStore;
  readonly names: NameRetention;
  readonly domains: DomainStore;
  /** Days for which the bytes of ingestions are kept that belong to no domain; null: for ever. */
  readonly unassignedRawDays?: number | null;
}

/** `unassignedRawDays` unless the operator sets it. */
export const RAW_DAYS = 90;
/** Days for which ingestions (longer while their bytes are kept), alerts and changes of records are kept. */
export const HISTORY_DAYS = 400;
/** Rows removed in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_AT_ONCE = 500;
/** Transactions of one run; the next run resumes. */
const CHUNKS_MAX = 20_000;
/** Deleted domains purged in one run. */
const DOMAINS_AT_ONCE = 100;

/** Expires and purges data. Each job works in short transactions and resumes after a crash. */
export class Retention {
  readonly #running = new Set<Promise<unknown>>();
  #isStopping: boolean = false;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly parts: RetentionParts,
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
    this.parts.names.stop();
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
    const isStopping = (): boolean => {
      if (this.#isStopping) throw new RetentionStopped();
      return false;
    };
    return { isStopping, stepsMax: CHUNKS_MAX };
  }

  #beforeMs(days: number): number {
    return this.runtime.clock.nowMs() - days * DAY_MS;
  }

  /** Removes rows until there are none left; false when a run may not remove more. */
  async #untilGone(remove: (tx: Tx) => number): Promise<boolean> {
    const { isComplete } = await inSteps(() => this.runtime.db.commit(remove), this.#limits);
    return isComplete;
  }

  /** Walks through ingestions from the oldest on, and removes something of those that have expired. */
  async #eachAge<R extends AgeCursor & { readonly id: string }>(
    read: (after: AgeCursor) => R[],
    isExpired: (row: R) => boolean,
    remove: (tx: Tx, id: string) => void,
  ): Promise<void> {
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

  async #expireRaw(): Promise<void> {
    const { store } = this.parts;
    const domains = store.domains();
    const byNumber = new Map(domains.map(({ number, rawRetentionDays }) => [number, rawRetentionDays]));
    const byId = new Map(domains.map(({ id, rawRetentionDays }) => [id, rawRetentionDays]));
    const { unassignedRawDays = RAW_DAYS } = this.parts;
    const unassigned = unassignedRawDays ?? Number.POSITIVE_INFINITY;
    const youngestMs = this.#beforeMs(Math.min(unassigned, ...byNumber.values()));
    await this.#eachAge(
      (after) => store.holders(after, youngestMs, ROWS_AT_ONCE),
      (holder) => {
        const days = rawDaysOf(
          { domain: holder.domain, findings: parseFindings(holder) },
          { byNumber, byId, unassigned },
        );
        return holder.receivedAtMs < this.#beforeMs(days);
      },
      (tx, id) => store.removeRaw(tx, id),
    );
  }

  async #expireReports(): Promise<void> {
    const { store, names } = this.parts;
    await this.#eachDomain(store.domains(), (domain) => this.#expireReportsOf(domain));
    await names.expireReverseNames();
  }

  async #expireReportsOf({ number, retentionDays, rawRetentionDays }: RetainedDomain): Promise<void> {
    const { store, names } = this.parts;
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
  async #expireSources(domain: number, day: number): Promise<void> {
    const { store } = this.parts;
    const read = (after: string) => store.sourcesAfter(domain, after, ROWS_AT_ONCE);
    for await (const rows of pagesOf({ start: "", read, positionOf: ({ key }) => key }, this.#limits)) {
      const old = rows.filter(({ lastDay }) => lastDay < day);
      if (old.length === 0) continue;
      await this.runtime.db.commit((tx) => {
        for (const source of old) store.removeSource(tx, source, day);
      });
    }
  }

  async #expireHistory(): Promise<void> {
    const { store } = this.parts;
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
    const { store, domains } = this.parts;
    let purged = 0;
    await this.#eachDomain(domains.deleted(DOMAINS_AT_ONCE), async (domain) => {
      const isEmpty = await this.#untilGone((tx) => store.removeOfDomain(tx, domain.number, ROWS_AT_ONCE));
      if (!isEmpty || !(await this.#purgeIngestions(domain))) return;
      await this.runtime.db.commit((tx) => domains.remove(tx, domain.number));
      purged += 1;
    });
    return purged;
  }

  /**
   * Removes the ingestions that came to the address of a deleted domain or are about it. Of those that are also about a
   * domain that is there, only the findings about the deleted one are removed. False while some are pending: they may be
   * about another domain.
   */
  async #purgeIngestions(domain: DomainRow): Promise<boolean> {
    const { store } = this.parts;
    const isConcerned = (one: OwnedIngestion): boolean =>
      one.domain === domain.number || one.findings?.includes(domain.id) === true;
    let isPending = false;
    let after = "";
    const { isComplete } = await inSteps(async () => {
      const page = await this.runtime.db.commit((tx) => {
        const some = store.ingestionsOf(domain, after, ROWS_AT_ONCE);
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

  #purgePage(tx: Tx, domain: DomainRow, page: readonly OwnedIngestion[]): void {
    const { store } = this.parts;
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

/** Days for which the existing domains keep bytes. */
export interface RawRetention {
  readonly byNumber: ReadonlyMap<number, number>;
  readonly byId: ReadonlyMap<string, number>;
  /** For what belongs to no domain. */
  readonly unassigned: number;
}

/**
 * Days for which the bytes of an ingestion are kept: the longest setting of the domains that it is about. For what is about no
 * domain, the domain decides whose address it came to, if any.
 */
export const rawDaysOf = (
  { domain, findings }: { readonly domain: number | null; readonly findings: readonly StoredFinding[] },
  { byNumber, byId, unassigned }: RawRetention,
): number => {
  const own = (domain === null ? undefined : byNumber.get(domain)) ?? unassigned;
  const days = findings.flatMap(({ domain_id }) => (domain_id === null ? own : (byId.get(domain_id) ?? [])));
  return days.length === 0 ? own : Math.max(...days);
};
