import { z } from "zod";
import { domainFiguresSchema } from "./insight/queries/summary.ts";
import { dnsRecordSchema } from "./records/domains/publication.ts";
import {
  booleanParameter,
  flagField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  REMOVE_WITH_NULL,
  labelSchema,
} from "../foundation/http/schema-fields.ts";
import { alertThresholdsSchema } from "./records/domains/alert-store.ts";
import { CHANGE_CODES, dnsCheckSchema, lastCheckSchema, policySchema } from "./records/domains/domain-state.ts";
import { DIGESTS, DOMAIN_STATUSES } from "./records/domains/domain-store.ts";
import { SOURCE_RULES_MAX, sourceRuleSchema } from "./records/domains/source-rules.ts";
import { RETENTION_DAYS_MAX } from "./records/domains/enrolments.ts";
import { recipientsSchema } from "../foundation/mail/recipients.ts";
import { ALERT_RULES } from "./alerts/rules/alert-rules.ts";

const DOMAIN_CHARACTERS_MAX = 320;
const RECIPIENTS_MAX = 20;
const LABEL = "Your own text about the domain.";
const WEBHOOK_URL = "The webhook URL for events about the domain; null to use only that of the account.";

const DOMAIN_NEEDED = "Must be a domain, such as example.com";
const domainText = z
  .string(DOMAIN_NEEDED)
  .trim()
  .min(1, DOMAIN_NEEDED)
  .refine((name) => [...name].length <= DOMAIN_CHARACTERS_MAX, `Must have at most ${DOMAIN_CHARACTERS_MAX} characters`);

const newLabel = labelSchema("shop");
const changedLabel = labelSchema("shop", undefined, REMOVE_WITH_NULL);
const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description: "Addresses that alert mail and digests are sent to.",
});

/** One field for each rule, so that an unknown rule is an unknown field. */
export const byRule = <S extends z.ZodType>(schema: S): Record<string, S> =>
  Object.fromEntries(ALERT_RULES.map(({ name, description }) => [name, schema.meta({ description })]));

const wholeDays = (min: number, description: string) => {
  const needed = `Must be a whole number of days from ${min} to ${RETENTION_DAYS_MAX}`;
  return z.int({ error: needed, abort: true }).min(min, needed).max(RETENTION_DAYS_MAX, needed).meta({ description });
};
export const retentionDays = wholeDays(1, "How long reports are stored, in days.");
export const rawRetentionDays = wholeDays(0, "How long the mails and files that brought reports are stored, in days.");
export const monitoringEnabled = flagField(
  "Whether scheduled DNS checks run. While paused, everything is kept and reports are still accepted.",
);
export const sendsMail = z
  .boolean("Must be true, false or null")
  .nullable()
  .meta({ description: "Whether the domain sends mail at all; null: not specified." });
export const requireAuthenticReports = flagField(
  "Whether only reports count whose mail is authenticated as the reporter's by SPF, DKIM and DMARC; others are quarantined. Reports whose mail fails authentication never count, and advice never uses unauthenticated reports.",
);
export const storeFailureReports = flagField(
  "Whether failure reports (RFC 9991) are stored and can be read, for `raw_retention_days`; default false. The mails themselves are stored that long in any case.",
);
export const failureReportsRedact = flagField(
  "Whether failure reports are stored without local parts, names, subject and header fields that are not needed to find the cause; default true. Applies to reports that arrive from then on.",
);
export const digest = z.enum(DIGESTS).meta({ description: "How often a digest mail is sent to the recipients." });
const sourceRules = z
  .array(sourceRuleSchema)
  .max(SOURCE_RULES_MAX)
  .meta({
    description:
      "Classify sources by rule. The first matching rule counts; a classification of the source itself overrides it.",
    examples: [[{ reverse_name: "none", authenticated: false, classification: "threat" }]],
  });

/** Body of `POST /v1/dmarc/domains`. */
export const enrolmentRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      domain: domainText.meta({
        description: "The domain that mail is sent from, below a public suffix; U-labels are converted to A-labels.",
        examples: ["example.com"],
      }),
      label: newLabel.nullable().optional().meta({ description: LABEL }),
      webhook_url: webhookUrl.nullable().optional().meta({ description: WEBHOOK_URL }),
      recipients: recipients.optional(),
    })
    .meta({ title: "DmarcDomainOrder" });

/** Body of `PATCH /v1/dmarc/domains/{id}`: absent fields are unchanged; null removes. */
export const domainChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      label: changedLabel
        .nullable()
        .optional()
        .meta({ description: `${LABEL} Null removes it.` }),
      monitoring_enabled: monitoringEnabled.optional(),
      webhook_url: webhookUrl.nullable().optional().meta({ description: WEBHOOK_URL }),
      recipients: recipients.optional(),
      alerts: z
        .strictObject(byRule(z.boolean().optional()))
        .optional()
        .meta({
          description: "Turns alert rules on or off; absent rules are unchanged.",
          examples: [{ new_subdomain: false }],
        }),
      alert_thresholds: alertThresholdsSchema
        .partial()
        .optional()
        .meta({
          description: "When the rules alert; absent thresholds are unchanged.",
          examples: [{ new_source_messages: 100 }],
        }),
      source_rules: sourceRules.optional(),
      digest: digest.optional(),
      retention_days: retentionDays.optional(),
      raw_retention_days: rawRetentionDays.optional(),
      sends_mail: sendsMail.optional(),
      require_authentic_reports: requireAuthenticReports.optional(),
      store_failure_reports: storeFailureReports.optional(),
      failure_reports_redact: failureReportsRedact.optional(),
    })
    .meta({ title: "DmarcDomainChange" });
