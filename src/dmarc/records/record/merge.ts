import { err, ok, type Result } from "../../../foundation/base/errors.ts";
import type { DnsOutcome } from "../../../foundation/net/dns.ts";
import type { EffectivePolicy, InheritedRecord } from "./discovery.ts";
import {
  RECORD_OCTETS_MAX,
  dmarcRecordsIn,
  parseRecord,
  recordHost,
  splitStrings,
  type Published,
  type ValidRecord,
} from "./record.ts";
import { quote, type RecordWarningCode } from "./record-values.ts";
import { isSameOrganisation, organisationalDomain } from "../../../foundation/mail/organisational-domain.ts";
import { mailtoUri, parseReportUris, reportAddress, type ReportUri } from "./record-tags.ts";

export interface MergeInput {
  /** The domain to be monitored, in lower-case A-labels. */
  readonly domain: string;
  /** What its `_dmarc` name has today. */
  readonly published: Published;
  /** Our reporting address. */
  readonly ours: string;
  /** The record that the domain inherits, if any: a new one must not weaken it. */
  readonly inherited: InheritedRecord | null;
}

/** A warning for the domain's owner: about the record, or about what else the name has. */
export interface MergeWarning {
  readonly code: RecordWarningCode | "near_miss" | "inherits_policy" | "inherited_rua_external";
  readonly message: string;
}

export type ConflictReason = "several_records" | "cname" | "several_rua_tags" | "too_long";

/** What is to be published at the `_dmarc` name. */
export type RuaMerge =
  | {
      readonly action: "create" | "update" | "none";
      /** The whole text of the TXT record; with `none` identical to `current`. */
      readonly value: string;
      /** `value` as the strings of one TXT record, at most 255 octets each. */
      readonly strings: readonly string[];
      /** The text published today, null with `create`. */
      readonly current: string | null;
      readonly warnings: readonly MergeWarning[];
    }
  | {
      /** Only the owner can resolve it. */
      readonly action: "conflict";
      readonly reason: ConflictReason;
      readonly message: string;
      /** The DMARC records seen. */
      readonly seen: readonly string[];
      /** Whether receivers report to us nevertheless, as with an alias whose target names our address. */
      readonly holdsOurs: boolean;
      /** With an alias, the TXT record to publish in its place; null otherwise. */
      readonly value: string | null;
      /** The strings of `value`, none when it is null. */
      readonly strings: readonly string[];
      readonly warnings: readonly MergeWarning[];
    };

/** The DNS query failed, so that nothing can be advised. */
export interface MergeFailure {
  readonly kind: "dns_failure";
  readonly host: string;
  readonly outcome: DnsOutcome;
}

/**
 * Adds our address to the `rua` of a domain's record. The published *text* is kept byte for byte but for the added address
 * (and white space and semicolons at the very end, when a tag is appended). Policy tags never change, and a second merge is
 * `none`. Throws when `ours` is not an address.
 */
export const mergeRua = (question: MergeInput): Result<RuaMerge, MergeFailure> => {
  const { domain, published, ours } = question;
  if (reportAddress(ours) === null) throw new Error("the reporting address is not valid");
  if (published.kind === "failure") {
    return err({ kind: "dns_failure", host: recordHost(domain), outcome: published.outcome });
  }
  const merged = mergeTexts(question, published.texts);
  return ok(published.kind === "alias" ? refuseAlias(question, published, merged) : merged);
};

const mergeTexts = (question: MergeInput, texts: readonly string[]): RuaMerge => {
  const records = dmarcRecordsIn(texts);
  const warnings = warnOfNearMisses(texts);
  const [record] = records;
  if (record === undefined) return create(question, warnings);

  const holdsOurs = holdAddress(records, question.ours);
  const refuse = (reason: ConflictReason, message: string): RuaMerge => {
    const seen = records.map(({ text }) => text);
    return { action: "conflict", reason, message, seen, holdsOurs, value: null, strings: [], warnings };
  };
  if (records.length > 1) {
    return refuse("several_records", `There are ${records.length} DMARC records, so receivers use none. Keep one.`);
  }
  if (record.tags.filter(({ name }) => name === "rua").length > 1) {
    return refuse("several_rua_tags", "The record has several rua tags. Put all destinations into one.");
  }
  const value = holdsOurs ? record.text : addToText(record, mailtoUri(question.ours));
  if (new TextEncoder().encode(value).length > RECORD_OCTETS_MAX) {
    return refuse("too_long", `With our address the record would have more than ${RECORD_OCTETS_MAX} octets.`);
  }
  return { action: holdsOurs ? "none" : "update", current: record.text, ...written(value, warnings) };
};

/** A TXT record cannot coexist with a CNAME (RFC 1034 §3.6.2), but the alias may come from a wildcard. */
const refuseAlias = (
  { domain, ours }: MergeInput,
  { target, texts }: Extract<Published, { readonly kind: "alias" }>,
  merged: RuaMerge,
): RuaMerge => {
  const records = dmarcRecordsIn(texts);
  return {
    action: "conflict",
    reason: "cname",
    message: `${recordHost(domain)} is an alias of ${target}. Add the address there, or replace the alias with a TXT record. If the alias comes from a wildcard, publishing the TXT record is enough.`,
    seen: records.map(({ text }) => text),
    holdsOurs: holdAddress(records, ours),
    value: merged.action === "conflict" ? null : merged.value,
    strings: merged.strings,
    warnings: merged.warnings,
  };
};

