import { isoTime } from "../base/clock.ts";
import type { Severity, TargetKind } from "../dnsbl/blocklist.ts";
import { oneLine, plural } from "./mail-lines.ts";
import { worstRank } from "./severity.ts";

/** A listing that is there now. */
export interface DigestListing {
  /** The domain or address that is listed. */
  readonly target: string;
  readonly label: string | null;
  readonly name: string;
  readonly severity: Severity | null;
  readonly meaning: string;
  readonly since: string;
  readonly delistUrl: string | null;
  readonly isAcknowledged: boolean;
  /** Whether it is bad enough to be told of by itself. */
  readonly isAboveThreshold: boolean;
}

/** A listing that came or went since the last digest. */
export interface DigestChange {
  readonly came: boolean;
  readonly target: string;
  readonly label: string | null;
  readonly name: string;
  readonly severity: Severity | null;
  readonly at: string;
}

export interface DigestList {
  readonly name: string;
  readonly kind: TargetKind;
  readonly reason: string | null;
  readonly remedy: string | null;
}

/** What one digest tells somebody. */
export interface ListingDigest {
  readonly period: "daily" | "weekly";
  readonly sinceMs: number;
  readonly listings: readonly DigestListing[];
  readonly changes: readonly DigestChange[];
  readonly listsInTrouble: readonly DigestList[];
  /** Whether this reader sees all targets of the account. */
  readonly isWhole: boolean;
}

const LISTINGS_MAX = 100;
const CHANGES_MAX = 50;
const LISTS_MAX = 40;

const named = ({ target, label }: { readonly target: string; readonly label: string | null }): string =>
  label === null ? target : `${target} (${oneLine(label)})`;

const day = (time: string): string => time.slice(0, 10);

const listingLine = (listing: DigestListing): string => {
  const { name, severity, meaning, since, delistUrl } = listing;
  const delisting = delistUrl === null ? "" : `\n  Delisting: ${delistUrl}`;
  return `${severity ?? "unknown severity"}: ${named(listing)} is on ${name}, since ${day(since)}\n  ${meaning}${delisting}`;
};

const changeLine = (change: DigestChange): string =>
  `${change.at.slice(0, 16).replace("T", " ")} UTC: ${named(change)} ${change.came ? "listed on" : "no longer on"} ${change.name}${change.severity === null ? "" : ` (${change.severity})`}`;

const listLine = ({ name, kind, reason, remedy }: DigestList): string =>
  [`${name} (${kind})`, ...[reason, remedy].filter((part) => part !== null)].join(": ").replace(/\.: /g, ". ");

/** A part of a mail under its heading, with what did not fit counted; nothing when it is empty. */
const section = (heading: string, lines: readonly string[], most: number): string[] => {
  if (lines.length === 0) return [];
  const more = lines.length - most;
  return [heading, ...lines.slice(0, most), ...(more > 0 ? [`and ${more} more`] : [])];
};

/**
 * Subject and text of a digest, the worst first; null when there is nothing to say. A weekly one to somebody who sees all targets says
 * so when nothing is listed: no mail could as well be a broken service. Acknowledged listings and those below the threshold are only counted.
 */
export const digestMail = (facts: ListingDigest): { readonly subject: string; readonly text: string } | null => {
  const { period, sinceMs, listings, changes, listsInTrouble, isWhole } = facts;
  const sorted = listings.toSorted(
    (a, b) => worstRank([b.severity]) - worstRank([a.severity]) || b.since.localeCompare(a.since),
  );
  const open = sorted.filter(({ isAcknowledged }) => !isAcknowledged);
  const shown = open.filter(({ isAboveThreshold }) => isAboveThreshold);
  const below = open.length - shown.length;
  const acknowledged = sorted.length - open.length;
  const isQuiet = shown.length + changes.length + listsInTrouble.length === 0;
  if (isQuiet && !(period === "weekly" && isWhole)) return null;
  const [worst] = shown;
  const subject =
    worst === undefined
      ? "nothing to act on is listed"
      : `${plural(shown.length, "listing")}, the worst ${worst.severity ?? "of unknown severity"}: ${worst.target}`;
  const counted = [
    ...(below > 0 ? [`${plural(below, "listing")} below the threshold for alerts`] : []),
    ...(acknowledged > 0 ? [`${plural(acknowledged, "acknowledged listing")}`] : []),
  ];
  const parts = [
    ...(shown.length === 0
      ? ["Nothing to act on is listed."]
      : section("Listed now:", shown.map(listingLine), LISTINGS_MAX)),
    ...(counted.length === 0
      ? []
      : [`Not shown: ${counted.join(", ")}. GET /v1/blacklist/targets?sort=severity has all.`]),
    ...section(
      `Changes since ${isoTime(sinceMs).slice(0, 16).replace("T", " ")} UTC:`,
      changes.map(changeLine),
      CHANGES_MAX,
    ),
    ...section("Lists that cannot be believed at present:", listsInTrouble.map(listLine), LISTS_MAX),
  ];
  return { subject: `Blocklists, ${period}: ${subject}`, text: `${parts.join("\n\n")}\n` };
};
