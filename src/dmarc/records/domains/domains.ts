import type { DbClock } from "../../../foundation/db/runtime.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { drain, mapConcurrently } from "../../../foundation/base/wait.ts";
import { nextDigestMs } from "../../../foundation/base/days.ts";
import type { WebhookUrls } from "../../../notifications/webhooks/url-store.ts";
import { type AlertThresholds, type RaiseAlert, type RuleSwitch, isRuleOn, thresholdsOf } from "./alert-store.ts";
import type { DomainCheck } from "./domain-check.ts";
import { type CheckedDomain, DomainMonitor } from "./domain-monitor.ts";
import { type DomainPlatform, reportingAddressOf, parseMonitoredDomain } from "./domain-platform.ts";
import {
  domainIssue,
  refuseRecipients,
  refuseWithoutMail,
  reportHostOrThrow,
  type EnrolledDomain,
  Enrolments,
  type EnrolmentsDeps,
  type EnrolmentRequest,
} from "./enrolments.ts";
import { type DnsRecordView, publicationOf, type Publication } from "./publication.ts";
import { NEVER_CHECKED_MS, historyBodySchema, readLastCheck, readState } from "./domain-state.ts";
import type { DomainChange, DomainFilters, DomainOwner, DomainPage, DomainRow, HistoryRow } from "./domain-store.ts";
import { serviceRecords } from "../record/discovery.ts";

export interface DomainsDeps extends EnrolmentsDeps {
  readonly check: DomainCheck;
  readonly raise: RaiseAlert;
  readonly rules: readonly RuleSwitch[];
  readonly urls: Pick<WebhookUrls, "enable" | "isDisabled" | "move">;
}

/** What a user may change; absent alert rules are unchanged. */
export interface DomainSettingsChange extends Partial<
  Pick<
    DomainRow,
    | "label"
    | "monitoringEnabled"
    | "webhookUrl"
    | "recipients"
    | "digest"
    | "sourceRules"
    | "bulkSenders"
    | "tags"
    | "retentionDays"
    | "rawRetentionDays"
    | "sendsMail"
    | "requireAuthenticReports"
    | "storeFailureReports"
    | "failureReportsRedact"
  >
> {
  readonly alerts?: DomainRow["alerts"];
  readonly alertThresholds?: Readonly<Partial<AlertThresholds>>;
}

export interface Enrolment extends EnrolledDomain {
  readonly dnsRecords: readonly DnsRecordView[];
}

const MINUTE_MS = 60_000;
const RETRY_AFTER_S = "5";

/** Concurrent DNS checks of domains that were enrolled together, and how long their caller waits. */
const CHECKED_AT_ONCE_MAX = 8;
const ENROLMENT_MS_MAX = 10_000;

const notFound = () => new AppError("not_found", { message: "There is no such domain." });

/** The monitored domains: enrol, verify, read, change, delete. A caller sees the domains of its account and mode. */
export class Domains {
  readonly #monitor: DomainMonitor;
  readonly #enrolments: Enrolments;

  constructor(
    private readonly runtime: DbClock,
    private readonly deps: DomainsDeps,
  ) {
    this.#monitor = new DomainMonitor(runtime, deps);
    this.#enrolments = new Enrolments(runtime, deps);
  }

  /** Throws `not_found` for a domain that does not exist, or is another owner's. */
  find(caller: DomainOwner, id: string): DomainRow {
    const row = this.deps.store.findById(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode) throw notFound();
    if (caller.onlyTag != null && !row.tags.includes(caller.onlyTag)) throw notFound();
    return row;
  }

  list(caller: DomainOwner, filters: DomainFilters, page: DomainPage): DomainRow[] {
    const parsed = filters.domain === undefined ? null : parseMonitoredDomain(filters.domain, caller.mode);
    if (parsed !== null && !parsed.ok) throw domainIssue("domain", parsed.error, "Invalid query");
    return this.deps.store.list(caller, parsed === null ? filters : { ...filters, domain: parsed.value }, page);
  }

  history(caller: DomainOwner, id: string, page: DomainPage): HistoryRow[] {
    return this.deps.store.listHistory(this.find(caller, id).number, page);
  }

  view(row: DomainRow): DomainView {
    return domainView(row, this.deps, this.runtime.clock.nowMs());
  }

