import { mostFirst, sumOf } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { dayField, integerField, nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { formatCount, plural, shortName } from "../../../notifications/mail/mail-content.ts";
import { alertRule, readAlertBody, shareField, shareOf, domainLink, texts } from "./alert-rule.ts";
import type { StoredTlsReport } from "./alert-rule-store.ts";
import { ALERT_DAYS, NO_ALERTS, type ReviewFacts, type RuleResult } from "./review-facts.ts";
import { dayOfTlsReport, knownTlsFailures, sumTlsSessions, tlsFailureText } from "../../reports/report/tls-report.ts";

/** The sessions under one policy on the last days with reports, and those that failed with one result type. */
interface TlsFailures {
  readonly policyDomain: string;
  /** `sts`, `tlsa`, `no-policy-found`, or what the reporter wrote; empty when it did not say. */
  readonly policyType: string;
  readonly resultType: string;
  readonly firstDay: number;
  readonly lastDay: number;
  readonly sessions: number;
  readonly failed: number;
  /** MX hosts that were named, the most failed sessions first. */
  readonly mxHosts: ReadonlyArray<{ readonly host: string; readonly sessions: number }>;
  /** Who reported failures; sorted. */
  readonly reporters: readonly string[];
}

type TlsPolicy = StoredTlsReport["policies"][number];

interface PolicyDay {
  readonly day: number;
  readonly org: string | null;
  readonly policy: TlsPolicy;
}

/** The last days with reports about a policy that are judged together. */
const DAYS_JUDGED = 2;
const FAILED_MIN = 10;
const FAILED_SHARE_MIN = 0.05;
/** Failures have ended below half of the share that begins an incident, so that it does not begin and end in turns. */
const ENDED_SHARE = FAILED_SHARE_MIN / 2;
/** Reports arrive a day or two after the day they are about. */
const LATE_DAYS = 3;
/** Incidents that begin in one review, those with the most failed sessions; the next review continues. */
const BEGAN_MAX = 5;
const HOSTS_MAX = 10;
const REPORTERS_MAX = 10;

const dataSchema = z.object({
  state: z.enum(["began", "ended"]).describe("Whether the failures began or ended."),
  policy_domain: textField("The domain whose policy applied."),
  policy_type: nullableText("`sts`, `tlsa` or `no-policy-found`."),
  result_type: textField("As in RFC 8460 section 4.3; `unspecified` where reports do not say."),
  meaning: textField("What the result type means."),
  advice: textField("What to do."),
  sessions: integerField("All sessions under the policy on the last two days with reports."),
  failed_sessions: integerField("Sessions of these that failed for this reason."),
  failing_share: shareField("`failed_sessions` divided by `sessions`."),
  mx_hosts: z
    .array(z.object({ host: textField("Name of the MX host."), sessions: integerField("Failed sessions with it.") }))
    .describe("MX hosts with failed sessions."),
  reporters: z.array(z.string()).describe("Reporters of the failures."),
  first_day: dayField("First day of the failures."),
  last_day: dayField("Last day that reports are about."),
});
const stateSchema = dataSchema.pick({ state: true, first_day: true });

/** TLS sessions under a policy that begin to fail for a reason, and that no longer do. */
const findTlsFailures = ({ domain, nowMs, rules }: ReviewFacts): RuleResult => {
  const reports = rules.tlsReportsSince(domain.number, nowMs - (ALERT_DAYS + LATE_DAYS) * DAY_MS);
  if (reports.length === 0) return NO_ALERTS;
  const open = new Map(
    rules.lastTlsAlerts(domain.number).flatMap(({ subject, body }) => {
      const read = stateSchema.safeParse(readAlertBody(body).data);
      return read.success && read.data.state === "began" ? [[subject, read.data.first_day] as const] : [];
    }),
  );
  const sums = sumTlsFailures(reports, dayOfTime(nowMs), new Set(open.keys())).toSorted(mostFirst("failed"));
  const began = sums.filter((sum) => judgeTlsFailures(sum) === "failing" && !open.has(subjectOf(sum)));
  const ended = sums.flatMap((sum) => {
    const since = open.get(subjectOf(sum));
    return since !== undefined && judgeTlsFailures(sum) === "ended" ? [endedAlert(sum, since)] : [];
  });
  return { alerts: [...began.slice(0, BEGAN_MAX).map(beganAlert), ...ended] };
};

export const TLS_FAILURES = alertRule({
  name: "tls_failures",
  words: "TLS failures",
  description: "TLS reports contain failures: started, ended.",
  summary: "TLS sessions of servers that deliver mail to a domain begin to fail for a reason, or no longer fail",
  title: (text) =>
    text("state") === "ended"
      ? `inbound TLS sessions no longer fail (${text("meaning")})`
      : `inbound TLS sessions fail, ${text("meaning")}`,
  incident: (text) => ({
    about: [text("policy_domain"), text("policy_type"), text("result_type")],
    ends: text("state") === "ended",
    severity: "medium",
  }),
  data: dataSchema,
  example: {
    state: "began",
    policy_domain: "example.com",
    policy_type: "sts",
    result_type: "certificate-expired",
    meaning: "the certificate has expired",
    advice: "Renew the certificate of the MX host, and make sure that the mail server has loaded the new one.",
    sessions: 1_203,
    failed_sessions: 84,
    failing_share: 0.0698,
    mx_hosts: [{ host: "mx1.example.com", sessions: 84 }],
    reporters: ["Google Inc."],
    first_day: "2025-12-31",
    last_day: "2026-01-01",
  },
  review: findTlsFailures,
  mail: ({ state, advice, policy_type: type, reporters, mx_hosts: hosts }, domain) =>
    state === "ended"
      ? []
      : [
          texts(
            advice,
            ...(type === null ? [] : [`Policy: ${type}`]),
            ...(reporters.length === 0 ? [] : [`Reported by ${reporters.map(shortName).join(", ")}`]),
            ...hosts.map(({ host, sessions }) => `${host}: ${plural(sessions, "session")} failed`),
          ),
          domainLink(domain, "tls", "Show the TLS reports"),
        ],
  open: {
    holds: ({ data: { state } }) => state === "began",
    attention: ({ policy_domain, failed_sessions, sessions, first_day, meaning, advice }, { path }) => ({
      severity: "warn",
      label: "TLS",
      title: `Mail servers cannot deliver to ${shortName(policy_domain)} by TLS`,
      detail: `${formatCount(failed_sessions)} of ${plural(sessions, "session")} failed since ${first_day}: ${meaning}. ${advice}`,
      action: { text: "See the TLS reports", path: `${path}/tls` },
    }),
  },
});

/** Whether failures are an incident, have ended, or are too few to decide. */
export const judgeTlsFailures = ({
  sessions,
  failed,
}: Pick<TlsFailures, "sessions" | "failed">): "failing" | "ended" | "unclear" => {
  if (failed >= FAILED_MIN && failed >= sessions * FAILED_SHARE_MIN) return "failing";
  return sessions > 0 && failed < sessions * ENDED_SHARE ? "ended" : "unclear";
};

/**
 * Sums up what reports say about each policy on the last two days with reports, by result type. `open` are incidents as
 * `policyDomain policyType resultType`: their types are in the result even when nothing failed with them. Pure.
 */
export const sumTlsFailures = (
  reports: readonly StoredTlsReport[],
  today: number,
  open: ReadonlySet<string>,
): readonly TlsFailures[] => {
  const days = reports.flatMap((report) =>
    report.policies.map((policy) => ({ day: dayOfTlsReport(report), org: report.org, policy })),
  );
  const recent = days.filter(({ day, policy }) => policy.domain !== null && day >= today - ALERT_DAYS);
  const byPolicy = Map.groupBy(recent, ({ policy }) => policyKey(policy));
  return [...byPolicy].flatMap(([key, all]) => sumPolicy(key, all, open));
};

const policyKey = ({ domain, policyType }: TlsPolicy) => `${domain ?? ""} ${(policyType ?? "").replace(/\s+/g, "-")}`;

/** The subject of the alerts of an incident. */
const subjectOf = ({ policyDomain, policyType, resultType }: TlsFailures) =>
  `${policyDomain} ${policyType} ${resultType}`;

const sumPolicy = (key: string, all: readonly PolicyDay[], open: ReadonlySet<string>): readonly TlsFailures[] => {
  const last = [...new Set(all.map(({ day }) => day))].toSorted((a, b) => b - a).slice(0, DAYS_JUDGED);
  const judged = all.filter(({ day }) => last.includes(day));
  const failing = judged.flatMap(({ org, policy }) => knownTlsFailures(policy).map((failure) => ({ org, ...failure })));
  const openTypes = [...open].flatMap((subject) =>
    subject.startsWith(`${key} `) ? [subject.slice(key.length + 1)] : [],
  );
  const { successful, failed: allFailed } = sumTlsSessions(judged.map(({ policy }) => policy));
  const [policyDomain = "", policyType = ""] = key.split(" ");
  return [...new Set([...failing.map(({ resultType }) => resultType), ...openTypes])].map((resultType) => {
    const of = failing.filter((failure) => failure.resultType === resultType && failure.sessions > 0);
    return {
      policyDomain,
      policyType,
      resultType,
      sessions: successful + allFailed,
      firstDay: Math.min(...last),
      lastDay: Math.max(...last),
      failed: sumOf(of, "sessions"),
      mxHosts: hostsOf(of),
      reporters: [...new Set(of.flatMap(({ org }) => org ?? []))].toSorted(),
    };
  });
};

const hostsOf = (failures: TlsPolicy["failures"]) => {
  const byHost = Map.groupBy(failures, ({ mxHost }) => mxHost ?? "");
  // Reports stored by older versions name no host.
  byHost.delete("");
  return [...byHost].map(([host, of]) => ({ host, sessions: sumOf(of, "sessions") })).toSorted(mostFirst("sessions"));
};

const dataOf = (failures: TlsFailures, state: "began" | "ended", firstDay: string): z.output<typeof dataSchema> => {
  const { policyDomain, policyType, resultType, sessions, failed, mxHosts, reporters, lastDay } = failures;
  return {
    state,
    policy_domain: policyDomain,
    policy_type: policyType === "" ? null : policyType,
    result_type: resultType,
    ...tlsFailureText(resultType, policyDomain),
    sessions,
    failed_sessions: failed,
    failing_share: shareOf(failed, sessions),
    mx_hosts: mxHosts.slice(0, HOSTS_MAX),
    reporters: reporters.slice(0, REPORTERS_MAX),
    first_day: firstDay,
    last_day: isoDay(lastDay),
  };
};

const beganAlert = (failures: TlsFailures) => {
  const data = dataOf(failures, "began", isoDay(failures.firstDay));
  const [worst] = failures.mxHosts;
  const where = worst === undefined ? "" : ` with ${worst.host}`;
  const count = `${formatCount(failures.failed)} of ${formatCount(failures.sessions)}`;
  const summary = `${count} inbound TLS sessions${where} failed: ${data.meaning}`;
  return { rule: "tls_failures", subject: subjectOf(failures), data, summary, cooldown: false };
};

const endedAlert = (failures: TlsFailures, since: string) => {
  const data = dataOf(failures, "ended", since);
  const summary = `inbound TLS sessions no longer fail as they did since ${since} (${data.meaning})`;
  return { rule: "tls_failures", subject: subjectOf(failures), data, summary, cooldown: false };
};
