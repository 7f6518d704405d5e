import type { AlertThresholds } from "./alert-thresholds.ts";
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { NO_MAIL_PROBLEM, type RecipientDomains, recipientsProblem } from "../../mail/recipients.ts";
import type { Db } from "../../db/open.ts";
import type { WebhookUrls } from "../../webhooks/webhook-urls.ts";
import { authorisationName } from "../record/authorisation.ts";
import { nextDigestMs } from "../../base/digest-schedule.ts";
import type { DomainCheck } from "./domain-check.ts";
import { parseMonitoredDomain } from "./parse-domain.ts";
import { type CheckedDomain, createDomainMonitor } from "./domain-monitor.ts";
import type { DnsRecordView } from "./domain-schemas.ts";
import type { DomainFilters, DomainOwner, DomainPage, DomainRow, DomainStore, HistoryRow } from "./domain-store.ts";
import { type EnrolmentRequest, NEVER_CHECKED_MS, newDomain } from "./new-domain.ts";
import { domainView, serviceRecordsView } from "./domain-view.ts";
import type { AlertRule, RaiseAlert } from "./raise.ts";
import { reportHostFor } from "./test-domains.ts";

export interface DomainsDeps {
  readonly db: Db;
  readonly store: DomainStore;
  readonly check: DomainCheck;
  readonly raise: RaiseAlert;
  /** The webhook URLs of targets and domains. */
  readonly urls: Pick<WebhookUrls, "enable" | "isDisabled" | "move">;
  readonly clock: Clock;
  /** Whether mail can be sent at all. */
  readonly hasMail: boolean;
  readonly recipientDomains: RecipientDomains;
  /** Where reports go to, in lower-case A-labels; null when the service receives none. */
  readonly reportHost: string | null;
  /** The name of the machine that receives mail for it; null while the HELO name is no full host name. */
  readonly mailHost: string | null;
}

/** What a user may change; rules that are not named stay as they are. */
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

/** It bounds what one account can make the DNS be asked. */
const DOMAINS_PER_ACCOUNT_MAX = 10_000;
const MINUTE_MS = 60_000;
const RETRY_AFTER_S = "5";

const issue = (
  path: string,
  message: string,
  code: "Invalid request body" | "Invalid query" = "Invalid request body",
) => new AppError(code, { issues: [{ path, message }] });

const notFound = () => new AppError("not_found", { message: "There is no such domain." });
const stopping = () => new AppError("unavailable", { headers: { "retry-after": RETRY_AFTER_S } });

