import { isoTime } from "../../base/clock.ts";
import { DAY_MS, dayOfTime, isoDay } from "../../base/days.ts";
import type { Tx } from "../../db/open.ts";
import { isEnforced } from "../domains/dns-changes.ts";
import { historyBodySchema, readState, recordOf, type StatePolicy } from "../domains/domain-state.ts";
import type { DomainRow, DomainStore } from "../domains/domain-store.ts";
import { policyView } from "../domains/domain-view.ts";
import type { Alert, RaiseAlert } from "../domains/raise.ts";
import type { PublishedPolicy } from "../report/report.ts";
import type { PolicyKeyword } from "../report/report-values.ts";
import type { PolicyLapseStore, ReportedPolicy } from "./policy-lapse-store.ts";

/** Days on which reporters found a weaker policy than the service ever did. */
export interface PolicyLapse {
  readonly firstDay: number;
  readonly lastDay: number;
  /** The weakest policy found, and who found one that is weaker than it should be; sorted. */
  readonly policy: PublishedPolicy;
  readonly reporters: readonly string[];
}

/** What a domain's policy is, and since when. */
export interface OwnPolicy {
  readonly p: PolicyKeyword;
  /** Since when the service believes no weaker one. */
  readonly sinceMs: number;
}

/** Days of reports that are looked at. */
const WINDOW_DAYS = 14;
/** A lapse that began earlier is no news. */
const ALERT_DAYS = 7;
/** Receivers may apply the policy from before a change as long as their caches hold it, and report about the day of the change. */
const SETTLED_MS = 3 * DAY_MS;
const HISTORY_MAX = 100;
const REPORTERS_TOLD_MAX = 10;
const ORDER: readonly PolicyKeyword[] = ["none", "quarantine", "reject"];

const strengthOf = (p: PolicyKeyword): number => ORDER.indexOf(p);

/**
 * The lapses that reports prove: a reporter that found the policy as it is before found a weaker one on a later day, and the
 * service did not see that change. Pure. Runs of days with a day between them at most are one lapse, the newest first.
 */
export const findLapses = (own: OwnPolicy, reported: readonly ReportedPolicy[]): readonly PolicyLapse[] => {
  const isWeak = ({ policy }: ReportedPolicy): boolean => policy.p !== null && strengthOf(policy.p) < strengthOf(own.p);
  const soundSince = new Map<string, number>();
  for (const one of reported) {
    if (one.policy.p === null || isWeak(one)) continue;
    soundSince.set(one.reporter, Math.min(one.endMs, soundSince.get(one.reporter) ?? one.endMs));
  }
  const weak = reported
    .filter((one) => isWeak(one) && one.beginMs >= own.sinceMs + SETTLED_MS)
    .filter(({ reporter, endMs }) => (soundSince.get(reporter) ?? Number.POSITIVE_INFINITY) < endMs)
    .toSorted((a, b) => b.day - a.day);
  const runs: ReportedPolicy[][] = [];
  for (const one of weak) {
    const run = runs.at(-1);
    const earliest = run?.at(-1)?.day;
    if (run === undefined || earliest === undefined || earliest - one.day > 2) runs.push([one]);
    else run.push(one);
  }
  return runs.flatMap((run) => lapseOf(run) ?? []);
};

const lapseOf = (run: readonly ReportedPolicy[]): PolicyLapse | null => {
  const [weakest] = run.toSorted((a, b) => strengthOf(a.policy.p ?? "none") - strengthOf(b.policy.p ?? "none"));
  if (weakest === undefined) return null;
  const days = run.map(({ day }) => day);
  return {
    firstDay: Math.min(...days),
    lastDay: Math.max(...days),
    policy: weakest.policy,
    reporters: [...new Set(run.map(({ reporter }) => reporter))].toSorted(),
  };
};

export interface PolicyLapseDeps {
  readonly store: PolicyLapseStore;
  readonly domains: Pick<DomainStore, "listHistory">;
  readonly raise: RaiseAlert;
}

const SUBJECT = "reports:";

/**
 * Looks through the reports of a domain with an enforced policy for lapses that came and went between two looks at the DNS, and
 * alerts to each once, as `policy_weakened`. To be run in one transaction.
 */
export const createPolicyLapseReview = ({ store, domains, raise }: PolicyLapseDeps) => {
  /** Since when no weaker `p` was believed. */
  const heldSinceMs = (number: number, p: PolicyKeyword, nowMs: number): number => {
    let sinceMs = nowMs;
    for (const { body, atMs } of domains.listHistory(number, { before: null, limit: HISTORY_MAX })) {
      const { policy } = historyBodySchema.parse(JSON.parse(body));
      if (policy === null || strengthOf(policy.p) < strengthOf(p)) break;
      sinceMs = atMs;
    }
    return sinceMs;
  };

  return (tx: Tx, domain: DomainRow, nowMs: number): void => {
    const state = readState(domain.state);
    const policy = state?.believed.policy ?? null;
    // A doubt is settled by the next look at the DNS, which alerts by itself.
    if (state === null || policy === null || !policy.own || policy.p === "none" || !isEnforced(policy)) return;
    if (state.doubts.policy !== undefined) return;
    const today = dayOfTime(nowMs);
    const range = { fromDay: today - WINDOW_DAYS, toDay: today };
    const reported = store.reportedPolicies(domain.number, range, domain.domain);
    if (!reported.some(({ policy: { p } }) => p !== null && strengthOf(p) < strengthOf(policy.p))) return;
    const own = { p: policy.p, sinceMs: heldSinceMs(domain.number, policy.p, nowMs) };
    const told = store.toldLapses(domain.number, nowMs - 2 * WINDOW_DAYS * DAY_MS).map(dayOfSubject);
    for (const lapse of findLapses(own, reported)) {
      const isTold = told.some((day) => day >= lapse.firstDay - 2 && day <= lapse.lastDay + 2);
      if (isTold || lapse.firstDay < today - ALERT_DAYS) continue;
      raise(tx, domain, lapseAlert(lapse, policy, { record: recordOf(state.believed), nowMs }), nowMs);
    }
  };
};

const dayOfSubject = (subject: string): number => dayOfTime(Date.parse(subject.slice(SUBJECT.length)));

const lapseAlert = (
  { firstDay, lastDay, policy: found, reporters }: PolicyLapse,
  own: StatePolicy,
  { record, nowMs }: { readonly record: string | null; readonly nowMs: number },
): Alert => {
  const [first, last] = [isoDay(firstDay), isoDay(lastDay)];
  const p = found.p ?? "none";
  const sp = found.sp ?? p;
  const weaker: StatePolicy = {
    ...own,
    p,
    sp,
    np: found.np ?? sp,
    t: found.testing === true ? "y" : "n",
    pct: found.pct ?? 100,
  };
  const names = reporters.map((name) => (name === "" ? "a reporter without a name" : name));
  const others = names.length > 1 ? ` and ${names.length - 1} more` : "";
  const when = first === last ? `on ${first}` : `from ${first} to ${last}`;
  return {
    rule: "policy_weakened",
    subject: `${SUBJECT}${first}`,
    data: {
      previous_policy: policyView(own),
      policy: policyView(weaker),
      record,
      trigger: "reports",
      checked_at: isoTime(nowMs),
      reported: { first_day: first, last_day: last, reporters: names.slice(0, REPORTERS_TOLD_MAX) },
    },
    summary: `receivers found p=${p} instead of p=${own.p} ${when}, as ${names[0] ?? ""}${others} reported`,
    cooldown: false,
  };
};
