import { and, asc, count, desc, eq, inArray, isNotNull, isNull, lt, lte, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { dmarcDomains, dmarcHistory } from "../../db/schema-dmarc.ts";

export const DOMAIN_STATUSES = ["pending", "active", "action_required"] as const;
export type DomainStatus = (typeof DOMAIN_STATUSES)[number];
export const DIGESTS = ["off", "daily", "weekly", "monthly"] as const;
export type Digest = (typeof DIGESTS)[number];

/** A domain as it is stored. */
export type DomainRow = Readonly<typeof dmarcDomains.$inferSelect>;

/** What changes in a domain after it was enrolled. */
export type DomainChange = Partial<Omit<DomainRow, "number" | "id" | "accountId" | "mode" | "domain" | "createdAtMs">>;

/** A change of what the DNS says. `body` is the JSON text of what `domain-state.ts` describes. */
export type HistoryRow = Readonly<typeof dmarcHistory.$inferSelect>;

/** Whose domains: a caller sees those of its account and mode. */
export interface DomainOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface DomainFilters {
  readonly status?: DomainStatus | undefined;
  /** Lower-case A-labels. */
  readonly domain?: string | undefined;
  readonly monitoringEnabled?: boolean | undefined;
}

/** A page of rows, newest first: those older than the id `before`. */
export interface DomainPage {
  readonly before: string | null;
  readonly limit: number;
}

/** A domain has 127 labels at most, each of which may be enrolled. */
const ANCESTORS_MAX = 127;

/** The table of domains and their history. A domain that was deleted is seen by nobody but `deleted`. */
export const createDomainStore = (db: Db) => {
  const table = dmarcDomains;
  const { orm } = db;
  const isThere = isNull(table.deletedAtMs);
  const isOf = ({ accountId, mode }: DomainOwner): SQL | undefined =>
    and(eq(table.accountId, accountId), eq(table.mode, mode), isThere);
  // Written out: SQLite uses the partial index only when it sees its condition.
  const isDue = (nowMs: number): SQL | undefined =>
    and(sql`deleted_at_ms is null and monitoring_enabled = 1`, lte(table.nextCheckAtMs, nowMs), eq(table.mode, "live"));

  const byId = orm
    .select()
    .from(table)
    .where(and(eq(table.id, sql.placeholder("id")), isThere))
    .prepare();
  const byNumber = orm
    .select()
    .from(table)
    .where(and(eq(table.number, sql.placeholder("number")), isThere))
    .prepare();
  const byToken = orm
    .select()
    .from(table)
    .where(and(eq(table.token, sql.placeholder("token")), isThere))
    .prepare();
  const byDomain = orm
    .select()
    .from(table)
    .where(
      and(
        eq(table.accountId, sql.placeholder("accountId")),
        eq(table.mode, sql.placeholder("mode")),
        eq(table.domain, sql.placeholder("domain")),
        sql`deleted_at_ms is null`,
      ),
    )
    .prepare();

  const addUsage = db.sqlite.prepare<unknown, { number: number; day: number; bytes: number }>(
    `UPDATE dmarc_domains SET usage_bytes = iif(usage_day = $day, usage_bytes, 0) + $bytes, usage_day = $day WHERE number = $number`,
  );

  const findSame = ({ accountId, mode }: DomainOwner, domain: string): DomainRow | undefined =>
    byDomain.get({ accountId, mode, domain });

  return {
    /** Stores a domain and gives it its number. Throws when the owner has the domain already, or the token exists. */
    insert: (_tx: Tx, row: Omit<DomainRow, "number">): DomainRow => orm.insert(table).values(row).returning().get(),
    findById: (id: string): DomainRow | undefined => byId.get({ id }),
    findByNumber: (number: number): DomainRow | undefined => byNumber.get({ number }),
    findByToken: (token: string): DomainRow | undefined => byToken.get({ token }),
    /** The owner's domain of this name (lower-case A-labels). */
    findSame,
    /** The owner's domain that is `policyDomain` (lower-case A-labels) or, when it is not enrolled, its nearest parent that is. */
    findCovering(owner: DomainOwner, policyDomain: string): DomainRow | undefined {
      const labels = policyDomain.split(".").slice(-ANCESTORS_MAX);
      for (const at of labels.keys()) {
        const found = findSame(owner, labels.slice(at).join("."));
        if (found !== undefined) return found;
      }
      return undefined;
    },
    /** Counts bytes that report mail takes of the disk, on that day (since 1970, UTC). */
    addUsage: (_tx: Tx, number: number, { day, bytes }: { readonly day: number; readonly bytes: number }): void =>
      void addUsage.run({ number, day, bytes }),
    update: (_tx: Tx, number: number, change: DomainChange): void => {
      if (Object.keys(change).length > 0) orm.update(table).set(change).where(eq(table.number, number)).run();
    },
    /** Newest first. */
    list(owner: DomainOwner, { status, domain, monitoringEnabled }: DomainFilters, page: DomainPage): DomainRow[] {
      const matching = and(
        isOf(owner),
        page.before === null ? undefined : lt(table.id, page.before),
        status === undefined ? undefined : eq(table.status, status),
        domain === undefined ? undefined : eq(table.domain, domain),
        monitoringEnabled === undefined ? undefined : eq(table.monitoringEnabled, monitoringEnabled),
      );
      return orm.select().from(table).where(matching).orderBy(desc(table.id)).limit(page.limit).all();
    },
    count: (owner: DomainOwner): number =>
      orm.select({ count: count() }).from(table).where(isOf(owner)).get()?.count ?? 0,

    /** Domains of live keys whose time has come, in the order of their time. */
    due: (nowMs: number, limit: number): DomainRow[] =>
      orm.select().from(table).where(isDue(nowMs)).orderBy(asc(table.nextCheckAtMs)).limit(limit).all(),
    countDue: (nowMs: number): number =>
      orm.select({ count: count() }).from(table).where(isDue(nowMs)).get()?.count ?? 0,

    /** Domains that scheduled checks look at, those of test keys among them: an index alone says how many. */
    countMonitored: (): number =>
      orm
        .select({ count: count() })
        .from(table)
        .where(sql`deleted_at_ms is null and monitoring_enabled = 1`)
        .get()?.count ?? 0,

    /**
     * Takes a domain and its reporting address away from everybody at once; its data goes in the background. The token is given
     * up, as the same domain of a test key gets the same one again.
     */
    markDeleted: (_tx: Tx, number: number, atMs: number): void =>
      void orm
        .update(table)
        .set({ token: sql`'revoked:' || ${table.id}`, deletedAtMs: atMs, updatedAtMs: atMs })
        .where(eq(table.number, number))
        .run(),
    /** Domains whose data is still to be removed, the longest deleted first. */
    deleted: (limit: number): DomainRow[] =>
      orm.select().from(table).where(isNotNull(table.deletedAtMs)).orderBy(asc(table.deletedAtMs)).limit(limit).all(),
    /** Removes the row of a deleted domain, when all its data is gone. */
    remove: (_tx: Tx, number: number): void => void orm.delete(table).where(eq(table.number, number)).run(),

    insertHistory: (_tx: Tx, row: HistoryRow): void => void orm.insert(dmarcHistory).values(row).run(),
    /** Newest first. */
    listHistory: (number: number, page: DomainPage): HistoryRow[] =>
      orm
        .select()
        .from(dmarcHistory)
        .where(
          and(eq(dmarcHistory.domain, number), page.before === null ? undefined : lt(dmarcHistory.id, page.before)),
        )
        .orderBy(desc(dmarcHistory.id))
        .limit(page.limit)
        .all(),
    /** Forgets some of a domain's history, the oldest first, and says how much; with `beforeMs` only what is older. */
    removeHistory(_tx: Tx, number: number, wanted: { readonly limit: number; readonly beforeMs?: number }): number {
      const old = orm
        .select({ id: dmarcHistory.id })
        .from(dmarcHistory)
        .where(
          and(
            eq(dmarcHistory.domain, number),
            wanted.beforeMs === undefined ? undefined : lt(dmarcHistory.atMs, wanted.beforeMs),
          ),
        )
        .orderBy(asc(dmarcHistory.id))
        .limit(wanted.limit)
        .all()
        .map(({ id }) => id);
      if (old.length > 0) orm.delete(dmarcHistory).where(inArray(dmarcHistory.id, old)).run();
      return old.length;
    },
  };
};

export type DomainStore = ReturnType<typeof createDomainStore>;
