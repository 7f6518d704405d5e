import { z } from "zod";
import { TARGET_KINDS, worstRank } from "./lists/blocklist.ts";
import { SEVERITIES } from "../foundation/base/severity.ts";
import {
  list,
  type MailContent,
  type MailItem,
  pageLink,
  minuteTime,
  plural,
  shortName,
} from "../notifications/mail/mail-content.ts";

const severity = z.enum(SEVERITIES).nullable();
/** Missing in what older versions queued. */
const targetId = z.string().optional();

/** A listing that exists now. `isAboveThreshold`: severe enough for an alert of its own. */
const digestListingSchema = z.object({
  targetId,
  target: z.string(),
  label: z.string().nullable(),
  name: z.string(),
  severity,
  meaning: z.string(),
  since: z.string(),
  delistUrl: z.string().nullable(),
  isAcknowledged: z.boolean(),
  isAboveThreshold: z.boolean(),
});
export type DigestListing = z.output<typeof digestListingSchema>;

/** A listing that was added or removed since the last digest. */
const digestChangeSchema = z.object({
  came: z.boolean(),
  targetId,
  target: z.string(),
  label: z.string().nullable(),
  name: z.string(),
  severity,
  at: z.string(),
});
export type DigestChange = z.output<typeof digestChangeSchema>;

/** One digest for one recipient, as it is queued. `isWhole`: the recipient sees all targets of the account. */
export const digestSchema = z.object({
  period: z.enum(["daily", "weekly"]),
  sinceMs: z.number(),
  /** The listings to act on that are shown, most severe first. */
  listings: z.array(digestListingSchema),
  /** `open`: all listings to act on; `below`: below the threshold. */
  counts: z.object({ open: z.number(), below: z.number(), acknowledged: z.number() }),
  changes: z.array(digestChangeSchema),
  listsInTrouble: z.array(
    z.object({
      name: z.string(),
      kind: z.enum(TARGET_KINDS),
      reason: z.string().nullable(),
      remedy: z.string().nullable(),
    }),
  ),
  isWhole: z.boolean(),
});
export type ListingDigest = z.output<typeof digestSchema>;

const LISTINGS_MAX = 100;
const CHANGES_MAX = 50;
const LISTS_MAX = 40;

/** What a digest is made of: all listings of the recipient's targets. */
export interface DigestFacts extends Omit<ListingDigest, "counts"> {}

/** The digest to queue. Keeps of the listings only what is shown, because there may be hundreds of thousands. */
export const digestOf = ({ listings, ...rest }: DigestFacts): ListingDigest => {
  const open = listings
    .filter(({ isAcknowledged, isAboveThreshold }) => !isAcknowledged && isAboveThreshold)
    .toSorted((a, b) => worstRank([b.severity]) - worstRank([a.severity]) || b.since.localeCompare(a.since));
  const acknowledged = listings.filter(({ isAcknowledged }) => isAcknowledged).length;
  const counts = { open: open.length, below: listings.length - acknowledged - open.length, acknowledged };
  return { ...rest, listings: open.slice(0, LISTINGS_MAX), counts };
};

/**
 * Whether a digest has anything to say. A weekly one to a recipient who sees all targets always has: without it, a quiet
 * week could not be told from a broken service.
 */
export const isWorthMailing = (digest: ListingDigest): boolean =>
  digest.counts.open + digest.changes.length + digest.listsInTrouble.length > 0 ||
  (digest.period === "weekly" && digest.isWhole);

/** A digest, most severe first; null when there is nothing to say. Other listings are only counted. */
export const listingDigestMail = (digest: ListingDigest): MailContent | null => {
  if (!isWorthMailing(digest)) return null;
  const { period, sinceMs, changes, listings, listsInTrouble } = digest;
  const { open, below, acknowledged } = digest.counts;
  const [worst] = listings;
  const notShown = [
    ...(below > 0 ? [`${plural(below, "listing")} below the alert threshold`] : []),
    ...(acknowledged > 0 ? [plural(acknowledged, "acknowledged listing")] : []),
  ];
  const subject =
    worst === undefined
      ? "no listings that need action"
      : `${plural(open, "listing")}, most severe: ${worst.target} (${worst.severity ?? "unknown severity"})`;
  const section = (heading: string, items: readonly MailItem[], max: number, total = items.length) =>
    items.length === 0 ? [] : [{ heading, blocks: [list(null, items, { max, total })] }];
  return {
    subject: `Blocklists, ${period}: ${subject}`,
    sections: [
      ...(worst === undefined ? [{ heading: "No listings that need action", blocks: [] }] : []),
      ...section("Listed now", listings.map(listingItem), LISTINGS_MAX, open),
      ...section(`Changes since ${minuteTime(sinceMs)}`, changes.map(changeItem), CHANGES_MAX),
      ...troubleSection(listsInTrouble),
    ],
    closing:
      notShown.length === 0
        ? []
        : [`Not shown: ${notShown.join(", ")}.`, pageLink("All targets", "/blocklists", "Blocklists")],
  };
};

const troubleSection = (lists: ListingDigest["listsInTrouble"]) => {
  const heading = "Blocklists that cannot be used at present";
  const items = list(null, lists.map(listItem), { max: LISTS_MAX });
  const link = pageLink("The health of the blocklists", "/blocklists/lists", "Blocklists › Lists");
  return items === null ? [] : [{ heading, blocks: [items, link] }];
};

const named = ({ target, label }: { target: string; label: string | null }) =>
  label === null ? target : `${target} (${shortName(label)})`;

const pathOf = ({ targetId: id }: { targetId?: string | undefined }) =>
  id === undefined ? {} : { path: `/blocklists/${id}` };

const listingItem = (listing: DigestListing): MailItem => ({
  text: `${listing.severity ?? "unknown severity"}: ${named(listing)} is listed on ${listing.name} since ${listing.since.slice(0, 10)}`,
  ...pathOf(listing),
  lines: [listing.meaning, ...(listing.delistUrl === null ? [] : [`Request delisting: ${listing.delistUrl}`])],
});

const changeItem = (change: DigestChange): MailItem => ({
  ...pathOf(change),
  text: `${minuteTime(Date.parse(change.at))}: ${named(change)} ${change.came ? "listed on" : "no longer listed on"} ${change.name}${change.severity === null ? "" : ` (${change.severity})`}`,
});

const listItem = ({ name, kind, reason, remedy }: ListingDigest["listsInTrouble"][number]): MailItem => ({
  text: [`${name} (${kind}):`, reason, remedy].filter((part) => part !== null).join(" "),
});
