import { flagField, nullableText, nullableTime, textField, timeField } from "../../../foundation/http/schema-fields.ts";
import { z } from "zod";
import { DKIM_FINDINGS, dkimKeySchema } from "./dkim.ts";
import { BIMI_FINDINGS, DMARC_FINDINGS } from "./dmarc-health.ts";
import { INBOUND_FINDINGS } from "./inbound.ts";
import { DANE_STATES, MX_FINDINGS } from "./mx.ts";
import { HEALTH_SEVERITIES, HEALTH_STATUSES } from "./section-report.ts";
import { SPF_FINDINGS } from "./spf-findings.ts";

/** Every finding, with why it matters in a sentence or two. The codes are part of the API; the sentences may change. */
const FINDINGS = {
  ...DMARC_FINDINGS,
  ...SPF_FINDINGS,
  ...DKIM_FINDINGS,
  ...MX_FINDINGS,
  ...INBOUND_FINDINGS,
  ...BIMI_FINDINGS,
};

type HealthCode = keyof typeof FINDINGS;
export const HEALTH_CODES = Object.keys(FINDINGS) as readonly HealthCode[];

/** Why a finding of domain health matters. */
export const findingReason = (code: HealthCode): string => FINDINGS[code];

const healthFindingSchema = z
  .object({
    code: z.enum(HEALTH_CODES).describe("What was found."),
    severity: z
      .enum(HEALTH_SEVERITIES)
      .describe(
        "`error`: authentication or delivery is broken. `warning`: it is weakened. `info`: no action is needed.",
      ),
    message: textField("One sentence that names the value."),
    observed: nullableText("What was found, at most 500 characters."),
    fix: nullableText("What to publish or change; null when no action is needed."),
    record: z
      .object({
        host: textField("Name of the record."),
        value: textField("Text of the record."),
      })
      .nullable()
      .describe("A TXT record to publish, if its text is known."),
    last_known_at: nullableTime(
      "When it was last found, where the DNS or a server did not respond since; null for what was found now. Such findings are kept for up to 30 days.",
    ).default(null),
  })
  .meta({ title: "HealthFinding" });

/** One thing that a check found. */
export type HealthFinding = Readonly<z.output<typeof healthFindingSchema>>;

const section = <C extends string, S extends z.ZodRawShape>(code: C, shape: S) =>
  z.object({
    code: z.literal(code).describe("The section."),
    status: z.enum(HEALTH_STATUSES).describe("Status of the section."),
    findings: z.array(healthFindingSchema).describe("What was found."),
    unchecked: z.array(z.string()).describe("What the DNS or a server did not respond to. It is never a finding."),
    ...shape,
  });

const record = nullableText("The text of the record; null when there is none, or more than one.");
const count = (description: string) => z.int().describe(description);

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
      policy: policySchema.nullable().describe("The policy that receivers apply (RFC 9989)."),
    }),
    section("spf", {
      record,
      lookups: z.int().nullable().describe("DNS lookups of the whole record (RFC 7208 section 4.6.4); 10 are allowed."),
      lookups_complete: flagField("False when a part could not be followed, so that `lookups` is a minimum."),
      void_lookups: count("Lookups that find nothing; 2 are allowed."),
      all: z.enum(["+", "-", "~", "?"]).nullable().describe("Qualifier of `all`; null without `all`."),
      terms: z.array(spfTermSchema).describe("Terms that cause DNS lookups, in the order of evaluation."),
    }),
    section("dkim", { keys: z.array(dkimKeySchema).describe("The keys that were checked.") }),
    section("mx", {
      hosts: z
        .array(
          z.object({
            preference: count("Preference."),
            exchange: textField("Name of the host."),
            addresses: z
              .array(z.string())
              .nullable()
              .default(null)
              .describe("Its addresses; null when the DNS did not respond, and for hosts after the first ten."),
            dane: z
              .enum(DANE_STATES)
              .nullable()
              .default(null)
              .describe(
                "`none`: no TLSA records. `secure`: usable ones that DNSSEC protects; whether they match the certificate is not checked. `insecure`: DNSSEC does not protect them, so senders ignore them. `unusable`: no sender can use them. `not_known`: the resolver of this service does not validate DNSSEC. Null when the DNS did not respond.",
              ),
          }),
        )
        .describe("The MX records, most preferred first."),
      null_mx: flagField("Whether the domain declares that it receives no mail (RFC 7505)."),
    }),
    section("mta_sts", {
      record,
      policy: z
        .object({
          mode: nullableText("`enforce`, `testing` or `none`; null when it is invalid."),
          max_age_s: z.int().nullable().describe("How long senders cache it; null when it is invalid."),
          mx: z.array(z.string()).describe("Patterns of MX hosts."),
        })
        .nullable()
        .describe("The policy file; null when it could not be fetched."),
    }),
    section("tls_rpt", { record, rua: z.array(z.string()).describe("Destinations of TLS reports.") }),
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
    status: z
      .enum(HEALTH_STATUSES)
      .describe(
        "`problems`: at least one error. `unknown`: something could not be checked, and nothing checked is an error.",
      ),
    sections: z.array(sectionSchema).describe("One section of each code, in a fixed order."),
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
