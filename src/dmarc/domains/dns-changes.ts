import type { DnsObservation, ObservedField, StatePolicy } from "./domain-state.ts";

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
const DOUBTFUL: ReadonlyMap<ChangeCode, ObservedField> = new Map([
  ["record_removed", "records"],
  ["record_changed", "records"],
  ["policy_weakened", "policy"],
  ["reporting_address_removed", "holds_ours"],
  ["authorisation_lost", "authorisation"],
]);

/**
 * What is different between two definite states of the DNS, in the order of `CHANGE_CODES`. What was unknown before or is
 * unknown now has not changed. For `isOrganisational` see `isWeaker`.
 */
export const changesBetween = (
  before: DnsObservation,
  after: DnsObservation,
  isOrganisational = true,
): readonly ChangeCode[] => {
  const changes: ChangeCode[] = [];
  const record = recordChange(before.records, after.records);
  if (record !== null) changes.push(record);
  const [was, is] = [before.policy, after.policy];
  if (was !== undefined && is !== undefined && isWeaker(was, is, isOrganisational)) changes.push("policy_weakened");
  if (before.holds_ours === true && after.holds_ours === false) changes.push("reporting_address_removed");
  if (before.holds_ours === false && after.holds_ours === true) changes.push("reporting_address_added");
  const [wasAllowed, isAllowed] = [allows(before), allows(after)];
  if (wasAllowed === true && isAllowed === false) changes.push("authorisation_lost");
  if (wasAllowed === false && isAllowed === true) changes.push("authorisation_gained");
  return changes;
};

/** What of a scheduled check must be confirmed by a second one before these changes are believed. */
export const fieldsToConfirm = (changes: readonly ChangeCode[]): readonly ObservedField[] =>
  changes.flatMap((code) => DOUBTFUL.get(code) ?? []);

/** Lays what is known now over what was known before. */
export const combine = (before: DnsObservation, now: DnsObservation): DnsObservation => ({ ...before, ...now });

/**
 * Whether a policy protects less than the one before: for the domain, the names below it or those that do not exist, `t=y`
 * counted as the one step softer that it asks for (RFC 9989 §4.7); or for a smaller share of the mail at no higher a policy.
 * Where the domain is not organisational, a record of its own speaks of itself alone: names below it follow another (§4.10.1).
 */
export const isWeaker = (before: StatePolicy | null, after: StatePolicy | null, isOrganisational = true): boolean => {
  const isAboutAll = [before, after].every((policy) => appliesBelow(policy, isOrganisational));
  const compare = (policy: StatePolicy | null) => strengths(policy).slice(0, isAboutAll ? undefined : 1);
  const [was, is] = [compare(before), compare(after)];
  if (was.some((strength, at) => (is[at] ?? 0) < strength)) return true;
  const isStronger = is.some((strength, at) => strength > (was[at] ?? 0));
  return !isStronger && was.some((strength) => strength > 0) && percent(after) < percent(before);
};

/** Whether the policy that applies to a domain applies to the names below it as well: not when it is that of a subdomain's own record. */
export const appliesBelow = (policy: StatePolicy | null, isOrganisational: boolean): boolean =>
  isOrganisational || policy?.own !== true;

/** Whether a policy asks receivers to quarantine or reject mail, of the domain or of names below it. */
export const isEnforced = (policy: StatePolicy | null | undefined): boolean =>
  strengths(policy ?? null).some((strength) => strength > 0);

const ORDER = ["none", "quarantine", "reject"] as const;
const PERCENT_ALL = 100;

/** For the domain itself, the names below it, and those that do not exist. */
const strengths = (policy: StatePolicy | null): readonly number[] => {
  if (policy === null) return [0, 0, 0];
  const softer = policy.t === "y" ? 1 : 0;
  return [policy.p, policy.sp, policy.np].map((value) => Math.max(0, ORDER.indexOf(value) - softer));
};

const percent = (policy: StatePolicy | null): number => policy?.pct ?? PERCENT_ALL;

const recordChange = (before: DnsObservation["records"], after: DnsObservation["records"]): ChangeCode | null => {
  if (before === undefined || after === undefined) return null;
  // The order in which a server gives several records means nothing.
  const [was, is] = [before.toSorted().join("\n"), after.toSorted().join("\n")];
  if (was === is) return null;
  if (before.length === 0) return "record_added";
  return after.length === 0 ? "record_removed" : "record_changed";
};

const allows = ({ authorisation }: DnsObservation): boolean | undefined =>
  authorisation === undefined ? undefined : authorisation === "authorised" || authorisation === "not_needed";
