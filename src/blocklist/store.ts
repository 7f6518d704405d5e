import { and, asc, count, desc, eq, gt, gte, lt, lte, notInArray, type SQL, sql } from "drizzle-orm";
import type { IdWindow } from "../base/walk.ts";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { outbox } from "../db/schema.ts";
import { blocklistAlerts, blocklistChecks, blocklistTargets } from "../db/schema-blocklist.ts";
import type { TargetKind } from "../dnsbl/blocklist.ts";

export const TARGET_STATUSES = ["pending", "clean", "listed", "unknown"] as const;
export type TargetStatus = (typeof TARGET_STATUSES)[number];

/** A target as it is stored. `listedOn` holds listing ids as far as known. */
export interface TargetRow {
  readonly id: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly kind: TargetKind;
  readonly value: string;
  readonly label: string | null;
  readonly status: TargetStatus;
  readonly listedOn: readonly string[];
  readonly mutedLists: readonly string[];
  readonly monitoringEnabled: boolean;
  readonly webhookUrl: string | null;
  /** Addresses that alert mail goes to. */
  readonly recipients: readonly string[];
  readonly lastCheckedAtMs: number | null;
  readonly nextCheckAtMs: number;
  readonly createdAtMs: number;
}

/** What changes in a target after it was added. */
export type TargetChange = Partial<Omit<TargetRow, "id" | "accountId" | "mode" | "kind" | "value" | "createdAtMs">>;

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
}

/** An event; `data` is JSON text. */
export interface EventRow {
  readonly id: string;
  readonly accountId: string;
  readonly mode: KeyMode;
  readonly type: "blacklist.listed" | "blacklist.delisted";
  /** What it is about: `target:<id>`. */
  readonly subject: `target:${string}`;
  readonly data: string;
  /** The webhook of the target itself. */
  readonly url: string | null;
  readonly createdAtMs: number;
}

/** A change that waits for the next mail to somebody; `body` is JSON text. */
export interface AlertRow {
  readonly id: string;
  readonly recipient: string;
  readonly body: string;
  readonly createdAtMs: number;
}

/** Whose targets: a caller sees those of its account and mode. */
export interface Owner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** What one mail tells of at most; the rest is in the next one. */
const ALERTS_AT_ONCE_MAX = 10_000;

export const createBlocklistStore = (db: Db) => {
  const table = blocklistTargets;
  const isDue = (nowMs: number): SQL | undefined => and(sql`monitoring_enabled = 1`, lte(table.nextCheckAtMs, nowMs));

  return {
    insertTarget: (_tx: Tx, target: TargetRow): void => void db.orm.insert(table).values(target).run(),
    findTarget: (id: string): TargetRow | undefined => db.orm.select().from(table).where(eq(table.id, id)).get(),
    findSame: ({ accountId, mode }: Owner, kind: TargetKind, value: string): TargetRow | undefined =>
      db.orm
        .select()
        .from(table)
        .where(and(eq(table.accountId, accountId), eq(table.mode, mode), eq(table.kind, kind), eq(table.value, value)))
        .get(),
    updateTarget: (_tx: Tx, id: string, change: TargetChange): void =>
      void db.orm.update(table).set(change).where(eq(table.id, id)).run(),
    removeTarget(_tx: Tx, id: string): void {
      db.orm.delete(blocklistChecks).where(eq(blocklistChecks.targetId, id)).run();
      db.orm.delete(table).where(eq(table.id, id)).run();
    },
    countTargets: ({ accountId, mode }: Owner): number =>
      db.orm
        .select({ count: count() })
        .from(table)
        .where(and(eq(table.accountId, accountId), eq(table.mode, mode)))
        .get()?.count ?? 0,
    /** Of an owner: the id so many places behind the newest older than `before`; null when there are no so many. */
    idBehind: ({ accountId, mode }: Owner, before: string | null, places: number): string | null =>
      db.orm
        .select({ id: table.id })
        .from(table)
        .where(
          and(eq(table.accountId, accountId), eq(table.mode, mode), before === null ? undefined : lt(table.id, before)),
        )
        .orderBy(desc(table.id))
        .limit(1)
        .offset(places)
        .get()?.id ?? null,
    /** Newest first, older than the id `before` and not older than `from`. */
    listTargets(
      { accountId, mode }: Owner,
      { status, kind, value, monitoringEnabled }: TargetFilters,
      page: IdWindow,
    ): TargetRow[] {
      const matching = and(
        eq(table.accountId, accountId),
        eq(table.mode, mode),
        page.before === null ? undefined : lt(table.id, page.before),
        page.from === undefined ? undefined : gte(table.id, page.from),
        status === undefined ? undefined : eq(table.status, status),
        kind === undefined ? undefined : eq(table.kind, kind),
        value === undefined ? undefined : eq(table.value, value),
        monitoringEnabled === undefined ? undefined : eq(table.monitoringEnabled, monitoringEnabled),
      );
      return db.orm.select().from(table).where(matching).orderBy(desc(table.id)).limit(page.limit).all();
    },

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
        .where(and(sql`monitoring_enabled = 1`, eq(table.mode, "live")))
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
    /** Forgets some checks finished before `beforeMs` (those without a change, or all), and says how many. */
    forgetChecks(_tx: Tx, beforeMs: number, wanted: { readonly withChanges: boolean; readonly limit: number }): number {
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

    insertEvent: (_tx: Tx, event: EventRow): void => void db.orm.insert(outbox).values(event).run(),

    insertAlert: (_tx: Tx, alert: AlertRow): void => void db.orm.insert(blocklistAlerts).values(alert).run(),
    /** Some of those for whom alerts wait, but for `without`. */
    alertRecipients: (limit: number, without: readonly string[]): string[] =>
      db.orm
        .selectDistinct({ recipient: blocklistAlerts.recipient })
        .from(blocklistAlerts)
        .where(notInArray(blocklistAlerts.recipient, [...without]))
        .limit(limit)
        .all()
        .map(({ recipient }) => recipient),
    /** The oldest first. */
    alertsFor: (recipient: string): AlertRow[] =>
      db.orm
        .select()
        .from(blocklistAlerts)
        .where(eq(blocklistAlerts.recipient, recipient))
        .orderBy(asc(blocklistAlerts.id))
        .limit(ALERTS_AT_ONCE_MAX)
        .all(),
    removeAlert: (_tx: Tx, id: string): void =>
      void db.orm.delete(blocklistAlerts).where(eq(blocklistAlerts.id, id)).run(),
  };
};

export type BlocklistStore = ReturnType<typeof createBlocklistStore>;
