import { isoTime } from "../base/clock.ts";
import type { NewEvent } from "../db/outbox.ts";
import type { Blocklist, Severity } from "../dnsbl/blocklist.ts";
import type { ListOutcome } from "../dnsbl/lookup.ts";
import type { TargetRow } from "./store.ts";
import type { DelistingReason } from "./transition.ts";

/** One listing that came or went. */
export interface ListingChange {
  readonly listing: string;
  /** Null when it came. */
  readonly reason: DelistingReason | null;
  /** Came and went several times within a day. */
  readonly flapping: boolean;
}

export interface ListingChangeContext {
  /** The target as it was. */
  readonly before: TargetRow;
  readonly after: Pick<TargetRow, "status" | "listedOn">;
  /** The catalogue, muted and retired lists included. */
  readonly lists: readonly Blocklist[];
  readonly outcomes: readonly ListOutcome[];
  readonly checkId: string | null;
  /** Name of the range that the target belongs to; null when to none. */
  readonly range: string | null;
  readonly atMs: number;
}

/** All that a person needs to act on a change (contract §7). */
export const changeFactsOf = ({ listing, reason, flapping }: ListingChange, context: ListingChangeContext) => {
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

/** The event of a change: `blacklist.listed` or `blacklist.delisted`. With `isFeedOnly` it is listed in the feed but not delivered. */
export const eventOf = (change: ListingChange, context: ListingChangeContext, isFeedOnly = false): NewEvent => {
  const { before, atMs } = context;
  return {
    accountId: before.accountId,
    mode: before.mode,
    type: change.reason === null ? "blacklist.listed" : "blacklist.delisted",
    subject: `target:${before.rangeId === "" ? before.id : before.rangeId}`,
    data: changeFactsOf(change, context),
    url: before.webhookUrl,
    createdAtMs: atMs,
    isFeedOnly,
  };
};

/** How bad the listing of a change is; null when it is not known any more. */
export const severityOfChange = (change: ListingChange, context: ListingChangeContext): Severity | null =>
  changeFactsOf(change, context).severity;
