import { type ChangeCode, changesBetween, combine, fieldsToConfirm } from "./dns-changes.ts";
import type { DomainState, Unconfirmed, DnsObservation, ObservedField } from "./domain-state.ts";
import { CONFIRMATION_MS } from "./domain-status.ts";

/** What is believed after a look, and what is told of it. */
export interface ConfirmedChanges {
  /** Null before the DNS ever answered. */
  readonly state: Pick<DomainState, "believed" | "doubts"> | null;
  /** In the order of `CHANGE_CODES`. */
  readonly changes: readonly ChangeCode[];
}

/** How much is believed at once: `all`, `all_but_weaker` (no weaker policy), or only what is not to the domain's disadvantage. */
export type Confidence = "all" | "all_but_weaker" | "confirmed";

export interface ConfirmOptions {
  readonly trust: Confidence;
  /** See `isWeaker`. */
  readonly isOrganisational: boolean;
  readonly nowMs: number;
}

/** What one answer of the DNS says belongs together: the record and its policy are believed in the same moment. */
const PARTS: readonly (readonly ObservedField[])[] = [["records", "holds_ours", "policy"], ["authorisation"]];
/** A record that was never again what is believed has changed by then, even when no two answers agree on how. */
const PATIENCE_MS = 2 * CONFIRMATION_MS;

/**
 * Decides what of a look is believed, and what waits for a second one. Pure. Each field has its own doubt. It ends with a good
 * answer about that field, and it is confirmed by an answer half an hour later that is still worse than what is believed, in
 * whatever words; silence does neither.
 */
export const confirmChanges = (
  before: DomainState | null,
  seen: DnsObservation,
  options: ConfirmOptions,
): ConfirmedChanges => {
  if (before === null) {
    return { state: Object.keys(seen).length === 0 ? null : { believed: seen, doubts: {} }, changes: [] };
  }
  const judged = PARTS.map((part) => judgePart(part, before, seen, options));
  return {
    state: {
      believed: judged.reduce((all, { believed }) => combine(all, believed), before.believed),
      doubts: Object.fromEntries(judged.flatMap(({ doubts }) => Object.entries(doubts))),
    },
    changes: judged.flatMap(({ changes }) => changes),
  };
};

interface PartJudgement {
  /** What is new. */
  readonly believed: DnsObservation;
  readonly doubts: Unconfirmed;
  readonly changes: readonly ChangeCode[];
}

const judgePart = (
  part: readonly ObservedField[],
  before: DomainState,
  seen: DnsObservation,
  { trust, isOrganisational, nowMs }: ConfirmOptions,
): PartJudgement => {
  const said: DnsObservation = Object.fromEntries(
    part.flatMap((field) => (field in seen ? [[field, seen[field]]] : [])),
  );
  const changes = changesBetween(before.believed, said, isOrganisational);
  const silent = sinceOf(
    part.filter((field) => !(field in said)),
    before.doubts,
  );
  const doubted = fieldsToConfirm(changes);
  // A clock that was set back must not make a doubt one of the future.
  const doubts = Object.fromEntries(doubted.map((field) => [field, Math.min(before.doubts[field] ?? nowMs, nowMs)]));
  const isTrusted = trust === "all" || (trust === "all_but_weaker" && !changes.includes("policy_weakened"));
  return isTrusted || isConfirmed(doubts, nowMs)
    ? { believed: said, doubts: silent, changes }
    : { believed: {}, doubts: { ...silent, ...doubts }, changes: [] };
};

const sinceOf = (fields: readonly ObservedField[], doubts: Unconfirmed): Unconfirmed =>
  Object.fromEntries(fields.flatMap((field) => (doubts[field] === undefined ? [] : [[field, doubts[field]]])));

/** Whether nothing is doubted that was not doubted half an hour ago already. */
const isConfirmed = (doubts: Unconfirmed, nowMs: number): boolean =>
  Object.values(doubts).every((sinceMs) => nowMs - sinceMs >= CONFIRMATION_MS) ||
  (doubts.records !== undefined && nowMs - doubts.records >= PATIENCE_MS);
