import { z } from "zod";
import { HEALTH_CODES, HEALTH_SEVERITIES, HEALTH_STATUSES } from "./health-finding.ts";
import type { DomainHealth } from "./health-sections.ts";

const findingSchema = z
  .object({
    code: z.enum(HEALTH_CODES),
    severity: z.enum(HEALTH_SEVERITIES).meta({
      description:
        "`error`: authentication or delivery is broken. `warning`: it is weakened. `info`: no action is needed.",
    }),
    message: z.string(),
    observed: z.string().nullable().meta({ description: "What was found, at most 500 characters." }),
    fix: z.string().nullable().meta({ description: "What to publish or change." }),
    record: z
      .object({ host: z.string(), value: z.string() })
      .nullable()
      .meta({ description: "A TXT record to publish, where it can be written down." }),
  })
  .meta({ title: "HealthFinding" });

const section = <C extends string, S extends z.ZodRawShape>(code: C, shape: S) =>
  z.object({
    code: z.literal(code),
    status: z.enum(HEALTH_STATUSES),
    findings: z.array(findingSchema),
    unchecked: z.array(z.string()).meta({ description: "What the DNS or a server did not say. Never a finding." }),
    ...shape,
  });

const text = z.string().nullable();

const keySchema = z.object({
  selector: z.string(),
  domain: z.string().meta({ description: "The domain of `d=`." }),
  origin: z.enum(["reports", "request", "common"]).meta({
    description: "`reports`: seen in the reports of the last 90 days. `common`: tried because no selector was known.",
  }),
  state: z.enum(["valid", "revoked", "invalid", "missing", "unknown"]),
  type: z.enum(["rsa", "ed25519"]).nullable(),
  bits: z.int().nullable(),
  testing: z.boolean(),
  cname: text.meta({ description: "The target of the CNAME, which names the service that manages the key." }),
  messages: z
    .object({ passed: z.int(), failed: z.int() })
    .nullable()
    .meta({ description: "In the reports that were looked at: the largest records of each day." }),
  last_seen: text,
});

const sectionSchema = z
  .discriminatedUnion("code", [
    section("dmarc", {
      record: text,
      inherited_from: text,
      policy: z.object({ p: z.string(), sp: z.string(), np: z.string(), pct: z.int(), t: z.string() }).nullable(),
    }),
    section("spf", {
      record: text,
      lookups: z
        .int()
        .nullable()
        .meta({ description: "DNS lookups of the whole record (RFC 7208 section 4.6.4); 10 are allowed." }),
      lookups_complete: z
        .boolean()
        .meta({ description: "False when a part could not be followed, so that `lookups` is a minimum." }),
      void_lookups: z.int().meta({ description: "Lookups that find nothing; 2 are allowed." }),
      all: z.enum(["+", "-", "~", "?"]).nullable(),
      terms: z.array(z.object({ term: z.string(), domain: z.string(), depth: z.int(), lookups: z.int() })).meta({
        description: "Terms that cause lookups, in the order of evaluation; `lookups` includes everything below.",
      }),
    }),
    section("dkim", { keys: z.array(keySchema) }),
    section("mx", { hosts: z.array(z.object({ preference: z.int(), exchange: z.string() })), null_mx: z.boolean() }),
    section("mta_sts", {
      record: text,
      policy: z.object({ mode: text, max_age_s: z.int().nullable(), mx: z.array(z.string()) }).nullable(),
    }),
    section("tls_rpt", { record: text, rua: z.array(z.string()) }),
    section("bimi", { record: text, location: text, authority: text }),
  ])
  .meta({ title: "HealthSection" });

/** The health of a domain as the interface answers it and the database keeps it. */
export const domainHealthSchema = z
  .object({
    domain: z.string(),
    checked_at: z.iso.datetime({ precision: 3 }),
    status: z.enum(HEALTH_STATUSES).meta({
      description:
        "`problems`: at least one error. `unknown`: something could not be checked, and nothing checked is an error.",
    }),
    sections: z.array(sectionSchema),
  })
  .meta({ title: "DomainHealth" }) satisfies z.ZodType<DomainHealth>;
