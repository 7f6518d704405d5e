import { z } from "zod";
import { alertThresholdsSchema } from "./alert-thresholds.ts";
import { sourceRuleSchema, SOURCE_RULES_MAX } from "./source-rules.ts";
import { labelSchema, REMOVE_WITH_NULL } from "../../http/label-schema.ts";
import { recipientsSchema } from "../../mail/recipients.ts";
import { CHANGE_CODES } from "./dns-changes.ts";
import { dnsCheckSchema, lastCheckSchema } from "./domain-state.ts";
import { DIGESTS, DOMAIN_STATUSES } from "./domain-store.ts";
import { ALERT_RULES, type AlertRule } from "./raise.ts";

const DOMAIN_CHARACTERS_MAX = 320;
const RECIPIENTS_MAX = 20;
const RETENTION_DAYS_MAX = 3_650;

const characters = (text: string): number => [...text].length;

const newLabel = labelSchema("shop");
const changedLabel = labelSchema("shop", undefined, REMOVE_WITH_NULL);

const DOMAIN_NEEDED = "A domain is needed, as example.com";
const domainText = z
  .string(DOMAIN_NEEDED)
  .trim()
  .min(1, DOMAIN_NEEDED)
  .refine((text) => characters(text) <= DOMAIN_CHARACTERS_MAX, `At most ${DOMAIN_CHARACTERS_MAX} characters`);

const recipients = recipientsSchema({
  most: RECIPIENTS_MAX,
  description: "Addresses that alert mail and digests go to.",
});

const RULE_WORDS: Readonly<Record<AlertRule, string>> = {
  status_changed: "The status of the domain changed.",
  record_changed: "The DMARC record changed.",
  policy_weakened: "The policy became weaker, by the DNS or by what reports found.",
  new_source: "A new sender whose mail could be yours.",
  new_subdomain: "Mail from a new name below the domain passed DMARC.",
  failure_spike: "Much more mail of a source fails than usual: started, grew, ended.",
  spoofing_campaign: "Far more unauthenticated mail than usual.",
  reports_stopped: "No reports come any more.",
  tls_failures: "TLS reports tell of failures: started, ended.",
};

/** One field for each rule, so that a rule that does not exist is an unknown field. */
const ofRules = <S extends z.ZodType>(schema: S): Record<AlertRule, S> =>
  Object.fromEntries(ALERT_RULES.map((rule) => [rule, schema.meta({ description: RULE_WORDS[rule] })])) as Record<
    AlertRule,
    S
  >;

const wholeDays = (min: number) => {
  const needed = `A whole number of days is needed, from ${min} to ${RETENTION_DAYS_MAX}`;
  return z.int({ error: needed, abort: true }).min(min, needed).max(RETENTION_DAYS_MAX, needed);
};
const retentionDays = wholeDays(1);
const rawRetentionDays = wholeDays(0);
const yesOrNo = z.boolean("Must be true or false");
const sendsMail = z.boolean("true, false or null is needed").nullable();
const OBJECT_NEEDED = { error: "Must be an object" };
const oneOf = <T extends string>(names: readonly [T, ...T[]]) => z.enum(names, `Must be one of: ${names.join(", ")}`);

/** Body of `POST /v1/dmarc/domains`; what a URL may be is for the webhooks to say. */
export const enrolmentRequestSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject(
      {
        domain: domainText.meta({
          description: "The domain that mail is sent from, below a public suffix; U-labels are turned into A-labels.",
          examples: ["example.com"],
        }),
        label: newLabel.nullable().optional(),
        webhook_url: webhookUrl.nullable().optional(),
        recipients: recipients.optional(),
      },
      OBJECT_NEEDED,
    )
    .meta({ title: "DmarcDomainOrder" });

