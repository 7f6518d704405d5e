import type { PolicyDiscovery } from "../record/discovery.ts";
import type { DnsRecordView } from "./dns-record-schema.ts";
import type { DnsCheck } from "./domain-state.ts";
import { recordFaults } from "../record/record.ts";
import { type MergeFailure, mergeRua, type RuaMerge } from "../record/merge.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";

/** What the record to publish depends on. */
export interface AdvisedBy {
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
    ? [`Whether reports can arrive is unknown: ${message}`]
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

const messageOf = (action: keyof typeof MESSAGES, notes: readonly string[]): string =>
  [MESSAGES[action], ...(action === "none" && notes.length === 0 ? ["Nothing to do."] : notes)].join(" ");

const MESSAGES = {
  create: "Publish this TXT record.",
  update: "Replace the TXT record with this one: only the reporting address is added.",
  none: "The reporting address is in the record.",
} as const;
