import { nullableText, textField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

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

const section = <C extends string, S extends z.ZodRawShape>(code: C, shape: S) =>
  z.object({
    code: z.literal(code).meta({ description: "The section." }),
    status: z.enum(HEALTH_STATUSES).meta({ description: "Status of the section." }),
    findings: z.array(healthFindingSchema).meta({ description: "What was found." }),
    unchecked: z
      .array(z.string())
      .meta({ description: "What the DNS or a server did not respond to. It is never a finding." }),
    ...shape,
  });

const record = z
  .string()
  .nullable()
  .meta({ description: "The text of the record; null when there is none, or more than one." });
const count = (description: string) => z.int().meta({ description });

const dkimKeySchema = z.object({
  selector: textField("The selector."),
  domain: textField("The domain of `d=`."),
  origin: z.enum(["reports", "request", "common"]).meta({
    description:
      "`reports`: seen in the reports of the last 90 days. `request`: named by you. `common`: tried because no selector was known.",
  }),
  state: z
    .enum(["valid", "revoked", "invalid", "missing", "unknown"])
    .meta({ description: "`missing`: no key is published. `unknown`: the DNS did not respond." }),
  type: z.enum(["rsa", "ed25519"]).nullable().meta({ description: "Key type; null when it is not known." }),
  bits: z.int().nullable().meta({ description: "Length of the key; null when there is no readable key." }),
  testing: z.boolean().meta({ description: "Whether the key is in test mode (`t=y`)." }),
  cname: nullableText("The target of the CNAME, which names the service that manages the key; null without one."),
  messages: z
    .object({
      passed: count("Messages whose signature passed."),
      failed: count("Messages whose signature failed."),
    })
    .nullable()
    .meta({ description: "In the largest records of each day; null for selectors that no report names." }),
  last_seen: nullableText("The last day on which reports name the selector, as YYYY-MM-DD."),
});

const policySchema = z.object({
  p: textField("Policy for the domain."),
  sp: textField("Policy for subdomains."),
  np: textField("Policy for subdomains that do not exist."),
  pct: count("Share of the mail that older receivers apply the policy to, in percent."),
  t: textField("`y`: test mode."),
});

const spfTermSchema = z.object({
  term: textField("The term as written."),
  domain: textField("The domain whose record holds it."),
  depth: count("0 in the record of the domain itself, 1 in a record that it includes, and so on."),
  lookups: count("DNS lookups of the term and of everything below it."),
});

const sectionSchema = z
  .discriminatedUnion("code", [
    section("dmarc", {
      record,
      inherited_from: nullableText(
        "The domain whose record applies; null when it is the domain's own, or there is none.",
      ),
      policy: policySchema.nullable().meta({ description: "The policy that receivers apply (RFC 9989)." }),
    }),
    section("spf", {
      record,
      lookups: z
        .int()
        .nullable()
        .meta({ description: "DNS lookups of the whole record (RFC 7208 section 4.6.4); 10 are allowed." }),
      lookups_complete: z
        .boolean()
        .meta({ description: "False when a part could not be followed, so that `lookups` is a minimum." }),
      void_lookups: count("Lookups that find nothing; 2 are allowed."),
      all: z.enum(["+", "-", "~", "?"]).nullable().meta({ description: "Qualifier of `all`; null without `all`." }),
      terms: z.array(spfTermSchema).meta({ description: "Terms that cause DNS lookups, in the order of evaluation." }),
    }),
    section("dkim", { keys: z.array(dkimKeySchema).meta({ description: "The keys that were checked." }) }),
    section("mx", {
      hosts: z
        .array(z.object({ preference: count("Preference."), exchange: textField("Name of the host.") }))
        .meta({ description: "The MX records, most preferred first." }),
      null_mx: z.boolean().meta({ description: "Whether the domain declares that it receives no mail (RFC 7505)." }),
    }),
    section("mta_sts", {
      record,
      policy: z
        .object({
          mode: nullableText("`enforce`, `testing` or `none`; null when it is invalid."),
          max_age_s: z.int().nullable().meta({ description: "How long senders cache it; null when it is invalid." }),
          mx: z.array(z.string()).meta({ description: "Patterns of MX hosts." }),
        })
        .nullable()
        .meta({ description: "The policy file; null when it could not be fetched." }),
    }),
    section("tls_rpt", { record, rua: z.array(z.string()).meta({ description: "Destinations of TLS reports." }) }),
    section("bimi", {
      record,
      location: nullableText("URI of the logo."),
      authority: nullableText("URI of the mark certificate."),
    }),
  ])
  .meta({ title: "HealthSection" });

/** The health of a domain as the API returns it and the database stores it. */
export const domainHealthSchema = z
  .object({
    domain: textField("Name of the domain."),
    checked_at: z.iso.datetime({ precision: 3 }).meta({ description: "When it was checked." }),
    status: z.enum(HEALTH_STATUSES).meta({
      description:
        "`problems`: at least one error. `unknown`: something could not be checked, and nothing checked is an error.",
    }),
    sections: z.array(sectionSchema).meta({ description: "One section of each code, in a fixed order." }),
  })
  .meta({ title: "DomainHealth" });

export type DomainHealth = z.output<typeof domainHealthSchema>;
export type HealthSection = DomainHealth["sections"][number];
type SectionOf<C extends HealthSection["code"]> = Extract<HealthSection, { code: C }>;

export type DmarcSection = SectionOf<"dmarc">;
export type SpfSection = SectionOf<"spf">;
export type DkimSection = SectionOf<"dkim">;
export type MxSection = SectionOf<"mx">;
export type MtaStsSection = SectionOf<"mta_sts">;
export type TlsRptSection = SectionOf<"tls_rpt">;
export type BimiSection = SectionOf<"bimi">;
export type DkimKeySummary = DkimSection["keys"][number];
/** Why a selector is checked. */
export type SelectorOrigin = DkimKeySummary["origin"];
