import type { DnsOutcome } from "../../foundation/net/dns.ts";
import type { CodeMatch } from "./code-match.ts";
import { SEVERITIES, type Severity } from "../../foundation/base/severity.ts";

/** What a list can have entries for. */
export const TARGET_KINDS = ["ipv4", "ipv6", "domain"] as const;
export type TargetKind = (typeof TARGET_KINDS)[number];

/** Why something is listed. `policy`, `new` and `bulk` do not mean abuse. */
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

/** Which name a domain list is queried for: the host name, its registrable domain, or both where they differ. */
export const DOMAIN_FORMS = ["host", "registrable", "both"] as const;
export type DomainForm = (typeof DOMAIN_FORMS)[number];

/** What one entry of a list covers. */
export const ENTRY_SCOPES = ["single", "netblock", "asn"] as const;
export type EntryScope = (typeof ENTRY_SCOPES)[number];

/** How reliable the data about a list is: `A` verified recently, `B` documented by its operator, `C` from other catalogues only. */
export const CONFIDENCES = ["A", "B", "C"] as const;
export type ListConfidence = (typeof CONFIDENCES)[number];

/** The return codes of one listing. `id` is what users see in `listed_on`. */
export interface ListingCode {
  readonly matches: readonly CodeMatch[];
  readonly id: string;
  readonly name: string;
  readonly meaning: string;
  readonly category: Category;
  readonly severity: Severity;
}

/** The return codes and query outcomes by which a list refuses our queries. */
export interface RefusalCode {
  readonly matches: readonly CodeMatch[];
  readonly outcomes: readonly DnsOutcome[];
  readonly reason: string;
  readonly remedy: string;
}

/** Documented return codes that are no listing. */
export interface IgnoredCode {
  readonly matches: readonly CodeMatch[];
  readonly meaning: string;
}

/** An entry for tests (RFC 5782 §5). `answers` are return codes expected beside the listing codes; usually empty. */
export interface TestPoint {
  readonly value: string;
  readonly answers: readonly string[];
}

/** Entries that a list always has, and names that it never lists. */
export interface TestPoints {
  readonly positive: readonly TestPoint[];
  readonly negative: readonly string[];
}

/** How many queries the operator allows; null where nothing is published. */
export interface Budget {
  readonly queriesPerDay: number | null;
  readonly spacingMs: number | null;
}

/** Who may use a list, according to its operator; null where nothing is published. */
export interface Usage {
  readonly terms: string;
  readonly volume: string | null;
  readonly cost: string | null;
  readonly registration: string | null;
  readonly url: string | null;
}

/** One DNS blocklist (RFC 5782) and what is known about it. */
export interface Blocklist {
  readonly id: string;
  readonly name: string;
  readonly operator: string;
  readonly kinds: readonly TargetKind[];
  readonly scope: EntryScope;
  /** The public zone; null when the list requires a key. */
  readonly zone: string | null;
  /** The zone for queries with a key, with the placeholder `{key}`; null when the list has none. */
  readonly keyedZone: string | null;
  /** The key in use, a secret: apply `maskKey` to every text before it is stored or shown. */
  readonly key: string | null;
  /** Applies to domains only. */
  readonly domainForm: DomainForm;
  readonly codes: readonly ListingCode[];
  readonly refusals: readonly RefusalCode[];
  readonly ignores: readonly IgnoredCode[];
  readonly testPoints: Readonly<Partial<Record<TargetKind, TestPoints>>>;
  readonly defaultEnabled: boolean;
  /** Set by the operator of this service; null: as the catalogue says. */
  readonly switchedOn: boolean | null;
  readonly usage: Usage | null;
  readonly budget: Budget;
  /** The page for delisting requests; null when there is none. */
  readonly delistUrl: string | null;
  /** A page about one target, with the placeholder `{value}`. */
  readonly lookupUrl: string | null;
  readonly confidence: ListConfidence;
  readonly notes: string | null;
}

/** Zones that must not be queried: shut down, sold, part of another list, or no blocklists at all. */
export interface ExcludedLists {
  readonly name: string;
  /** Exact zones, or `*.example.org` for all names below it. */
  readonly zones: readonly string[];
  readonly reason: string;
}

export interface Catalogue {
  readonly version: string;
  readonly lists: readonly Blocklist[];
  readonly excluded: readonly ExcludedLists[];
}

/** The zone to query: the keyed one if there is a key, else the public one; null when a key is missing. */
export const zoneOf = ({ zone, keyedZone, key }: Blocklist): string | null =>
  keyedZone !== null && key !== null ? keyedZone.replace("{key}", key) : zone;

/** Whether a list is queried: as set, otherwise the default lists and those with a key. */
export const isEnabled = (list: Blocklist): boolean =>
  zoneOf(list) !== null && (list.switchedOn ?? (list.defaultEnabled || list.key !== null));

/** The most severe listing of this list. */
export const severityOf = ({ codes }: Blocklist): Severity =>
  SEVERITIES.find((severity) => codes.some((code) => code.severity === severity)) ?? "info";