  /** Enrols a domain, or finds the existing one (`created` is false). A DNS failure does not prevent it. */
  async enrol(caller: DomainOwner, request: EnrolmentRequest): Promise<Enrolment> {
    const { domain, created } = await this.#enrolments.enrol(caller, request);
    if (!created) return { created, domain, dnsRecords: await this.#dnsRecordsOf(domain) };
    const checked = this.#finished(await this.#monitor.check(domain, "enrolled"));
    return { created, domain: checked.domain, dnsRecords: checked.result.dnsRecords };
  }

  /**
   * Enrols the domains in a text (see `Enrolments.enrolText`) and checks the DNS of the new ones. After 10 seconds the remaining
   * checks continue in the background.
   */
  async enrolText(caller: DomainOwner, text: string, tags: readonly string[]): Promise<readonly EnrolledDomain[]> {
    const enrolled = await this.#enrolments.enrolText(caller, text, tags);
    const added = enrolled.filter(({ created }) => created);
    const checks = mapConcurrently(added, CHECKED_AT_ONCE_MAX, ({ domain }) => this.#monitor.check(domain, "enrolled"));
    await drain(this.runtime.clock, ENROLMENT_MS_MAX, [checks]);
    return enrolled;
  }

  /** What is published and what is to be, as of the last check; sends no DNS query. */
  publication(row: DomainRow): Publication {
    return publicationOf(row, this.deps.platforms[row.mode]);
  }

  /** The records that the operator publishes once for the report host. */
  serviceRecords({ mode }: Pick<DomainOwner, "mode">) {
    return serviceRecordsView(this.deps.platforms[mode]);
  }

  /** Where the reports about the domains of a mode are sent. */
  destination({ mode }: Pick<DomainOwner, "mode">): Pick<DomainPlatform, "reportHost" | "mailbox"> {
    const { reportHost, mailbox } = this.deps.platforms[mode];
    return { reportHost, mailbox };
  }

  /** The reporting address of a test domain. */
  testAddressOf({ token }: Pick<DomainRow, "token">): string {
    return `${token}@${this.deps.platforms.test.reportHost}`;
  }

  /** Checks the DNS and updates the status immediately. Concurrent callers share the result of a running manual check. */
  async verify(caller: DomainOwner, id: string): Promise<CheckedDomain> {
    const row = this.find(caller, id);
    reportHostOrThrow(this.deps.platforms[row.mode]);
    return this.#finished(await this.#monitor.check(row, "manual"));
  }

  /** A scheduled check. Null when the domain was deleted meanwhile or the service stops. */
  checkScheduled(row: DomainRow): Promise<CheckedDomain | null> {
    return this.#monitor.check(row, "scheduled");
  }

  /** Whether scheduled checks can run. */
  canCheck(): boolean {
    return this.deps.platforms.live.reportHost !== null && !this.#monitor.isStopping();
  }

  /** The records that the owner and the operator must publish; changes nothing. */
  async dns(caller: DomainOwner, id: string) {
    const row = this.find(caller, id);
    const dnsRecords = await this.#dnsRecordsOf(row);
    return { dnsRecords, serviceRecords: this.serviceRecords(row) };
  }

  /** Changes the given settings. A paused domain keeps everything; when resumed it is checked as scheduled, or within a minute. */
  async change(caller: DomainOwner, id: string, change: DomainSettingsChange): Promise<DomainRow> {
    const { store, urls } = this.deps;
    this.find(caller, id);
    refuseRecipients(this.deps, change.recipients ?? []);
    refuseWithoutMail(this.deps, "digest", change.digest !== undefined && change.digest !== "off");
    const changed = await this.runtime.db.commit((tx) => {
      const before = store.findById(id);
      if (before === undefined || Object.keys(change).length === 0) return before;
      store.update(tx, before.number, this.#storedChange(before, change));
      const { webhookUrl } = change;
      if (webhookUrl !== undefined && webhookUrl !== null) urls.enable(tx, before, webhookUrl);
      const subject = `domain:${id}`;
      if (webhookUrl !== undefined) urls.move(tx, before, { subject, from: before.webhookUrl, to: webhookUrl });
      return store.findById(id);
    });
    if (changed === undefined) throw notFound();
    return changed;
  }

  /** Deletes a domain: mail to its reporting address is refused from now on, its data is purged in the background. */
  async remove(caller: DomainOwner, id: string): Promise<void> {
    const { store } = this.deps;
    this.find(caller, id);
    await this.runtime.db.commit((tx) => {
      const row = store.findById(id);
      if (row !== undefined) store.markDeleted(tx, row.number, this.runtime.clock.nowMs());
    });
  }

  stop(): Promise<void> {
    return this.#monitor.stop();
  }

  #finished(checked: CheckedDomain | null): CheckedDomain {
    if (checked !== null) return checked;
    if (!this.#monitor.isStopping()) throw notFound();
    throw new AppError("unavailable", { headers: { "retry-after": RETRY_AFTER_S } });
  }

  async #dnsRecordsOf(row: DomainRow): Promise<readonly DnsRecordView[]> {
    reportHostOrThrow(this.deps.platforms[row.mode]);
    return (await this.deps.check(row, { isSetUp: row.status === "active" })).dnsRecords;
  }

  #storedChange(before: DomainRow, change: DomainSettingsChange): DomainChange {
    const { alerts, alertThresholds, digest, ...rest } = change;
    const nowMs = this.runtime.clock.nowMs();
    const isResumed = rest.monitoringEnabled === true && !before.monitoringEnabled;
    const isNewDigest = digest !== undefined && digest !== before.digest;
    const isTest = before.mode === "test";
    return {
      ...rest,
      ...(alerts === undefined ? {} : { alerts: { ...before.alerts, ...alerts } }),
      ...(alertThresholds === undefined ? {} : { alertThresholds: { ...before.alertThresholds, ...alertThresholds } }),
      ...(isNewDigest ? { digest, digestDueAtMs: isTest ? null : nextDigestMs(digest, nowMs) } : {}),
      ...(isResumed
        ? { nextCheckAtMs: isTest ? NEVER_CHECKED_MS : Math.max(before.nextCheckAtMs, nowMs + MINUTE_MS) }
        : {}),
      updatedAtMs: nowMs,
    };
  }
}

/** Reporters send a report a day; after three days without one something is wrong. */
export const SILENT_AFTER_MS = 72 * 60 * 60_000;

/** A domain as the API returns it. */
export const domainView = (
  row: DomainRow,
  { platforms, urls, rules }: Pick<DomainsDeps, "platforms" | "rules"> & { urls: Pick<WebhookUrls, "isDisabled"> },
  nowMs: number,
) => ({
  id: row.id,
  domain: row.domain,
  status: row.status,
  label: row.label,
  tags: [...row.tags],
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
    bulk_senders: [...row.bulkSenders],
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
});

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
