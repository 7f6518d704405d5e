import { and, asc, eq, lte, sql } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { dmarcTagDigests } from "../../../foundation/db/schema-dmarc.ts";
import { OF_ENABLED_ACCOUNT, statements } from "../../../foundation/db/statements.ts";
import type { DomainOwner } from "./domain-store.ts";

/** A digest about the domains with a tag. */
export type TagDigest = Readonly<typeof dmarcTagDigests.$inferSelect>;

const table = dmarcTagDigests;
const belongsTo = ({ accountId, mode }: Pick<DomainOwner, "accountId" | "mode">) =>
  and(eq(table.accountId, accountId), eq(table.mode, mode));

/** The digests of tags of an account and mode. */
export class TagDigestStore {
  readonly #sql;

  constructor(private readonly deps: Pick<Db, "orm">) {
    this.#sql = statements({
      due: () =>
        deps.orm
          .select()
          .from(table)
          .where(and(lte(table.dueAtMs, sql.placeholder("nowMs")), sql.raw(OF_ENABLED_ACCOUNT)))
          .orderBy(asc(table.dueAtMs))
          .limit(sql.placeholder("limit"))
          .prepare(),
    });
  }

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
    return this.#sql.due.all({ nowMs, limit });
  }
}
