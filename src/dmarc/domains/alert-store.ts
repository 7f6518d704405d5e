import { and, asc, desc, eq, inArray, lt, lte, notInArray, sql } from "drizzle-orm";
import type { Db, Tx } from "../../db/open.ts";
import { insertEvent, type NewEvent } from "../../db/outbox.ts";
import { dmarcAlertMails, dmarcAlerts, dmarcDomains } from "../../db/schema-dmarc.ts";

/** An alert that was raised. `body` is the JSON text of `{ summary, data }`. */
export type DmarcAlertRow = Readonly<typeof dmarcAlerts.$inferSelect>;
/** An alert that waits for the next mail to somebody. */
export type AlertMailRow = Readonly<typeof dmarcAlertMails.$inferSelect>;

/** A line of an alert mail. What is null is gone with its domain. */
export interface AlertMailLine {
  readonly id: string;
  readonly createdAtMs: number;
  readonly rule: string | null;
  readonly atMs: number | null;
  readonly body: string | null;
  readonly domain: string | null;
  readonly domainId: string | null;
  readonly label: string | null;
}

/** A line of this kind is not an alert but a digest that waits: see `digest-store.ts`. */
const isAlert = sql`${dmarcAlertMails.alert} not like 'digest:%'`;

/** What one mail tells of at most; the rest is in the next one. */
const LINES_AT_ONCE_MAX = 10_000;

export const createDmarcAlertStore = (db: Db) => {
  const last = db.orm
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
    .prepare();

  return {
    insertAlert: (_tx: Tx, alert: DmarcAlertRow): void => void db.orm.insert(dmarcAlerts).values(alert).run(),
    /** When a rule was last raised about a subject, up to `untilMs` where that is given; null when it never was. */
    lastRaisedMs: (domain: number, rule: string, subject: string, untilMs = Number.MAX_SAFE_INTEGER): number | null =>
      last.get({ domain, rule, subject, untilMs })?.atMs ?? null,
    /** The last alerts of a rule, newest first. */
    listByRule: (domain: number, rule: string, limit: number): DmarcAlertRow[] =>
      db.orm
        .select()
        .from(dmarcAlerts)
        .where(and(eq(dmarcAlerts.domain, domain), eq(dmarcAlerts.rule, rule)))
        .orderBy(desc(dmarcAlerts.id))
        .limit(limit)
        .all(),
    /** Newest first, older than the id `before`. */
    listAlerts: (domain: number, page: { readonly before: string | null; readonly limit: number }): DmarcAlertRow[] =>
      db.orm
        .select()
        .from(dmarcAlerts)
        .where(and(eq(dmarcAlerts.domain, domain), page.before === null ? undefined : lt(dmarcAlerts.id, page.before)))
        .orderBy(desc(dmarcAlerts.id))
        .limit(page.limit)
        .all(),

    insertEvent: (tx: Tx, event: NewEvent): void => insertEvent(db, tx, event),

    insertMail: (_tx: Tx, mail: AlertMailRow): void => void db.orm.insert(dmarcAlertMails).values(mail).run(),
    /** Some of those for whom alerts wait, but for `without`. */
    mailRecipients: (limit: number, without: readonly string[]): string[] =>
      db.orm
        .selectDistinct({ recipient: dmarcAlertMails.recipient })
        .from(dmarcAlertMails)
        .where(and(notInArray(dmarcAlertMails.recipient, [...without]), isAlert))
        .limit(limit)
        .all()
        .map(({ recipient }) => recipient),
    /** What waits for somebody, the oldest first. */
    mailLines: (recipient: string): AlertMailLine[] =>
      db.orm
        .select({
          id: dmarcAlertMails.id,
          createdAtMs: dmarcAlertMails.createdAtMs,
          rule: dmarcAlerts.rule,
          atMs: dmarcAlerts.atMs,
          body: dmarcAlerts.body,
          domain: dmarcDomains.domain,
          domainId: dmarcDomains.id,
          label: dmarcDomains.label,
        })
        .from(dmarcAlertMails)
        .leftJoin(dmarcAlerts, eq(dmarcAlerts.id, dmarcAlertMails.alert))
        .leftJoin(
          dmarcDomains,
          and(eq(dmarcDomains.number, dmarcAlerts.domain), sql`${dmarcDomains.deletedAtMs} is null`),
        )
        .where(and(eq(dmarcAlertMails.recipient, recipient), isAlert))
        .orderBy(asc(dmarcAlertMails.id))
        .limit(LINES_AT_ONCE_MAX)
        .all(),
    removeMails(_tx: Tx, ids: readonly string[]): void {
      db.orm
        .delete(dmarcAlertMails)
        .where(inArray(dmarcAlertMails.id, [...ids]))
        .run();
    },
  };
};

export type DmarcAlertStore = ReturnType<typeof createDmarcAlertStore>;