export type DomainChangeBody = z.output<ReturnType<typeof domainChangeSchema>>;

/** The filters of the list of domains. */
export const domainFilters = {
  status: z.enum(DOMAIN_STATUSES).optional().meta({ description: "Only domains of this status." }),
  domain: domainText.optional().meta({ description: "Only this domain, in any spelling." }),
  monitoring_enabled: booleanParameter("`true`: only domains with monitoring on. `false`: only paused ones."),
};

const status = z.enum(DOMAIN_STATUSES);

export const domainSchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the domain." }),
    domain: textField("The domain, in lower-case A-labels."),
    status: status.meta({
      description:
        "`pending` after enrolment; `active` when reports can be received; `action_required` when they cannot. Scheduled checks leave `active` only after two bad results 30 minutes apart; a DNS failure never changes the status.",
    }),
    label: nullableText("Your label; null for none."),
    monitoring_enabled: monitoringEnabled,
    reporting_address: nullableText(
      "The address that receivers send reports to; null while the service receives none.",
    ),
    policy: policySchema.nullable().meta({ description: "The policy that applies, as last seen; null for none." }),
    reporting: z.enum(["waiting", "receiving", "silent"]).meta({
      description: "`waiting`: no report yet. `receiving`: a report in the last 72 hours. `silent`: none since then.",
    }),
    last_report_at: nullableTime("When the last report was received; null before the first."),
    last_check: lastCheckSchema.nullable().meta({ description: "The last DNS check; null before the first." }),
    settings: z
      .object({
        webhook_configured: flagField(
          "Whether events are sent to a webhook. Also false after the endpoint responded 410, until the URL is set again.",
        ),
        recipients: z.array(z.string()).meta({ description: "Addresses that alert mail and digests are sent to." }),
        alerts: z.object(byRule(z.boolean())).meta({ description: "Which alert rules are on." }),
        alert_thresholds: alertThresholdsSchema.meta({ description: "The effective thresholds, including defaults." }),
        source_rules: z.array(sourceRuleSchema).meta({ description: "The first matching rule counts." }),
        digest,
        retention_days: retentionDays,
        raw_retention_days: rawRetentionDays,
        sends_mail: sendsMail,
        require_authentic_reports: requireAuthenticReports,
        store_failure_reports: storeFailureReports,
        failure_reports_redact: failureReportsRedact,
      })
      .meta({ description: "The settings of the domain." }),
    created_at: timeField("When the domain was enrolled."),
    updated_at: timeField("When a setting, the status or the DNS last changed."),
  })
  .meta({ title: "DmarcDomain" });

export const serviceRecordSchema = z
  .object({
    host: textField("The name of the record."),
    type: z.enum(["TXT", "MX"]).meta({ description: "The type of the record." }),
    value: textField("The value of the record."),
    strings: z
      .array(z.string())
      .nullable()
      .meta({ description: "`value` as the strings of one TXT record; null for MX." }),
    purpose: textField("What the record is for."),
  })
  .meta({ title: "DmarcServiceRecord" });

const dnsRecords = z
  .array(dnsRecordSchema)
  .meta({ description: "The records that the owner of the domain publishes." });
const checks = z.array(dnsCheckSchema).meta({ description: "The checks, in a fixed order." });
const previousStatus = status.meta({ description: "The status before." });

export const enrolmentSchema = z
  .object({
    created: flagField("False when the domain was enrolled already."),
    domain: domainSchema,
    dns_records: dnsRecords,
  })
  .meta({ title: "DmarcEnrolment" });

export const dnsSchema = z
  .object({
    dns_records: dnsRecords,
    service_records: z.array(serviceRecordSchema).meta({
      description: "The records that the operator of the service publishes once for the report host, for all domains.",
    }),
  })
  .meta({ title: "DmarcDns" });

export const verifiedSchema = z
  .object({ domain: domainSchema, previous_status: previousStatus, checks, dns_records: dnsRecords })
  .meta({ title: "DmarcVerifiedDomain" });

const historyEntrySchema = z
  .object({
    id: z.uuid().meta({ description: "The id of the entry." }),
    at: timeField("When the change was found."),
    trigger: z
      .enum(["enrolled", "scheduled", "manual"])
      .meta({ description: "What started the check: the enrolment, the schedule or a verify request." }),
    status: status.meta({ description: "The status after." }),
    previous_status: previousStatus,
    record: nullableText("The DMARC record; null when there was none, or more than one."),
    policy: policySchema.nullable().meta({ description: "The policy that applied; null for none." }),
    checks,
    changes: z.array(z.enum(CHANGE_CODES)).meta({ description: "What changed." }),
  })
  .meta({ title: "DmarcHistoryEntry" });

export const historySchema = z
  .object({
    history: z.array(historyEntrySchema).meta({ description: "The changes." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcHistory" });

/** A domain with its figures, as the list returns it. */
const listedDomainSchema = domainSchema.extend({ figures: domainFiguresSchema }).meta({ title: "DmarcListedDomain" });

export const domainsSchema = z
  .object({
    domains: z.array(listedDomainSchema).meta({ description: "The domains." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcDomainList" });
