import { and, count, desc, eq, gt, isNull, lt, or } from "drizzle-orm";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { accounts } from "../../../foundation/db/schema.ts";
import { dmarcDomains, dmarcShares } from "../../../foundation/db/schema-dmarc.ts";
import type { DomainRow } from "./domain-store.ts";

/** A link that shows the report of a domain to anybody who has it. */
export type ReportShare = Readonly<Omit<typeof dmarcShares.$inferSelect, "hash">>;

const LISTED_MAX = 50;

const SHOWN = {
  id: dmarcShares.id,
  domain: dmarcShares.domain,
  note: dmarcShares.note,
  createdAtMs: dmarcShares.createdAtMs,
  expiresAtMs: dmarcShares.expiresAtMs,
  revokedAtMs: dmarcShares.revokedAtMs,
  lastUsedAtMs: dmarcShares.lastUsedAtMs,
};

/** Links to the report of a domain, stored by their hash. */
export class ShareStore {
  constructor(private readonly deps: Pick<Db, "orm">) {}

  insert(_tx: Tx, share: typeof dmarcShares.$inferInsert): void {
    this.deps.orm.insert(dmarcShares).values(share).run();
  }

  update(_tx: Tx, id: string, change: Partial<Pick<ReportShare, "revokedAtMs" | "lastUsedAtMs">>): void {
    this.deps.orm.update(dmarcShares).set(change).where(eq(dmarcShares.id, id)).run();
  }

  /** Newest first, ended ones included. */
  list(domain: number): ReportShare[] {
    const own = eq(dmarcShares.domain, domain);
    return this.deps.orm
      .select(SHOWN)
      .from(dmarcShares)
      .where(own)
      .orderBy(desc(dmarcShares.id))
      .limit(LISTED_MAX)
      .all();
  }

  countOpen(domain: number, nowMs: number): number {
    const open = and(
      eq(dmarcShares.domain, domain),
      isNull(dmarcShares.revokedAtMs),
      gt(dmarcShares.expiresAtMs, nowMs),
    );
    return this.deps.orm.select({ open: count() }).from(dmarcShares).where(open).get()?.open ?? 0;
  }

  /** Removes the links of a domain that ended before a time. */
  removeEnded(_tx: Tx, domain: number, beforeMs: number): void {
    const ended = or(lt(dmarcShares.expiresAtMs, beforeMs), lt(dmarcShares.revokedAtMs, beforeMs));
    this.deps.orm
      .delete(dmarcShares)
      .where(and(eq(dmarcShares.domain, domain), ended))
      .run();
  }

  /** The open link with a hash and its domain; undefined also while the account is disabled. */
  findOpen(hash: string, nowMs: number): { readonly share: ReportShare; readonly row: DomainRow } | undefined {
    const isOpen = and(
      eq(dmarcShares.hash, hash),
      isNull(dmarcShares.revokedAtMs),
      gt(dmarcShares.expiresAtMs, nowMs),
      isNull(dmarcDomains.deletedAtMs),
      isNull(accounts.disabledAtMs),
    );
    const found = this.deps.orm.select({ share: SHOWN, row: dmarcDomains }).from(dmarcShares);
    return found
      .innerJoin(dmarcDomains, eq(dmarcDomains.number, dmarcShares.domain))
      .innerJoin(accounts, eq(accounts.id, dmarcDomains.accountId))
      .where(isOpen)
      .get();
  }
}
