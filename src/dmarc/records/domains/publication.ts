import { z } from "zod";
import { isoTime } from "../../../foundation/base/clock.ts";
import { recordHost, recordFaults, dmarcRecordsIn } from "../record/record.ts";
import { type DomainPlatform, reportingAddressOf } from "./domain-platform.ts";
import { type DnsCheck, lastCheckSchema, type DnsObservation, type CheckOutcome } from "./domain-state.ts";
import type { DomainRow } from "./domain-store.ts";
import {
  enumField,
  namedResponse,
  nullableEnum,
  nullableText,
  textField,
  textsField,
} from "../../../foundation/http/schema-fields.ts";
import type { PolicyDiscovery } from "../record/discovery.ts";
import { type MergeFailure, mergeRua, type RuaMerge } from "../record/merge.ts";

/** A DNS record that the owner of a domain publishes, as the API shows it and a check stores it. */
export const dnsRecordSchema = namedResponse("DmarcDnsRecord", {
  host: textField("The name of the record."),
  type: z.literal("TXT").meta({ description: "The type of the record." }),
  action: enumField(
    ["create", "update", "none", "conflict"],
    "`create`: publish `value`. `update`: replace `current` with `value`. `none`: the record contains the reporting address; `message` says if anything else must be done. `conflict`: no record can be advised; see `reason`.",
  ),
  value: textField(
    "The complete text of the TXT record. Every tag of an existing record is kept; the reporting address is added to its `rua`. Empty for `conflict`, except for an alias that a record may replace.",
  ),
  current: nullableText("What is published now, one record per line; null for nothing."),
  strings: textsField("`value` as the strings of one TXT record, at most 255 octets each."),
  reason: nullableEnum(
    ["several_records", "cname", "several_rua_tags", "too_long", "dns_failure"],
    "Why the action is `conflict`; otherwise null. `dns_failure`: there was no DNS response; request it again, and publish nothing before that.",
  ),
  message: textField("What to do, in a sentence."),
  warnings: z
    .array(z.object({ code: textField("The kind of fault."), message: textField("The fault, in a sentence.") }))
    .meta({ description: "Faults of the existing record." }),
});
export type DnsRecordView = z.output<typeof dnsRecordSchema>;

/**
 * - `in_order`: the record is published, and receivers may send reports.
 * - `not_authorised`: the record is published, but receivers may not send reports to the report host.
 * - `missing`: there is no DMARC record at the domain.
 * - `no_address`: there is one record, without the reporting address.
 * - `conflict`: several records, an alias, or another fault that only the owner can resolve.
 * - `unknown`: the DNS did not respond, or was never checked.
 */
export type PublicationState = "in_order" | "not_authorised" | "missing" | "no_address" | "conflict" | "unknown";

/** What is published for a domain and what is to be, as of the last check of its DNS. */
export interface Publication {
  readonly state: PublicationState;
  /** The name of the record. */
  readonly host: string;
  readonly reportingAddress: string | null;
  /** Null before the first check. */
  readonly checkedAtMs: number | null;
  readonly checks: readonly DnsCheck[];
  /** The record to publish; null when it was not stored: check again. */
  readonly advised: DnsRecordView | null;
  /** Until when resolvers may keep what the check found; null when that is not known. */
  readonly cachedUntilMs: number | null;
}

/** Longer records are read again when they are needed. */
const STORED_CHARACTERS_MAX = 16_384;

/** The last check as it is stored; older versions stored only what the API returns. */
const storedCheckSchema = lastCheckSchema.extend({
  advised: dnsRecordSchema.nullable().default(null).catch(null),
  record_ttl_s: z.number().default(0),
});
type StoredCheck = z.output<typeof storedCheckSchema>;

export const storedCheckOf = (
  { checks, outcome, dnsRecords, recordTtlS }: DnsCheckResult,
  nowMs: number,
): StoredCheck => {
  const advised = dnsRecords[0] ?? null;
  const isShort = advised !== null && JSON.stringify(advised).length <= STORED_CHARACTERS_MAX;
  return {
    at: isoTime(nowMs),
    ok: outcome === "indefinite" ? null : outcome === "good",
    checks: [...checks],
    advised: isShort ? advised : null,
    record_ttl_s: recordTtlS,
  };
};

/** What the last check of a domain says. Sends no DNS query. */
export const publicationOf = (
  { domain, token, lastCheck }: Pick<DomainRow, "domain" | "token" | "lastCheck">,
  platform: Pick<DomainPlatform, "reportHost" | "mailbox">,
): Publication => {
  const base = { host: recordHost(domain), reportingAddress: reportingAddressOf(platform, token) };
  if (lastCheck === null) {
    return { ...base, state: "unknown", checkedAtMs: null, checks: [], advised: null, cachedUntilMs: null };
  }
  const { at, checks, advised, record_ttl_s: ttlS } = storedCheckSchema.parse(JSON.parse(lastCheck));
  const checkedAtMs = Date.parse(at);
  return {
    ...base,
    state: stateOf(checks, advised),
    checkedAtMs,
    checks,
    advised,
    cachedUntilMs: ttlS > 0 ? checkedAtMs + ttlS * 1000 : null,
  };
};

