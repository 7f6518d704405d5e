import { and, asc, count, desc, eq, gt, gte, inArray, lt, lte, ne, type SQL, sql } from "drizzle-orm";
import type { IdWindow, FiltersOf } from "../foundation/base/walk.ts";
import type { Owner } from "../foundation/base/secrets.ts";
import { OF_ENABLED_ACCOUNT, statements } from "../foundation/db/statements.ts";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistChecks, blocklistTargets } from "../foundation/db/schema-blocklist.ts";
import type { TargetKind } from "./lists/blocklist.ts";
import type { Database as Sqlite } from "bun:sqlite";

export const TARGET_STATUSES = ["pending", "clean", "listed", "unknown"] as const;
export type TargetStatus = (typeof TARGET_STATUSES)[number];

/** A target as it is stored. */
export type TargetRow = Readonly<typeof blocklistTargets.$inferSelect>;

/** A position in the order by severity, most severe first, then newest first. */
export type SeverityPosition = Pick<TargetRow, "severityRank" | "id">;

/** The columns that change after a target was added. */
export type TargetChange = Partial<
  Omit<TargetRow, "id" | "accountId" | "mode" | "kind" | "value" | "rangeId" | "members" | "createdAtMs">
>;

/** A finished check. `body` is JSON text, see `checkBodySchema`. */
export type CheckRow = Readonly<typeof blocklistChecks.$inferSelect>;

/**
 * `severityRankMin`: at least this severe (`severityRankOf`); `listings`: on at least one of these; `rangeId`: only the addresses of this
 * range, by default only targets of their own.
 */
export type TargetFilters = FiltersOf<
  Pick<TargetRow, "status" | "kind" | "value" | "monitoringEnabled" | "rangeId"> & {
    label: string;
    severityRankMin: number;
    listings: readonly string[];
  }
>;

const targets = blocklistTargets;
const checks = blocklistChecks;
const IS_LISTED = ne(targets.listedOn, []);
/** Ranges are not checked themselves, only their addresses. */
const IS_WATCHED = sql`monitoring_enabled = 1 and members is null`;

const isDue = (nowMs: number) => and(IS_WATCHED, lte(targets.nextCheckAtMs, nowMs), sql.raw(OF_ENABLED_ACCOUNT));
const isOf = ({ accountId, mode }: Owner) => and(eq(targets.accountId, accountId), eq(targets.mode, mode));
const isAfter = (position: SeverityPosition | null) =>
  position === null ? undefined : sql`(severity_rank, id) < (${position.severityRank}, ${position.id})`;

const matches = (owner: Owner, filters: TargetFilters): SQL | undefined => {
  const { status, kind, value, monitoringEnabled, label, severityRankMin, listings, rangeId = "" } = filters;
  return and(
    isOf(owner),
    eq(targets.rangeId, rangeId),
    // A listing stays known while its list does not respond.
    status === undefined ? undefined : status === "listed" ? IS_LISTED : eq(targets.status, status),
    kind === undefined ? undefined : eq(targets.kind, kind),
    value === undefined ? undefined : eq(targets.value, value),
    monitoringEnabled === undefined ? undefined : eq(targets.monitoringEnabled, monitoringEnabled),
    label === undefined ? undefined : eq(targets.label, label),
    severityRankMin === undefined ? undefined : gte(targets.severityRank, severityRankMin),
    listings === undefined
      ? undefined
      : sql`EXISTS (SELECT 1 FROM json_each(listed_on) WHERE value IN (SELECT value FROM json_each(${JSON.stringify(listings)})))`,
  );
};

/** Targets and their checks. */
export class BlocklistStore {
  /** The statements that every check runs. */
  readonly #sql;

