import { isoTime } from "../foundation/base/clock.ts";
import type { Blocklist } from "./lists/blocklist.ts";
import type { ListOutcome } from "./lists/lookup.ts";
import type { TargetRow } from "./store.ts";
import type { DelistingReason } from "./transition.ts";

/** A listing that a check added or removed. */
export interface ListingChange {
  readonly listing: string;
  /** Null when it was added. */
  readonly reason: DelistingReason | null;
  /** It was added and removed several times within a day. */
  readonly flapping: boolean;
}

export interface ListingChangeContext {
  /** The target before the change. */
  readonly before: TargetRow;
  readonly after: Pick<TargetRow, "status" | "listedOn">;
  /** The catalogue, including muted and retired lists. */
  readonly lists: readonly Blocklist[];
  readonly outcomes: readonly ListOutcome[];
  readonly checkId: string | null;
  /** The range that the target belongs to, as text; null for a target of its own. */
  readonly range: string | null;
  readonly atMs: number;
}

/** The `data` of the event of a change: everything a person needs to act on it (contract §7). */
export const changeFacts = ({ listing, reason, flapping }: ListingChange, context: ListingChangeContext) => {
  const { before, after, lists, outcomes, checkId, atMs } = context;
  const list = lists.find(({ codes }) => codes.some(({ id }) => id === listing));
  const outcome = outcomes.find((candidate) => candidate.list === list?.id);
  const found = outcome?.listings.find(({ id }) => id === listing);
  const codes = list?.codes.filter(({ id }) => id === listing) ?? [];
  const known = found ?? codes[0];
  return {
    target_id: before.rangeId === "" ? before.id : before.rangeId,
    target: before.value,
    range: context.range,
    kind: before.kind,
    label: before.label,
    mode: before.mode,
    listing,
    listing_name: known?.name ?? listing,
    list: list?.id ?? null,
    category: known?.category ?? null,
    severity: known?.severity ?? null,
    meaning: (found?.meanings ?? codes.map(({ meaning }) => meaning)).join(" "),
    ...(reason === null ? { codes: found?.returnCodes ?? [], text: outcome?.text ?? null } : { reason }),
    delist_url: list?.delistUrl ?? null,
    previous_status: before.status,
    status: after.status,
    listed_on: after.listedOn,
    flapping,
    check_id: checkId,
    checked_at: isoTime(atMs),
  };
};
export type ListingChangeFacts = ReturnType<typeof changeFacts>;
