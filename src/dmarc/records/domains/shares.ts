import { and, count, desc, eq, gt, isNull, lt, or } from "drizzle-orm";
import { orRefusal } from "../../../foundation/db/group-commit.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { DAY_MS } from "../../../foundation/base/days.ts";
import { isSecretToken, newId, newSecretToken, sha256 } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import { accounts } from "../../../foundation/db/schema.ts";
import { dmarcDomains, dmarcShares } from "../../../foundation/db/schema-dmarc.ts";
import { domainIssue } from "./enrolments.ts";
import type { DomainRow } from "./domain-store.ts";

/** A link that shows the report of a domain to anybody who has it. */
export type ReportShare = Readonly<Omit<typeof dmarcShares.$inferSelect, "hash">>;

/** A link with its token, which is shown only once and stored as a hash. */
export interface IssuedShare extends ReportShare {
  readonly token: string;
}

/** Links of one domain that have not ended. */
const OPEN_MAX = 20;
export const SHARE_DAYS_MAX = 366;
/** The use of a link is stored at most this often, so that reading costs no write. */
const USED_STEP_MS = 60 * 60_000;
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
class ShareStore {
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

/** Read-only links to the report of one domain: create, list, revoke and open them. */
export class ReportShares {
  readonly #store: ShareStore;

  constructor(private readonly runtime: DbClock) {
    this.#store = new ShareStore(runtime.db);
  }

  list({ number }: Pick<DomainRow, "number">): readonly ReportShare[] {
    return this.#store.list(number);
  }

  /** Creates a link that ends after some days. `findDomain` is called inside the transaction. */
  async create(
    findDomain: () => DomainRow,
    { days, note }: { readonly days: number; readonly note: string | null },
  ): Promise<IssuedShare> {
    const nowMs = this.runtime.clock.nowMs();
    const token = newSecretToken();
    const created = await this.runtime.db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      this.#store.removeEnded(tx, domain.number, nowMs - SHARE_DAYS_MAX * DAY_MS);
      if (this.#store.countOpen(domain.number, nowMs) >= OPEN_MAX)
        return domainIssue("days", `A domain has at most ${OPEN_MAX} links. Revoke one first.`);
      const share = {
        id: newId(),
        domain: domain.number,
        note,
        createdAtMs: nowMs,
        expiresAtMs: nowMs + days * DAY_MS,
        revokedAtMs: null,
        lastUsedAtMs: null,
      };
      this.#store.insert(tx, { ...share, hash: sha256(token) });
      return share;
    });
    if (created instanceof AppError) throw created;
    return { ...created, token };
  }

  /** Ends a link at once. Throws `not_found` for one that the domain does not have; one that has ended stays as it is. */
  async revoke(findDomain: () => DomainRow, id: string): Promise<void> {
    const done = await this.runtime.db.commit((tx) => {
      const domain = orRefusal(findDomain);
      if (domain instanceof AppError) return domain;
      const share = this.#store.list(domain.number).find((one) => one.id === id);
      if (share === undefined) return new AppError("not_found", { message: "There is no such link." });
      if (share.revokedAtMs === null) this.#store.update(tx, id, { revokedAtMs: this.runtime.clock.nowMs() });
      return null;
    });
    if (done !== null) throw done;
  }

  /** The domain of a link; throws `not_found` for one that does not exist or has ended, without saying which. */
  async open(token: string): Promise<{ readonly row: DomainRow; readonly share: ReportShare }> {
    const nowMs = this.runtime.clock.nowMs();
    const found = isSecretToken(token) ? this.#store.findOpen(sha256(token), nowMs) : undefined;
    if (found === undefined) throw new AppError("not_found", { message: "This link does not exist or has ended." });
    const { id, lastUsedAtMs } = found.share;
    if (lastUsedAtMs === null || nowMs - lastUsedAtMs >= USED_STEP_MS)
      await this.runtime.db.commit((tx) => this.#store.update(tx, id, { lastUsedAtMs: nowMs }));
    return found;
  }
}
