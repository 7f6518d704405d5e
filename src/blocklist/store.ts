import { and, asc, count, desc, eq, gt, gte, lt, lte, ne, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { insertEvent, type NewEvent } from "../db/outbox.ts";
import { blocklistChecks, blocklistListings, blocklistTargets } from "../db/schema-blocklist.ts";
import type { Severity, TargetKind } from "../dnsbl/blocklist.ts";
import { createBlocklistAlertStore } from "./alert-store.ts";

export const TARGET_STATUSES = ["pending", "clean", "listed", "unknown"] as const;
export type TargetStatus = (typeof TARGET_STATUSES)[number];

/** A target as it is stored. `listedOn` holds listing ids as far as known. */
export interface TargetRow {
  readonly id: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly kind: TargetKind;
  readonly value: string;
  /** The range that an address belongs to; empty for what was added by itself. */
  readonly rangeId: string;
  /** How many addresses a range has; null for all else. */
  readonly members: number | null;
  readonly label: string | null;
  readonly status: TargetStatus;
  readonly listedOn: readonly string[];
  /** Of the worst listing (`rankOf`); 0 when there is none. */
  readonly severityRank: number;
  /** From which severity on changes are sent; null: as the account says. */
  readonly alertSeverityMin: Severity | null;
  readonly mutedLists: readonly string[];
  readonly monitoringEnabled: boolean;
  readonly webhookUrl: string | null;
  /** Addresses that alert mail goes to. */
  readonly recipients: readonly string[];
  /** Checks in a row that ended `unknown`. */
  readonly unknownChecks: number;
  readonly lastCheckedAtMs: number | null;
  readonly nextCheckAtMs: number;
  readonly createdAtMs: number;
}

/** What changes in a target after it was added. */
export type TargetChange = Partial<
  Omit<TargetRow, "id" | "accountId" | "mode" | "kind" | "value" | "rangeId" | "members" | "createdAtMs">
>;

/** A place in the order by severity, the worst first: behind this one. */
export interface SeverityPlace {
  readonly severityRank: number;
  readonly id: string;
}

/** A finished check. `body` is the JSON text of what `check-view.ts` reads. */
export interface CheckRow {
  readonly id: string;
  readonly targetId: string;
  readonly trigger: "scheduled" | "manual";
  readonly startedAtMs: number;
  readonly finishedAtMs: number;
  readonly status: "clean" | "listed" | "unknown";
  readonly isChange: boolean;
  readonly body: string;
}

export interface TargetFilters {
  readonly status?: TargetStatus | undefined;
  readonly kind?: TargetKind | undefined;
  readonly value?: string | undefined;
  readonly monitoringEnabled?: boolean | undefined;
  readonly label?: string | undefined;
  /** At least this severe (`rankOf`). */
  readonly severityRankMin?: number | undefined;
  /** On any of these listings. */
  readonly listings?: readonly string[] | undefined;
  /** The range whose addresses are wanted; default: what was added by itself. */
  readonly rangeId?: string | undefined;
}

/** Whose targets: a caller sees those of its account and mode. */
export interface Owner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export const createBlocklistStore = (db: Db) => {
  const table = blocklistTargets;
  const isListed = ne(table.listedOn, []);
  const isDue = (nowMs: number): SQL | undefined =>
    and(sql`monitoring_enabled = 1 and members is null`, lte(table.nextCheckAtMs, nowMs));
  const isOf = ({ accountId, mode }: Owner): SQL | undefined =>
    and(eq(table.accountId, accountId), eq(table.mode, mode));
  const isBehind = (place: SeverityPlace | null): SQL | undefined =>
    place === null ? undefined : sql`(severity_rank, id) < (${place.severityRank}, ${place.id})`;
  const passes = (owner: Owner, filters: TargetFilters): SQL | undefined => {
    const { status, kind, value, monitoringEnabled, label, severityRankMin, listings, rangeId = "" } = filters;
    return and(
      isOf(owner),
      eq(table.rangeId, rangeId),
      // What is known to be listed stays so while the lists do not answer.
      status === undefined ? undefined : status === "listed" ? isListed : eq(table.status, status),
      kind === undefined ? undefined : eq(table.kind, kind),
      value === undefined ? undefined : eq(table.value, value),
      monitoringEnabled === undefined ? undefined : eq(table.monitoringEnabled, monitoringEnabled),
      label === undefined ? undefined : eq(table.label, label),
      severityRankMin === undefined ? undefined : gte(table.severityRank, severityRankMin),
      listings === undefined
        ? undefined
        : sql`EXISTS (SELECT 1 FROM json_each(listed_on) WHERE value IN (SELECT value FROM json_each(${JSON.stringify(listings)})))`,
    );
  };

  return {
    insertTarget: (_tx: Tx, target: TargetRow): void => void db.orm.insert(table).values(target).run(),
    findTarget: (id: string): TargetRow | undefined => db.orm.select().from(table).where(eq(table.id, id)).get(),
    /** What was added by itself under this name. */
    findSame: (owner: Owner, kind: TargetKind, value: string): TargetRow | undefined =>
      db.orm
        .select()
        .from(table)
        .where(and(isOf(owner), eq(table.kind, kind), eq(table.value, value), eq(table.rangeId, "")))
        .get(),
    updateTarget: (_tx: Tx, id: string, change: TargetChange): void =>
      void db.orm.update(table).set(change).where(eq(table.id, id)).run(),
    removeTarget(_tx: Tx, id: string): void {
      db.orm.delete(blocklistChecks).where(eq(blocklistChecks.targetId, id)).run();
      db.orm.delete(blocklistListings).where(eq(blocklistListings.targetId, id)).run();
      db.orm.delete(table).where(eq(table.id, id)).run();
    },
    countTargets: (owner: Owner): number =>
      db.orm.select({ count: count() }).from(table).where(isOf(owner)).get()?.count ?? 0,
    /** Of an owner, or in a range of theirs: the id so many places behind the newest older than `before`; null when there are no so many. */
    idBehind: (
      owner: Owner,
      rangeId: string,
      { before, places }: { before: string | null; places: number },
    ): string | null =>
      db.orm
        .select({ id: table.id })
        .from(table)
        .where(and(isOf(owner), eq(table.rangeId, rangeId), before === null ? undefined : lt(table.id, before)))
        .orderBy(desc(table.id))
        .limit(1)
        .offset(places)
        .get()?.id ?? null,
    /** Newest first, older than the id `before` and not older than `from`. */
    listTargets: (owner: Owner, filters: TargetFilters, page: IdWindow): TargetRow[] =>
      db.orm
        .select()
        .from(table)
        .where(
          and(
            passes(owner, filters),
            page.before === null ? undefined : lt(table.id, page.before),
            page.from === undefined ? undefined : gte(table.id, page.from),
          ),
        )
        .orderBy(desc(table.id))
        .limit(page.limit)
        .all(),
    /** The place so many behind `before` in the order by severity; null when there are no so many. */
    placeBehind: (owner: Owner, before: SeverityPlace | null, places: number): SeverityPlace | null =>
      db.orm
        .select({ severityRank: table.severityRank, id: table.id })
        .from(table)
        .where(and(isOf(owner), eq(table.rangeId, ""), isBehind(before)))
        .orderBy(desc(table.severityRank), desc(table.id))
        .limit(1)
        .offset(places)
        .get() ?? null,
    /** The worst first, among those the newest: behind `before` and not behind `upTo`. */
    listWorst: (
      owner: Owner,
      filters: TargetFilters,
      page: { readonly before: SeverityPlace | null; readonly upTo: SeverityPlace | null; readonly limit: number },
    ): TargetRow[] =>
      db.orm
        .select()
        .from(table)
        .where(
          and(
            passes(owner, filters),
            isBehind(page.before),
            page.upTo === null ? undefined : sql`(severity_rank, id) >= (${page.upTo.severityRank}, ${page.upTo.id})`,
          ),
        )
        .orderBy(desc(table.severityRank), desc(table.id))
        .limit(page.limit)
        .all(),

    /** Targets with listings whose severity was not worked out yet. */
    withoutSeverity: (limit: number): TargetRow[] =>
      db.orm
        .select()
        .from(table)
        .where(sql`severity_rank = 0 and listed_on <> '[]'`)
        .limit(limit)
        .all(),

    /** Targets whose time has come, in the order of their time. */
    dueTargets: (nowMs: number, limit: number): TargetRow[] =>
      db.orm.select().from(table).where(isDue(nowMs)).orderBy(asc(table.nextCheckAtMs)).limit(limit).all(),
    countDue: (nowMs: number): number =>
      db.orm.select({ count: count() }).from(table).where(isDue(nowMs)).get()?.count ?? 0,
    /** How many targets of live keys are watched. */
    countWatched: (): number =>
      db.orm
        .select({ count: count() })
        .from(table)
        .where(and(sql`monitoring_enabled = 1 and members is null`, eq(table.mode, "live")))
        .get()?.count ?? 0,

    insertCheck: (_tx: Tx, check: CheckRow): void => void db.orm.insert(blocklistChecks).values(check).run(),
    /** Newest first, older than the id `before`. */
    listChecks: (targetId: string, page: { before: string | null; limit: number }): CheckRow[] =>
      db.orm
        .select()
        .from(blocklistChecks)
        .where(
          and(
            eq(blocklistChecks.targetId, targetId),
            page.before === null ? undefined : lt(blocklistChecks.id, page.before),
          ),
        )
        .orderBy(desc(blocklistChecks.id))
        .limit(page.limit)
        .all(),
    /** The checks finished after `afterMs`, the oldest first. */
    checksSince: (targetId: string, afterMs: number): CheckRow[] =>
      db.orm
        .select()
        .from(blocklistChecks)
        .where(and(eq(blocklistChecks.targetId, targetId), gt(blocklistChecks.finishedAtMs, afterMs)))
        .orderBy(asc(blocklistChecks.id))
        .all(),
    /** The checks since `afterMs` in which a listing came or went. */
    changesSince: (targetId: string, afterMs: number): CheckRow[] =>
      db.orm
        .select()
        .from(blocklistChecks)
        .where(
          and(
            eq(blocklistChecks.targetId, targetId),
            eq(blocklistChecks.isChange, true),
            gt(blocklistChecks.finishedAtMs, afterMs),
          ),
        )
        .all(),
    /** Removes some checks finished before `beforeMs` (those without a change, or all), and says how many. */
    purgeChecks(_tx: Tx, beforeMs: number, wanted: { readonly withChanges: boolean; readonly limit: number }): number {
      const { withChanges, limit } = wanted;
      const old = db.orm
        .select({ id: blocklistChecks.id })
        .from(blocklistChecks)
        .where(
          and(
            lt(blocklistChecks.finishedAtMs, beforeMs),
            withChanges ? undefined : eq(blocklistChecks.isChange, false),
          ),
        )
        .limit(limit)
        .all();
      for (const { id } of old) db.orm.delete(blocklistChecks).where(eq(blocklistChecks.id, id)).run();
      return old.length;
    },

    insertEvent: (tx: Tx, event: NewEvent): void => insertEvent(db, tx, event),
    ...createBlocklistAlertStore(db),
  };
};

export type BlocklistStore = ReturnType<typeof createBlocklistStore>;
