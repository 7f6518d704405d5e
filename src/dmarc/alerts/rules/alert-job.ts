import { nextTurn } from "../../../foundation/base/clock.ts";
import { forEachIsolated } from "../../../foundation/base/in-steps.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import type { RaiseAlert } from "../../records/domains/alert-store.ts";
import type { SilentDomain } from "./alert-rule-store.ts";
import { findReportsStopped, SILENCE_MS_MIN } from "./reports-stopped.ts";
import { NO_ALERTS, type ReviewStores, ReviewFacts, type RuleResult } from "./review-facts.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { ALERT_RULES } from "./alert-rules.ts";

interface ReviewDeps extends ReviewStores {
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
    private readonly deps: ReviewDeps,
  ) {
    this.#review = createDomainReview(runtime, deps);
    this.#startedMs = runtime.clock.monotonicMs();
  }

  /** Reviews all domains once. A failure of one does not stop the others. */
  async run(): Promise<void> {
    const { rules } = this.deps.all;
    const { clock } = this.runtime;
    await this.#forEachPage(
      (after) => rules.unreviewedDomains(after, DOMAINS_AT_ONCE).map((number) => ({ number })),
      ({ number }) => this.#review(number),
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

/** Of rules without a rank. */
const RANK_LAST = 9;

/** The rules about reports, in the order in which their alerts are raised. */
const REVIEWS = ALERT_RULES.toSorted((a, b) => (a.reviewRank ?? RANK_LAST) - (b.reviewRank ?? RANK_LAST)).flatMap(
  ({ review }) => review ?? [],
);

/** Sources that are marked in one transaction. */
const MARKED_AT_ONCE = 2_000;

const batchesOf = (numbers: readonly number[]): readonly (readonly number[])[] =>
  Array.from({ length: Math.ceil(numbers.length / MARKED_AT_ONCE) }, (_, n) =>
    numbers.slice(n * MARKED_AT_ONCE, (n + 1) * MARKED_AT_ONCE),
  );

/** Whether a rule found more than marks. */
const hasNews = ({ alerts, updates = [], reporters }: RuleResult) =>
  alerts.length + updates.length + (reporters?.excessive.length ?? 0) + (reporters?.ended.length ?? 0) > 0;

/**
 * Reviews a domain for which reports arrived: applies each rule to its facts, raises the alerts and marks what was reviewed. Facts are
 * read outside of transactions; what a rule found is written in one. The domain stays marked as unreviewed while a rule has to look
 * at it again without a new report, and when a report arrived meanwhile.
 */
export const createDomainReview = ({ db, clock }: Pick<Runtime, "db" | "clock">, stores: ReviewDeps) => {
  const { rules } = stores.all;
  const write = (number: number, results: readonly RuleResult[], end: (tx: Tx) => void = () => undefined) =>
    db.commit((tx) => {
      const domain = stores.domains.findByNumber(number);
      if (domain === undefined) return;
      for (const { alerts, updates = [], reviewedSources, reviewedNames, reporters } of results) {
        for (const update of updates) stores.alerts.replaceBody(tx, update);
        for (const alert of alerts) stores.raise(tx, domain, alert, clock.nowMs());
        if (reviewedSources !== undefined) rules.markSources(tx, reviewedSources);
        if (reviewedNames !== undefined) rules.markNames(tx, number, reviewedNames);
        if (reporters !== undefined) rules.markReporters(tx, reporters, clock.nowMs());
      }
      end(tx);
    });

  return async (number: number): Promise<void> => {
    db.transactUnsynced((tx) => rules.beginReview(tx, number));
    const domain = stores.domains.findByNumber(number);
    if (domain === undefined) return;
    const facts = new ReviewFacts(stores, domain, clock.nowMs());
    let isPending = false;
    const marks: RuleResult[] = [];
    for (const review of REVIEWS) {
      const found = await review(facts);
      isPending ||= found.isPending === true;
      // Later rules see what was found before.
      const { reviewedSources = [], ...news } = found;
      if (hasNews(found)) await write(number, [{ ...news, reviewedSources: reviewedSources.slice(0, MARKED_AT_ONCE) }]);
      marks.push(hasNews(found) ? { ...NO_ALERTS, reviewedSources: reviewedSources.slice(MARKED_AT_ONCE) } : found);
      await nextTurn();
    }
    for (const numbers of batchesOf(marks.flatMap(({ reviewedSources = [] }) => reviewedSources)))
      await write(number, [{ ...NO_ALERTS, reviewedSources: numbers }]);
    const others = marks.map(({ reviewedSources: _, ...found }) => found);
    await write(number, others, (tx) => rules.endReview(tx, number, isPending));
  };
};
