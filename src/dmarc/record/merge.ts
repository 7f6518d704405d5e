import { err, ok, type Result } from "../../base/errors.ts";
import type { DnsOutcome } from "../../net/dns.ts";
import type { InheritedRecord } from "./discovery.ts";
import { createRecordFor } from "./merge-create.ts";
import { parseRecord, RECORD_OCTETS_MAX, type ValidRecord } from "./record.ts";
import { dmarcRecordsIn, type Published, recordHost, splitStrings } from "./record-published.ts";
import { quote, type RecordWarningCode } from "./record-warning.ts";
import { mailtoUri, parseReportUris, reportAddress } from "./rua.ts";

export interface MergeInput {
  /** The domain to be monitored, in lower-case A-labels. */
  readonly domain: string;
  /** What stands at its `_dmarc` name today. */
  readonly published: Published;
  /** Our reporting address. */
  readonly ours: string;
  /** The record that applies to the domain although it is not its own, if any: a new one must not weaken it. */
  readonly inherited: InheritedRecord | null;
}

/** Something to tell the domain's owner; codes beyond those of a record are about what stands or happens at the name. */
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
      /** Only the owner can decide what is to become of it. */
      readonly action: "conflict";
      readonly reason: ConflictReason;
      readonly message: string;
      /** The DMARC records seen. */
      readonly seen: readonly string[];
      /** Whether receivers report to us all the same, as with an alias whose target names our address. */
      readonly holdsOurs: boolean;
      /** With an alias, what a TXT record in its place should say; null where that is not for us to say. */
      readonly value: string | null;
      /** The strings of `value`, none when it is null. */
      readonly strings: readonly string[];
      readonly warnings: readonly MergeWarning[];
    };

/** The DNS could not say what stands at the name, so that nothing may be advised. */
export interface MergeFailure {
  readonly kind: "dns_failure";
  readonly host: string;
  readonly outcome: DnsOutcome;
}

/**
 * Says how our address gets into the `rua` of a domain. An edit of the published *text*: everything stays byte for byte but the
 * address that is added (and white space and semicolons at the very end, when a tag must be appended). Policy tags are
 * never touched, and the merge of what was merged is `none`. Throws when `ours` is no address.
 */
export const mergeRua = (question: MergeInput): Result<RuaMerge, MergeFailure> => {
  const { domain, published, ours } = question;
  if (reportAddress(ours) === null) throw new Error("the reporting address is no address");
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
    return refuse("several_records", `There are ${records.length} DMARC records; receivers then use none. Keep one.`);
  }
  if (record.tags.filter(({ name }) => name === "rua").length > 1) {
    return refuse("several_rua_tags", "The record has several rua tags; put all destinations into one.");
  }
  const value = holdsOurs ? record.text : addToText(record, mailtoUri(question.ours));
  if (new TextEncoder().encode(value).length > RECORD_OCTETS_MAX) {
    return refuse("too_long", `With our address the record would have more than ${RECORD_OCTETS_MAX} octets.`);
  }
  return { action: holdsOurs ? "none" : "update", current: record.text, ...written(value, warnings) };
};

/** A TXT record cannot stand beside a CNAME (RFC 1034 §3.6.2); but an alias seen here may as well come from a wildcard. */
const refuseAlias = (
  { domain, ours }: MergeInput,
  { target, texts }: Extract<Published, { readonly kind: "alias" }>,
  merged: RuaMerge,
): RuaMerge => {
  const records = dmarcRecordsIn(texts);
  return {
    action: "conflict",
    reason: "cname",
    message: `${recordHost(domain)} is an alias of ${target}. Add the address there, or publish a TXT record in place of the alias; where the alias comes from a wildcard, the TXT record is enough.`,
    seen: records.map(({ text }) => text),
    holdsOurs: holdAddress(records, ours),
    value: merged.action === "conflict" ? null : merged.value,
    strings: merged.strings,
    warnings: merged.warnings,
  };
};

/** Whether reports go to an address by these records: it takes exactly one. */
const holdAddress = (records: readonly ValidRecord[], ours: string): boolean => {
  const address = reportAddress(ours);
  const [record] = records;
  return records.length === 1 && record !== undefined && record.values.rua.some((uri) => uri.address === address);
};

/** Writes one more URI into the text of a record with at most one `rua`. */
const addToText = ({ text, tags }: ValidRecord, uri: string): string => {
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
      message: `${domain} inherits p=${inherited.policy.p} from ${inheritedFrom}, which this record takes over. To enrol ${inheritedFrom} instead needs no record here.`,
    });
  }
  if (externalDestinations.length > 0) {
    warnings.push({
      code: "inherited_rua_external",
      message: `${externalDestinations.join(", ")} must authorise reports about ${domain}, or receivers send none there.`,
    });
  }
  return { action: "create", current: null, ...written(value, warnings) };
};

const written = (value: string, warnings: readonly MergeWarning[]) => ({
  value,
  strings: splitStrings(value),
  warnings: [...warnings, ...parseRecord(value).warnings],
});

/** Texts that were meant as DMARC records and are none: receivers do not see them, so their owner should. */
const warnOfNearMisses = (texts: readonly string[]): readonly MergeWarning[] =>
  texts
    .filter((text) => /^\W*v\s*=\W*dmarc|\bv\s*=\s*dmarc1\b/iu.test(text) && !parseRecord(text).valid)
    .map((text) => ({
      code: "near_miss",
      message: `${quote(text)} is no DMARC record, though it looks like one: ${parseRecord(text).warnings[0]?.message ?? ""} Remove it.`,
    }));
