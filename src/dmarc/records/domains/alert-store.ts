import { and, desc, eq, lt, lte, type SQL, sql } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { insertEvent, type NewEvent } from "../../../foundation/db/outbox.ts";
import { dmarcAlertMails, dmarcAlerts } from "../../../foundation/db/schema-dmarc.ts";
import { statements } from "../../../foundation/db/statements.ts";

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
    });
  }

  insertAlert(_tx: Tx, alert: DmarcAlertRow): void {
    this.db.orm.insert(dmarcAlerts).values(alert).run();
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
    return this.#list(and(eq(dmarcAlerts.domain, domain), eq(dmarcAlerts.rule, rule)), limit);
  }

  /** Newest first, older than the id `before`. */
  listAlerts(domain: number, { before, limit }: { readonly before: string | null; readonly limit: number }) {
    const older = before === null ? undefined : lt(dmarcAlerts.id, before);
    return this.#list(and(eq(dmarcAlerts.domain, domain), older), limit);
  }

  #list(where: SQL | undefined, limit: number): DmarcAlertRow[] {
    return this.db.orm.select().from(dmarcAlerts).where(where).orderBy(desc(dmarcAlerts.id)).limit(limit).all();
  }
}
