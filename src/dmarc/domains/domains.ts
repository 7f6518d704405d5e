import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { nextDigestMs } from "../../base/digest-schedule.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../../mail/recipients.ts";
import type { Db } from "../../db/open.ts";
import type { WebhookUrls } from "../../webhooks/webhook-urls.ts";
import { authorisationName } from "../record/authorisation.ts";
import type { AlertThresholds } from "./alert-thresholds.ts";
import type { DomainCheck } from "./domain-check.ts";
import { type CheckedDomain, DomainMonitor } from "./domain-monitor.ts";
import type { DomainPlatforms } from "./domain-platform.ts";
import type { DnsRecordView, DomainView } from "./domain-schemas.ts";
import { NEVER_CHECKED_MS } from "./domain-status.ts";
import type {
  DomainChange,
  DomainFilters,
  DomainOwner,
  DomainPage,
  DomainRow,
  DomainStore,
  HistoryRow,
} from "./domain-store.ts";
import { domainView, serviceRecordsView } from "./domain-view.ts";
import { type EnrolmentRequest, newDomain } from "./new-domain.ts";
import { parseMonitoredDomain } from "./parse-domain.ts";
import type { AlertRule, RaiseAlert } from "./raise.ts";

export interface DomainsDeps {
  readonly store: DomainStore;
  readonly platforms: DomainPlatforms;
  readonly check: DomainCheck;
  readonly raise: RaiseAlert;
  readonly urls: Pick<WebhookUrls, "enable" | "isDisabled" | "move">;
  /** Whether the service can send mail. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
  /** Whether the reports of the mailbox belong to an account. */
  readonly ownsMailbox: (accountId: string) => boolean;
  /** `raw_retention_days` of new domains; null: as long as possible. */
  readonly rawRetentionDays?: number | null;
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
    | "retentionDays"
    | "rawRetentionDays"
    | "sendsMail"
    | "requireAuthenticReports"
    | "storeFailureReports"
    | "failureReportsRedact"
  >
> {
  readonly alerts?: Readonly<Partial<Record<AlertRule, boolean>>>;
  readonly alertThresholds?: Readonly<Partial<AlertThresholds>>;
}

export interface Enrolment {
  readonly created: boolean;
  readonly domain: DomainRow;
  readonly dnsRecords: readonly DnsRecordView[];
}

/** Bounds the DNS queries that one account can cause. */
const DOMAINS_PER_ACCOUNT_MAX = 10_000;
const MINUTE_MS = 60_000;
const RETRY_AFTER_S = "5";

const issue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

const notFound = () => new AppError("not_found", { message: "There is no such domain." });

/** The monitored domains: enrol, verify, read, change, delete. A caller sees the domains of its account and mode. */
export class Domains {
  readonly #runtime: { readonly db: Db; readonly clock: Clock };
  readonly #deps: DomainsDeps;
  readonly #monitor: DomainMonitor;

  constructor(runtime: { readonly db: Db; readonly clock: Clock }, deps: DomainsDeps) {
    this.#runtime = runtime;
    this.#deps = deps;
    this.#monitor = new DomainMonitor(runtime, deps);
  }

  /** Throws `not_found` for a domain that does not exist, or is another owner's. */
  find(caller: DomainOwner, id: string): DomainRow {
    const row = this.#deps.store.findById(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode) throw notFound();
    return row;
  }

  list(caller: DomainOwner, filters: DomainFilters, page: DomainPage): DomainRow[] {
    const parsed = filters.domain === undefined ? null : parseMonitoredDomain(filters.domain, caller.mode);
    if (parsed !== null && !parsed.ok) throw issue("domain", parsed.error, "Invalid query");
    return this.#deps.store.list(caller, parsed === null ? filters : { ...filters, domain: parsed.value }, page);
  }

  history(caller: DomainOwner, id: string, page: DomainPage): HistoryRow[] {
    return this.#deps.store.listHistory(this.find(caller, id).number, page);
  }

  view(row: DomainRow): DomainView {
    return domainView(row, this.#deps, this.#runtime.clock.nowMs());
  }

  /** Enrols a domain, or finds the existing one (`created` is false). A DNS failure does not prevent it. */
  async enrol(caller: DomainOwner, request: EnrolmentRequest): Promise<Enrolment> {
    const { store, urls } = this.#deps;
    const row = this.#newRow(caller, request);
    const enrolled = await this.#runtime.db.commit((tx) => {
      const same = store.findSame(caller, row.domain);
      if (same !== undefined) return { domain: same, created: false };
      if (store.count(caller) >= DOMAINS_PER_ACCOUNT_MAX) return null;
      const domain = store.insert(tx, row);
      if (row.webhookUrl !== null) urls.enable(tx, row, row.webhookUrl);
      return { domain, created: true };
    });
    if (enrolled === null) {
      throw new AppError("conflict", { message: `An account can monitor ${DOMAINS_PER_ACCOUNT_MAX} domains.` });
    }
    const { domain, created } = enrolled;
    if (!created) return { created, domain, dnsRecords: await this.#dnsRecordsOf(domain) };
    const checked = this.#finished(await this.#monitor.check(domain, "enrolled"));
    return { created, domain: checked.domain, dnsRecords: checked.result.dnsRecords };
  }

