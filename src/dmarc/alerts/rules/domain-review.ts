import type { Tx } from "../../../foundation/db/open.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import type { RaiseAlert } from "../../records/domains/raise.ts";
import { findExcessiveReporters } from "./excessive-reporters.ts";
import { findFailureSpikes } from "./failure-spikes.ts";
import { findNewSources } from "./new-sources.ts";
import { findNewSubdomains } from "./new-subdomains.ts";
import { findPolicyLapses } from "./policy-lapses.ts";
import { ReviewFacts, type ReviewStores } from "./review-facts.ts";
import { findSpoofingCampaign } from "./spoofing.ts";
import { findTlsFailures } from "./tls-failures.ts";

/** The rules about reports, in the order in which their alerts are raised. */
const RULES = [
  // First: the others do not count the reporters that it finds.
  findExcessiveReporters,
  findPolicyLapses,
  findTlsFailures,
  findNewSources,
  findNewSubdomains,
  findFailureSpikes,
  findSpoofingCampaign,
];

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
    for (const rule of RULES) {
      const found = rule(facts);
      for (const alert of found.alerts) raise(tx, domain, alert, nowMs);
      if (found.reviewedSources !== undefined) rules.markSources(tx, found.reviewedSources);
      if (found.reviewedNames !== undefined) rules.markNames(tx, domain.number, found.reviewedNames);
      if (found.reporters !== undefined) rules.markReporters(tx, found.reporters, nowMs);
      isPending ||= found.isPending === true;
    }
    if (!isPending) rules.clearUnreviewed(tx, domain.number);
  };

export type DomainReview = ReturnType<typeof createDomainReview>;
