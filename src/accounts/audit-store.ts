import { and, desc, eq, gte, lt, sql, type SQL } from "drizzle-orm";
import type { Db } from "../foundation/db/open.ts";
import { auditLog } from "../foundation/db/schema-audit.ts";

export type AuditEntry = Readonly<typeof auditLog.$inferSelect>;

/** Which entries `list` returns; undefined does not restrict. */
export interface AuditFilters {
  readonly accountId?: string | undefined;
  readonly sinceMs?: number | undefined;
  /** How the action begins: `keys`. */
  readonly actionBegin?: string | undefined;
}

/** The table of the audit log; triggers refuse changes and deletions. */
export class AuditStore {
  readonly #orm: Db["orm"];

  constructor({ orm }: Pick<Db, "orm">) {
    this.#orm = orm;
  }

  insert(entry: Omit<AuditEntry, "id">): void {
    this.#orm.insert(auditLog).values(entry).run();
  }

  /** The newest entries first; those with an id below `before`, unless it is null. */
  list(
    { accountId, sinceMs, actionBegin = "" }: AuditFilters,
    { before, limit }: { before: number | null; limit: number },
  ): AuditEntry[] {
    const conditions: Array<SQL | undefined> = [
      accountId === undefined ? undefined : eq(auditLog.accountId, accountId),
      sinceMs === undefined ? undefined : gte(auditLog.atMs, sinceMs),
      before === null ? undefined : lt(auditLog.id, before),
      actionBegin === "" ? undefined : sql`substr(${auditLog.action}, 1, ${actionBegin.length}) = ${actionBegin}`,
    ];
    const found = this.#orm
      .select()
      .from(auditLog)
      .where(and(...conditions));
    return found.orderBy(desc(auditLog.id)).limit(limit).all();
  }
}
