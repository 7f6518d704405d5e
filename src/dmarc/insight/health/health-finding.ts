import { z } from "zod";
import { type DnsOutcome, type DnsResponse, isDefinite } from "../../../foundation/net/dns.ts";

/** How much a finding matters: an error breaks authentication or delivery, a warning weakens it, information needs no action. */
export const HEALTH_SEVERITIES = ["error", "warning", "info"] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** `problems`: at least one error. `unknown`: something could not be checked and nothing checked is an error. */
export const HEALTH_STATUSES = ["ok", "warnings", "problems", "unknown"] as const;
export type HealthStatus = (typeof HEALTH_STATUSES)[number];

/** The codes are part of the API; the sentences may change. */
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

export const healthFindingSchema = z
  .object({
    code: z.enum(HEALTH_CODES).meta({ description: "What was found." }),
    severity: z.enum(HEALTH_SEVERITIES).meta({
      description:
        "`error`: authentication or delivery is broken. `warning`: it is weakened. `info`: no action is needed.",
    }),
    message: z.string().meta({ description: "One sentence that names the value." }),
    observed: z.string().nullable().meta({ description: "What was found, at most 500 characters." }),
    fix: z.string().nullable().meta({ description: "What to publish or change; null when no action is needed." }),
    record: z
      .object({
        host: z.string().meta({ description: "Name of the record." }),
        value: z.string().meta({ description: "Text of the record." }),
      })
      .nullable()
      .meta({ description: "A TXT record to publish, if its text is known." }),
  })
  .meta({ title: "HealthFinding" });

/** One thing that a check found. */
export type HealthFinding = Readonly<z.output<typeof healthFindingSchema>>;

/** What is not given is null. */
export type FindingText = Pick<HealthFinding, "code" | "message"> &
  Partial<Pick<HealthFinding, "observed" | "fix" | "record">>;

const OBSERVED_CHARACTERS_MAX = 500;

/** Collects what a check of one section finds, and what it could not find out. */
export class SectionReport {
  readonly #findings: HealthFinding[] = [];
  readonly #unchecked: string[] = [];

  /** Findings beyond `findingsMax` are left out. */
  constructor(private readonly findingsMax = Number.POSITIVE_INFINITY) {}

  error(finding: FindingText): void {
    this.#add("error", finding);
  }

  warning(finding: FindingText): void {
    this.#add("warning", finding);
  }

  info(finding: FindingText): void {
    this.#add("info", finding);
  }

  /** Something could not be checked; `sentence` says what, and why. */
  leaveUnchecked(sentence: string): void {
    if (!this.#unchecked.includes(sentence)) this.#unchecked.push(sentence);
  }

  /** Whether a response says what is published at its name. If not, the report says why. */
  isAnswered({ name, type, outcome }: Pick<DnsResponse, "name" | "type" | "outcome">): boolean {
    if (isDefinite(outcome) || outcome === "invalid_name") return true;
    this.leaveUnchecked(`Could not be checked: ${OUTCOMES[outcome]} for ${name} ${type}.`);
    return false;
  }

  /** Adds all of another report. */
  include(other: SectionReport): void {
    for (const { severity, ...finding } of other.#findings) this.#add(severity, finding);
    for (const sentence of other.#unchecked) this.leaveUnchecked(sentence);
  }

  /** The fields that all sections have. */
  result(): { status: HealthStatus; findings: HealthFinding[]; unchecked: string[] } {
    const severities = this.#findings.map(({ severity }) => severity);
    const status = severities.includes("error")
      ? "problems"
      : this.#unchecked.length > 0
        ? "unknown"
        : severities.includes("warning")
          ? "warnings"
          : "ok";
    return { status, findings: this.#findings, unchecked: this.#unchecked };
  }

  #add(severity: HealthSeverity, { code, message, observed = null, fix = null, record = null }: FindingText): void {
    const isKnown = this.#findings.some((known) => known.code === code && known.message === message);
    if (isKnown || this.#findings.length >= this.findingsMax) return;
    const shown = observed === null ? null : cutText(observed, OBSERVED_CHARACTERS_MAX);
    this.#findings.push({ code, severity, message, observed: shown, fix, record });
  }
}

const OUTCOMES: Readonly<Record<Exclude<DnsOutcome, "answer" | "no_data" | "nxdomain">, string>> = {
  unconfirmed: "an unconfirmed empty response",
  servfail: "SERVFAIL",
  refused: "REFUSED",
  timeout: "a DNS timeout",
  malformed: "a malformed DNS response",
  network_error: "no DNS server could be reached",
  cname_loop: "a CNAME loop",
  invalid_name: "an invalid name",
  local_failure: "a local network failure",
  overloaded: "too many DNS queries",
  aborted: "the time limit was reached",
};

/** At most `max` characters of a text from the DNS. */
export const cutText = (text: string, max: number): string =>
  text.length <= max ? text.toWellFormed() : `${text.slice(0, max).toWellFormed()}…`;

/** A faulty text in a sentence. */
export const quoteText = (text: string): string => `"${cutText(text, 80)}"`;

/** The status of several sections together: errors first, then what could not be checked, then warnings. */
export const worstStatus = (statuses: readonly HealthStatus[]): HealthStatus =>
  (["problems", "unknown", "warnings"] as const).find((status) => statuses.includes(status)) ?? "ok";
