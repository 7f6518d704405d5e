import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { dmarcTagDigests } from "../../../foundation/db/schema-dmarc.ts";
import { OF_ENABLED_ACCOUNT } from "../../../foundation/db/statements.ts";
import type { DomainOwner } from "./domain-store.ts";

/** A digest about the domains with a tag. */
export type TagDigest = Readonly<typeof dmarcTagDigests.$inferSelect>;

const table = dmarcTagDigests;
const belongsTo = ({ accountId, mode }: Pick<DomainOwner, "accountId" | "mode">) =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

/** The digests of tags of an account and mode. */
export class TagDigestStore {
  constructor(private readonly deps: Pick<Db, "orm">) {}

  /** In the order of their tags. */
  list(owner: DomainOwner): readonly TagDigest[] {
    return this.deps.orm.select().from(table).where(belongsTo(owner)).orderBy(asc(table.tag)).all();
  }

  find(owner: DomainOwner, tag: string): TagDigest | undefined {
    return this.deps.orm
      .select()
      .from(table)
      .where(and(belongsTo(owner), eq(table.tag, tag)))
      .get();
  }

  save(_tx: Tx, { accountId, mode, tag, ...values }: TagDigest): void {
    const target = [table.accountId, table.mode, table.tag];
    this.deps.orm
      .insert(table)
      .values({ accountId, mode, tag, ...values })
      .onConflictDoUpdate({ target, set: values })
      .run();
  }

  remove(_tx: Tx, owner: DomainOwner, tag: string): void {
    this.deps.orm
      .delete(table)
      .where(and(belongsTo(owner), eq(table.tag, tag)))
      .run();
  }

  /** The digests that are due, the longest waiting first. */
  due(nowMs: number, limit: number): readonly TagDigest[] {
    const isDue = and(lte(table.dueAtMs, nowMs), sql.raw(OF_ENABLED_ACCOUNT));
    return this.deps.orm.select().from(table).where(isDue).orderBy(asc(table.dueAtMs)).limit(limit).all();
  }
}
