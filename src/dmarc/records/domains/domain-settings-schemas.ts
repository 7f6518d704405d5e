import { z } from "zod";
import { RETENTION_DAYS_MAX } from "./enrolments.ts";
import { booleanParameter, flagField } from "../../../foundation/http/schema-fields.ts";
import { labelSchema, REMOVE_WITH_NULL } from "../../../foundation/http/label-schema.ts";
import { recipientsSchema } from "../../../foundation/mail/recipients.ts";
import { alertThresholdsSchema, ALERT_RULES, type AlertRule } from "./raise.ts";
import { DIGESTS, DOMAIN_STATUSES } from "./domain-store.ts";
import { SOURCE_RULES_MAX, sourceRuleSchema } from "./source-rules.ts";

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

/** What each rule alerts about. */
export const RULE_DESCRIPTIONS: Readonly<Record<AlertRule, string>> = {
  status_changed: "The status of the domain changed.",
  record_changed: "The DMARC record changed.",
  policy_weakened: "The policy became weaker, in the DNS or in reports.",
  new_source: "A new sender whose mail could be yours.",
  new_subdomain: "Mail from a new name below the domain passed DMARC.",
  failure_spike: "Much more mail of a source fails than usual: started, grew, ended.",
  spoofing_campaign: "Far more unauthenticated mail than usual.",
  reports_stopped: "Reports stopped arriving.",
  tls_failures: "TLS reports contain failures: started, ended.",
  excessive_reporter: "An unknown reporter counts far more messages than all others.",
};

/** One field for each rule, so that an unknown rule is an unknown field. */
export const byRule = <S extends z.ZodType>(schema: S): Record<AlertRule, S> =>
  Object.fromEntries(
    ALERT_RULES.map((rule) => [rule, schema.meta({ description: RULE_DESCRIPTIONS[rule] })]),
  ) as Record<AlertRule, S>;

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