/** Body of `PATCH /v1/dmarc/domains/{id}`: only what is given changes; null removes. */
export const domainChangeSchema = (webhookUrl: z.ZodType<string, string>) =>
  z
    .strictObject(
      {
        label: changedLabel.nullable().optional(),
        monitoring_enabled: yesOrNo
          .optional()
          .meta({ description: "Whether scheduled checks run. Pausing keeps everything, and reports are taken on." }),
        webhook_url: webhookUrl.nullable().optional(),
        recipients: recipients.optional(),
        alerts: z
          .strictObject(ofRules(yesOrNo.optional()), OBJECT_NEEDED)
          .optional()
          .meta({
            description: "Turns rules on or off; those not named stay as they are.",
            examples: [{ new_subdomain: false }],
          }),
        alert_thresholds: alertThresholdsSchema
          .partial()
          .optional()
          .meta({
            description: "From when on the rules alert; those not named stay as they are.",
            examples: [{ new_source_messages: 100 }],
          }),
        source_rules: z
          .array(sourceRuleSchema)
          .max(SOURCE_RULES_MAX)
          .optional()
          .meta({
            description:
              "Classify sources by rule; the first that fits counts, and a classification of the source itself overrides it.",
            examples: [[{ reverse_name: "none", authenticated: false, classification: "threat" }]],
          }),
        digest: oneOf(DIGESTS).optional(),
        retention_days: retentionDays.optional().meta({ description: "How long reports are kept, in days." }),
        raw_retention_days: rawRetentionDays
          .optional()
          .meta({ description: "How long their bytes are kept, in days." }),
        sends_mail: sendsMail.optional().meta({ description: "Whether the domain sends mail at all; null: not said." }),
        require_authentic_reports: yesOrNo.optional().meta({
          description:
            "Whether only reports count whose mail is authenticated as the reporter's, by SPF, DKIM and DMARC; others are quarantined. Mail that fails never counts; advice never rests on mail that is not authenticated.",
        }),
        store_failure_reports: yesOrNo.optional().meta({
          description:
            "Whether what failure reports (RFC 9991) say is stored and can be read, for `raw_retention_days`; default false. The mails themselves are kept as long in any case.",
        }),
        failure_reports_redact: yesOrNo.optional().meta({
          description:
            "Whether failure reports are stored without local parts, names, subject and header fields that are not needed to find the cause; default true. It holds for what arrives from then on.",
        }),
      },
      OBJECT_NEEDED,
    )
    .meta({ title: "DmarcDomainChange" });

/** The filters of the list of domains. */
export const domainFiltersSchema = z.strictObject({
  status: oneOf(DOMAIN_STATUSES).optional(),
  domain: domainText.optional(),
  monitoring_enabled: oneOf(["true", "false"])
    .transform((text) => text === "true")
    .optional(),
});

export const noDomainFiltersSchema = z.strictObject({});

const time = z.iso.datetime({ precision: 3 });
const policy = z.enum(["none", "quarantine", "reject"]);
const alignment = z.enum(["r", "s"]);

export const policySchema = z
  .object({
    p: policy,
    sp: policy,
    np: policy,
    adkim: alignment,
    aspf: alignment,
    own: z.boolean().meta({ description: "Whether the domain has the record itself." }),
    inherited_from: z
      .string()
      .nullable()
      .meta({ description: "The domain whose record applies; null when it is its own." }),
    t: z.enum(["y", "n"]).meta({ description: "`y`: test mode, which asks for one step less than the policy says." }),
    pct: z.int().meta({
      description: "For how many percent of the failing mail the policy is asked for; RFC 9989 no longer has it.",
    }),
  })
  .meta({ title: "DmarcPolicy" });
export type PolicyView = z.output<typeof policySchema>;

