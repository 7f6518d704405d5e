import { flagField, nullableText, textField, timeField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";

/** How much a finding matters: an error breaks authentication or delivery, a warning weakens it, information needs no action. */
export const HEALTH_SEVERITIES = ["error", "warning", "info"] as const;
export type HealthSeverity = (typeof HEALTH_SEVERITIES)[number];

/** `problems`: at least one error. `unknown`: something could not be checked and nothing checked is an error. */
export const HEALTH_STATUSES = ["ok", "warnings", "problems", "unknown"] as const;
export type HealthStatus = (typeof HEALTH_STATUSES)[number];

const NO_SPF =
  "Without a working SPF record, receivers cannot tell your servers from others by their address, and DMARC depends on DKIM alone.";
const PERMERROR = "When evaluation ends in permerror, SPF passes for no mail at all, whichever server sent it.";
const SPF_OPEN = "SPF then says nothing against forged mail, or even vouches for it.";
const SPF_WASTE = "Receivers stop after 10 DNS lookups; what is wasted is missing when you add a service.";
const BROKEN_SIGNATURE =
  "Mail signed with this key fails DKIM. Where SPF does not align either, as with forwarded mail, it fails DMARC.";
const WEAK_KEY = "An attacker who finds the private key can sign mail as you.";
const NO_POLICY = "Receivers accept forged mail in your name as if you had no objection, and send you no reports.";
const NOT_RECEIVED = "Mail to the domain cannot be delivered as you expect.";
const DOWNGRADE =
  "Without an enforced policy, somebody on the way can make senders deliver mail to you unencrypted or to another server.";
const BLIND = "Without TLS reports, you do not notice when senders cannot deliver to you over TLS.";
const NO_LOGO = "Mailbox providers show no logo beside your mail. Delivery is not affected.";

/**
 * Every finding, with why it matters in a sentence or two. The codes are part of the API; the sentences may change. The text of a
 * finding stands beside the check that makes it.
 */
const FINDINGS = {
  dmarc_missing: NO_POLICY,
  dmarc_several: NO_POLICY,
  dmarc_inherited:
    "Reports are about the other domain, and its owner decides what happens to forged mail in this name.",
  dmarc_policy_invalid: "Receivers treat a record with an invalid policy as p=none, or ignore it.",
  dmarc_syntax: "Receivers differ in how they read a record with faults; some ignore the tag, some the record.",
  dmarc_policy_none: "Forged mail in your name is still delivered. p=none is for learning who sends for you.",
  dmarc_not_reported: "Without reports, you see neither your own failing mail nor forged mail in your name.",
  dmarc_partial: "Forged mail gets through at receivers that apply the percentage.",
  dmarc_test_mode: "Receivers are asked to apply one step less than the policy says.",
  spf_missing: NO_SPF,
  spf_several: PERMERROR,
  spf_not_recognized: NO_SPF,
  spf_syntax: PERMERROR,
  spf_unknown_mechanism: PERMERROR,
  spf_unknown_modifier: "Receivers ignore the modifier.",
  spf_lookups: PERMERROR,
  spf_lookups_near:
    "A service that you include can add lookups at any time, and then SPF stops working for all your mail.",
  spf_void_lookups: PERMERROR,
  spf_void: "Receivers return permerror after 2 lookups that find nothing.",
  spf_mx_hosts: PERMERROR,
  spf_ptr: "Receivers may skip ptr, so mail that depends on it passes at some of them only.",
  spf_pass_all: SPF_OPEN,
  spf_neutral_all: SPF_OPEN,
  spf_no_all: SPF_OPEN,
  spf_target_missing: PERMERROR,
  spf_loop: PERMERROR,
  spf_after_all: "Servers that the term was meant to allow do not pass SPF.",
  spf_duplicate: SPF_WASTE,
  spf_too_long: "Receivers without TCP to your name servers do not get the record.",
  spf_macro: "The result depends on the message, so it cannot be predicted here.",
  dkim_missing: BROKEN_SIGNATURE,
  dkim_unpublished: "Nothing relies on this selector now.",
  dkim_unproven: "Somebody claims a signature that was never valid: a forger, or a service that is not set up.",
  dkim_dangling_alias: `${BROKEN_SIGNATURE} Somebody who takes over the target can sign as you.`,
  dkim_several: BROKEN_SIGNATURE,
  dkim_invalid: BROKEN_SIGNATURE,
  dkim_revoked: BROKEN_SIGNATURE,
  dkim_key_too_short: BROKEN_SIGNATURE,
  dkim_key_short: WEAK_KEY,
  dkim_key_too_long: "Some receivers verify no keys of this length, and treat the mail as unsigned.",
  dkim_test_mode: "Receivers may treat mail with this key as unsigned.",
  dkim_sha1_only: BROKEN_SIGNATURE,
  dkim_not_for_mail: BROKEN_SIGNATURE,
  dkim_ed25519_only: "Receivers that do not verify Ed25519 treat your mail as unsigned.",
  dkim_no_selector: "Nothing can be said about your keys until a report names a selector.",
  mx_missing: "Senders that find no MX try the web server, and mail may be lost.",
  mx_null: "A null MX is right for a domain that receives no mail.",
  mx_null_not_alone: NOT_RECEIVED,
  mx_address: NOT_RECEIVED,
  domain_missing: "Nothing can be published, sent or received under a name that does not exist.",
  mta_sts_missing: DOWNGRADE,
  mta_sts_not_needed: "There is no mail to protect on its way.",
  mta_sts_several: DOWNGRADE,
  mta_sts_syntax: DOWNGRADE,
  mta_sts_host_missing: DOWNGRADE,
  mta_sts_certificate: DOWNGRADE,
  mta_sts_response: DOWNGRADE,
  mta_sts_content_type: DOWNGRADE,
  mta_sts_policy: DOWNGRADE,
  mta_sts_mode: DOWNGRADE,
  mta_sts_mx: "Under an enforced policy, senders do not deliver to mail hosts that the policy does not name.",
  mta_sts_max_age: "Senders forget the policy before the next mail, and are unprotected again.",
  tls_rpt_missing: BLIND,
  tls_rpt_several: BLIND,
  tls_rpt_syntax: BLIND,
  bimi_missing: NO_LOGO,
  bimi_declined: NO_LOGO,
  bimi_several: NO_LOGO,
  bimi_syntax: NO_LOGO,
  bimi_location: NO_LOGO,
  bimi_policy: NO_LOGO,
  bimi_no_certificate: NO_LOGO,
};

export type HealthCode = keyof typeof FINDINGS;
export const HEALTH_CODES = Object.keys(FINDINGS) as readonly HealthCode[];

/** Why a finding of domain health matters. */
export const findingReason = (code: HealthCode): string => FINDINGS[code];

export const healthFindingSchema = z
  .object({
    code: z.enum(HEALTH_CODES).meta({ description: "What was found." }),
    severity: z.enum(HEALTH_SEVERITIES).meta({
      description:
        "`error`: authentication or delivery is broken. `warning`: it is weakened. `info`: no action is needed.",
    }),
    message: textField("One sentence that names the value."),
    observed: nullableText("What was found, at most 500 characters."),
    fix: nullableText("What to publish or change; null when no action is needed."),
    record: z
      .object({
        host: textField("Name of the record."),
        value: textField("Text of the record."),
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

const record = nullableText("The text of the record; null when there is none, or more than one.");
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
  testing: flagField("Whether the key is in test mode (`t=y`)."),
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
      lookups_complete: flagField("False when a part could not be followed, so that `lookups` is a minimum."),
      void_lookups: count("Lookups that find nothing; 2 are allowed."),
      all: z.enum(["+", "-", "~", "?"]).nullable().meta({ description: "Qualifier of `all`; null without `all`." }),
      terms: z.array(spfTermSchema).meta({ description: "Terms that cause DNS lookups, in the order of evaluation." }),
    }),
    section("dkim", { keys: z.array(dkimKeySchema).meta({ description: "The keys that were checked." }) }),
    section("mx", {
      hosts: z
        .array(z.object({ preference: count("Preference."), exchange: textField("Name of the host.") }))
        .meta({ description: "The MX records, most preferred first." }),
      null_mx: flagField("Whether the domain declares that it receives no mail (RFC 7505)."),
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
    checked_at: timeField("When it was checked."),
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
