import { z } from "zod";
import { dnsRecordSchema } from "./publication.ts";
import {
  flagField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
  countField,
} from "../../../foundation/http/schema-fields.ts";
import { alertThresholdsSchema, thresholdsOf, ALERT_RULES, type AlertRule, isRuleOn } from "./raise.ts";
import {
  CHANGE_CODES,
  dnsCheckSchema,
  lastCheckSchema,
  policySchema,
  historyBodySchema,
  readLastCheck,
  readState,
} from "./domain-state.ts";
import {
  byRule,
  digest,
  failureReportsRedact,
  monitoringEnabled,
  rawRetentionDays,
  requireAuthenticReports,
  retentionDays,
  sendsMail,
  storeFailureReports,
} from "./domain-settings-schemas.ts";
import { DOMAIN_STATUSES, type DomainRow, type HistoryRow } from "./domain-store.ts";
import { sourceRuleSchema } from "./source-rules.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { serviceRecords } from "../record/authorisation.ts";
import { type DomainPlatform, type DomainPlatforms, reportingAddressOf } from "./domain-platform.ts";
import type { WebhookUrls } from "../../../notifications/webhooks/webhook-urls.ts";

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
export type DomainView = z.output<typeof domainSchema>;

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

const perDay = (description: string) => z.array(z.int().nonnegative()).meta({ description });

const figures = z.object({
  messages: countField("Messages in reports."),
  aligned: countField("Messages that passed DMARC."),
  failing: countField("Messages that failed DMARC."),
  aligned_percent: z
    .number()
    .nullable()
    .meta({ description: "Share of aligned messages in percent, with one decimal; null when there are no messages." }),
});

/** Message counts of a domain on the last 30 UTC days, including today. */
const domainFiguresSchema = z
  .object({
    last_7_days: figures.meta({ description: "The last seven days, including today." }),
    last_30_days: figures.meta({ description: "The last 30 days, including today." }),
    days: z
      .object({
        from: z.iso.date().meta({ description: "The first of the 30 days." }),
        messages: perDay("Messages of each day."),
        failing: perDay("Failing messages of each day."),
      })
      .meta({ description: "A number for each of the 30 days, the oldest first: for a small chart." }),
  })
  .meta({ title: "DmarcDomainFigures" });
export type DomainFigures = Readonly<z.output<typeof domainFiguresSchema>>;

/** A domain with its figures, as the list returns it. */
const listedDomainSchema = domainSchema.extend({ figures: domainFiguresSchema }).meta({ title: "DmarcListedDomain" });

export const domainsSchema = z
  .object({
    domains: z.array(listedDomainSchema).meta({ description: "The domains." }),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcDomainList" });

/** Reads the figures of domains by their numbers; the result has every given number. */
export type ReadFigures = (numbers: readonly number[]) => ReadonlyMap<number, DomainFigures>;

interface DomainViewDeps {
  readonly platforms: DomainPlatforms;
  readonly urls: Pick<WebhookUrls, "isDisabled">;
}

/** Reporters send a report a day; after three days without one something is wrong. */
export const SILENT_AFTER_MS = 72 * 60 * 60_000;

/** A domain as the API returns it. */
export const domainView = (row: DomainRow, { platforms, urls }: DomainViewDeps, nowMs: number): DomainView => {
  return {
    id: row.id,
    domain: row.domain,
    status: row.status,
    label: row.label,
    monitoring_enabled: row.monitoringEnabled,
    reporting_address: reportingAddressOf(platforms[row.mode], row.token),
    policy: readState(row.state)?.believed.policy ?? null,
    reporting: reportingOf(row, nowMs),
    last_report_at: row.lastReportAtMs === null ? null : isoTime(row.lastReportAtMs),
    last_check: readLastCheck(row.lastCheck),
    settings: {
      webhook_configured: row.webhookUrl !== null && !urls.isDisabled(row, row.webhookUrl),
      recipients: [...row.recipients],
      alerts: alertsView(row),
      alert_thresholds: thresholdsOf(row),
      source_rules: [...row.sourceRules],
      digest: row.digest,
      retention_days: row.retentionDays,
      raw_retention_days: row.rawRetentionDays,
      sends_mail: row.sendsMail,
      require_authentic_reports: row.requireAuthenticReports,
      store_failure_reports: row.storeFailureReports,
      failure_reports_redact: row.failureReportsRedact,
    },
    created_at: isoTime(row.createdAtMs),
    updated_at: isoTime(row.updatedAtMs),
  };
};

const alertsView = (row: DomainRow): Record<AlertRule, boolean> =>
  Object.fromEntries(ALERT_RULES.map((rule) => [rule, isRuleOn(row, rule)])) as Record<AlertRule, boolean>;

const reportingOf = ({ lastReportAtMs }: DomainRow, nowMs: number): DomainView["reporting"] => {
  if (lastReportAtMs === null) return "waiting";
  return nowMs - lastReportAtMs <= SILENT_AFTER_MS ? "receiving" : "silent";
};

/** An entry of a domain's history as the API returns it. */
export const historyView = ({ id, trigger, atMs, body }: HistoryRow) => ({
  id,
  at: isoTime(atMs),
  trigger,
  ...historyBodySchema.parse(JSON.parse(body)),
});

/** The records that the operator publishes once; none while the service receives no reports. */
export const serviceRecordsView = ({ reportHost, mailbox, mailHost }: DomainPlatform) =>
  reportHost === null
    ? []
    : // The mail of a mailbox arrives already.
      serviceRecords(reportHost, mailHost).filter(({ type }) => mailbox === null || type !== "MX");
