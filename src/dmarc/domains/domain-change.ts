import type { Seen, StatePolicy } from "./domain-state.ts";

/** What can change about a domain, as users see it. */
export const CHANGE_CODES = [
  "record_added",
  "record_removed",
  "record_changed",
  "policy_weakened",
  "reporting_address_removed",
  "reporting_address_added",
  "authorisation_lost",
  "authorisation_gained",
  "status",
] as const;
export type ChangeCode = (typeof CHANGE_CODES)[number];

/** Changes that may be a server which has not heard the news yet, or has lost something: a second look must confirm them. */
const DOUBTFUL: ReadonlySet<ChangeCode> = new Set([
  "record_removed",
  "record_changed",
  "policy_weakened",
  "reporting_address_removed",
  "authorisation_lost",
]);

/**
 * What is different between two definite states of the DNS, in the order of `CHANGE_CODES`. What was unknown before or is
 * unknown now has not changed.
 */
export const changesBetween = (before: Seen, after: Seen): readonly ChangeCode[] => {
  const changes: ChangeCode[] = [];
  const record = recordChange(before.records, after.records);
  if (record !== null) changes.push(record);
  if (before.policy !== undefined && after.policy !== undefined && isWeaker(before.policy, after.policy)) {
    changes.push("policy_weakened");
  }
  if (before.holds_ours === true && after.holds_ours === false) changes.push("reporting_address_removed");
  if (before.holds_ours === false && after.holds_ours === true) changes.push("reporting_address_added");
  const [wasAllowed, isAllowed] = [allows(before), allows(after)];
  if (wasAllowed === true && isAllowed === false) changes.push("authorisation_lost");
  if (wasAllowed === false && isAllowed === true) changes.push("authorisation_gained");
  return changes;
};

/** Whether a scheduled check must be confirmed by a second one before these changes are believed. */
export const isDoubtful = (changes: readonly ChangeCode[]): boolean => changes.some((code) => DOUBTFUL.has(code));

/** Lays what is known now over what was known before. */
export const combine = (before: Seen, now: Seen): Seen => ({ ...before, ...now });

/**
 * Whether a policy protects less than the one before: for the domain, the names below it or those that do not exist, `t=y`
 * counted as the one step softer that it asks for (RFC 9989 §4.7); or for a smaller share of the mail at no higher a policy.
 */
export const isWeaker = (before: StatePolicy | null, after: StatePolicy | null): boolean => {
  const [was, is] = [strengths(before), strengths(after)];
  if (was.some((strength, at) => (is[at] ?? 0) < strength)) return true;
  const isStronger = is.some((strength, at) => strength > (was[at] ?? 0));
  return !isStronger && was.some((strength) => strength > 0) && percent(after) < percent(before);
};

const ORDER = ["none", "quarantine", "reject"] as const;
const PERCENT_ALL = 100;

const strengths = (policy: StatePolicy | null): readonly number[] => {
  if (policy === null) return [0, 0, 0];
  const softer = policy.t === "y" ? 1 : 0;
  return [policy.p, policy.sp, policy.np].map((value) => Math.max(0, ORDER.indexOf(value) - softer));
};

const percent = (policy: StatePolicy | null): number => policy?.pct ?? PERCENT_ALL;

const recordChange = (before: Seen["records"], after: Seen["records"]): ChangeCode | null => {
  if (before === undefined || after === undefined) return null;
  // The order in which a server gives several records means nothing.
  const [was, is] = [before.toSorted().join("\n"), after.toSorted().join("\n")];
  if (was === is) return null;
  if (before.length === 0) return "record_added";
  return after.length === 0 ? "record_removed" : "record_changed";
};

const allows = ({ authorisation }: Seen): boolean | undefined =>
  authorisation === undefined ? undefined : authorisation === "authorised" || authorisation === "not_needed";
