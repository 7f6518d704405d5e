import type { DnsOutcome } from "../../foundation/net/dns.ts";
import { SEVERITIES, type Severity } from "../../foundation/base/severity.ts";
import { type Result, err, ok } from "../../foundation/base/errors.ts";
import { nearestName } from "../../foundation/base/nearest.ts";

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

/** Which A records match: an inclusive range of addresses, or one bit of the last octet of 127.0.0.x. */
export type CodeMatch =
  | { readonly kind: "range"; readonly from: number; readonly to: number }
  | { readonly kind: "bit"; readonly bit: number };

/** Why a text is not a code. `problem` is a sentence that contains the text. */
interface CodeMatchProblem {
  readonly kind: "invalid_match";
  readonly problem: string;
}

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
const BIT = /^bit (\d{1,3})$/;
const BITS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128];
const LOOPBACK_FIRST = 0x7f_00_00_00;
const LOOPBACK_LAST = 0x7f_ff_ff_ff;
const BIT_SUMS_FIRST = 0x7f_00_00_01;
const BIT_SUMS_LAST = 0x7f_00_00_ff;

/** An IPv4 address in dotted form as a number; null for anything else, including leading zeros. */
export const ipv4Number = (text: string): number | null => {
  const octets = IPV4.exec(text)?.slice(1) ?? [];
  if (octets.length !== 4 || octets.some((octet) => Number(octet) > 255 || String(Number(octet)) !== octet))
    return null;
  return octets.reduce((number, octet) => number * 256 + Number(octet), 0);
};

/** Whether an address is in 127.0.0.0/8, as all return codes of blocklists are (RFC 5782 §2.1). */
export const isLoopback = (address: number): boolean => address >= LOOPBACK_FIRST && address <= LOOPBACK_LAST;

/** Parses `127.0.0.2`, `127.0.0.2-127.0.0.9` or `bit 8` (a power of two up to 128). Addresses must lie in 127.0.0.0/8. */
export const parseCodeMatch = (text: string): Result<CodeMatch, CodeMatchProblem> => {
  const fail = (what: string) => err({ kind: "invalid_match", problem: `"${text}" ${what}.` } as const);
  const bit = BIT.exec(text)?.[1];
  if (bit !== undefined) {
    return BITS.includes(Number(bit))
      ? ok({ kind: "bit", bit: Number(bit) })
      : fail("is not a bit: use a power of two from 1 to 128");
  }
  const ends = text.split("-");
  const from = ipv4Number(ends[0] ?? "");
  const to = ipv4Number(ends.at(-1) ?? "");
  if (ends.length > 2 || from === null || to === null) {
    return fail("is not an address, a range such as 127.0.0.2-127.0.0.9, or a bit such as bit 8");
  }
  if (!isLoopback(from) || !isLoopback(to)) return fail("is outside 127.0.0.0/8");
  return from <= to ? ok({ kind: "range", from, to }) : fail("is a range whose end is before its start");
};

/** Whether an address matches. A bit matches in 127.0.0.x only, also in a sum of several bits. */
export const matchesCode = (match: CodeMatch, address: number): boolean =>
  match.kind === "range"
    ? address >= match.from && address <= match.to
    : address >= BIT_SUMS_FIRST && address <= BIT_SUMS_LAST && (address & match.bit) !== 0;

/** Whether one address could match both. Different bits never overlap: their sum means both. */
export const codesOverlap = (a: CodeMatch, b: CodeMatch): boolean => {
  if (a.kind === "bit" && b.kind === "bit") return a.bit === b.bit;
  if (a.kind === "range" && b.kind === "range") return a.from <= b.to && b.from <= a.to;
  const range = a.kind === "range" ? a : b;
  return range.kind === "range" && range.from <= BIT_SUMS_LAST && range.to >= BIT_SUMS_FIRST;
};

/** The text that `parseCodeMatch` accepts. */
export const formatCodeMatch = (match: CodeMatch): string => {
  if (match.kind === "bit") return `bit ${match.bit}`;
  return match.from === match.to ? formatIpv4(match.from) : `${formatIpv4(match.from)}-${formatIpv4(match.to)}`;
};

const formatIpv4 = (address: number) => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".");

/** A key is one label of the query name. */
const KEY = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/i;
const KEY_MASK = "{key}";

/** Parses the setting `list=key,list=key`. Fails with sentences, none of which contains a key. */
export const parseListKeys = (text: string): Result<ReadonlyMap<string, string>, readonly string[]> => {
  const keys = new Map<string, string>();
  const problems: string[] = [];
  for (const [index, pair] of text.split(",").entries()) {
    if (pair.trim() === "") continue;
    const at = pair.indexOf("=");
    const id = pair.slice(0, Math.max(0, at)).trim();
    if (id === "") problems.push(`Entry ${index + 1} does not have the form list=key.`);
    else if (keys.has(id)) problems.push(`The list "${id}" has two keys.`);
    else keys.set(id, pair.slice(at + 1).trim());
  }
  return problems.length === 0 ? ok(keys) : err(problems);
};

