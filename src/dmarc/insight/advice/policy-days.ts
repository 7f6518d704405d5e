import { DAY_MS, type DayRange, dayOfTime } from "../../../foundation/base/days.ts";
import { historyBodySchema, type StatePolicy } from "../../records/domains/domain-state.ts";
import type { DomainRow, DomainStore, HistoryRow } from "../../records/domains/domain-store.ts";
import type { RollupStore } from "../sources/rollup-store.ts";

export interface PolicyStores {
  /** Of the reports on which decisions rely only: others must not change a policy. */
  readonly reading: RollupStore;
  /** The history of the DNS. Without it the policy counts as published at the last change of anything about the domain. */
  readonly domains?: Pick<DomainStore, "listHistory">;
}

const HISTORY_ROWS_AT_ONCE = 50;
/** A domain whose DNS changes more often has had its policy since the oldest of these rows. */
const HISTORY_PAGES_MAX = 20;
/** The most days for which a policy counts. */
export const LONG_DAYS = 90;

interface PolicyDays {
  readonly policy: StatePolicy | null;
  /** Days with reports. */
  readonly days: readonly number[];
  readonly window: DayRange;
}

/** Since when the present policy is published, or longer than mail is looked at. */
const policySince = (
  { domains }: Pick<PolicyStores, "domains">,
  domain: DomainRow,
  { policy, window }: Pick<PolicyDays, "policy" | "window">,
): number => {
  const fromMs = (window.toDay - LONG_DAYS) * DAY_MS;
  return domains === undefined ? domain.updatedAtMs : policySinceMs(domains, domain, { policy, fromMs });
};

/** How many days with reports had the present policy published for the whole day, and since which day it is known to be. */
export const findPolicyDays = (options: PolicyStores, domain: DomainRow, { policy, days, window }: PolicyDays) => {
  const sinceDay = dayOfTime(policySince(options, domain, { policy, window }));
  const imported = importedDays(options, domain, { policy, days, window });
  const found = days.filter((day) => day > sinceDay || imported.has(day));
  return { policyDays: found.length, policyDay: Math.min(sinceDay, ...found.slice(0, 1)) };
};

/**
 * Since when the policy (`p` and `t`) was published without a change: the oldest of the newest rows of the history that have it, but not
 * before `fromMs`. Without a history that is the enrolment. Where the newest row has another policy, the present one was published
 * later, at an unknown time.
 */
const policySinceMs = (
  domains: Pick<DomainStore, "listHistory">,
  { number, createdAtMs }: DomainRow,
  { policy, fromMs }: { readonly policy: StatePolicy | null; readonly fromMs: number },
): number => {
  let sinceMs = createdAtMs;
  let before: string | null = null;
  let isNewest = true;
  for (let page = 0; page < HISTORY_PAGES_MAX; page++) {
    const rows: HistoryRow[] = domains.listHistory(number, { before, limit: HISTORY_ROWS_AT_ONCE });
    for (const row of rows) {
      if (!hasPolicy(row, policy)) return isNewest ? row.atMs : sinceMs;
      isNewest = false;
      sinceMs = row.atMs;
      if (sinceMs <= fromMs) return sinceMs;
    }
    before = rows.at(-1)?.id ?? null;
    if (rows.length < HISTORY_ROWS_AT_ONCE) break;
  }
  return sinceMs;
};

const historyPolicySchema = historyBodySchema.pick({ policy: true });

const hasPolicy = ({ body }: HistoryRow, policy: StatePolicy | null) => {
  const read = historyPolicySchema.safeParse(JSON.parse(body));
  return read.success && read.data.policy?.p === policy?.p && read.data.policy?.t === policy?.t;
};

/**
 * Days before the enrolment whose reports found the present policy and no other one; the DNS was not checked then. Reports do not give
 * `t`, which older reporters do not know.
 */
const importedDays = (
  { reading }: PolicyStores,
  { number, domain, createdAtMs }: DomainRow,
  { policy, window: { fromDay } }: PolicyDays,
) => {
  const enrolledDay = dayOfTime(createdAtMs);
  if (policy === null || policy.t === "y" || enrolledDay < fromDay) return new Set();
  const found = reading.reportedPolicies(number, { fromDay, toDay: enrolledDay }, domain);
  return new Set(found.flatMap(({ day, policies }) => (policies === policy.p ? [day] : [])));
};
