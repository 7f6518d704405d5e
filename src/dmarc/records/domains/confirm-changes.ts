import { changesBetween, fieldsToConfirm } from "./dns-changes.ts";
import type { ChangeCode, DomainState, Unconfirmed, DnsObservation, ObservedField } from "./domain-state.ts";
import { CONFIRMATION_MS } from "./domain-status.ts";

/** The state of a domain after a check, and the changes that count. */
export interface ConfirmedChanges {
  /** Null before the first definite response. */
  readonly state: Pick<DomainState, "believed" | "doubts"> | null;
  /** In the order of `CHANGE_CODES`. */
  readonly changes: readonly ChangeCode[];
}

/** Which changes count immediately: `all`, `all_but_weaker` (except a weaker policy), or none for the worse without a second check. */
export type ChangeConfidence = "all" | "all_but_weaker" | "confirmed";

export interface ConfirmOptions {
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
  let known = before.believed;
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

const timesOf = (fields: readonly ObservedField[], doubts: Unconfirmed): Unconfirmed =>
  Object.fromEntries(fields.flatMap((field) => (doubts[field] === undefined ? [] : [[field, doubts[field]]])));

/** Whether everything unconfirmed has been so for 30 minutes. */
const isConfirmed = (doubts: Unconfirmed, nowMs: number): boolean =>
  Object.values(doubts).every((sinceMs) => nowMs - sinceMs >= CONFIRMATION_MS) ||
  (doubts.records !== undefined && nowMs - doubts.records >= CHANGED_MS);
