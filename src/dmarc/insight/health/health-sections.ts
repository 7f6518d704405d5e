import { z } from "zod";
import { HEALTH_STATUSES, healthFindingSchema } from "./health-finding.ts";

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
const text = (description: string) => z.string().meta({ description });
const optionalText = (description: string) => z.string().nullable().meta({ description });

const dkimKeySchema = z.object({
  selector: text("The selector."),
  domain: text("The domain of `d=`."),
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
  cname: optionalText("The target of the CNAME, which names the service that manages the key; null without one."),
  messages: z
    .object({
      passed: count("Messages whose signature passed."),
      failed: count("Messages whose signature failed."),
    })
    .nullable()
    .meta({ description: "In the largest records of each day; null for selectors that no report names." }),
  last_seen: optionalText("The last day on which reports name the selector, as YYYY-MM-DD."),
});

const policySchema = z.object({
  p: text("Policy for the domain."),
  sp: text("Policy for subdomains."),
  np: text("Policy for subdomains that do not exist."),
  pct: count("Share of the mail that older receivers apply the policy to, in percent."),
  t: text("`y`: test mode."),
});

const spfTermSchema = z.object({
  term: text("The term as written."),
  domain: text("The domain whose record holds it."),
  depth: count("0 in the record of the domain itself, 1 in a record that it includes, and so on."),
  lookups: count("DNS lookups of the term and of everything below it."),
});

const sectionSchema = z
  .discriminatedUnion("code", [
    section("dmarc", {
      record,
      inherited_from: optionalText(
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
        .array(z.object({ preference: count("Preference."), exchange: text("Name of the host.") }))
        .meta({ description: "The MX records, most preferred first." }),
      null_mx: z.boolean().meta({ description: "Whether the domain declares that it receives no mail (RFC 7505)." }),
    }),
    section("mta_sts", {
      record,
      policy: z
        .object({
          mode: optionalText("`enforce`, `testing` or `none`; null when it is invalid."),
          max_age_s: z.int().nullable().meta({ description: "How long senders cache it; null when it is invalid." }),
          mx: z.array(z.string()).meta({ description: "Patterns of MX hosts." }),
        })
        .nullable()
        .meta({ description: "The policy file; null when it could not be fetched." }),
    }),
    section("tls_rpt", { record, rua: z.array(z.string()).meta({ description: "Destinations of TLS reports." }) }),
    section("bimi", {
      record,
      location: optionalText("URI of the logo."),
      authority: optionalText("URI of the mark certificate."),
    }),
  ])
  .meta({ title: "HealthSection" });

/** The health of a domain as the API returns it and the database stores it. */
export const domainHealthSchema = z
  .object({
    domain: text("Name of the domain."),
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
