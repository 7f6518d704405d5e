import { ALERT_RULES } from "./alerts/rules/alert-rules.ts";
import { recipientsSchema } from "../foundation/mail/recipients.ts";
import {
  REMOVE_WITH_NULL,
  labelSchema,
  booleanParameter,
  flagField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
} from "../foundation/http/schema-fields.ts";
import { RETENTION_DAYS_MAX, tagSchema, tagsSchema } from "./records/domains/enrolments.ts";
import { SOURCE_RULES_MAX, sourceRuleSchema } from "./records/domains/source-rules.ts";
import { DIGESTS, DOMAIN_STATUSES } from "./records/domains/domain-store.ts";
import {
  CHANGE_CODES,
  dnsCheckSchema,
  lastCheckSchema,
  policySchema,
  POLICY_EXAMPLE,
} from "./records/domains/domain-state.ts";
import { alertThresholdsSchema, DEFAULT_THRESHOLDS, isRuleOn } from "./records/domains/alert-store.ts";
import { dnsRecordSchema } from "./records/domains/publication.ts";
import { isSourceKey } from "./insight/sources/source-identity.ts";
import { domainFiguresSchema } from "./insight/queries/summary.ts";
import { z } from "zod";

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
export const domainRecipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description: "Addresses that alert mail and digests are sent to.",
});

/** One field for each rule, so that an unknown rule is an unknown field. */
export const byRule = <S extends z.ZodType>(schema: S): Record<string, S> =>
  Object.fromEntries(ALERT_RULES.map(({ name, description }) => [name, schema.describe(description)]));

const wholeDays = (min: number, description: string) => {
  const needed = `Must be a whole number of days from ${min} to ${RETENTION_DAYS_MAX}`;
  return z.int({ error: needed, abort: true }).min(min, needed).max(RETENTION_DAYS_MAX, needed).describe(description);
};
export const retentionDays = wholeDays(1, "How long reports are stored, in days.");
export const rawRetentionDays = wholeDays(0, "How long the mails and files that brought reports are stored, in days.");
export const monitoringEnabled = flagField(
  "Whether scheduled DNS checks run. While paused, everything is kept and reports are still accepted.",
);
export const sendsMail = z
  .boolean("Must be true, false or null")
  .nullable()
  .describe("Whether the domain sends mail at all; null: not specified.");
export const requireAuthenticReports = flagField(
  "Whether only reports count whose mail is authenticated as the reporter's by SPF, DKIM and DMARC; others are quarantined. Reports whose mail fails authentication never count, and advice never uses unauthenticated reports.",
);
export const storeFailureReports = flagField(
  "Whether failure reports (RFC 9991) are stored and can be read, for `raw_retention_days`; default false. The mails themselves are stored that long in any case.",
);
export const failureReportsRedact = flagField(
  "Whether failure reports are stored without local parts, names, subject and header fields that are not needed to find the cause; default true. Applies to reports that arrive from then on.",
);
export const digest = z.enum(DIGESTS).describe("How often a digest mail is sent to the recipients.");
const sourceRules = z
  .array(sourceRuleSchema)
  .max(SOURCE_RULES_MAX)
  .meta({
    description:
      "Classify sources by rule. The first matching rule counts; a classification of the source itself overrides it.",
    examples: [[{ reverse_name: "none", authenticated: false, classification: "threat" }]],
  });

export const BULK_SENDERS_MAX = 100;
const KEY_CHARACTERS_MAX = 400;
const bulkSenders = z
  .array(z.string().max(KEY_CHARACTERS_MAX).refine(isSourceKey, "Must be the key of a source, as /sources returns it"))
  .max(BULK_SENDERS_MAX)
  .transform((keys) => [...new Set(keys)])
  .meta({
    description: "Keys of sources that send campaigns: their volume raises no `volume_spike`.",
    examples: [["service:mailchimp"]],
  });

/** Body of `POST /v1/dmarc/domains`. */
export const enrolmentRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      domain: domainText.meta({
        description: "The domain that mail is sent from, below a public suffix; U-labels are converted to A-labels.",
        examples: ["example.com"],
      }),
      label: newLabel.nullable().optional().describe(LABEL),
      webhook_url: webhookUrl.nullable().optional().describe(WEBHOOK_URL),
      recipients: domainRecipients.optional(),
      tags: tagsSchema.optional(),
    })
    .meta({ title: "DmarcDomainOrder" });

