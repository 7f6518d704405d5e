import { newId } from "../../base/secrets.ts";
import type { Tx } from "../../db/open.ts";
import type { DmarcAlertStore } from "./alert-store.ts";
import type { DomainOwner, DomainRow } from "./domain-store.ts";

/** What the service tells the owner of a domain about. Each is an event `dmarc.<rule>` and can be turned off. */
export const ALERT_RULES = [
  "status_changed",
  "record_changed",
  "policy_weakened",
  "new_source",
  "new_subdomain",
  "failure_spike",
  "spoofing_campaign",
  "reports_stopped",
  "tls_failures",
] as const;
export type AlertRule = (typeof ALERT_RULES)[number];

/** Which rules are on for a domain whose owner has not said. */
export const DEFAULT_ALERTS: Readonly<Record<AlertRule, boolean>> = {
  status_changed: true,
  record_changed: true,
  policy_weakened: true,
  new_source: true,
  new_subdomain: true,
  failure_spike: true,
  spoofing_campaign: true,
  reports_stopped: true,
  tls_failures: true,
};

/** Something that happened to a domain. */
export interface Alert {
  readonly rule: AlertRule;
  /** What it is about, within the rule: a status, a source, a day. With `cooldown` the same subject is quiet for a day. */
  readonly subject: string;
  /** The event's `data`, beside the four fields about the domain. */
  readonly data: Readonly<Record<string, unknown>>;
  /**
   * One sentence for people that stands alone as the subject of a mail. It need not name the domain (then that is put before it), and
   * has no full stop: `failures rose from 1 % to 23 % on 2026-11-19`.
   */
  readonly summary: string;
  /** Whether the same rule about the same subject is raised at most once in 24 hours. */
  readonly cooldown: boolean;
}

/**
 * Raises an alert inside the transaction that changed the state: the alert itself, the event `dmarc.<rule>`, and a line for the next
 * mail to each recipient, those of the account included (of live domains, where the service sends mail). False, and nothing written,
 * when the rule is off or the same thing was raised within the cooldown.
 */
export type RaiseAlert = (tx: Tx, domain: DomainRow, alert: Alert, atMs: number) => boolean;

export interface AlertRaiserDeps {
  readonly store: DmarcAlertStore;
  /** Whether the service has a way to send mail. */
  readonly hasMail: boolean;
  /** Where alert mail of an account and mode goes to, beside the recipients of a domain. */
  readonly defaultRecipients: (owner: DomainOwner) => readonly string[];
}

const COOLDOWN_MS = 24 * 60 * 60_000;

/** Whether the owner of a domain wants to hear of a rule. */
export const isRuleOn = ({ alerts }: Pick<DomainRow, "alerts">, rule: AlertRule): boolean =>
  alerts[rule] ?? DEFAULT_ALERTS[rule];

export const createAlertRaiser =
  ({ store, hasMail, defaultRecipients }: AlertRaiserDeps): RaiseAlert =>
  (tx, domain, { rule, subject, data, summary, cooldown }, atMs) => {
    if (!isRuleOn(domain, rule)) return false;
    if (cooldown) {
      // What a clock that was ahead has raised in the future keeps nothing quiet.
      const lastMs = store.lastRaisedMs(domain.number, rule, subject, atMs);
      if (lastMs !== null && atMs - lastMs < COOLDOWN_MS) return false;
    }
    const id = newId();
    store.insertAlert(tx, { id, domain: domain.number, rule, subject, atMs, body: JSON.stringify({ summary, data }) });
    const { id: domain_id, domain: name, label, mode, accountId, webhookUrl: url } = domain;
    store.insertEvent(tx, {
      accountId,
      mode,
      type: `dmarc.${rule}`,
      subject: `domain:${domain_id}`,
      data: { domain_id, domain: name, label, mode, ...data },
      url,
      createdAtMs: atMs,
    });
    if (hasMail && mode === "live") {
      for (const recipient of new Set([...domain.recipients, ...defaultRecipients(domain)])) {
        store.insertMail(tx, { id: newId(), recipient, alert: id, createdAtMs: atMs });
      }
    }
    return true;
  };
