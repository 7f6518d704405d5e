import { and, desc, eq, lt, lte, sql } from "drizzle-orm";
import type { Db, Tx } from "../../db/open.ts";
import { insertEvent, type NewEvent } from "../../db/outbox.ts";
import { dmarcAlertMails, dmarcAlerts } from "../../db/schema-dmarc.ts";

/** An alert that was raised. `body` is the JSON text of `{ summary, data }`. */
export type DmarcAlertRow = Readonly<typeof dmarcAlerts.$inferSelect>;
/** An alert that waits for the next mail to somebody. */
export type AlertMailRow = Readonly<typeof dmarcAlertMails.$inferSelect>;

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
  };
};

export type DmarcAlertStore = ReturnType<typeof createDmarcAlertStore>;
