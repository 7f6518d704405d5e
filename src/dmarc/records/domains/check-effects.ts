import { isoTime } from "../../../foundation/base/clock.ts";
import { sha256 } from "../../../foundation/base/secrets.ts";
import { organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { appliesBelow, isEnforced, confirmChanges, type ChangeConfidence } from "./dns-changes.ts";
import {
  type ChangeCode,
  type DnsCheck,
  type Unconfirmed,
  type HistoryBody,
  readState,
  recordOf,
  type DnsObservation,
  OBSERVED_FIELDS,
  type StatePolicy,
  CONFIRMATION_MS,
  nextStatus,
  nextDnsCheckMs,
  type Trigger,
} from "./domain-state.ts";
import { type DnsCheckResult, storedCheckOf } from "./publication.ts";
import type { DomainChange, DomainRow, DomainStatus } from "./domain-store.ts";
import type { Alert } from "./alert-store.ts";

/** What a check changes. */
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

/** Changes that the alert `record_changed` reports. */
const RECORD_CHANGES: ReadonlySet<ChangeCode> = new Set([
  "record_added",
  "record_removed",
  "record_changed",
  "reporting_address_removed",
  "authorisation_lost",
]);
const SUBJECT_CHARACTERS = 16;

/**
 * What follows from one DNS check. Pure. Only definite responses change anything. A change for the worse that a scheduled check finds
 * counts when a second check confirms it; one that a user's check finds counts immediately.
 */
export const effectsOfCheck = (
  row: DomainRow,
  result: DnsCheckResult,
  { trigger, nowMs, enforcedEveryMs }: Timing,
): CheckEffects => {
  const before = readState(row.state);
  const failing = failingOf(result, before?.failing ?? []);
  // After the clock was set back, the time must not be in the future.
  const sinceMs = failing.length === 0 || row.badSinceMs === null ? null : Math.min(row.badSinceMs, nowMs);
  const { status, badSinceMs } = nextStatus({ ...row, badSinceMs: sinceMs }, result.outcome, { trigger, nowMs });
  const isMoved = status !== row.status;
  const isOrganisational = organisationalDomain(row.domain) === row.domain;
  const confidence = confidenceIn({ trigger, from: row.status, to: status });
  const confirmed = confirmChanges(before, result.observed, { confidence, isOrganisational, nowMs });
  const state = confirmed.state && { ...confirmed.state, failing: badSinceMs === null ? [] : failing };
  const changes: readonly ChangeCode[] = isMoved ? [...confirmed.changes, "status"] : confirmed.changes;
  const isFirst = before === null && state !== null;
  const timing = {
    ...row,
    status,
    badSinceMs,
    unconfirmedSinceMs: unconfirmedSince(badSinceMs, state?.doubts ?? {}, nowMs),
    isIndefinite: OBSERVED_FIELDS.some((field) => !(field in result.observed)),
    enforcedEveryMs: isEnforced(state?.believed.policy) ? enforcedEveryMs : null,
  };
  const known = state?.believed ?? {};
  return {
    change: {
      status,
      badSinceMs,
      state: state === null ? null : JSON.stringify(state),
      lastCheck: JSON.stringify(storedCheckOf(result, nowMs)),
      nextCheckAtMs: nextDnsCheckMs(timing, nowMs),
      ...(changes.length > 0 ? { updatedAtMs: nowMs } : {}),
    },
    history:
      isFirst || changes.length > 0
        ? {
            status,
            previous_status: row.status,
            record: recordOf(known),
            policy: known.policy ?? null,
            checks: [...result.checks],
            changes: [...changes],
          }
        : null,
    alerts: alertsOf({
      row,
      status,
      result,
      changes,
      isOrganisational,
      trigger,
      nowMs,
      before: before?.believed ?? {},
      after: known,
    }),
  };
};

/** Since when the oldest change waits that a second check can still confirm; older ones wait for a response. */
const unconfirmedSince = (badSinceMs: number | null, doubts: Unconfirmed, nowMs: number): number | null => {
  const waiting = [...Object.values(doubts), ...(badSinceMs === null ? [] : [badSinceMs])];
  const fresh = waiting.filter((sinceMs) => nowMs - sinceMs < CONFIRMATION_MS);
  return fresh.length === 0 ? null : Math.min(...fresh);
};

/**
 * The result of a user's check counts without confirmation, and so does what makes a new domain active, because its owner has just published
 * it. When a domain becomes active again, a name server may still be behind.
 */
const confidenceIn = ({
  trigger,
  from,
  to,
}: {
  trigger: Trigger;
  from: DomainStatus;
  to: DomainStatus;
}): ChangeConfidence => {
  if (trigger !== "scheduled" || (from === "pending" && to === "active")) return "all";
  return from !== to && to === "active" ? "all_but_weaker" : "confirmed";
};

/** The checks that failed, and those that failed before and have no response now. */
const failingOf = ({ checks }: DnsCheckResult, before: readonly DnsCheck["code"][]) =>
  checks.flatMap(({ code, ok }) => (ok === false || (ok === null && before.includes(code)) ? [code] : []));

interface AlertFacts extends When {
  readonly row: DomainRow;
  readonly status: DomainRow["status"];
  readonly result: DnsCheckResult;
  readonly changes: readonly ChangeCode[];
  readonly isOrganisational: boolean;
  readonly before: DnsObservation;
  readonly after: DnsObservation;
}

const alertsOf = (facts: AlertFacts): readonly Alert[] => {
  const { row, status, changes } = facts;
  const alerts: Alert[] = changes.includes("status") ? [statusAlert(facts)] : [];
  // The owner has just published it.
  if (row.status === "pending" && status === "active") return alerts;
  if (changes.some((code) => RECORD_CHANGES.has(code))) alerts.push(recordAlert(facts));
  if (changes.includes("policy_weakened")) alerts.push(policyAlert(facts));
  return alerts;
};

const statusAlert = ({ row, status, result, trigger, nowMs }: AlertFacts): Alert => {
  const failed = result.checks.find(({ ok }) => ok === false);
  return {
    rule: "status_changed",
    subject: status,
    data: { previous_status: row.status, status, trigger, checks: result.checks, checked_at: isoTime(nowMs) },
    summary:
      failed === undefined
        ? `status changed from ${row.status} to ${status}`
        : `${failed.message.replace(/\.$/, "")} (status ${status}, was ${row.status})`,
    cooldown: false,
  };
};

/** Identifies a change by its states before and after. Each confirmed change is alerted. */
const subjectOf = (change: readonly unknown[]) => sha256(JSON.stringify(change)).slice(0, SUBJECT_CHARACTERS);

const recordAlert = ({ changes, before, after, trigger, nowMs }: AlertFacts): Alert => {
  const [previous_record, record] = [recordOf(before), recordOf(after)];
  const codes = changes.filter((code) => code !== "status");
  return {
    rule: "record_changed",
    subject: subjectOf([codes, before.records, before.authorisation, after.records, after.authorisation]),
    data: { changes: codes, previous_record, record, trigger, checked_at: isoTime(nowMs) },
    summary: codes.flatMap((code) => (code === "policy_weakened" ? [] : [SENTENCES[code]])).join(", "),
    cooldown: false,
  };
};

const policyAlert = ({ before, after, isOrganisational, trigger, nowMs }: AlertFacts): Alert => {
  const [previous, policy] = [before.policy ?? null, after.policy ?? null];
  return {
    rule: "policy_weakened",
    subject: subjectOf([previous, policy]),
    data: {
      previous_policy: previous,
      policy,
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
  record_removed: "the DMARC record was removed",
  record_changed: "the DMARC record was changed",
  reporting_address_removed: "the reporting address is no longer in the record",
  reporting_address_added: "the reporting address is in the record",
  authorisation_lost: "receivers may no longer send reports to the report host",
  authorisation_gained: "receivers may send reports to the report host",
};

const written = (policy: StatePolicy | null, isOrganisational: boolean) => {
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
