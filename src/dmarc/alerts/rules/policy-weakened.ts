import { mostFirst } from "../../../foundation/base/sums.ts";
import { z } from "zod";
import { dayField } from "../../../foundation/http/schema-fields.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { DAY_MS, dayOfTime, isoDay } from "../../../foundation/base/days.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { action, shortName } from "../../../notifications/mail/mail-content.ts";
import { isEnforced, isWeaker as isWeakerPolicy } from "../../records/domains/dns-changes.ts";
import {
  historyBodySchema,
  POLICY_EXAMPLE,
  policySchema,
  readState,
  recordOf,
  type StatePolicy,
} from "../../records/domains/domain-state.ts";
import type { Alert } from "../../records/domains/alert-store.ts";
import type { DmarcPolicy } from "../../records/record/record-values.ts";
import type { PublishedPolicy } from "../../reports/report/report.ts";
import { alertRule, domainLink, texts } from "./alert-rule.ts";
import type { ReportedPolicy } from "./alert-rule-store.ts";
import { MONITORING_RECORD, recordField } from "./record-changed.ts";
import { ALERT_DAYS, NO_ALERTS, type ReviewFacts, type RuleResult } from "./review-facts.ts";
import { CHECK_FIELDS_EXAMPLE, CHECK_FIELDS } from "./status-changed.ts";

/** Days on which reporters found a weaker policy than the DNS checks ever did. */
interface PolicyLapse {
  readonly firstDay: number;
  readonly lastDay: number;
  /** The weakest policy found. */
  readonly policy: PublishedPolicy;
  /** Who found a policy that is too weak; sorted. */
  readonly reporters: readonly string[];
}

/** The policy of a domain by the DNS checks. */
export interface OwnPolicy {
  readonly p: DmarcPolicy;
  /** Since when the checks found no weaker one. */
  readonly sinceMs: number;
}

/** Days of reports that are read. */
const WINDOW_DAYS = 14;
/** Receivers may apply the policy from before a change while they have it cached, and report about the day of the change. */
const CHANGE_MS = 3 * DAY_MS;
/** Days between two findings of one lapse. */
const GAP_DAYS = 2;
const HISTORY_MAX = 100;
const REPORTERS_MAX = 10;
const STRENGTHS: readonly DmarcPolicy[] = ["none", "quarantine", "reject"];
const SUBJECT = "reports:";

const strengthOf = (p: DmarcPolicy) => STRENGTHS.indexOf(p);

/** Lapses of an enforced policy that began and ended between two DNS checks, as reports prove them; each once, as `policy_weakened`. */
const findPolicyLapses = (facts: ReviewFacts): RuleResult => {
  const { domain, nowMs, today, rules } = facts;
  const state = readState(domain.state);
  const policy = state?.believed.policy ?? null;
  if (state === null || policy === null || !policy.own || policy.p === "none" || !isEnforced(policy)) return NO_ALERTS;
  // A change that is to be confirmed is decided by the next DNS check, which raises the alert itself.
  if (state.doubts.policy !== undefined) return NO_ALERTS;
  const range = { fromDay: today - WINDOW_DAYS, toDay: today };
  const reported = rules.reportedPolicies(domain.number, range, domain.domain);
  if (!reported.some((one) => isWeaker(one, policy.p))) return NO_ALERTS;
  const alerted = rules
    .alertedLapses(domain.number, nowMs - 2 * WINDOW_DAYS * DAY_MS)
    .map((subject) => dayOfTime(Date.parse(subject.slice(SUBJECT.length))));
  const record = recordOf(state.believed);
  const alerts = findLapses({ p: policy.p, sinceMs: heldSinceMs(facts, policy.p) }, reported)
    .filter(({ firstDay }) => firstDay >= today - ALERT_DAYS)
    .filter(({ firstDay, lastDay }) => !alerted.some((day) => day >= firstDay - GAP_DAYS && day <= lastDay + GAP_DAYS))
    .map((lapse) => lapseAlert(lapse, policy, { record, nowMs }));
  return { alerts };
};

const data = z.object({
  previous_policy: policySchema.nullable().describe("The policy before; null when there was none."),
  policy: policySchema.nullable().describe("The weaker policy; null when there is none."),
  record: recordField,
  checked_at: CHECK_FIELDS.checked_at,
  trigger: z
    .enum(["enrolled", "scheduled", "manual", "reports"])
    .describe(
      "`reports`: trusted reports say that receivers found a weaker policy between two checks; `record` is what the last check found.",
    ),
  reported: z
    .object({
      first_day: dayField("First day on which reporters found the weaker policy."),
      last_day: dayField("Last day on which reporters found the weaker policy."),
      reporters: z.array(z.string()).describe("The reporters that found it."),
    })
    .optional()
    .describe("With `trigger` `reports`: who found the weaker policy, and when."),
});
type Weakened = z.output<typeof data>;

