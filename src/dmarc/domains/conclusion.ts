import { isoTime } from "../../base/clock.ts";
import { sha256 } from "../../base/secrets.ts";
import { type ChangeCode, changesBetween, combine, isDoubtful } from "./domain-change.ts";
import type { Finding } from "./domain-check.ts";
import { policyView } from "./domain-view.ts";
import { type DomainState, type HistoryBody, type LastCheck, readState, recordOf, type Seen } from "./domain-state.ts";
import type { DomainChange, DomainRow } from "./domain-store.ts";
import type { Alert } from "./raise.ts";
import { CONFIRMATION_MS, moveStatus, nextCheckMs, type Trigger } from "./transition.ts";

/** What a check makes of a domain. */
export interface Conclusion {
  readonly change: DomainChange;
  /** Null when nothing changed. */
  readonly history: HistoryBody | null;
  readonly alerts: readonly Alert[];
}

interface When {
  readonly trigger: Trigger;
  readonly nowMs: number;
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
export const conclude = (row: DomainRow, finding: Finding, { trigger, nowMs }: When): Conclusion => {
  const before = readState(row.state);
  const { status, badSinceMs } = moveStatus(row, finding.verdict, { trigger, nowMs });
  const hasMoved = status !== row.status;
  const judged = judge(before, finding.seen, { trigger, nowMs, hasMoved });
  const { state } = judged;
  const changes: readonly ChangeCode[] = hasMoved ? [...judged.changes, "status"] : judged.changes;
  const isFirst = before === null && state !== null;
  const doubts = [badSinceMs, state?.doubt?.since_ms ?? null].filter((sinceMs) => sinceMs !== null);
  const outlook = { ...row, status, badSinceMs, doubtSinceMs: doubts.length === 0 ? null : Math.min(...doubts) };
  const isIndefinite = finding.checks.some(({ ok }) => ok === null);
  const known = state?.believed ?? {};
  return {
    change: {
      status,
      badSinceMs,
      state: state === null ? null : JSON.stringify(state),
      lastCheck: JSON.stringify(lastCheckOf(finding, nowMs)),
      // Domains of test keys are not on the timetable.
      nextCheckAtMs: row.mode === "test" ? row.nextCheckAtMs : nextCheckMs({ ...outlook, isIndefinite }, nowMs),
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
    alerts: alertsOf({ row, status, finding, changes, before: before?.believed ?? {}, after: known, trigger, nowMs }),
  };
};

export const lastCheckOf = ({ checks, verdict }: Finding, nowMs: number): LastCheck => ({
  at: isoTime(nowMs),
  ok: verdict === "indefinite" ? null : verdict === "good",
  checks: [...checks],
});

interface Judgement {
  readonly state: DomainState | null;
  readonly changes: readonly ChangeCode[];
}

/** Decides whether to believe what was seen now, or to wait for a second look. */
const judge = (before: DomainState | null, seen: Seen, when: When & { readonly hasMoved: boolean }): Judgement => {
  const { trigger, nowMs, hasMoved } = when;
  if (before === null) {
    return Object.keys(seen).length === 0
      ? { state: null, changes: [] }
      : { state: { believed: seen, doubt: null }, changes: [] };
  }
  const changes = changesBetween(before.believed, seen);
  const believed = combine(before.believed, seen);
  if (trigger !== "scheduled" || hasMoved) return { state: { believed, doubt: null }, changes };
  const { doubt } = before;
  if (!isDoubtful(changes)) {
    // A doubt is settled by answers only, not by a DNS that is silent.
    return { state: { believed, doubt: isWhole(seen) ? null : doubt }, changes };
  }
  const isSame = doubt !== null && doubt.changes.join() === changes.join();
  if (isSame && nowMs - doubt.since_ms >= CONFIRMATION_MS) return { state: { believed, doubt: null }, changes };
  return {
    state: { ...before, doubt: isSame ? doubt : { since_ms: nowMs, changes: [...changes] } },
    changes: [],
  };
};

const isWhole = ({ records, policy, authorisation }: Seen): boolean =>
  records !== undefined && policy !== undefined && authorisation !== undefined;

interface AlertFacts extends When {
  readonly row: DomainRow;
  readonly status: DomainRow["status"];
  readonly finding: Finding;
  readonly changes: readonly ChangeCode[];
  readonly before: Seen;
  readonly after: Seen;
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

const recordAlert = ({ changes, before, after, trigger, nowMs }: AlertFacts): Alert => {
  const [previous_record, record] = [recordOf(before), recordOf(after)];
  const told = changes.filter((code) => code !== "status");
  return {
    rule: "record_changed",
    // The same change to the same text is quiet for a day, another one is not.
    subject: sha256(JSON.stringify([told, after.records, after.authorisation])).slice(0, SUBJECT_CHARACTERS),
    data: { changes: told, previous_record, record, trigger, checked_at: isoTime(nowMs) },
    summary: told.flatMap((code) => (code === "policy_weakened" ? [] : [SENTENCES[code]])).join(", "),
    cooldown: true,
  };
};

const policyAlert = ({ before, after, trigger, nowMs }: AlertFacts): Alert => {
  const [previous, policy] = [before.policy ?? null, after.policy ?? null];
  return {
    rule: "policy_weakened",
    subject: sha256(JSON.stringify(policy)).slice(0, SUBJECT_CHARACTERS),
    data: {
      previous_policy: policyView(previous),
      policy: policyView(policy),
      record: recordOf(after),
      trigger,
      checked_at: isoTime(nowMs),
    },
    summary: `the policy was weakened from ${written(previous)} to ${written(policy)}`,
    cooldown: true,
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

const written = (policy: Seen["policy"] | null): string => {
  if (!policy) return "no record";
  const { p, sp, np, t, pct } = policy;
  const parts = [
    `p=${p}`,
    sp === p ? "" : `sp=${sp}`,
    np === sp ? "" : `np=${np}`,
    t === "y" ? "t=y" : "",
    pct < 100 ? `pct=${pct}` : "",
  ];
  return parts.filter((part) => part !== "").join(" ");
};
