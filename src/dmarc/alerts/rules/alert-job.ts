import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainStore, DomainRow } from "../../records/domains/domain-store.ts";
import type { RaiseAlert } from "../../records/domains/alert-store.ts";
import type { SilentDomain } from "./alert-rule-store.ts";
import { findReportsStopped, SILENCE_MS_MIN } from "./reports-stopped.ts";
import { type ReviewStores, ReviewFacts } from "./review-facts.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { ALERT_RULES } from "./alert-rules.ts";

interface AlertJobOptions extends ReviewStores {
  readonly domains: Pick<DomainStore, "findByNumber" | "listHistory">;
  readonly raise: RaiseAlert;
}

const DOMAINS_AT_ONCE = 100;
/** After this service was down, reporters need this long to retry their mail (RFC 5321 §4.5.4.1). */
const RETRY_MS = 6 * 60 * 60_000;

/** The scheduled job for alerts: reviews the domains for which reports arrived, and those for which none arrive any more. */
export class AlertJob {
  readonly #review: ReturnType<typeof createDomainReview>;
  readonly #startedMs: number;
  readonly #stopping = new AbortController();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: AlertJobOptions,
  ) {
    this.#review = createDomainReview(deps, deps.raise);
    this.#startedMs = runtime.clock.monotonicMs();
  }

  /** Reviews all domains once. A failure of one does not stop the others. */
  async run(): Promise<void> {
    const { rules } = this.deps.all;
    const { clock } = this.runtime;
    await this.#forEachPage(
      (after) => rules.unreviewedDomains(after, DOMAINS_AT_ONCE).map((number) => ({ number })),
      ({ number }) => this.#reviewDomain(number),
    );
    if (clock.monotonicMs() - this.#startedMs < RETRY_MS) return;
    await this.#forEachPage(
      (after) => rules.silentDomains(after, clock.nowMs() - SILENCE_MS_MIN, DOMAINS_AT_ONCE),
      (silent) => this.#reviewSilence(silent),
    );
  }

  /** Ends a run after the domain that is being reviewed. */
  stop(): void {
    this.#stopping.abort();
  }

  async #forEachPage<T extends { readonly number: number }>(
    read: (after: number) => readonly T[],
    review: (domain: T) => Promise<void>,
  ) {
    for (let after = 0; !this.#stopping.signal.aborted;) {
      const page = read(after);
      const last = page.at(-1);
      if (last === undefined) return;
      await forEachIsolated(page, review, {
        isStopping: () => this.#stopping.signal.aborted,
        onFailure: ({ number }, error) =>
          this.runtime.log.error("alert rules failed for a domain, will be retried in the next run", {
            number,
            error,
          }),
      });
      after = last.number;
    }
  }

  #reviewDomain(number: number) {
    const { db, clock } = this.runtime;
    return db.commit((tx) => {
      const domain = this.deps.domains.findByNumber(number);
      if (domain !== undefined) this.#review(tx, domain, clock.nowMs());
    });
  }

  async #reviewSilence(silent: SilentDomain) {
    const { db, clock } = this.runtime;
    const { all, domains, raise } = this.deps;
    const alert = findReportsStopped(all.rollups, silent, clock.nowMs());
    if (alert === null) return;
    await db.commit((tx) => {
      const domain = domains.findByNumber(silent.number);
      // A report may have arrived meanwhile.
      if (domain?.lastReportAtMs === silent.lastReportAtMs) raise(tx, domain, alert, clock.nowMs());
    });
  }
}

/** The rules about reports, in the order in which their alerts are raised. */
const REVIEWS = ALERT_RULES.toSorted((a, b) => Number(b.isReviewedFirst ?? 0) - Number(a.isReviewedFirst ?? 0)).flatMap(
  ({ review }) => review ?? [],
);

/**
 * Reviews a domain for which reports arrived: applies each rule to its facts, raises the alerts and marks what was reviewed. Runs in
 * one transaction. The domain stays marked as unreviewed while a rule has to look at it again without a new report.
 */
export const createDomainReview =
  (stores: ReviewStores, raise: RaiseAlert) =>
  (tx: Tx, domain: DomainRow, nowMs: number): void => {
    const facts = new ReviewFacts(stores, domain, nowMs);
    const { rules } = stores.all;
    let isPending = false;
    for (const review of REVIEWS) {
      const found = review(facts);
      for (const update of found.updates ?? []) stores.alerts.replaceBody(tx, update);
      for (const alert of found.alerts) raise(tx, domain, alert, nowMs);
      if (found.reviewedSources !== undefined) rules.markSources(tx, found.reviewedSources);
      if (found.reviewedNames !== undefined) rules.markNames(tx, domain.number, found.reviewedNames);
      if (found.reporters !== undefined) rules.markReporters(tx, found.reporters, nowMs);
      isPending ||= found.isPending === true;
    }
    if (!isPending) rules.clearUnreviewed(tx, domain.number);
  };