  /** Checks the DNS and updates the status immediately. Concurrent callers share the result of a running manual check. */
  async verify(caller: DomainOwner, id: string): Promise<CheckedDomain> {
    const row = this.find(caller, id);
    this.#reportHostOf(row);
    return this.#finished(await this.#monitor.check(row, "manual"));
  }

  /** A scheduled check. Null when the domain was deleted meanwhile or the service stops. */
  checkScheduled(row: DomainRow): Promise<CheckedDomain | null> {
    return this.#monitor.check(row, "scheduled");
  }

  /** Whether scheduled checks can run. */
  canCheck(): boolean {
    return this.#deps.platforms.live.reportHost !== null && !this.#monitor.isStopping();
  }

  /** The records that the owner and the operator must publish; changes nothing. */
  async dns(caller: DomainOwner, id: string) {
    const row = this.find(caller, id);
    const dnsRecords = await this.#dnsRecordsOf(row);
    return { dnsRecords, serviceRecords: serviceRecordsView(this.#deps.platforms[row.mode]) };
  }

  /** Changes the given settings. A paused domain keeps everything; when resumed it is checked as scheduled, or within a minute. */
  async change(caller: DomainOwner, id: string, change: DomainSettingsChange): Promise<DomainRow> {
    const { store, urls } = this.#deps;
    this.find(caller, id);
    this.#refuseRecipients(change.recipients ?? []);
    this.#refuseWithoutMail("digest", change.digest !== undefined && change.digest !== "off");
    const changed = await this.#runtime.db.commit((tx) => {
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
    const { store } = this.#deps;
    this.find(caller, id);
    await this.#runtime.db.commit((tx) => {
      const row = store.findById(id);
      if (row !== undefined) store.markDeleted(tx, row.number, this.#runtime.clock.nowMs());
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
    this.#reportHostOf(row);
    return (await this.#deps.check(row, { isSetUp: row.status === "active" })).dnsRecords;
  }

  #newRow(caller: DomainOwner, request: EnrolmentRequest): Omit<DomainRow, "number"> {
    const parsed = parseMonitoredDomain(request.domain, caller.mode);
    if (!parsed.ok) throw issue("domain", parsed.error);
    this.#refuseRecipients(request.recipients);
    const domain = parsed.value;
    this.#refuseForeignMailbox(caller);
    const named = authorisationName(domain, this.#reportHostOf(caller));
    if (named.ok) {
      const { rawRetentionDays } = this.#deps;
      return newDomain(caller, { ...request, domain, rawRetentionDays }, this.#runtime.clock.nowMs());
    }
    const { octets, octetsMax } = named.error;
    throw issue(
      "domain",
      `Too long: receivers would have to look up a name of ${octets} octets; the DNS allows ${octetsMax}.`,
    );
  }

  #refuseForeignMailbox({ accountId, mode }: DomainOwner): void {
    if (this.#deps.platforms[mode].mailbox === null || this.#deps.ownsMailbox(accountId)) return;
    throw new AppError("conflict", { message: "The reports of this service's mailbox belong to another account." });
  }

  #reportHostOf({ mode }: Pick<DomainOwner, "mode">): string {
    const { reportHost } = this.#deps.platforms[mode];
    if (reportHost !== null) return reportHost;
    throw new AppError("conflict", {
      message:
        "This service receives no reports: POSTWARDEN_REPORT_HOST is not set, nor the address of a mailbox (POSTWARDEN_IMAP_ADDRESS).",
    });
  }

  #refuseWithoutMail(path: "recipients" | "digest", isRequested: boolean): void {
    if (!isRequested || this.#deps.hasMail) return;
    throw issue(path, NO_MAIL_PROBLEM);
  }

  #refuseRecipients(recipients: readonly string[]): void {
    this.#refuseWithoutMail("recipients", recipients.length > 0);
    const problem = recipientsProblem(recipients, this.#deps.recipientDomains);
    if (problem !== null) throw issue("recipients", problem);
  }

  #storedChange(before: DomainRow, change: DomainSettingsChange): DomainChange {
    const { alerts, alertThresholds, digest, ...rest } = change;
    const nowMs = this.#runtime.clock.nowMs();
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