/** Raised by checks of the DNS, too: see `check-effects.ts`. */
export const POLICY_WEAKENED = alertRule({
  name: "policy_weakened",
  words: "Policy weakened",
  description: "The policy became weaker, in the DNS or in reports.",
  summary: "The policy of a domain protects less than before",
  title: "the DMARC policy was weakened",
  incident: () => ({ about: [], ends: false, severity: "high" }),
  data,
  example: {
    ...CHECK_FIELDS_EXAMPLE,
    previous_policy: POLICY_EXAMPLE,
    policy: { ...POLICY_EXAMPLE, p: "none", sp: "none", np: "none" },
    record: MONITORING_RECORD,
  },
  review: findPolicyLapses,
  mail: ({ trigger, record, reported }, domain) => {
    const found = reported === undefined ? [] : [`Found by: ${reported.reporters.map(shortName).join(", ")}`];
    return [
      texts(...found, `Record at the last check: ${record ?? "none"}`),
      action(
        trigger === "reports"
          ? "The weaker record was published between two checks. If you did not publish it, find out who can change your DNS, and whether all name servers of the domain serve the same record."
          : "More forged mail is delivered now. If you did not make this change, publish the previous record again. It is in the history.",
      ),
      domainLink(domain, "record", "Show the history of the record"),
    ];
  },
  open: {
    days: 14,
    isSaidByStatus: true,
    topics: () => [""],
    // A weakening that reports found between two checks is no longer visible in the DNS.
    holds: ({ domain, state, data: { trigger, previous_policy: before } }) => {
      const now = readState(state)?.believed.policy;
      const isOrganisational = organisationalDomain(domain) === domain;
      return trigger === "reports" || now === undefined || isWeakerPolicy(before, now, isOrganisational);
    },
    attention: (weakened, { domain, path }) => ({
      severity: "bad",
      label: "Policy",
      title: `The policy of ${domain} was weakened${changeWords(weakened)}`,
      detail: weakenedDetail(weakened),
      action: { text: "Show the record", path: `${path}/record` },
    }),
  },
});

/** Since when the DNS checks found no weaker `p`. */
const heldSinceMs = ({ domain, domains, nowMs }: ReviewFacts, p: DmarcPolicy) => {
  let sinceMs = nowMs;
  for (const { body, atMs } of domains.listHistory(domain.number, { before: null, limit: HISTORY_MAX })) {
    const { policy } = historyBodySchema.parse(JSON.parse(body));
    if (policy === null || strengthOf(policy.p) < strengthOf(p)) break;
    sinceMs = atMs;
  }
  return sinceMs;
};

const isWeaker = ({ policy }: ReportedPolicy, p: DmarcPolicy) =>
  policy.p !== null && strengthOf(policy.p) < strengthOf(p);

/**
 * The lapses that reports prove: a reporter that found the policy, or a stronger one, found a weaker one on a later day. Findings with
 * at most a day between them are one lapse, the newest first. Pure.
 */
export const findLapses = (own: OwnPolicy, reported: readonly ReportedPolicy[]): readonly PolicyLapse[] => {
  const soundSince = new Map<string, number>();
  for (const one of reported) {
    if (one.policy.p === null || isWeaker(one, own.p)) continue;
    soundSince.set(one.reporter, Math.min(one.endMs, soundSince.get(one.reporter) ?? one.endMs));
  }
  const weak = reported
    .filter((one) => isWeaker(one, own.p) && one.beginMs >= own.sinceMs + CHANGE_MS)
    .filter(({ reporter, endMs }) => (soundSince.get(reporter) ?? Number.POSITIVE_INFINITY) < endMs)
    .toSorted(mostFirst("day"));
  const lapses: PolicyLapse[] = [];
  for (const { day, policy, reporter } of weak) {
    const lapse = lapses.at(-1);
    if (lapse === undefined || lapse.firstDay - day > GAP_DAYS) {
      lapses.push({ firstDay: day, lastDay: day, policy, reporters: [reporter] });
      continue;
    }
    const isWeakest = strengthOf(policy.p ?? "none") < strengthOf(lapse.policy.p ?? "none");
    lapses[lapses.length - 1] = {
      ...lapse,
      firstDay: day,
      policy: isWeakest ? policy : lapse.policy,
      reporters: [...new Set([...lapse.reporters, reporter])].toSorted(),
    };
  }
  return lapses;
};

const lapseAlert = (
  { firstDay, lastDay, policy: found, reporters }: PolicyLapse,
  own: StatePolicy,
  { record, nowMs }: { readonly record: string | null; readonly nowMs: number },
): Alert => {
  const [first, last] = [isoDay(firstDay), isoDay(lastDay)];
  const p = found.p ?? "none";
  const sp = found.sp ?? p;
  const t = found.testing === true ? "y" : "n";
  const weaker: StatePolicy = { ...own, p, sp, np: found.np ?? sp, t, pct: found.pct ?? 100 };
  const names = reporters.map((name) => (name === "" ? "a reporter without a name" : name));
  const others = names.length > 1 ? ` and ${names.length - 1} more` : "";
  const when = first === last ? `on ${first}` : `from ${first} to ${last}`;
  const lapse: Weakened = {
    previous_policy: own,
    policy: weaker,
    record,
    trigger: "reports",
    checked_at: isoTime(nowMs),
    reported: { first_day: first, last_day: last, reporters: names.slice(0, REPORTERS_MAX) },
  };
  return {
    rule: "policy_weakened",
    subject: `${SUBJECT}${first}`,
    data: lapse,
    summary: `receivers found p=${p} instead of p=${own.p} ${when}, reported by ${names[0] ?? ""}${others}`,
    cooldown: false,
  };
};

const policyWords = (policy: StatePolicy | null) => {
  if (policy === null) return "no record";
  return `p=${policy.p}${policy.t === "y" ? " in test mode (t=y)" : ""}`;
};

/** Empty where the change is in other tags than `p` and `t`. */
const changeWords = ({ previous_policy: before, policy }: Weakened) => {
  const [was, is] = [policyWords(before), policyWords(policy)];
  return was === is ? "" : `: ${was} became ${is}`;
};

const weakenedDetail = ({ trigger, reported, record }: Weakened) => {
  if (trigger !== "reports" || reported === undefined) {
    const now = record === null ? "No record is published now." : `Now published: ${shortName(record)}`;
    return `Receivers deliver more forged mail than before. ${now}`;
  }
  const [first = "a reporter", ...others] = reported.reporters.map(shortName);
  const more = others.length === 0 ? "" : ` and ${others.length} more`;
  return `${first}${more} found it between two of our checks (${reported.first_day} to ${reported.last_day}).`;
};