/** Body of `PATCH /v1/dmarc/domains/{id}`: absent fields are unchanged; null removes. */
export const domainChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject({
      label: changedLabel.nullable().optional().describe(`${LABEL} Null removes it.`),
      monitoring_enabled: monitoringEnabled.optional(),
      webhook_url: webhookUrl.nullable().optional().describe(WEBHOOK_URL),
      recipients: domainRecipients.optional(),
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
      bulk_senders: bulkSenders.optional(),
      tags: tagsSchema.optional(),
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
  status: z.enum(DOMAIN_STATUSES).optional().describe("Only domains of this status."),
  domain: domainText.optional().describe("Only this domain, in any spelling."),
  tag: tagSchema.optional().describe("Only domains with this tag."),
  monitoring_enabled: booleanParameter("`true`: only domains with monitoring on. `false`: only paused ones."),
};

const status = z.enum(DOMAIN_STATUSES);

export const domainSchema = z
  .object({
    id: z.uuid().describe("The id of the domain."),
    domain: textField("The domain, in lower-case A-labels."),
    status: status.describe(
      "`pending` after enrolment; `active` when reports can be received; `action_required` when they cannot. Scheduled checks leave `active` only after two bad results 30 minutes apart; a DNS failure never changes the status.",
    ),
    label: nullableText("Your label; null for none."),
    tags: z.array(z.string()).describe("Your tags, in alphabetical order."),
    monitoring_enabled: monitoringEnabled,
    reporting_address: nullableText(
      "The address that receivers send reports to; null while the service receives none.",
    ),
    policy: policySchema.nullable().describe("The policy that applies, as last seen; null for none."),
    reporting: z
      .enum(["waiting", "receiving", "silent"])
      .describe("`waiting`: no report yet. `receiving`: a report in the last 72 hours. `silent`: none since then."),
    last_report_at: nullableTime("When the last report was received; null before the first."),
    last_check: lastCheckSchema.nullable().describe("The last DNS check; null before the first."),
    settings: z
      .object({
        webhook_configured: flagField(
          "Whether events are sent to a webhook. Also false after the endpoint responded 410, until the URL is set again.",
        ),
        recipients: z.array(z.string()).describe("Addresses that alert mail and digests are sent to."),
        alerts: z.object(byRule(z.boolean())).describe("Which alert rules are on."),
        alert_thresholds: alertThresholdsSchema.describe("The effective thresholds, including defaults."),
        source_rules: z.array(sourceRuleSchema).describe("The first matching rule counts."),
        bulk_senders: z.array(z.string()).describe("Keys of sources whose volume raises no alert."),
        digest,
        retention_days: retentionDays,
        raw_retention_days: rawRetentionDays,
        sends_mail: sendsMail,
        require_authentic_reports: requireAuthenticReports,
        store_failure_reports: storeFailureReports,
        failure_reports_redact: failureReportsRedact,
      })
      .describe("The settings of the domain."),
    created_at: timeField("When the domain was enrolled."),
    updated_at: timeField("When a setting, the status or the DNS last changed."),
  })
  .meta({ title: "DmarcDomain" });

const serviceRecordSchema = z
  .object({
    host: textField("The name of the record."),
    type: z.enum(["TXT", "MX"]).describe("The type of the record."),
    value: textField("The value of the record."),
    strings: z.array(z.string()).nullable().describe("`value` as the strings of one TXT record; null for MX."),
    purpose: textField("What the record is for."),
  })
  .meta({ title: "DmarcServiceRecord" });

const dnsRecords = z.array(dnsRecordSchema).describe("The records that the owner of the domain publishes.");
const checks = z.array(dnsCheckSchema).describe("The checks, in a fixed order.");
const previousStatus = status.describe("The status before.");

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
    service_records: z
      .array(serviceRecordSchema)
      .describe("The records that the operator of the service publishes once for the report host, for all domains."),
  })
  .meta({ title: "DmarcDns" });

export const verifiedSchema = z
  .object({ domain: domainSchema, previous_status: previousStatus, checks, dns_records: dnsRecords })
  .meta({ title: "DmarcVerifiedDomain" });

const historyEntrySchema = z
  .object({
    id: z.uuid().describe("The id of the entry."),
    at: timeField("When the change was found."),
    trigger: z
      .enum(["enrolled", "scheduled", "manual"])
      .describe("What started the check: the enrolment, the schedule or a verify request."),
    status: status.describe("The status after."),
    previous_status: previousStatus,
    record: nullableText("The DMARC record; null when there was none, or more than one."),
    policy: policySchema.nullable().describe("The policy that applied; null for none."),
    checks,
    changes: z.array(z.enum(CHANGE_CODES)).describe("What changed."),
  })
  .meta({ title: "DmarcHistoryEntry" });