/** The domains of callers: enrol, verify, look at, change, remove. A caller sees those of its account and mode. */
export const createDomains = (deps: DomainsDeps) => {
  const { db, store, check: look, raise, urls, clock, hasMail } = deps;
  const { recipientDomains, reportHost, mailHost } = deps;
  const monitor = createDomainMonitor({ db, store, look, raise, clock });

  const find = (caller: DomainOwner, id: string): DomainRow => {
    const row = store.findById(id);
    if (row === undefined || row.accountId !== caller.accountId || row.mode !== caller.mode) throw notFound();
    return row;
  };

  const reportHostOf = ({ mode }: Pick<DomainOwner, "mode">): string => {
    const host = reportHostFor(mode, reportHost);
    if (host !== null) return host;
    throw new AppError("conflict", {
      message: "This service receives no reports: POSTWARDEN_REPORT_HOST is not set.",
    });
  };

  const refuseWithoutMail = (path: "recipients" | "digest", isWanted: boolean): void => {
    if (!isWanted || hasMail) return;
    throw issue(path, NO_MAIL_PROBLEM);
  };

  const refuseRecipients = (recipients: readonly string[]): void => {
    refuseWithoutMail("recipients", recipients.length > 0);
    const problem = recipientsProblem(recipients, recipientDomains);
    if (problem !== null) throw issue("recipients", problem);
  };

  const rowOf = (caller: DomainOwner, order: EnrolmentRequest): Omit<DomainRow, "number"> => {
    const parsed = parseMonitoredDomain(order.domain, caller.mode);
    if (!parsed.ok) throw issue("domain", parsed.error);
    refuseRecipients(order.recipients);
    const domain = parsed.value;
    const named = authorisationName(domain, reportHostOf(caller));
    if (!named.ok) {
      const { octets, octetsMax } = named.error;
      throw issue(
        "domain",
        `Too long: receivers would ask for a name of ${octets} octets, the DNS allows ${octetsMax}.`,
      );
    }
    return newDomain(caller, { ...order, domain }, clock.nowMs());
  };

  /** What the owner is to publish as things stand; changes nothing. */
  const preview = async (row: DomainRow): Promise<readonly DnsRecordView[]> => {
    reportHostOf(row);
    return (await look(row, { isSetUp: row.status === "active" })).dnsRecords;
  };

  const resumedMs = ({ mode, nextCheckAtMs }: DomainRow): number =>
    mode === "test" ? NEVER_CHECKED_MS : Math.max(nextCheckAtMs, clock.nowMs() + MINUTE_MS);

  const changeOf = (before: DomainRow, wish: DomainSettingsChange) => {
    const { alerts, alertThresholds, digest, ...rest } = wish;
    const isResumed = rest.monitoringEnabled === true && !before.monitoringEnabled;
    const isNewDigest = digest !== undefined && digest !== before.digest;
    return {
      ...rest,
      ...(alerts === undefined ? {} : { alerts: { ...before.alerts, ...alerts } }),
      ...(alertThresholds === undefined ? {} : { alertThresholds: { ...before.alertThresholds, ...alertThresholds } }),
      ...(isNewDigest
        ? { digest, digestDueAtMs: before.mode === "test" ? null : nextDigestMs(digest, clock.nowMs()) }
        : {}),
      ...(isResumed ? { nextCheckAtMs: resumedMs(before) } : {}),
      updatedAtMs: clock.nowMs(),
    };
  };

  return {
    find,

    /** Enrols a domain, or finds the same one: `created` tells which. A DNS that does not answer is no reason to refuse. */
    async enrol(caller: DomainOwner, order: EnrolmentRequest): Promise<Enrolment> {
      const row = rowOf(caller, order);
      const enrolled = await db.commit((tx) => {
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
      if (!created) return { created, domain, dnsRecords: await preview(domain) };
      const checked = await monitor.check(domain, "enrolled");
      if (checked === null) throw monitor.isStopping() ? stopping() : notFound();
      return { created, domain: checked.domain, dnsRecords: checked.finding.dnsRecords };
    },

    /** Reads the DNS again and moves the status at once. Whoever asks while a check runs gets that one. */
    async verify(caller: DomainOwner, id: string): Promise<CheckedDomain> {
      const row = find(caller, id);
      reportHostOf(row);
      const checked = await monitor.check(row, "manual");
      if (checked === null) throw monitor.isStopping() ? stopping() : notFound();
      return checked;
    },

    /** A check of the timetable. Null when the domain was removed meanwhile or the service stops. */
    checkScheduled: (row: DomainRow): Promise<CheckedDomain | null> => monitor.check(row, "scheduled"),

    /** The records to publish, by the owner and by the operator; changes nothing. */
    async dns(caller: DomainOwner, id: string) {
      const row = find(caller, id);
      return { dnsRecords: await preview(row), serviceRecords: serviceRecordsView(row.mode, { reportHost, mailHost }) };
    },

    /** Changes what is given. Whatever is paused keeps everything; resumed, it is checked at its time or soon. */
    async change(caller: DomainOwner, id: string, wish: DomainSettingsChange): Promise<DomainRow> {
      find(caller, id);
      refuseRecipients(wish.recipients ?? []);
      refuseWithoutMail("digest", wish.digest !== undefined && wish.digest !== "off");
      const changed = await db.commit((tx) => {
        const before = store.findById(id);
        if (before === undefined) return undefined;
        if (Object.keys(wish).length === 0) return before;
        store.update(tx, before.number, changeOf(before, wish));
        const { webhookUrl } = wish;
        if (webhookUrl !== undefined && webhookUrl !== null) urls.enable(tx, before, webhookUrl);
        const subject = `domain:${id}`;
        if (webhookUrl !== undefined) urls.move(tx, before, { subject, from: before.webhookUrl, to: webhookUrl });
        return store.findById(id);
      });
      if (changed === undefined) throw notFound();
      return changed;
    },

    /** Takes a domain away: its reporting address is refused from now on, its data is removed in the background. */
    async remove(caller: DomainOwner, id: string): Promise<void> {
      find(caller, id);
      await db.commit((tx) => {
        const row = store.findById(id);
        if (row !== undefined) store.markDeleted(tx, row.number, clock.nowMs());
      });
    },

    list(caller: DomainOwner, filters: DomainFilters, page: DomainPage): DomainRow[] {
      const parsed = filters.domain === undefined ? null : parseMonitoredDomain(filters.domain, caller.mode);
      if (parsed !== null && !parsed.ok) throw issue("domain", parsed.error, "Invalid query");
      return store.list(caller, parsed === null ? filters : { ...filters, domain: parsed.value }, page);
    },

    history: (caller: DomainOwner, id: string, page: DomainPage): HistoryRow[] =>
      store.listHistory(find(caller, id).number, page),

    view: (row: DomainRow) => domainView(row, deps, clock.nowMs()),

    /** Whether scheduled checks have anything to look for. */
    canCheck: (): boolean => reportHost !== null && !monitor.isStopping(),
    stop: (): Promise<void> => monitor.stop(),
  };
};

export type Domains = ReturnType<typeof createDomains>;
