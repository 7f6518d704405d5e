import { isoTime } from "../../base/clock.ts";
import { sha256 } from "../../base/secrets.ts";
import { organisationalDomain } from "../../mail/organisational-domain.ts";
import { appliesBelow, type ChangeCode, isEnforced } from "./dns-changes.ts";
import type { DnsCheckResult } from "./domain-check.ts";
import { policyView } from "./domain-view.ts";
import {
  type DnsCheck,
  type Unconfirmed,
  type HistoryBody,
  type LastCheck,
  readState,
  recordOf,
  type DnsObservation,
  OBSERVED_FIELDS,
  type StatePolicy,
} from "./domain-state.ts";
import type { DomainChange, DomainRow, DomainStatus } from "./domain-store.ts";
import { confirmChanges, type Confidence } from "./confirm-changes.ts";
import type { Alert } from "./raise.ts";
import { CONFIRMATION_MS, nextStatus, nextDnsCheckMs, type Trigger } from "./domain-status.ts";

/** What a check makes of a domain. */
export interface CheckEffects {
  readonly change: DomainChange;
  /** Null when nothing changed. */
  readonly history: HistoryBody | null;
  readonly alerts: readonly Alert[];
}

interface When {
  readonly trigger: Trigger;
  readonly nowMs: number;
}

interface Timing extends When {
  /** How often domains with an enforced policy are checked. */
  readonly enforcedEveryMs: number;
}

/** Changes that are told as `record_changed`. */
const RECORD_CHANGES: ReadonlySet<ChangeCode> = new Set([
  "record_added",
  "record_removed",
  "record_changed",
  "reporting_address_removed",
  "authorisation_lost",
]);
const SUBJECT_CHARACTERS = 16;

/**
 * Draws the conclusion from one look at the DNS. Pure. Only definite answers change anything; what a scheduled check says to the
 * domain's disadvantage is believed when a second one confirms it, what a user's check says at once.
 */
export const effectsOfCheck = (
  row: DomainRow,
  finding: DnsCheckResult,
  { trigger, nowMs, enforcedEveryMs }: Timing,
): CheckEffects => {
  const before = readState(row.state);
  const failing = failingOf(finding, before?.failing ?? []);
  // A clock that was set back must not make it one of the future.
  const sinceMs = failing.length === 0 || row.badSinceMs === null ? null : Math.min(row.badSinceMs, nowMs);
  const { status, badSinceMs } = nextStatus({ ...row, badSinceMs: sinceMs }, finding.verdict, { trigger, nowMs });
  const hasMoved = status !== row.status;
  const isOrganisational = organisationalDomain(row.domain) === row.domain;
  const trust = trustIn({ trigger, from: row.status, to: status });
  const judged = confirmChanges(before, finding.seen, { trust, isOrganisational, nowMs });
  const state = judged.state && { ...judged.state, failing: badSinceMs === null ? [] : failing };
  const changes: readonly ChangeCode[] = hasMoved ? [...judged.changes, "status"] : judged.changes;
  const isFirst = before === null && state !== null;
  const outlook = { ...row, status, badSinceMs, doubtSinceMs: freshest(badSinceMs, state?.doubts ?? {}, nowMs) };
  const known = state?.believed ?? {};
  const rhythm = {
    isIndefinite: OBSERVED_FIELDS.some((field) => !(field in finding.seen)),
    enforcedEveryMs: isEnforced(known.policy) ? enforcedEveryMs : null,
  };
  return {
    change: {
      status,
      badSinceMs,
      state: state === null ? null : JSON.stringify(state),
      lastCheck: JSON.stringify(lastCheckOf(finding, nowMs)),
      // Domains of test keys are not on the timetable.
      nextCheckAtMs: row.mode === "test" ? row.nextCheckAtMs : nextDnsCheckMs({ ...outlook, ...rhythm }, nowMs),
      ...(changes.length > 0 ? { updatedAtMs: nowMs } : {}),
    },
    history:
      isFirst || changes.length > 0
        ? {
            status,
            previous_status: row.status,
            record: recordOf(known),
            policy: known.policy ?? null,
            checks: [...finding.checks],
            changes: [...changes],
          }
        : null,
    alerts: alertsOf({
      ...{ row, status, finding, changes, isOrganisational, trigger, nowMs },
      before: before?.believed ?? {},
      after: known,
    }),
  };
};

export const lastCheckOf = ({ checks, verdict }: DnsCheckResult, nowMs: number): LastCheck => ({
  at: isoTime(nowMs),
  ok: verdict === "indefinite" ? null : verdict === "good",
  checks: [...checks],
});

/** Since when the oldest doubt waits that a second look can still confirm; the others wait for an answer. */
const freshest = (badSinceMs: number | null, doubts: Unconfirmed, nowMs: number): number | null => {
  const waiting = [...Object.values(doubts), ...(badSinceMs === null ? [] : [badSinceMs])];
  const fresh = waiting.filter((sinceMs) => nowMs - sinceMs < CONFIRMATION_MS);
  return fresh.length === 0 ? null : Math.min(...fresh);
};

