import type { Db } from "../../db/open.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { RaiseAlert } from "../domains/raise.ts";
import type { ReviewDomain } from "./alert-review.ts";
import { createPolicyLapseReview } from "./policy-lapse.ts";
import { createPolicyLapseStore } from "./policy-lapse-store.ts";
import { createTlsFailureReview } from "./tls-failure-review.ts";
import { createTlsFailureStore } from "./tls-failure-store.ts";

export interface IncidentReviewDeps {
  readonly db: Db;
  readonly domains: Pick<DomainStore, "listHistory">;
  readonly raise: RaiseAlert;
  /** The review of what was counted, which follows. */
  readonly review: ReviewDomain;
}

/** The whole review of a domain to which reports came: lapses of its policy, failures of TLS, then what was counted. */
export const createIncidentReviews = ({ db, domains, raise, review }: IncidentReviewDeps): ReviewDomain => {
  const reviewPolicy = createPolicyLapseReview({ store: createPolicyLapseStore(db), domains, raise });
  const reviewTls = createTlsFailureReview({ store: createTlsFailureStore(db), raise });
  return (tx, domain, nowMs) => {
    reviewPolicy(tx, domain, nowMs);
    reviewTls(tx, domain, nowMs);
    review(tx, domain, nowMs);
  };
};