/**
 * The same catalogue with keys by list id; a list with a key is queried at its keyed zone. Fails with sentences (without
 * the key) for an unknown list, a list without a keyed zone, and a key that is not a valid DNS label.
 */
export const applyKeys = (
  catalogue: Catalogue,
  keys: ReadonlyMap<string, string>,
): Result<Catalogue, readonly string[]> => {
  const problems = [...keys].flatMap(([id, key]) => keyProblems(catalogue, id, key));
  if (problems.length > 0) return err(problems);
  // Names are compared in lower case, so the key must be lower case for the mask to find it.
  const withKey = (list: Blocklist) => ({ ...list, key: keys.get(list.id)?.toLowerCase() ?? list.key });
  return ok({ ...catalogue, lists: catalogue.lists.map(withKey) });
};

const keyProblems = ({ lists }: Catalogue, id: string, key: string) => {
  const list = lists.find((candidate) => candidate.id === id);
  if (list === undefined) return [`There is a key for "${id}", which is not in the catalogue.`];
  if (list.keyedZone === null) return [`There is a key for the list "${id}", which uses none.`];
  return KEY.test(key) ? [] : [`The key for the list "${id}" must be 1 to 63 letters, digits and hyphens.`];
};

/** Replaces every occurrence of the list's key by `{key}`, in any case: for logs, history and users. */
export const maskKey = ({ key }: Pick<Blocklist, "key">, text: string): string => {
  if (key === null) return text;
  // input ≤ 65,536 characters
  return text.replace(new RegExp(RegExp.escape(key), "gi"), KEY_MASK);
};

/** Ids of lists that the operator of this service enables or disables for everybody. */
interface ListSwitches {
  readonly enable: readonly string[];
  readonly disable: readonly string[];
}

/** What is wrong with each of the two settings, as sentences. */
type SwitchProblems = Readonly<Record<keyof ListSwitches, readonly string[]>>;

/**
 * The same catalogue with lists enabled and disabled; apply keys before. Fails for an id that is not in the catalogue
 * (with the nearest one), for a list in both settings, and for an enabled list without the key that it requires.
 */
export const applySwitches = (
  catalogue: Catalogue,
  { enable, disable }: ListSwitches,
): Result<Catalogue, SwitchProblems> => {
  const { lists } = catalogue;
  const unknown = (ids: readonly string[]) => ids.flatMap((id) => unknownProblem(lists, id) ?? []);
  const keyless = lists
    .filter((list) => enable.includes(list.id) && zoneOf(list) === null)
    .map(({ id }) => `"${id}" needs a key: set POSTWARDEN_BLOCKLIST_KEYS.`);
  const twice = disable
    .filter((id) => enable.includes(id))
    .map((id) => `"${id}" is in POSTWARDEN_BLOCKLISTS_ENABLE as well.`);
  const problems = { enable: [...unknown(enable), ...keyless], disable: [...unknown(disable), ...twice] };
  if (problems.enable.length + problems.disable.length > 0) return err(problems);
  const switched = (list: Blocklist): Blocklist => {
    if (enable.includes(list.id)) return { ...list, switchedOn: true };
    return disable.includes(list.id) ? { ...list, switchedOn: false } : list;
  };
  return ok({ ...catalogue, lists: lists.map(switched) });
};

const unknownProblem = (lists: readonly Blocklist[], id: string) => {
  const ids = lists.map((list) => list.id);
  if (ids.includes(id)) return null;
  const near = nearestName(id, ids);
  return `"${id}" is not in the catalogue.${near === null ? " Run `postwarden blocklist lists` to see all." : ` Did you mean "${near}"?`}`;
};

/** Defaults where neither the target nor the account sets a threshold: webhooks get everything, mail only what matters. */
export const WEBHOOK_SEVERITY_MIN: Severity = "info";
export const MAIL_SEVERITY_MIN: Severity = "medium";

/** 5 for critical down to 1 for info, so that severities can be compared; 0 means not listed. */
export const severityRankOf = (severity: Severity): number => SEVERITIES.length - SEVERITIES.indexOf(severity);

/** The severity of a rank; null for 0. */
export const severityOfRank = (rank: number): Severity | null => SEVERITIES[SEVERITIES.length - rank] ?? null;

/** The highest rank of some listings: a listing whose severity is no longer known has the lowest rank. */
export const worstRank = (severities: ReadonlyArray<Severity | null>): number =>
  Math.max(0, ...severities.map((severity) => (severity === null ? 1 : severityRankOf(severity))));

/** Whether a listing is to be reported: one whose severity is no longer known always is. */
export const isSevereEnough = (severity: Severity | null, min: Severity): boolean =>
  severity === null || severityRankOf(severity) >= severityRankOf(min);

/** A number for each of some words. */
export const countEach = <K extends string>(keys: readonly K[], count: (key: K) => number) =>
  Object.fromEntries(keys.map((key) => [key, count(key)])) as Record<K, number>;