export const domainSchema = z
  .object({
    id: z.uuid(),
    domain: z.string().meta({ description: "In lower-case A-labels." }),
    status: z.enum(DOMAIN_STATUSES).meta({
      description:
        "`pending` after enrolment; `active` when reports can come; `action_required` when something must be done for that. Scheduled checks leave `active` only after two bad answers 30 minutes apart; a DNS failure never moves it.",
    }),
    label: z.string().nullable(),
    monitoring_enabled: z.boolean(),
    reporting_address: z.string().nullable().meta({
      description: "Where receivers send reports to; null while the service receives none.",
    }),
    policy: policySchema.nullable().meta({ description: "The policy that applies, as last seen; null for none." }),
    reporting: z.enum(["waiting", "receiving", "silent"]).meta({
      description: "`waiting`: no report ever came. `receiving`: one came in the last 72 hours. `silent`: none did.",
    }),
    last_report_at: time.nullable(),
    last_check: lastCheckSchema.nullable(),
    settings: z.object({
      webhook_configured: z.boolean().meta({
        description: "Whether events are sent: false also when the receiver answered 410, until the URL is set again.",
      }),
      recipients: z.array(z.string()),
      alerts: z.object(ofRules(z.boolean())).meta({ description: "Which rules are on." }),
      alert_thresholds: alertThresholdsSchema.meta({ description: "Those in force, defaults included." }),
      source_rules: z.array(sourceRuleSchema).meta({ description: "The first that fits counts." }),
      digest: z.enum(DIGESTS),
      retention_days: retentionDays,
      raw_retention_days: rawRetentionDays,
      sends_mail: sendsMail,
      require_authentic_reports: z.boolean(),
      store_failure_reports: z.boolean().meta({ description: "Whether what failure reports say is stored." }),
      failure_reports_redact: z.boolean().meta({ description: "Whether they are stored redacted." }),
    }),
    created_at: time,
    updated_at: time.meta({ description: "When a setting, the status or what the DNS says last changed." }),
  })
  .meta({ title: "DmarcDomain" });
export type DomainView = z.output<typeof domainSchema>;

export const dnsRecordSchema = z
  .object({
    host: z.string(),
    type: z.literal("TXT"),
    action: z.enum(["create", "update", "none", "conflict"]).meta({
      description:
        "`create`: publish `value`. `update`: replace `current` by `value`. `none`: the record holds the reporting address; `message` says what else is to be done, if anything. `conflict`: `reason` says why nothing can be advised.",
    }),
    value: z.string().meta({
      description:
        "The whole text of the TXT record. Every tag of an existing record stays as it is; the reporting address is added to its `rua`. Empty with `conflict`, but for an alias that a record may replace.",
    }),
    current: z.string().nullable().meta({ description: "What stands there now; several records one a line." }),
    strings: z
      .array(z.string())
      .meta({ description: "`value` as the strings of one TXT record, 255 octets each at most." }),
    reason: z.enum(["several_records", "cname", "several_rua_tags", "too_long", "dns_failure"]).nullable().meta({
      description:
        "Null but for `conflict`. `dns_failure`: the DNS did not answer; ask again, and publish nothing before that.",
    }),
    message: z.string(),
    warnings: z.array(z.object({ code: z.string(), message: z.string() })),
  })
  .meta({ title: "DmarcDnsRecord" });
export type DnsRecordView = z.output<typeof dnsRecordSchema>;

export const serviceRecordSchema = z
  .object({
    host: z.string(),
    type: z.enum(["TXT", "MX"]),
    value: z.string(),
    strings: z.array(z.string()).nullable(),
    purpose: z.string(),
  })
  .meta({ title: "DmarcServiceRecord" });

const dnsRecords = z.array(dnsRecordSchema);
const cursor = z.string().nullable();

export const enrolmentSchema = z
  .object({ created: z.boolean(), domain: domainSchema, dns_records: dnsRecords })
  .meta({ title: "DmarcEnrolment" });

export const dnsSchema = z
  .object({
    dns_records: dnsRecords,
    service_records: z.array(serviceRecordSchema).meta({
      description: "What the operator of the service publishes once for the report host, for all domains.",
    }),
  })
  .meta({ title: "DmarcDns" });

export const verifiedSchema = z
  .object({
    domain: domainSchema,
    previous_status: z.enum(DOMAIN_STATUSES),
    checks: z.array(dnsCheckSchema),
    dns_records: dnsRecords,
  })
  .meta({ title: "DmarcVerifiedDomain" });

export const historySchema = z
  .object({
    history: z.array(
      z
        .object({
          id: z.uuid(),
          at: time,
          trigger: z.enum(["enrolled", "scheduled", "manual"]),
          status: z.enum(DOMAIN_STATUSES),
          previous_status: z.enum(DOMAIN_STATUSES),
          record: z.string().nullable().meta({ description: "Null when there was none, or more than one." }),
          policy: policySchema.nullable(),
          checks: z.array(dnsCheckSchema),
          changes: z.array(z.enum(CHANGE_CODES)),
        })
        .meta({ title: "DmarcHistoryEntry" }),
    ),
    next_cursor: cursor,
  })
  .meta({ title: "DmarcHistory" });