  constructor(private readonly db: Db) {
    const isTarget = eq(targets.id, sql.placeholder("id"));
    this.#sql = statements({
      target: () => db.orm.select().from(targets).where(isTarget).prepare(),
      updateState: () => db.sqlite.prepare(UPDATE_STATE),
      insertCheck: () => db.sqlite.prepare(INSERT_CHECK),
    });
  }

  insertTarget(_tx: Tx, target: TargetRow) {
    this.db.orm.insert(targets).values(target).run();
  }

  findTarget(id: string): TargetRow | undefined {
    return this.#sql.target.get({ id });
  }

  /** In the order of the ids; without those that do not exist. */
  targetsById(ids: readonly string[]): TargetRow[] {
    const found = this.db.orm
      .select()
      .from(targets)
      .where(inArray(targets.id, [...ids]))
      .all();
    const byId = new Map(found.map((row) => [row.id, row]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /** The target of its own (not an address of a range) with this value. */
  findSame(owner: Owner, kind: TargetKind, value: string): TargetRow | undefined {
    return this.db.orm
      .select()
      .from(targets)
      .where(and(isOf(owner), eq(targets.kind, kind), eq(targets.value, value), eq(targets.rangeId, "")))
      .get();
  }

  updateTarget(_tx: Tx, id: string, change: TargetChange) {
    this.db.orm.update(targets).set(change).where(eq(targets.id, id)).run();
  }

  /** The new state of a target after a check. */
  updateState(_tx: Tx, id: string, state: CheckedState) {
    const { status, listedOn, unknownChecks, lastCheckedAtMs, nextCheckAtMs } = state;
    this.#sql.updateState.run(status, JSON.stringify(listedOn), unknownChecks, lastCheckedAtMs, nextCheckAtMs, id);
  }

  countTargets(owner: Owner): number {
    return this.db.orm.select({ count: count() }).from(targets).where(isOf(owner)).get()?.count ?? 0;
  }

  /** The id `places` positions after `before`, newest first, of an owner or a range; null when there are fewer rows. */
  idBehind(
    owner: Owner,
    rangeId: string,
    { before, places }: { before: string | null; places: number },
  ): string | null {
    const row = this.db.orm
      .select({ id: targets.id })
      .from(targets)
      .where(and(isOf(owner), eq(targets.rangeId, rangeId), before === null ? undefined : lt(targets.id, before)))
      .orderBy(desc(targets.id))
      .limit(1)
      .offset(places)
      .get();
    return row?.id ?? null;
  }

  /** Newest first, older than the id `before` and not older than `from`. */
  listTargets(owner: Owner, filters: TargetFilters, { before, from, limit }: IdWindow): TargetRow[] {
    const isAfterId = before === null ? undefined : lt(targets.id, before);
    const isInWindow = from === undefined ? isAfterId : and(isAfterId, gte(targets.id, from));
    return this.db.orm
      .select()
      .from(targets)
      .where(and(matches(owner, filters), isInWindow))
      .orderBy(desc(targets.id))
      .limit(limit)
      .all();
  }

  /** The position `places` after `before` in the order by severity; null when there are fewer rows. */
  positionBehind(owner: Owner, before: SeverityPosition | null, places: number): SeverityPosition | null {
    const row = this.db.orm
      .select({ severityRank: targets.severityRank, id: targets.id })
      .from(targets)
      .where(and(isOf(owner), eq(targets.rangeId, ""), isAfter(before)))
      .orderBy(desc(targets.severityRank), desc(targets.id))
      .limit(1)
      .offset(places)
      .get();
    return row ?? null;
  }

  /** Most severe first, then newest first: after `before`, up to and including `upTo`. */
  listWorst(
    owner: Owner,
    filters: TargetFilters,
    page: { before: SeverityPosition | null; upTo: SeverityPosition | null; limit: number },
  ): TargetRow[] {
    const { before, upTo, limit } = page;
    const isInWindow = upTo === null ? undefined : sql`(severity_rank, id) >= (${upTo.severityRank}, ${upTo.id})`;
    return this.db.orm
      .select()
      .from(targets)
      .where(and(matches(owner, filters), isAfter(before), isInWindow))
      .orderBy(desc(targets.severityRank), desc(targets.id))
      .limit(limit)
      .all();
  }

  /** Listed targets without a severity: rows of versions that did not store it. */
  withoutSeverity(after: string, limit: number): TargetRow[] {
    return this.db.orm
      .select()
      .from(targets)
      .where(and(sql`severity_rank = 0 and listed_on <> '[]'`, gt(targets.id, after)))
      .orderBy(asc(targets.id))
      .limit(limit)
      .all();
  }

  /** Targets whose next check is due, in the order of that time. */
  dueTargets(nowMs: number, limit: number): TargetRow[] {
    return this.db.orm
      .select()
      .from(targets)
      .where(isDue(nowMs))
      .orderBy(asc(targets.nextCheckAtMs))
      .limit(limit)
      .all();
  }

  countDue(nowMs: number): number {
    return this.db.orm.select({ count: count() }).from(targets).where(isDue(nowMs)).get()?.count ?? 0;
  }

  /** How many targets of live keys are monitored. */
  countWatched(): number {
    const isWatched = and(IS_WATCHED, eq(targets.mode, "live"));
    return this.db.orm.select({ count: count() }).from(targets).where(isWatched).get()?.count ?? 0;
  }

  insertCheck(_tx: Tx, check: CheckRow) {
    const { id, targetId, trigger, startedAtMs, finishedAtMs, status, isChange, body } = check;
    this.#sql.insertCheck.run(id, targetId, trigger, startedAtMs, finishedAtMs, status, isChange, body);
  }

  /** Newest first, older than the id `before`. */
  listChecks(targetId: string, { before, limit }: { before: string | null; limit: number }): CheckRow[] {
    return this.db.orm
      .select()
      .from(checks)
      .where(and(eq(checks.targetId, targetId), before === null ? undefined : lt(checks.id, before)))
      .orderBy(desc(checks.id))
      .limit(limit)
      .all();
  }

  /** In the order of the ids; without those that do not exist. */
  checksById(ids: readonly string[]): CheckRow[] {
    const found = this.db.orm
      .select()
      .from(checks)
      .where(inArray(checks.id, [...ids]))
      .all();
    const byId = new Map(found.map((row) => [row.id, row]));
    return ids.flatMap((id) => byId.get(id) ?? []);
  }

  /** The checks that finished after `afterMs`, oldest first. */
  checksSince(targetId: string, afterMs: number): CheckRow[] {
    const isSince = and(eq(checks.targetId, targetId), gt(checks.finishedAtMs, afterMs));
    return this.db.orm.select().from(checks).where(isSince).orderBy(asc(checks.id)).all();
  }

  /** The checks after `afterMs` that added or removed a listing. */
  changesSince(targetId: string, afterMs: number): CheckRow[] {
    const isSince = and(eq(checks.targetId, targetId), gt(checks.finishedAtMs, afterMs));
    return this.db.orm
      .select()
      .from(checks)
      .where(and(isSince, eq(checks.isChange, true)))
      .all();
  }

  /** Deletes at most `limit` checks that finished before `beforeMs`: those with a change, or those without; returns how many. */
  purgeChecks(_tx: Tx, { isChange, beforeMs, limit }: { isChange: boolean; beforeMs: number; limit: number }): number {
    const old = `SELECT rowid FROM blocklist_checks WHERE is_change = ? AND finished_at_ms < ? LIMIT ?`;
    const sql = `DELETE FROM blocklist_checks WHERE rowid IN (${old})`;
    return this.db.sqlite.query<unknown, [number, number, number]>(sql).run(Number(isChange), beforeMs, limit).changes;
  }
}

/** What every check writes of its target. */
export type CheckedState = Pick<TargetRow, "status" | "listedOn" | "unknownChecks" | "nextCheckAtMs"> & {
  readonly lastCheckedAtMs: number;
};

const UPDATE_STATE = `UPDATE blocklist_targets SET status = ?, listed_on = ?, unknown_checks = ?, last_checked_at_ms = ?,
  next_check_at_ms = ? WHERE id = ?`;
const INSERT_CHECK = `INSERT INTO blocklist_checks (id, target_id, "trigger", started_at_ms, finished_at_ms, status, is_change, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

/** What belongs to a target. */
const TABLES = ["blocklist_checks", "blocklist_listings", "blocklist_mutes"];

/** A target, and the addresses of a range. */
const WITH_MEMBERS = "blocklist_targets WHERE id = ?1 OR (range_id <> '' AND range_id = ?1)";

/** The statements that remove targets; a test asks how SQLite plans each. */
export const prepareTargetRemoval = (sqlite: Sqlite) =>
  statements({
    note: () =>
      sqlite.prepare<{ id: string }, [string]>(
        `INSERT INTO blocklist_removed_targets (id, account_id) SELECT id, account_id FROM ${WITH_MEMBERS} RETURNING id`,
      ),
    targets: () => sqlite.prepare<unknown, [string]>(`DELETE FROM ${WITH_MEMBERS}`),
    parts: () =>
      TABLES.map((table) =>
        sqlite.prepare<unknown, [string, number]>(
          `DELETE FROM ${table} WHERE rowid IN (SELECT rowid FROM ${table} WHERE target_id = ? LIMIT ?)`,
        ),
      ),
    end: () => sqlite.prepare<unknown, [string]>("DELETE FROM blocklist_removed_targets WHERE id = ?"),
    unfinished: () =>
      sqlite.prepare<{ id: string }, []>("SELECT id FROM blocklist_removed_targets ORDER BY id LIMIT 1"),
  });

/**
 * Removes targets at once, and then their history, listings and mutes: years of checks, so a limited number of rows at a
 * time. Rows that remain after a crash are noted, and removed later.
 */
export class TargetRemovalStore {
  readonly #sql;

  constructor({ sqlite }: Pick<Db, "sqlite">) {
    this.#sql = prepareTargetRemoval(sqlite);
  }

  /** Removes a target, with the addresses of a range. Returns the ids of those whose rows are to be removed by `removeSome`. */
  removeTarget(_tx: Tx, id: string): string[] {
    const removed = this.#sql.note.all(id);
    this.#sql.targets.run(id);
    return removed.map((one) => one.id);
  }

  /** Removes up to `limit` rows of a removed target, the note last; returns how many. 0: nothing of it is left. */
  removeSome(_tx: Tx, id: string, limit: number): number {
    let left = limit;
    for (const statement of this.#sql.parts) if (left > 0) left -= statement.run(id, left).changes;
    if (left > 0) left -= this.#sql.end.run(id).changes;
    return limit - left;
  }

  /** A removed target of which rows are left, of any account. */
  unfinished(): string | undefined {
    return this.#sql.unfinished.get()?.id;
  }
}
