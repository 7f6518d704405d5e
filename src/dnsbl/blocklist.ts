import type { DnsOutcome } from "../net/dns.ts";
import type { CodeMatch } from "./code-match.ts";

/** What a list can be asked about. */
export const TARGET_KINDS = ["ipv4", "ipv6", "domain"] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** How much a listing hurts the delivery of mail, the worst first. */
export const SEVERITIES = ["critical", "high", "medium", "low", "info"] as const;
export type Severity = (typeof SEVERITIES)[number];

/** What a listing accuses its subject of. `policy`, `new` and `bulk` are no accusation of abuse. */
export const CATEGORIES = [
  "spam",
  "phish",
  "malware",
  "exploit",
  "proxy",
  "backscatter",
  "abused",
  "reputation",
  "bulk",
  "policy",
  "new",
  "netblock",
  "asn",
] as const;
export type Category = (typeof CATEGORIES)[number];

/** Which name a domain list is asked for: the host as it is, its registrable domain, or both where they differ. */
export const DOMAIN_FORMS = ["host", "registrable", "both"] as const;
export type DomainForm = (typeof DOMAIN_FORMS)[number];

/** How much of the internet one entry of a list speaks of. */
export const ENTRY_SCOPES = ["single", "netblock", "asn"] as const;
export type EntryScope = (typeof ENTRY_SCOPES)[number];

/** How sure the facts of a list are: `A` seen at work lately, `B` documented by its operator, `C` from catalogues only. */
export const CONFIDENCES = ["A", "B", "C"] as const;
export type Confidence = (typeof CONFIDENCES)[number];

/** The answers by which a list says that a target is on it. `id` is what users see in `listed_on`. */
export interface ListingCode {
  readonly matches: readonly CodeMatch[];
  readonly id: string;
  readonly name: string;
  readonly meaning: string;
  readonly category: Category;
  readonly severity: Severity;
}

/** The answers, and the ends of a question, by which a list says that it does not serve us. */
export interface RefusalCode {
  readonly matches: readonly CodeMatch[];
  readonly outcomes: readonly DnsOutcome[];
  readonly reason: string;
  readonly remedy: string;
}

/** Documented answers that are no listing. */
export interface IgnoredCode {
  readonly matches: readonly CodeMatch[];
  readonly meaning: string;
}

/** An entry that a list keeps for tests (RFC 5782 §5). `answers` are expected beside its listing codes; mostly empty. */
export interface TestPoint {
  readonly value: string;
  readonly answers: readonly string[];
}

/** The entries that must be on a list, and those that must never be. */
export interface TestPoints {
  readonly positive: readonly TestPoint[];
  readonly negative: readonly string[];
}

/** How often a list may be asked, as its operator says; null where nothing is published. */
export interface Budget {
  readonly queriesPerDay: number | null;
  readonly spacingMs: number | null;
}

/** Who may use a list, as its operator says; null where nothing is published. */
export interface Usage {
  readonly terms: string;
  readonly volume: string | null;
  readonly cost: string | null;
  readonly registration: string | null;
  readonly url: string | null;
}

/** One DNS blocklist (RFC 5782), and what is known of it. */
export interface Blocklist {
  readonly id: string;
  readonly name: string;
  readonly operator: string;
  readonly kinds: readonly TargetKind[];
  readonly scope: EntryScope;
  /** The zone that anybody may ask; null when there is only one for holders of a key. */
  readonly zone: string | null;
  /** The zone for holders of a key, which stands in it as `{key}`; null when the list has none. */
  readonly keyedZone: string | null;
  /** The key in use. It is a secret: texts that hold it go through `maskKey` before anybody sees them. */
  readonly key: string | null;
  /** Meaningful for domains only. */
  readonly domainForm: DomainForm;
  readonly codes: readonly ListingCode[];
  readonly refusals: readonly RefusalCode[];
  readonly ignores: readonly IgnoredCode[];
  readonly testPoints: Readonly<Partial<Record<TargetKind, TestPoints>>>;
  readonly defaultEnabled: boolean;
  /** What the operator of this service set for it; null: as the catalogue says. */
  readonly switchedOn: boolean | null;
  readonly usage: Usage | null;
  readonly budget: Budget;
  /** The page for removal requests; null when the list takes none. */
  readonly delistUrl: string | null;
  /** A page about one target, which stands in it as `{value}`. */
  readonly lookupUrl: string | null;
  readonly confidence: Confidence;
  readonly notes: string | null;
}

/** Zones that must not be asked: dead, in other hands, parts of another list, or no blocklists at all. */
export interface ExcludedLists {
  readonly name: string;
  /** Exact zones, or `*.example.org` for all below it. */
  readonly zones: readonly string[];
  readonly reason: string;
}

export interface Catalogue {
  readonly version: string;
  readonly lists: readonly Blocklist[];
  readonly excluded: readonly ExcludedLists[];
}

/** The zone to ask: the keyed one as soon as there is a key, else the public one; null when a key is missing. */
export const zoneOf = ({ zone, keyedZone, key }: Blocklist): string | null =>
  keyedZone !== null && key !== null ? keyedZone.replace("{key}", key) : zone;

/** Whether a list is asked: as the settings say, else the default ones and those for which a key was given. */
export const isEnabled = (list: Blocklist): boolean =>
  zoneOf(list) !== null && (list.switchedOn ?? (list.defaultEnabled || list.key !== null));

/** The worst that being on this list may mean. */
export const severityOf = ({ codes }: Blocklist): Severity =>
  SEVERITIES.find((severity) => codes.some((code) => code.severity === severity)) ?? "info";
