import {
  and,
  asc,
  count,
  desc,
  eq,
  inArray,
  isNotNull,
  isNull,
  lt,
  lte,
  type Placeholder,
  type SQL,
  sql,
} from "drizzle-orm";
import type { KeyMode } from "../../../foundation/base/secrets.ts";
import { OF_ENABLED_ACCOUNT, selectionOf, statements } from "../../../foundation/db/statements.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { dmarcDomains, dmarcHistory } from "../../../foundation/db/schema-dmarc.ts";

export const DOMAIN_STATUSES = ["pending", "active", "action_required"] as const;
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];
export const DIGESTS = ["off", "daily", "weekly", "monthly"] as const;

/** A stored domain. */
export type DomainRow = Readonly<typeof dmarcDomains.$inferSelect>;

/** Makes an overview one of the day before its own, which is computed again; a condition follows. */
export const MAKE_OVERVIEWS_DUE =
  "UPDATE dmarc_overviews SET computed_at_ms = computed_at_ms - computed_at_ms % 86400000 - 1 WHERE";

/** What changes in a domain after it was enrolled. */
export type DomainChange = Partial<Omit<DomainRow, "number" | "id" | "accountId" | "mode" | "domain" | "createdAtMs">>;

/** A change in the DNS. `body` is the JSON text of what `domain-state.ts` describes. */
export type HistoryRow = Readonly<typeof dmarcHistory.$inferSelect>;

/** The owner of domains: a caller sees those of its account and mode. */
export interface DomainOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
  /** A caller who sees only domains with this tag; absent or null: all. */
  readonly onlyTag?: string | null;
}

export interface DomainFilters {
  readonly status?: DomainStatus | undefined;
  /** Lower-case A-labels. */
  readonly domain?: string | undefined;
  readonly monitoringEnabled?: boolean | undefined;
  /** Only domains with this tag. */
  readonly tag?: string | undefined;
}

/** A page of rows, newest first: those older than the id `before`. */
export interface DomainPage {
  readonly before: string | null;
  readonly limit: number;
}

/** A domain has at most 127 labels, each of which may be enrolled. */
const ANCESTORS_MAX = 127;
const ADD_USAGE = `UPDATE dmarc_domains SET usage_bytes = iif(usage_day = $day, usage_bytes, 0) + $bytes, usage_day = $day
  WHERE number = $number`;

const HISTORY = `SELECT ${selectionOf(dmarcHistory)} FROM dmarc_history WHERE domain = ?`;

const domains = dmarcDomains;
const isPresent = isNull(domains.deletedAtMs);
// Written out: SQLite uses the partial index only when the condition is literally the same.
const isMonitored = sql`deleted_at_ms is null and monitoring_enabled = 1`;
const hasTag = (tag: string) => sql`EXISTS (SELECT 1 FROM json_each(${domains.tags}) WHERE value = ${tag})`;
const isOf = ({ accountId, mode, onlyTag = null }: DomainOwner) =>
  and(
    eq(domains.accountId, accountId),
    eq(domains.mode, mode),
    isPresent,
    onlyTag === null ? undefined : hasTag(onlyTag),
  );
const isDue = (nowMs: number | Placeholder) =>
  and(isMonitored, lte(domains.nextCheckAtMs, nowMs), eq(domains.mode, "live"), sql.raw(OF_ENABLED_ACCOUNT));

/** The tables of domains and their history. Deleted domains are returned by `deleted` only. */
export class DomainStore {
  readonly #orm: Db["orm"];
  readonly #sql;