/** Whether reports go to an address by these records: it takes exactly one. */
const holdAddress = (records: readonly ValidRecord[], ours: string) => {
  const address = reportAddress(ours);
  const [record] = records;
  return records.length === 1 && record !== undefined && record.values.rua.some((uri) => uri.address === address);
};

/** Writes one more URI into the text of a record with at most one `rua`. */
const addToText = ({ text, tags }: ValidRecord, uri: string) => {
  const rua = tags.find(({ name }) => name === "rua");
  if (rua === undefined) return `${text.replace(/(?<![; \t\r\n])[; \t\r\n]+$/, "")}; rua=${uri}`;
  const last = parseReportUris(text.slice(rua.valueStart, rua.valueEnd)).findLast(
    ({ text: written }) => written !== "",
  );
  const offset = rua.valueStart + (last?.end ?? 0);
  return `${text.slice(0, offset)}${last === undefined ? "" : ","}${uri}${text.slice(offset)}`;
};

const create = ({ domain, ours, inherited }: MergeInput, nearMisses: readonly MergeWarning[]): RuaMerge => {
  const { value, inheritedFrom, externalDestinations } = createRecordFor(domain, ours, inherited);
  const warnings = [...nearMisses];
  if (inheritedFrom !== null && inherited !== null) {
    warnings.push({
      code: "inherits_policy",
      message: `${domain} inherits p=${inherited.policy.p} from ${inheritedFrom}; this record copies it. If you enroll ${inheritedFrom} instead, no record is needed here.`,
    });
  }
  if (externalDestinations.length > 0) {
    warnings.push({
      code: "inherited_rua_external",
      message: `${externalDestinations.join(", ")} must authorize reports about ${domain}; otherwise receivers send none there.`,
    });
  }
  return { action: "create", current: null, ...written(value, warnings) };
};

const written = (value: string, warnings: readonly MergeWarning[]) => ({
  value,
  strings: splitStrings(value),
  warnings: [...warnings, ...parseRecord(value).warnings],
});

/** Texts that look like DMARC records but are not: receivers ignore them. */
const warnOfNearMisses = (texts: readonly string[]): readonly MergeWarning[] =>
  texts
    .filter((text) => /^\W*v\s*=\W*dmarc|\bv\s*=\s*dmarc1\b/iu.test(text) && !parseRecord(text).valid)
    .map((text) => ({
      code: "near_miss",
      message: `${quote(text)} looks like a DMARC record but is not: ${parseRecord(text).warnings[0]?.message ?? ""} Remove it.`,
    }));

const PERCENT_ALL = 100;

/**
 * Writes the record that a domain without one should publish, with our address in `rua`.
 *
 * Where nothing applies to the domain yet that is `p=none`. For a domain that inherits a policy that would be weaker, so its record
 * copies what applies today: policy, test mode, alignment, and the destinations of aggregate reports. `sp` and `np` are copied
 * for an organizational domain, because names below it follow its new record; otherwise receivers ignore them (RFC 9989
 * §4.10.1). `externalDestinations` are copied ones that must authorize the new policy domain before receivers report to them
 * (RFC 9990 §4).
 */
const createRecordFor = (domain: string, ours: string, inherited: InheritedRecord | null) => {
  if (inherited === null) {
    return { value: `v=DMARC1; p=none; rua=${mailtoUri(ours)}`, inheritedFrom: null, externalDestinations: [] };
  }
  const { policy, record, from } = inherited;
  const destinations = record.values.rua.filter((uri) => canBeCopied(uri) && uri.address !== reportAddress(ours));
  const tags = [
    "v=DMARC1",
    `p=${policy.p}`,
    ...(isOrganisational(domain, inherited) ? policiesBelow(policy) : []),
    ...(policy.t === "y" ? ["t=y"] : []),
    ...(policy.adkim === "s" ? ["adkim=s"] : []),
    ...(policy.aspf === "s" ? ["aspf=s"] : []),
    // Otherwise receivers of RFC 7489 would enforce the policy for all mail instead of a part.
    ...(record.values.pct < PERCENT_ALL ? [`pct=${record.values.pct}`] : []),
    `rua=${[...destinations.map(({ text }) => text), mailtoUri(ours)].join(",")}`,
  ];
  const externalDestinations = destinations.flatMap(({ address }) =>
    address !== null && isExternal(domain, address) ? [address] : [],
  );
  return { value: tags.join("; "), inheritedFrom: from, externalDestinations };
};

/** By the tree walk a child of a public suffix that says `psd=y` (RFC 9989 §4.10.2); by the public suffix list for older receivers. */
const isOrganisational = (domain: string, { from, record }: InheritedRecord) =>
  (record.values.psd === "y" && domain.slice(domain.indexOf(".") + 1) === from) ||
  organisationalDomain(domain) === domain;

/** `sp` and `np` where they differ from their defaults, `p` for `sp` and `sp` for `np`. */
const policiesBelow = ({ p, sp, np }: EffectivePolicy) => [
  ...(sp === p ? [] : [`sp=${sp}`]),
  ...(np === sp ? [] : [`np=${np}`]),
];

const canBeCopied = ({ problem }: ReportUri) => problem === null || problem === "uri_not_mailto";

const isExternal = (domain: string, address: string) =>
  !isSameOrganisation(domain, address.slice(address.lastIndexOf("@") + 1));
