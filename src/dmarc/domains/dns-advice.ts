import type { PolicyDiscovery } from "../record/discovery.ts";
import type { DnsRecordView } from "./domain-schemas.ts";
import type { DnsCheck } from "./domain-state.ts";
import { recordFaults } from "../record/record-faults.ts";
import { type MergeFailure, mergeRua, type RuaMerge } from "../record/merge.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";

/** What a look found out that the record to publish depends on. */
export interface AdvisedBy {
  /** Our reporting address. */
  readonly ours: string;
  readonly discovery: PolicyDiscovery;
  /** The check whether receivers may report to us. */
  readonly authorised: Pick<DnsCheck, "ok" | "message">;
}

/**
 * Says what the owner of a domain is to publish so that reports come to our address, as the interface shows it. While the DNS does
 * not answer nothing is advised: `conflict` with the reason `dns_failure`, never `create`. The message of a record that can be
 * published, or is, says too what else keeps reports or the policy from working.
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

/** A new record depends on the policy that applies today: without that, none can be advised. */
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
  message: `The DNS could not say what stands at ${asked} (${outcome}). Publish nothing yet and ask again: a second record would void both.`,
  warnings: [],
});

const faultNotes = (discovery: PolicyDiscovery): readonly string[] => {
  const faults = discovery.kind === "own" ? recordFaults(discovery.record) : [];
  return faults.length === 0 ? [] : [`Yet the record is to be mended: ${faults.join(" ")}`];
};

const authorisationNotes = ({ ok, message }: AdvisedBy["authorised"]): readonly string[] => {
  if (ok === true) return [];
  return ok === null
    ? [`Whether reports can come is not known: ${message}`]
    : [`Yet no reports can come: ${message} What the operator of the report host is to publish is in service_records.`];
};

/** `notes` are sentences about what is to be done beside it. */
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
  [MESSAGES[action], ...(action === "none" && notes.length === 0 ? ["Nothing is to be done."] : notes)].join(" ");

const MESSAGES = {
  create: "Publish this TXT record.",
  update: "Replace the TXT record by this one: only the reporting address is added.",
  none: "The reporting address is in the record.",
} as const;
