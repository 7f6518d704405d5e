import type { AlertChanges, OpenAlertStore, RecentAlert } from "../rules/open-alert-store.ts";
import type {
  DomainOrder,
  DomainOverview,
  DomainOverviewStore,
  ListedStatus,
  TagSums,
} from "./domain-overview-store.ts";
import { ALERT_RULES, findAlertRule } from "../rules/alert-rules.ts";
import { readAlertBody, type AlertRule } from "../rules/alert-rule.ts";
import { readLastCheck, type DnsCheck } from "../../records/domains/domain-state.ts";
import { percentOf } from "../../insight/sources/rollup-rows.ts";
import { SILENT_AFTER_MS } from "../../records/domains/domains.ts";
import type { DomainOwner, DomainRow, DomainStore } from "../../records/domains/domain-store.ts";
import type { DmarcAlertStore } from "../../records/domains/alert-store.ts";
import type { Db } from "../../../foundation/db/open.ts";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { type AttentionItem, byUrgency } from "../../../foundation/base/attention.ts";

/** Which domains a list shows. */
export interface DomainListQuery {
  readonly status: ListedStatus | null;
  /** Part of the name or the label; empty for all. */
  readonly text: string;
  /** Only domains with this tag; null for all. */
  readonly tag: string | null;
  readonly order: DomainOrder;
  readonly limit: number;
  readonly offset: number;
}

/** A domain in a list. */
export interface DomainListItem {
  readonly row: DomainRow;
  readonly status: ListedStatus;
  /** Null before it is computed for the first time, within a minute. */
  readonly overview: DomainOverview | null;
  /** Open problems, worst first. */
  readonly attention: readonly AttentionItem[];
}

export interface DomainList {
  readonly domains: readonly DomainListItem[];
  readonly hasMore: boolean;
}

/** A tag with the figures of its domains. */
export interface TagFigures extends TagSums {
  readonly openAlerts: number;
}

/** Mail in the name of all domains of an owner in the last seven days. */
export interface MailInName {
  readonly domains: number;
  readonly messages: number;
  readonly aligned: number;
  /** Null when there are no messages. */
  readonly alignedPercent: number | null;
  /** The same of the seven days before; null when no report covers them. */
  readonly before: { readonly messages: number; readonly aligned: number } | null;
  /** When the oldest of the counts were computed; null before the first. */
  readonly computedAtMs: number | null;
}

/** An open alert in the words of the dashboard. */
export interface ShownAlert extends AttentionItem {
  readonly id: string;
  readonly rule: string;
}

/** Alerts and domains read for one page. */
const ALERTS_MAX = 500;
const DOMAINS_MAX = 100;
/** Incidents without an end are no longer shown after this time: see `INCIDENT_DAYS_MAX` of failure spikes. */
const OPEN_DAYS_MAX = 60;
const OPEN_RULES = ALERT_RULES.flatMap(({ name, open }) => (open === undefined ? [] : [name]));

/** What the dashboard shows across domains: lists, sums, and open problems. A caller sees those of its account and mode. */
export class DmarcOverview {
  constructor(
    private readonly runtime: { readonly db: Db; readonly clock: Clock },
    private readonly stores: {
      readonly overviews: DomainOverviewStore;
      readonly alerts: OpenAlertStore;
      readonly raised: Pick<DmarcAlertStore, "lastRaisedMs">;
      readonly domains: Pick<DomainStore, "findByNumber" | "list">;
    },
  ) {}

