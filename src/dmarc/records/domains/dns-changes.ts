import {
  type DnsObservation,
  type ObservedField,
  type StatePolicy,
  type ChangeCode,
  type DomainState,
  type Unconfirmed,
  CONFIRMATION_MS,
} from "./domain-state.ts";

/** Changes that a second check must confirm, because a name server may be behind or have lost records. */
const TO_CONFIRM: ReadonlyMap<ChangeCode, ObservedField> = new Map([
  ["record_removed", "records"],
  ["record_changed", "records"],
  ["policy_weakened", "policy"],
  ["reporting_address_removed", "holds_ours"],
  ["authorisation_lost", "authorisation"],
]);

/**
 * The changes between two states of the DNS, in the order of `CHANGE_CODES`. A field that is unknown in either has not changed.
 * For `isOrganisational` see `isWeaker`.
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

/** The fields that a second check must confirm before these changes count. */
export const fieldsToConfirm = (changes: readonly ChangeCode[]): readonly ObservedField[] =>
  changes.flatMap((code) => TO_CONFIRM.get(code) ?? []);

/**
 * Whether a policy protects less than the one before: for the domain, its subdomains or names that do not exist, with `t=y` counted
 * as one step less (RFC 9989 §4.7); or for a smaller percentage of the mail without being stricter. The own record of a domain that
 * is not organizational applies to that domain only: names below it follow another record (§4.10.1).
 */
export const isWeaker = (before: StatePolicy | null, after: StatePolicy | null, isOrganisational = true): boolean => {
  const isAboutAll = [before, after].every((policy) => appliesBelow(policy, isOrganisational));
  const compare = (policy: StatePolicy | null) => strengths(policy).slice(0, isAboutAll ? undefined : 1);
  const [was, is] = [compare(before), compare(after)];
  if (was.some((strength, at) => (is[at] ?? 0) < strength)) return true;
  const isStronger = is.some((strength, at) => strength > (was[at] ?? 0));
  return !isStronger && was.some((strength) => strength > 0) && percent(after) < percent(before);
};

/** Whether the policy of a domain also applies to the names below it: not if it is from a subdomain's own record. */
export const appliesBelow = (policy: StatePolicy | null, isOrganisational: boolean): boolean =>
  isOrganisational || policy?.own !== true;

/** Whether a policy requests receivers to quarantine or reject mail of the domain or of names below it. */
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

const percent = (policy: StatePolicy | null) => policy?.pct ?? PERCENT_ALL;

const recordChange = (before: DnsObservation["records"], after: DnsObservation["records"]): ChangeCode | null => {
  if (before === undefined || after === undefined) return null;
  // The order of several records in a response has no meaning.
  const [was, is] = [before.toSorted().join("\n"), after.toSorted().join("\n")];
  if (was === is) return null;
  if (before.length === 0) return "record_added";
  return after.length === 0 ? "record_removed" : "record_changed";
};

const allows = ({ authorisation }: DnsObservation) =>
  authorisation === undefined ? undefined : authorisation === "authorised" || authorisation === "not_needed";

/** The state of a domain after a check, and the changes that count. */
interface ConfirmedChanges {
  /** Null before the first definite response. */
  readonly state: Pick<DomainState, "believed" | "doubts"> | null;
  /** In the order of `CHANGE_CODES`. */
  readonly changes: readonly ChangeCode[];
}

/** Which changes count immediately: `all`, `all_but_weaker` (except a weaker policy), or none for the worse without a second check. */
export type ChangeConfidence = "all" | "all_but_weaker" | "confirmed";

interface ConfirmOptions {
  readonly confidence: ChangeConfidence;
  /** See `isWeaker`. */
  readonly isOrganisational: boolean;
  readonly nowMs: number;
}

/** The fields of one DNS response belong together: the record and its policy count at the same time. */
const PARTS: readonly (readonly ObservedField[])[] = [["records", "holds_ours", "policy"], ["authorisation"]];
/** After this time a record has changed, even if no two responses agree on how. */
const CHANGED_MS = 2 * CONFIRMATION_MS;

/**
 * Decides which observations count, and which wait for a second check. Pure. A field that became worse is unconfirmed until an
 * response 30 minutes later is still worse than the known state in any way; a good response ends that. A failed query does
 * neither.
 */
export const confirmChanges = (
  before: DomainState | null,
  observed: DnsObservation,
  options: ConfirmOptions,
): ConfirmedChanges => {
  if (before === null) {
    return { state: Object.keys(observed).length === 0 ? null : { believed: observed, doubts: {} }, changes: [] };
  }
  const parts = PARTS.map((part) => confirmPart(part, before, observed, options));
  const { declared_suffix } = observed;
  let known: DnsObservation = { ...before.believed, ...(declared_suffix === undefined ? {} : { declared_suffix }) };
  for (const { believed } of parts) known = { ...known, ...believed };
  return {
    state: {
      believed: known,
      doubts: Object.fromEntries(parts.flatMap(({ doubts }) => Object.entries(doubts))),
    },
    changes: parts.flatMap(({ changes }) => changes),
  };
};

interface ConfirmedPart {
  /** What is new. */
  readonly believed: DnsObservation;
  readonly doubts: Unconfirmed;
  readonly changes: readonly ChangeCode[];
}

const confirmPart = (
  part: readonly ObservedField[],
  before: DomainState,
  observed: DnsObservation,
  { confidence, isOrganisational, nowMs }: ConfirmOptions,
): ConfirmedPart => {
  const answered: DnsObservation = Object.fromEntries(
    part.flatMap((field) => (field in observed ? [[field, observed[field]]] : [])),
  );
  const changes = changesBetween(before.believed, answered, isOrganisational);
  const unanswered = timesOf(
    part.filter((field) => !(field in answered)),
    before.doubts,
  );
  const doubted = fieldsToConfirm(changes);
  // After the clock was set back, the time must not be in the future.
  const doubts = Object.fromEntries(doubted.map((field) => [field, Math.min(before.doubts[field] ?? nowMs, nowMs)]));
  const countsAtOnce =
    confidence === "all" || (confidence === "all_but_weaker" && !changes.includes("policy_weakened"));
  return countsAtOnce || isConfirmed(doubts, nowMs)
    ? { believed: answered, doubts: unanswered, changes }
    : { believed: {}, doubts: { ...unanswered, ...doubts }, changes: [] };
};

const timesOf = (fields: readonly ObservedField[], doubts: Unconfirmed) =>
  Object.fromEntries(fields.flatMap((field) => (doubts[field] === undefined ? [] : [[field, doubts[field]]])));

/** Whether everything unconfirmed has been so for 30 minutes. */
const isConfirmed = (doubts: Unconfirmed, nowMs: number) =>
  Object.values(doubts).every((sinceMs) => nowMs - sinceMs >= CONFIRMATION_MS) ||
  (doubts.records !== undefined && nowMs - doubts.records >= CHANGED_MS);