export const historySchema = z
  .object({
    history: z.array(historyEntrySchema).describe("The changes."),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcHistory" });

/** A domain with its figures, as the list returns it. */
const listedDomainSchema = domainSchema.extend({ figures: domainFiguresSchema }).meta({ title: "DmarcListedDomain" });

export const domainsSchema = z
  .object({
    domains: z.array(listedDomainSchema).describe("The domains."),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcDomainList" });

/** What the OpenAPI document shows of monitored domains: one domain at several moments. */

const ADDRESS = "kq3v7m2xwz5ntb4hsy6a@reports.example.net";
const RECORD = `v=DMARC1; p=reject; rua=mailto:dmarc@example.com,mailto:${ADDRESS}`;
const AUTHORISATION = "v=DMARC1;";

export const CHECKS_EXAMPLE = [
  {
    code: "record",
    ok: true,
    observed: RECORD,
    expected: RECORD,
    message: "There is one DMARC record at _dmarc.example.com.",
  },
  {
    code: "reporting_address",
    ok: true,
    observed: `mailto:dmarc@example.com,mailto:${ADDRESS}`,
    expected: `mailto:${ADDRESS}`,
    message: "The reporting address is in rua.",
  },
  {
    code: "authorisation",
    ok: true,
    observed: AUTHORISATION,
    expected: AUTHORISATION,
    message: "Receivers may send reports to reports.example.net.",
  },
];

export const DOMAIN_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  status: "active",
  label: "shop",
  tags: ["client-a"],
  monitoring_enabled: true,
  reporting_address: ADDRESS,
  policy: POLICY_EXAMPLE,
  reporting: "receiving",
  last_report_at: "2026-01-02T04:10:09.000Z",
  last_check: { at: "2026-01-02T00:00:00.120Z", ok: true, checks: CHECKS_EXAMPLE },
  settings: {
    webhook_configured: true,
    recipients: ["ops@example.com"],
    alerts: Object.fromEntries(ALERT_RULES.map((rule) => [rule.name, isRuleOn({ alerts: {} }, rule)])),
    alert_thresholds: DEFAULT_THRESHOLDS,
    source_rules: [],
    bulk_senders: [],
    digest: "weekly",
    retention_days: 400,
    raw_retention_days: 90,
    sends_mail: null,
    require_authentic_reports: false,
    store_failure_reports: false,
    failure_reports_redact: true,
  },
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:20:00.120Z",
};

const DAYS_SHOWN = 30;

export const FIGURES_EXAMPLE = {
  last_7_days: { messages: 910, aligned: 903, failing: 7, aligned_percent: 99.2 },
  last_30_days: { messages: 3_900, aligned: 3_870, failing: 30, aligned_percent: 99.2 },
  days: {
    from: "2025-12-04",
    messages: new Array<number>(DAYS_SHOWN).fill(130),
    failing: new Array<number>(DAYS_SHOWN).fill(1),
  },
};

export const UPDATE_EXAMPLE = {
  host: "_dmarc.example.com",
  type: "TXT",
  action: "update",
  value: RECORD,
  current: "v=DMARC1; p=reject; rua=mailto:dmarc@example.com",
  strings: [RECORD],
  reason: null,
  message: "Replace the TXT record with this one: only the reporting address is added.",
  warnings: [],
};
export const NONE_EXAMPLE = {
  ...UPDATE_EXAMPLE,
  action: "none",
  current: RECORD,
  message: "The reporting address is in the record. Nothing to do.",
};

export const ENROLLED_EXAMPLE = {
  ...DOMAIN_EXAMPLE,
  status: "pending",
  reporting: "waiting",
  last_report_at: null,
  last_check: null,
  settings: { ...DOMAIN_EXAMPLE.settings, webhook_configured: false, recipients: [], digest: "off" },
  updated_at: DOMAIN_EXAMPLE.created_at,
};

export const SERVICE_RECORDS_EXAMPLE = [
  {
    host: "*._report._dmarc.reports.example.net",
    type: "TXT",
    value: AUTHORISATION,
    strings: [AUTHORISATION],
    purpose: "Receivers may send reports about any domain here.",
  },
  {
    host: "reports.example.net",
    type: "MX",
    value: "10 reports.example.net.",
    strings: null,
    purpose: "Delivers mail for the report host to this server.",
  },
];

export const HISTORY_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a61",
  at: "2026-01-01T00:20:00.120Z",
  trigger: "manual",
  status: "active",
  previous_status: "pending",
  record: RECORD,
  policy: POLICY_EXAMPLE,
  checks: CHECKS_EXAMPLE,
  changes: ["record_changed", "reporting_address_added", "status"],
};
