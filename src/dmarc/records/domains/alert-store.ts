import { namedBody } from "../../../foundation/http/schema-fields.ts";
import { and, desc, eq, lt, lte, sql } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { insertEvent, type NewEvent } from "../../../foundation/db/outbox.ts";
import { dmarcAlertMails, dmarcAlerts } from "../../../foundation/db/schema-dmarc.ts";
import { selectionOf, statements } from "../../../foundation/db/statements.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { DomainOwner, DomainRow } from "./domain-store.ts";
import { z } from "zod";

/** An alert that was raised. `body` is the JSON text of `{ summary, data }`. */
export type DmarcAlertRow = Readonly<typeof dmarcAlerts.$inferSelect>;
/** An alert that waits for the next mail to a recipient. */
export type AlertMailRow = Readonly<typeof dmarcAlertMails.$inferSelect>;

/** The alerts of domains, their events and the lines of alert mail. */
export class DmarcAlertStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    this.#sql = statements({
      last: () =>
        db.orm
          .select({ atMs: dmarcAlerts.atMs })
          .from(dmarcAlerts)
          .where(
            and(
              eq(dmarcAlerts.domain, sql.placeholder("domain")),
              eq(dmarcAlerts.rule, sql.placeholder("rule")),
              eq(dmarcAlerts.subject, sql.placeholder("subject")),
              lte(dmarcAlerts.atMs, sql.placeholder("untilMs")),
            ),
          )
          .orderBy(desc(dmarcAlerts.atMs))
          .limit(1)
          .prepare(),
      byRule: () =>
        db.sqlite.prepare<DmarcAlertRow, [number, string, number]>(
          `SELECT ${selectionOf(dmarcAlerts)} FROM dmarc_alerts WHERE domain = ? AND rule = ? ORDER BY id DESC LIMIT ?`,
        ),
    });
  }

  insertAlert(_tx: Tx, alert: DmarcAlertRow): void {
    this.db.orm.insert(dmarcAlerts).values(alert).run();
  }

  /** Replaces what an alert says. Neither an event nor a mail is sent. */
  replaceBody(_tx: Tx, { id, summary, data }: AlertUpdate): void {
    this.db.orm
      .update(dmarcAlerts)
      .set({ body: JSON.stringify({ summary, data }) })
      .where(eq(dmarcAlerts.id, id))
      .run();
  }

  insertEvent(tx: Tx, event: NewEvent): void {
    insertEvent(this.db, tx, event);
  }

  insertMail(_tx: Tx, mail: AlertMailRow): void {
    this.db.orm.insert(dmarcAlertMails).values(mail).run();
  }

  /** When a rule was last raised about a subject, up to `untilMs` where that is given; null when it never was. */
  lastRaisedMs(domain: number, rule: string, subject: string, untilMs = Number.MAX_SAFE_INTEGER): number | null {
    return this.#sql.last.get({ domain, rule, subject, untilMs })?.atMs ?? null;
  }

  /** The last alerts of a rule, newest first. */
  listByRule(domain: number, rule: string, limit: number): DmarcAlertRow[] {
    return this.#sql.byRule.all(domain, rule, limit);
  }

  /** Newest first, older than the id `before`. */
  listAlerts(domain: number, { before, limit }: { before: string | null; limit: number }) {
    const older = before === null ? undefined : lt(dmarcAlerts.id, before);
    const found = this.db.orm.select().from(dmarcAlerts);
    return found
      .where(and(eq(dmarcAlerts.domain, domain), older))
      .orderBy(desc(dmarcAlerts.id))
      .limit(limit)
      .all();
  }
}

/** An alert rule as domains know it: it can be turned off. Its event is `dmarc.<name>`. */
export interface RuleSwitch {
  readonly name: string;
  /** Off unless a domain turns it on. */
  readonly isOff?: boolean;
}

/** An alert about a domain. */
export interface Alert {
  /** The name of its rule. */
  readonly rule: string;
  /** What it is about, within the rule: a status, a source, a day. */
  readonly subject: string;
  /** The event's `data`, beside the four fields about the domain. */
  readonly data: Readonly<Record<string, unknown>>;
  /**
   * One sentence that can be the subject of a mail. The domain is put before it if it does not name the domain; it has no full
   * stop: `failures rose from 1 % to 23 % on 2026-11-19`.
   */
  readonly summary: string;
  /** Whether the same rule about the same subject is raised at most once in 24 hours. */
  readonly cooldown: boolean;
}