  list(owner: DomainOwner, query: DomainListQuery): DomainList {
    const { overviews } = this.stores;
    const { onlyTag = null } = owner;
    if (onlyTag !== null && query.tag !== null && query.tag !== onlyTag) return { domains: [], hasMore: false };
    return this.runtime.db.snapshot(() => {
      const alerted = query.order === "worst" ? this.#openAlerts(owner, null).map(({ number }) => number) : [];
      const found = overviews.list(owner, { ...query, ...this.#silence(), alerted, limit: query.limit + 1 });
      const rows = found.slice(0, query.limit).flatMap((number) => this.stores.domains.findByNumber(number) ?? []);
      const numbers = rows.map(({ number }) => number);
      const open = Map.groupBy(this.#openAlerts(owner, numbers), ({ number }) => number);
      return {
        domains: rows.map((row) => ({
          // Other tags may name other clients.
          row: onlyTag === null ? row : { ...row, tags: [onlyTag] },
          status: this.statusOf(row),
          overview: overviews.read(row.number),
          attention: (open.get(row.number) ?? []).map(alertAttention).toSorted(byUrgencyAndAge),
        })),
        hasMore: found.length > query.limit,
      };
    });
  }

  /** The tags of the owner's domains, with their sums of 30 days and their open alerts. */
  tags(owner: DomainOwner): readonly TagFigures[] {
    const { overviews, domains } = this.stores;
    return this.runtime.db.snapshot(() => {
      const sums = overviews.tagSums(owner);
      if (sums.length === 0) return [];
      const open = new Map<string, number>();
      for (const [number, alerts] of Map.groupBy(this.#openAlerts(owner, null), (alert) => alert.number))
        for (const tag of domains.findByNumber(number)?.tags ?? []) open.set(tag, (open.get(tag) ?? 0) + alerts.length);
      return sums.map((of) => ({ ...of, openAlerts: open.get(of.tag) ?? 0 }));
    });
  }

  /** How many domains there are by status. */
  countByStatus(owner: DomainOwner): ReadonlyMap<ListedStatus, number> {
    return this.stores.overviews.countByStatus(owner, this.#silence().silentBeforeMs);
  }

  /** The status that a list shows. */
  statusOf({ monitoringEnabled, status, sendsMail, lastReportAtMs }: DomainRow): ListedStatus {
    if (!monitoringEnabled) return "paused";
    // Nobody reports about a domain that sends no mail, unless it is forged.
    if (status !== "active" || sendsMail === false) return status;
    const { silentBeforeMs } = this.#silence();
    return lastReportAtMs !== null && lastReportAtMs < silentBeforeMs ? "silent" : "active";
  }

  /** What lists show of a domain; null before it is computed for the first time. */
  overviewOf({ number }: DomainRow): DomainOverview | null {
    return this.stores.overviews.read(number);
  }

  mailInName(owner: DomainOwner): MailInName {
    const sums = this.stores.overviews.sums(owner);
    const { domains, messages, aligned, messagesBefore, alignedBefore, computedAtMs } = sums;
    const before =
      messagesBefore === null || alignedBefore === null ? null : { messages: messagesBefore, aligned: alignedBefore };
    return { domains, messages, aligned, alignedPercent: percentOf(aligned, messages), before, computedAtMs };
  }

  /** Open problems in DMARC, worst first, then newest first: failed checks of the DNS, and alerts that still hold. */
  attention(owner: DomainOwner): readonly AttentionItem[] {
    const { domains, raised } = this.stores;
    return this.runtime.db.snapshot(() => {
      const filters = { status: "action_required", monitoringEnabled: true } as const;
      const failing = domains.list(owner, filters, { before: null, limit: DOMAINS_MAX });
      const statuses = failing.map((row) =>
        statusAttention(row, raised.lastRaisedMs(row.number, "status_changed", "action_required")),
      );
      const isFailing = new Set(failing.map(({ number }) => number));
      // That the record is gone or changed is said already, and so is the reason why reports stopped.
      const alerts = this.#openAlerts(owner, null).filter(
        ({ number, open }) => !(isFailing.has(number) && open.isSaidByStatus === true),
      );
      return [...statuses, ...alerts.map(alertAttention)].toSorted(byUrgencyAndAge);
    });
  }

  /** The alerts that were raised and acknowledged since a time. */
  alertChanges(owner: DomainOwner, sinceMs: number): AlertChanges {
    return this.stores.alerts.changes(owner, { sinceMs, fromMs: this.runtime.clock.nowMs() - OPEN_DAYS_MAX * DAY_MS });
  }

  /** The alerts of a domain that still hold and that nobody acknowledged, worst first. */
  openAlertsOf(owner: DomainOwner, { number }: DomainRow): readonly ShownAlert[] {
    const open = this.runtime.db.snapshot(() => this.#openAlerts(owner, [number]));
    return open
      .map((alert) => ({ ...alertAttention(alert), id: alert.id, rule: alert.rule }))
      .toSorted(byUrgencyAndAge);
  }

  /**
   * Ends an alert: it needs nobody any more. The same happening again raises another one. Throws `not_found` for an alert that the
   * domain does not have. `findDomain` is called inside the transaction.
   */
  async acknowledge(findDomain: () => DomainRow, alertId: string): Promise<void> {
    const { db, clock } = this.runtime;
    const done = await db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      return this.stores.alerts.acknowledge(tx, domain.number, alertId, clock.nowMs());
    });
    if (done instanceof AppError) throw done;
    if (!done) throw new AppError("not_found", { message: "There is no such alert." });
  }

  #silence(): { readonly silentBeforeMs: number } {
    return { silentBeforeMs: this.runtime.clock.nowMs() - SILENT_AFTER_MS };
  }

  /** Of some domains, or of all that are not paused. */
  #openAlerts(owner: DomainOwner, domains: readonly number[] | null): readonly OpenAlert[] {
    const { alerts } = this.stores;
    const nowMs = this.runtime.clock.nowMs();
    const sinceMs = nowMs - OPEN_DAYS_MAX * DAY_MS;
    const recent = alerts.recent(owner, { rules: OPEN_RULES, sinceMs, limit: ALERTS_MAX, domains });
    return findOpenAlerts(recent, alerts, nowMs);
  }
}

/** An alert of a rule whose alerts stay open, with its data. */
interface OpenAlert extends RecentAlert {
  readonly data: Readonly<Record<string, unknown>>;
  readonly open: NonNullable<AlertRule["open"]>;
}

/** The alerts that still hold and that nobody acknowledged. Newest first, as `recent` are. */
const findOpenAlerts = (recent: readonly RecentAlert[], store: OpenAlertStore, nowMs: number): readonly OpenAlert[] => {
  const read = recent.flatMap(readAlert);
  const facts = new Map(
    [...Map.groupBy(read, ({ open }) => open)].map(([open, of]) => [
      open,
      open.facts?.(store, [...new Set(of.map(({ number }) => number))]) ?? new Set<string>(),
    ]),
  );
  const later = new Set<string>();
  return read.filter((alert) => {
    const { open, data, number, rule, subject } = alert;
    const topics = (open.topics?.(data) ?? [subject]).map((topic) => `${number} ${rule} ${topic}`);
    const isReplaced = topics.every((topic) => later.has(topic));
    for (const topic of topics) later.add(topic);
    if (isReplaced || alert.acknowledgedAtMs !== null) return false;
    const lastMs = Math.max(alert.atMs, open.lastDay === undefined ? 0 : Date.parse(open.lastDay(data)));
    if (nowMs - lastMs >= (open.days ?? OPEN_DAYS_MAX) * DAY_MS) return false;
    return open.holds?.(alert, facts.get(open) ?? new Set()) !== false;
  });
};

/** None for an alert of another version. */
const readAlert = (alert: RecentAlert): OpenAlert[] => {
  const { open, data } = findAlertRule(alert.rule) ?? {};
  const read = data?.safeParse(readAlertBody(alert.body).data);
  return open === undefined || read?.success !== true ? [] : [{ ...alert, open, data: read.data }];
};

/** An open alert in the words of the dashboard. */
const alertAttention = ({ open, data, domain, domainId, atMs }: OpenAlert): AttentionItem => ({
  ...open.attention(data, { domain, path: `/dmarc/${domainId}` }),
  sinceMs: atMs,
});

/** What a failed check of the DNS means, in the words of the dashboard. */
const CHECK_TITLES: Readonly<Record<DnsCheck["code"], (domain: string) => string>> = {
  record: (domain) => `${domain} has no valid DMARC record`,
  reporting_address: (domain) => `${domain} no longer sends its reports here`,
  authorisation: (domain) => `Receivers may not send reports about ${domain} here`,
};

/** A domain whose status is `action_required`. `sinceMs` is null when unknown. */
const statusAttention = (row: DomainRow, sinceMs: number | null): AttentionItem => {
  const failed = readLastCheck(row.lastCheck)?.checks.find(({ ok }) => ok === false);
  return {
    // Without a record anybody can forge the domain; without reports that only stays unseen.
    severity: failed?.code === "record" ? "bad" : "warn",
    label: "Record",
    title: failed === undefined ? `No reports about ${row.domain} can arrive` : CHECK_TITLES[failed.code](row.domain),
    detail: failed?.message ?? "The last check of its DNS got no response. The check before it failed.",
    action: { text: "Show the record", path: `/dmarc/${row.id}/record` },
    sinceMs,
  };
};

const byUrgencyAndAge = (a: AttentionItem, b: AttentionItem): number =>
  byUrgency(a, b) || (b.sinceMs ?? 0) - (a.sinceMs ?? 0);
