import { z } from "zod";
import { DAY_MS, dayOfTime, isoDay } from "../../base/days.ts";
import type { Tx } from "../../db/open.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import type { Alert, RaiseAlert } from "../domains/raise.ts";
import type { TlsFailureStore } from "./tls-failure-store.ts";
import { tlsFailureWords } from "./tls-failure-words.ts";
import { judgeTlsFailures, subjectOfTls, sumTlsFailures, ALERT_DAYS, type TlsFailures } from "./tls-failures.ts";

export interface TlsFailureDeps {
  readonly store: TlsFailureStore;
  readonly raise: RaiseAlert;
}

/** Incidents that one review tells of, those with the most failed sessions; the next review goes on. */
const BEGAN_MAX = 5;
const HOSTS_TOLD_MAX = 10;
const REPORTERS_TOLD_MAX = 10;
const SHARE_DIGITS = 10_000;
/** Reports arrive a day or two after the day they are about. */
const LATE_DAYS = 3;

const bodySchema = z.object({ data: z.object({ state: z.enum(["began", "ended"]), first_day: z.string() }) });

/**
 * Looks at the TLS reports of a domain: alerts when sessions under a policy begin to fail for a reason, and when that is over. To be
 * run in one transaction.
 */
export const createTlsFailureReview =
  ({ store, raise }: TlsFailureDeps) =>
  (tx: Tx, domain: DomainRow, nowMs: number): void => {
    const reports = store.tlsReportsSince(domain.number, nowMs - (ALERT_DAYS + LATE_DAYS) * DAY_MS);
    if (reports.length === 0) return;
    const open = new Map(
      store.lastTlsAlerts(domain.number).flatMap(({ subject, body }) => {
        const read = bodySchema.safeParse(JSON.parse(body));
        return read.success && read.data.data.state === "began" ? [[subject, read.data.data.first_day] as const] : [];
      }),
    );
    const sums = sumTlsFailures(reports, dayOfTime(nowMs), new Set(open.keys())).toSorted(
      (a, b) => b.failed - a.failed,
    );
    let left = BEGAN_MAX;
    for (const failures of sums) {
      const since = open.get(subjectOfTls(failures));
      const judgement = judgeTlsFailures(failures);
      if (judgement === "failing" && since === undefined && left-- > 0) raise(tx, domain, beganAlert(failures), nowMs);
      if (judgement === "over" && since !== undefined) raise(tx, domain, endedAlert(failures, since), nowMs);
    }
  };

const dataOf = (failures: TlsFailures) => {
  const { policyDomain, policyType, resultType, sessions, failed, mxHosts, reporters, lastDay } = failures;
  const { meaning, advice } = tlsFailureWords(resultType, policyDomain);
  return {
    policy_domain: policyDomain,
    policy_type: policyType === "" ? null : policyType,
    result_type: resultType,
    meaning,
    advice,
    sessions,
    failed_sessions: failed,
    failing_share: sessions === 0 ? 0 : Math.round((failed / sessions) * SHARE_DIGITS) / SHARE_DIGITS,
    mx_hosts: mxHosts.slice(0, HOSTS_TOLD_MAX),
    reporters: reporters.slice(0, REPORTERS_TOLD_MAX),
    last_day: isoDay(lastDay),
  };
};

const beganAlert = (failures: TlsFailures): Alert => {
  const data = dataOf(failures);
  const [worst] = failures.mxHosts;
  const where = worst === undefined ? "" : ` with ${worst.host}`;
  const count = `${failures.failed.toLocaleString("en")} of ${failures.sessions.toLocaleString("en")}`;
  return {
    rule: "tls_failures",
    subject: subjectOfTls(failures),
    data: { state: "began", ...data, first_day: isoDay(failures.firstDay) },
    summary: `${count} inbound TLS sessions${where} failed: ${data.meaning}`,
    cooldown: false,
  };
};

const endedAlert = (failures: TlsFailures, since: string): Alert => {
  const data = dataOf(failures);
  return {
    rule: "tls_failures",
    subject: subjectOfTls(failures),
    data: { state: "ended", ...data, first_day: since },
    summary: `inbound TLS sessions no longer fail as they did since ${since} (${data.meaning})`,
    cooldown: false,
  };
};