/** New totals of an alert whose incident goes on. */
export interface AlertUpdate extends Pick<Alert, "data" | "summary"> {
  readonly id: string;
}

/**
 * Raises an alert inside the transaction that changed the state: the alert itself, the event `dmarc.<rule>`, and a line for the next
 * mail to each recipient, those of the account included (of live domains, where the service sends mail). False, and nothing written,
 * when the rule is off or the same thing was raised within the cooldown.
 */
export type RaiseAlert = (tx: Tx, domain: DomainRow, alert: Alert, atMs: number) => boolean;

const COOLDOWN_MS = 24 * 60 * 60_000;

/** Whether an alert rule is on for a domain. */
export const isRuleOn = ({ alerts }: Pick<DomainRow, "alerts">, { name, isOff = false }: RuleSwitch): boolean =>
  alerts[name] ?? !isOff;

export const createAlertRaiser =
  ({
    rules,
    store,
    hasMail,
    defaultRecipients,
  }: {
    rules: readonly RuleSwitch[];
    store: DmarcAlertStore;
    /** Whether the service can send mail. */
    hasMail: boolean;
    /** The recipients of all alert mail of an account and mode, beside those of a domain. */
    defaultRecipients: (owner: DomainOwner) => readonly string[];
  }): RaiseAlert =>
  (tx, domain, { rule, subject, data, summary, cooldown }, atMs) => {
    const declared = rules.find(({ name }) => name === rule);
    if (declared === undefined) throw new Error(`no alert rule ${rule}`);
    if (!isRuleOn(domain, declared)) return false;
    if (cooldown) {
      // An alert raised while the clock was ahead suppresses nothing.
      const lastMs = store.lastRaisedMs(domain.number, rule, subject, atMs);
      if (lastMs !== null && atMs - lastMs < COOLDOWN_MS) return false;
    }
    const id = newId();
    const body = JSON.stringify({ summary, data });
    store.insertAlert(tx, { id, domain: domain.number, rule, subject, atMs, body, acknowledgedAtMs: null });
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

const THRESHOLD_MAX = 1_000_000;
const messages = z.int().min(1).max(THRESHOLD_MAX);
const FACTOR_MIN = 2;
const FACTOR_MAX = 1_000;
const percent = z.number().min(0).max(100);

/** When the alert rules fire; `DEFAULT_THRESHOLDS` for what a domain does not set. */
export const alertThresholdsSchema = namedBody("DmarcAlertThresholds", {
  new_source_messages: messages.meta({
    description: "Messages within seven days at which a new source without aligned mail is alerted.",
  }),
  new_source_percent: percent.meta({
    description:
      "Share of the domain's mail in that time, in percent and excluding forged mail, at which it is alerted.",
  }),
  failure_spike_messages: messages.meta({
    description: "Failing messages of a source at which an increase is alerted.",
  }),
  failure_spike_percent: percent.meta({
    description:
      "Increase of its failing share over the usual one of that weekday, in percentage points, at which it is alerted.",
  }),
  spoofing_messages: messages.meta({
    description:
      "Unauthenticated messages a day at which a spoofing campaign is alerted, if they are five times the usual number.",
  }),
  volume_spike_messages: messages.meta({
    description: "Messages of a source on a day that pass DMARC at which far more mail than usual is alerted.",
  }),
  volume_spike_factor: z
    .number()
    .min(FACTOR_MIN)
    .max(FACTOR_MAX)
    .meta({ description: "How many times the most messages of a day in the four weeks before these must be." }),
  volume_spike_addresses: messages.meta({
    description: "New addresses on a day, with ten messages each that pass DMARC, at which these are alerted.",
  }),
});

export type AlertThresholds = Readonly<z.infer<typeof alertThresholdsSchema>>;

export const DEFAULT_THRESHOLDS: AlertThresholds = {
  new_source_messages: 10,
  new_source_percent: 1,
  failure_spike_messages: 20,
  failure_spike_percent: 15,
  spoofing_messages: 100,
  volume_spike_messages: 500,
  volume_spike_factor: 5,
  volume_spike_addresses: 20,
};

/** The thresholds of a domain, defaults included. */
export const thresholdsOf = (domain: { alertThresholds: Readonly<Partial<AlertThresholds>> }): AlertThresholds => ({
  ...DEFAULT_THRESHOLDS,
  ...domain.alertThresholds,
});
