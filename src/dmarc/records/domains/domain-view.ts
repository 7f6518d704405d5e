import { isoTime } from "../../../foundation/base/clock.ts";
import type { WebhookUrls } from "../../../notifications/webhooks/url-store.ts";
import { serviceRecords } from "../record/authorisation.ts";
import { type DomainPlatform, type DomainPlatforms, reportingAddressOf } from "./domain-platform.ts";
import { historyBodySchema, readLastCheck, readState } from "./domain-state.ts";
import type { DomainRow, HistoryRow } from "./domain-store.ts";
import { isRuleOn, type RuleSwitch, thresholdsOf } from "./raise.ts";

interface DomainViewDeps {
  readonly platforms: DomainPlatforms;
  readonly urls: Pick<WebhookUrls, "isDisabled">;
  readonly rules: readonly RuleSwitch[];
}

/** Reporters send a report a day; after three days without one something is wrong. */
export const SILENT_AFTER_MS = 72 * 60 * 60_000;

/** A domain as the API returns it. */
export const domainView = (row: DomainRow, { platforms, urls, rules }: DomainViewDeps, nowMs: number) => {
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
      alerts: Object.fromEntries(rules.map((rule) => [rule.name, isRuleOn(row, rule)])),
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

const reportingOf = ({ lastReportAtMs }: DomainRow, nowMs: number) => {
  if (lastReportAtMs === null) return "waiting";
  return nowMs - lastReportAtMs <= SILENT_AFTER_MS ? "receiving" : "silent";
};

export type DomainView = ReturnType<typeof domainView>;

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
