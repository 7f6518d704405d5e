/** How much a finding matters: an error breaks authentication or delivery, a warning weakens it, information needs no action. */
export const HEALTH_SEVERITIES = ["error", "warning", "info"] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** `problems`: at least one error. `unknown`: something could not be checked and nothing checked is an error. */
export const HEALTH_STATUSES = ["ok", "warnings", "problems", "unknown"] as const;
export type HealthStatus = (typeof HEALTH_STATUSES)[number];

/** The codes are part of the interface; the sentences may change. */
export const HEALTH_CODES = [
  "dmarc_missing",
  "dmarc_several",
  "dmarc_inherited",
  "dmarc_policy_invalid",
  "dmarc_syntax",
  "dmarc_policy_none",
  "dmarc_not_reported",
  "dmarc_partial",
  "dmarc_test_mode",
  "spf_missing",
  "spf_several",
  "spf_not_recognized",
  "spf_syntax",
  "spf_unknown_mechanism",
  "spf_unknown_modifier",
  "spf_lookups",
  "spf_lookups_near",
  "spf_void_lookups",
  "spf_void",
  "spf_mx_hosts",
  "spf_ptr",
  "spf_pass_all",
  "spf_neutral_all",
  "spf_no_all",
  "spf_target_missing",
  "spf_loop",
  "spf_after_all",
  "spf_duplicate",
  "spf_too_long",
  "spf_macro",
  "dkim_missing",
  "dkim_unpublished",
  "dkim_unproven",
  "dkim_dangling_alias",
  "dkim_several",
  "dkim_invalid",
  "dkim_revoked",
  "dkim_key_too_short",
  "dkim_key_short",
  "dkim_key_too_long",
  "dkim_test_mode",
  "dkim_sha1_only",
  "dkim_not_for_mail",
  "dkim_ed25519_only",
  "dkim_no_selector",
  "mx_missing",
  "mx_null",
  "mx_null_not_alone",
  "mx_address",
  "domain_missing",
  "mta_sts_missing",
  "mta_sts_not_needed",
  "mta_sts_several",
  "mta_sts_syntax",
  "mta_sts_host_missing",
  "mta_sts_certificate",
  "mta_sts_response",
  "mta_sts_content_type",
  "mta_sts_policy",
  "mta_sts_mode",
  "mta_sts_mx",
  "mta_sts_max_age",
  "tls_rpt_missing",
  "tls_rpt_several",
  "tls_rpt_syntax",
  "bimi_missing",
  "bimi_declined",
  "bimi_several",
  "bimi_syntax",
  "bimi_location",
  "bimi_policy",
  "bimi_no_certificate",
] as const;
export type HealthCode = (typeof HEALTH_CODES)[number];

/** A TXT record to publish. */
export interface HealthRecord {
  readonly host: string;
  readonly value: string;
}

/** One thing that a check found, as the interface shows it. */
export interface HealthFinding {
  readonly code: HealthCode;
  readonly severity: HealthSeverity;
  /** One sentence that names the value. */
  readonly message: string;
  /** What was found, at most `OBSERVED_CHARACTERS_MAX` characters; null when nothing stands there. */
  readonly observed: string | null;
  /** What to publish or change; null when nothing needs to be done. */
  readonly fix: string | null;
  /** The record to publish, where it can be written down. */
  readonly record: HealthRecord | null;
}

/** What a finding says beside its code and its sentence. */
export type FindingDetails = Partial<Pick<HealthFinding, "observed" | "fix" | "record">>;

/** More of a record than this is not repeated in a finding. */
const OBSERVED_CHARACTERS_MAX = 500;

/** A finding; what is not given is null. */
export const findingOf = (
  severity: HealthSeverity,
  code: HealthCode,
  message: string,
  { observed = null, fix = null, record = null }: FindingDetails = {},
): HealthFinding => ({
  code,
  severity,
  message,
  observed: observed === null ? null : cutText(observed, OBSERVED_CHARACTERS_MAX),
  fix,
  record,
});

/** A text that stands in the DNS, at most `max` characters of it. */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text.toWellFormed() : `${text.slice(0, max).toWellFormed()}…`;

/** What of a faulty record is repeated in a sentence. */
export const quoteText = (text: string): string => `"${cutText(text, 80)}"`;

/** The status of a section: errors first, then what could not be checked, then warnings. */
export const statusOfFindings = (
  findings: readonly Pick<HealthFinding, "severity">[],
  unchecked: readonly string[],
): HealthStatus => {
  if (findings.some(({ severity }) => severity === "error")) return "problems";
  if (unchecked.length > 0) return "unknown";
  return findings.some(({ severity }) => severity === "warning") ? "warnings" : "ok";
};

/** The status of several sections together, by the same order. */
export const worstStatus = (statuses: readonly HealthStatus[]): HealthStatus =>
  (["problems", "unknown", "warnings"] as const).find((status) => statuses.includes(status)) ?? "ok";
