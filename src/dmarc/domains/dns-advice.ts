import type { Discovery } from "../record/discovery.ts";
import type { DnsRecordView } from "./domain-schemas.ts";
import { type MergeFailure, mergeRua, type RuaMerge } from "../record/merge.ts";
import { dmarcRecordsIn, recordHost } from "../record/record-published.ts";

/**
 * Says what the owner of a domain is to publish so that reports come to our address, as the interface shows it. While the DNS does
 * not answer nothing is advised: `conflict` with the reason `dns_failure`, never `create`.
 */
export const adviseRecord = (domain: string, ours: string, discovery: Discovery): DnsRecordView => {
  const host = recordHost(domain);
  const failure = failureOf(discovery);
  if (failure !== null) return unknownView(host, failure);
  const inherited = discovery.kind === "inherited" ? discovery : null;
  const merged = mergeRua({ domain, published: discovery.published, ours, inherited });
  return merged.ok ? mergedView(host, merged.value) : unknownView(host, merged.error);
};

/** A new record depends on the policy that applies today: without that, none can be advised. */
const failureOf = (discovery: Discovery): Omit<MergeFailure, "kind"> | null => {
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

const mergedView = (host: string, merge: RuaMerge): DnsRecordView => {
  const warnings = merge.warnings.map(({ code, message }) => ({ code, message }));
  const strings = [...merge.strings];
  if (merge.action !== "conflict") {
    const { action, value, current } = merge;
    return { host, type: "TXT", action, value, current, strings, reason: null, message: MESSAGES[action], warnings };
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
      message: MESSAGES.none,
      warnings,
    };
  }
  return { host, type: "TXT", action: "conflict", value: value ?? "", current, strings, reason, message, warnings };
};

const MESSAGES = {
  create: "Publish this TXT record.",
  update: "Replace the TXT record by this one: only the reporting address is added.",
  none: "The reporting address is in the record. Nothing is to be done.",
} as const;