const stateOf = (checks: readonly DnsCheck[], advised: DnsRecordView | null): PublicationState => {
  const okOf = (code: DnsCheck["code"]) => checks.find((check) => check.code === code)?.ok ?? null;
  const [record, address, authorised] = [okOf("record"), okOf("reporting_address"), okOf("authorisation")];
  if (record === null || address === null || advised?.reason === "dns_failure") return "unknown";
  if (address && record) return authorised === false ? "not_authorised" : authorised === null ? "unknown" : "in_order";
  if (advised?.action === "conflict") return "conflict";
  return record ? "no_address" : "missing";
};

/** The result of one check of a domain's DNS. */
export interface DnsCheckResult {
  /** One for each of `CHECK_CODES`, in that order. */
  readonly checks: readonly DnsCheck[];
  readonly outcome: CheckOutcome;
  /** The definite DNS responses. */
  readonly observed: DnsObservation;
  /** The record that the owner must publish. */
  readonly dnsRecords: readonly DnsRecordView[];
  /** For how many seconds resolvers may keep what they have at the `_dmarc` name; 0 when that is not known. */
  readonly recordTtlS: number;
}

/** What the record to publish depends on. */
interface AdvisedBy {
  /** Our reporting address. */
  readonly ours: string;
  readonly discovery: PolicyDiscovery;
  /** The check whether receivers may report to us. */
  readonly authorised: Pick<DnsCheck, "ok" | "message">;
}

/**
 * The record that the owner of a domain must publish to send reports to our address. Without a definite DNS response it is `conflict`
 * with the reason `dns_failure`, never `create`. The message also names what else prevents reports or the policy from working.
 */
export const adviseRecord = (domain: string, { ours, discovery, authorised }: AdvisedBy): DnsRecordView => {
  const host = recordHost(domain);
  const failure = failureOf(discovery);
  if (failure !== null) return unknownView(host, failure);
  const inherited = discovery.kind === "inherited" ? discovery : null;
  const merged = mergeRua({ domain, published: discovery.published, ours, inherited });
  const notes = [...faultNotes(discovery), ...authorisationNotes(authorised)];
  return merged.ok ? mergedView(host, merged.value, notes) : unknownView(host, merged.error);
};

/** A new record depends on the policy that applies today; while that is unknown, none can be advised. */
const failureOf = (discovery: PolicyDiscovery): Omit<MergeFailure, "kind"> | null => {
  if (discovery.kind !== "indefinite") return null;
  const { published, host, outcome } = discovery;
  const isNew = published.kind !== "failure" && dmarcRecordsIn(published.texts).length === 0;
  return published.kind === "failure" || isNew ? { host, outcome } : null;
};

const unknownView = (host: string, { host: asked, outcome }: Omit<MergeFailure, "kind">): DnsRecordView => ({
  host,
  type: "TXT",
  action: "conflict",
  value: "",
  current: null,
  strings: [],
  reason: "dns_failure",
  message: `There is no usable DNS response for ${asked} (${outcome}). Publish nothing yet and try again: with two records, receivers ignore both.`,
  warnings: [],
});

const faultNotes = (discovery: PolicyDiscovery): readonly string[] => {
  const faults = discovery.kind === "own" ? recordFaults(discovery.record) : [];
  return faults.length === 0 ? [] : [`Correct the record: ${faults.join(" ")}`];
};

const authorisationNotes = ({ ok, message }: AdvisedBy["authorised"]): readonly string[] => {
  if (ok === true) return [];
  return ok === null
    ? [`It is not known whether reports can arrive: ${message}`]
    : [`No reports can arrive: ${message} The operator of the report host must publish service_records.`];
};

/** `notes` are sentences about what else must be done. */
const mergedView = (host: string, merge: RuaMerge, notes: readonly string[]): DnsRecordView => {
  const warnings = merge.warnings.map(({ code, message }) => ({ code, message }));
  const strings = [...merge.strings];
  if (merge.action !== "conflict") {
    const { action, value, current } = merge;
    const message = messageOf(action, notes);
    return { host, type: "TXT", action, value, current, strings, reason: null, message, warnings };
  }
  const { reason, message, seen, holdsOurs, value } = merge;
  const current = seen.length === 0 ? null : seen.join("\n");
  if (reason === "cname" && holdsOurs && value !== null) {
    return {
      host,
      type: "TXT",
      action: "none",
      value,
      current,
      strings,
      reason: null,
      message: messageOf("none", notes),
      warnings,
    };
  }
  return { host, type: "TXT", action: "conflict", value: value ?? "", current, strings, reason, message, warnings };
};

const messageOf = (action: keyof typeof MESSAGES, notes: readonly string[]) =>
  [MESSAGES[action], ...(action === "none" && notes.length === 0 ? ["Nothing to do."] : notes)].join(" ");

const MESSAGES = {
  create: "Publish this TXT record.",
  update: "Replace the TXT record with this one: only the reporting address is added.",
  none: "The reporting address is in the record.",
} as const;