  constructor({ orm, sqlite }: Db) {
    const find = (where: SQL | undefined) => orm.select().from(domains).where(where).prepare();
    this.#orm = orm;
    this.#sql = statements({
      byId: () => find(and(eq(domains.id, sql.placeholder("id")), isPresent)),
      byNumber: () => find(and(eq(domains.number, sql.placeholder("number")), isPresent)),
      byToken: () => find(and(eq(domains.token, sql.placeholder("token")), isPresent)),
      byDomain: () =>
        find(
          and(
            eq(domains.accountId, sql.placeholder("accountId")),
            eq(domains.mode, sql.placeholder("mode")),
            eq(domains.domain, sql.placeholder("domain")),
            sql`deleted_at_ms is null`,
          ),
        ),
      due: () =>
        orm
          .select()
          .from(domains)
          .where(isDue(sql.placeholder("nowMs")))
          .orderBy(asc(domains.nextCheckAtMs))
          .limit(sql.placeholder("limit"))
          .prepare(),
      history: () => sqlite.prepare<HistoryRow, [number, number]>(`${HISTORY} ORDER BY id DESC LIMIT ?`),
      historyBefore: () =>
        sqlite.prepare<HistoryRow, [number, string, number]>(`${HISTORY} AND id < ? ORDER BY id DESC LIMIT ?`),
      addUsage: () => sqlite.prepare<unknown, { number: number; day: number; bytes: number }>(ADD_USAGE),
    });
  }

  /** Stores a domain and returns it with its number. Throws when the owner has the domain already, or the token exists. */
  insert(_tx: Tx, row: Omit<DomainRow, "number">): DomainRow {
    return this.#orm.insert(domains).values(row).returning().get();
  }

  findById(id: string): DomainRow | undefined {
    return this.#sql.byId.get({ id });
  }

  findByNumber(number: number): DomainRow | undefined {
    return this.#sql.byNumber.get({ number });
  }

  findByToken(token: string): DomainRow | undefined {
    return this.#sql.byToken.get({ token });
  }

  /** The owner's domain of this name (lower-case A-labels). */
  findSame({ accountId, mode }: DomainOwner, domain: string): DomainRow | undefined {
    return this.#sql.byDomain.get({ accountId, mode, domain });
  }

  /** The owner's domain that is `policyDomain` (lower-case A-labels) or, if it is not enrolled, its nearest enrolled parent. */
  findCovering(owner: DomainOwner, policyDomain: string): DomainRow | undefined {
    const labels = policyDomain.split(".").slice(-ANCESTORS_MAX);
    for (const at of labels.keys()) {
      const found = this.findSame(owner, labels.slice(at).join("."));
      if (found !== undefined) return found;
    }
    return undefined;
  }

  /** Counts the disk space that report mail takes on a day (since 1970, UTC). */
  addUsage(_tx: Tx, number: number, { day, bytes }: { day: number; bytes: number }): void {
    this.#sql.addUsage.run({ number, day, bytes });
  }

  update(_tx: Tx, number: number, change: DomainChange): void {
    if (Object.keys(change).length === 0) return;
    this.#orm.update(domains).set(change).where(eq(domains.number, number)).run();
  }

  /** Newest first. */
  list(owner: DomainOwner, { status, domain, monitoringEnabled, tag }: DomainFilters, page: DomainPage): DomainRow[] {
    const matching = and(
      isOf(owner),
      page.before === null ? undefined : lt(domains.id, page.before),
      status === undefined ? undefined : eq(domains.status, status),
      domain === undefined ? undefined : eq(domains.domain, domain),
      monitoringEnabled === undefined ? undefined : eq(domains.monitoringEnabled, monitoringEnabled),
      tag === undefined ? undefined : hasTag(tag),
    );
    return this.#orm.select().from(domains).where(matching).orderBy(desc(domains.id)).limit(page.limit).all();
  }

  count(owner: DomainOwner): number {
    return this.#count(isOf(owner));
  }

  /** Domains of live keys whose check is due, the longest overdue first. */
  due(nowMs: number, limit: number): DomainRow[] {
    return this.#sql.due.all({ nowMs, limit });
  }

  countDue(nowMs: number): number {
    return this.#count(isDue(nowMs));
  }

  /** Domains with monitoring on, including those of test keys: the index is sufficient. */
  countMonitored(): number {
    return this.#count(isMonitored);
  }

  /**
   * Deletes a domain and its reporting address immediately; its data is purged in the background. The token is released, because the
   * same domain of a test key gets the same one again.
   */
  markDeleted(_tx: Tx, number: number, atMs: number): void {
    const token = sql`'revoked:' || ${domains.id}`;
    const change = { token, deletedAtMs: atMs, updatedAtMs: atMs };
    this.#orm.update(domains).set(change).where(eq(domains.number, number)).run();
  }

  /** Deleted domains whose data is still to be purged, the longest deleted first. */
  deleted(limit: number): DomainRow[] {
    const found = this.#orm.select().from(domains).where(isNotNull(domains.deletedAtMs));
    return found.orderBy(asc(domains.deletedAtMs)).limit(limit).all();
  }

  /** Removes the row of a deleted domain whose data is purged. */
  remove(_tx: Tx, number: number): void {
    this.#orm.delete(domains).where(eq(domains.number, number)).run();
  }

  insertHistory(_tx: Tx, row: HistoryRow): void {
    this.#orm.insert(dmarcHistory).values(row).run();
  }

  /** Newest first. */
  listHistory(number: number, { before, limit }: DomainPage): HistoryRow[] {
    return before === null ? this.#sql.history.all(number, limit) : this.#sql.historyBefore.all(number, before, limit);
  }

  /** Purges the oldest entries of a domain's history, with `beforeMs` only older ones; returns how many. */
  removeHistory(_tx: Tx, number: number, wanted: { limit: number; beforeMs?: number }): number {
    const older = wanted.beforeMs === undefined ? undefined : lt(dmarcHistory.atMs, wanted.beforeMs);
    const ids = this.#orm
      .select({ id: dmarcHistory.id })
      .from(dmarcHistory)
      .where(and(eq(dmarcHistory.domain, number), older))
      .orderBy(asc(dmarcHistory.id))
      .limit(wanted.limit)
      .all()
      .map(({ id }) => id);
    if (ids.length > 0) this.#orm.delete(dmarcHistory).where(inArray(dmarcHistory.id, ids)).run();
    return ids.length;
  }

  #count(where: SQL | undefined) {
    return this.#orm.select({ count: count() }).from(domains).where(where).get()?.count ?? 0;
  }
}