/**
 * What a user asks for is believed as it is, and so is what makes a new domain active: its owner has just published it. A domain that
 * becomes active again may still be answered by a server that is behind.
 */
const trustIn = ({ trigger, from, to }: { trigger: Trigger; from: DomainStatus; to: DomainStatus }): Confidence => {
  if (trigger !== "scheduled" || (from === "pending" && to === "active")) return "all";
  return from !== to && to === "active" ? "all_but_weaker" : "confirmed";
};

/** The checks that are bad: those that failed, and those that did before and were not answered now. */
const failingOf = ({ checks }: DnsCheckResult, before: readonly DnsCheck["code"][]): DnsCheck["code"][] =>
  checks.flatMap(({ code, ok }) => (ok === false || (ok === null && before.includes(code)) ? [code] : []));

interface AlertFacts extends When {
  readonly row: DomainRow;
  readonly status: DomainRow["status"];
  readonly finding: DnsCheckResult;
  readonly changes: readonly ChangeCode[];
  readonly isOrganisational: boolean;
  readonly before: DnsObservation;
  readonly after: DnsObservation;
}

const alertsOf = (facts: AlertFacts): readonly Alert[] => {
  const { row, status, changes } = facts;
  const alerts: Alert[] = changes.includes("status") ? [statusAlert(facts)] : [];
  // What its owner has just published is no news.
  if (row.status === "pending" && status === "active") return alerts;
  if (changes.some((code) => RECORD_CHANGES.has(code))) alerts.push(recordAlert(facts));
  if (changes.includes("policy_weakened")) alerts.push(policyAlert(facts));
  return alerts;
};

const statusAlert = ({ row, status, finding, trigger, nowMs }: AlertFacts): Alert => {
  const failed = finding.checks.find(({ ok }) => ok === false);
  const why = failed === undefined ? "" : `: ${failed.message.replace(/\.$/, "")}`;
  return {
    rule: "status_changed",
    subject: status,
    data: { previous_status: row.status, status, trigger, checks: finding.checks, checked_at: isoTime(nowMs) },
    summary: `the status is ${status}, was ${row.status}${why}`,
    cooldown: false,
  };
};

/** A change is about what was before as much as about what is now. Each that is believed is told: it was seen twice, or by a user. */
const subjectOf = (change: readonly unknown[]): string => sha256(JSON.stringify(change)).slice(0, SUBJECT_CHARACTERS);

const recordAlert = ({ changes, before, after, trigger, nowMs }: AlertFacts): Alert => {
  const [previous_record, record] = [recordOf(before), recordOf(after)];
  const told = changes.filter((code) => code !== "status");
  return {
    rule: "record_changed",
    subject: subjectOf([told, before.records, before.authorisation, after.records, after.authorisation]),
    data: { changes: told, previous_record, record, trigger, checked_at: isoTime(nowMs) },
    summary: told.flatMap((code) => (code === "policy_weakened" ? [] : [SENTENCES[code]])).join(", "),
    cooldown: false,
  };
};

const policyAlert = ({ before, after, isOrganisational, trigger, nowMs }: AlertFacts): Alert => {
  const [previous, policy] = [before.policy ?? null, after.policy ?? null];
  return {
    rule: "policy_weakened",
    subject: subjectOf([previous, policy]),
    data: {
      previous_policy: policyView(previous),
      policy: policyView(policy),
      record: recordOf(after),
      trigger,
      checked_at: isoTime(nowMs),
    },
    summary: `the policy was weakened from ${written(previous, isOrganisational)} to ${written(policy, isOrganisational)}`,
    cooldown: false,
  };
};

const SENTENCES: Readonly<Record<Exclude<ChangeCode, "status" | "policy_weakened">, string>> = {
  record_added: "a DMARC record was published",
  record_removed: "the DMARC record is gone",
  record_changed: "the DMARC record was changed",
  reporting_address_removed: "the reporting address is no longer in the record",
  reporting_address_added: "the reporting address is in the record",
  authorisation_lost: "receivers may no longer send reports to the report host",
  authorisation_gained: "receivers may send reports to the report host",
};

const written = (policy: StatePolicy | null, isOrganisational: boolean): string => {
  if (policy === null) return "no record";
  const { p, sp, np, t, pct } = policy;
  const isAboutAll = appliesBelow(policy, isOrganisational);
  const parts = [
    `p=${p}`,
    sp === p || !isAboutAll ? "" : `sp=${sp}`,
    np === sp || !isAboutAll ? "" : `np=${np}`,
    t === "y" ? "t=y" : "",
    pct < 100 ? `pct=${pct}` : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
};
