import { and, count, eq, inArray, ne, sql, asc, isNotNull, lte, notInArray, gt } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import {
  blocklistListings,
  blocklistMutes,
  blocklistAlerts,
  blocklistTargets,
  blocklistUsability,
  blocklistBudgets,
} from "../foundation/db/schema-blocklist.ts";
import { newId, type Owner } from "../foundation/base/secrets.ts";
import type { MailQueue, QueuedMail } from "../notifications/mail/mail-batcher.ts";
import { statements } from "../foundation/db/statements.ts";
import type { BudgetLedger } from "./lists/list-client.ts";
import type { Delivery } from "../notifications/webhooks/delivery-store.ts";
import type { CheckRow } from "./store.ts";
import type { FiltersOf } from "../foundation/base/walk.ts";

/** A listing of a target, and the notes about it. Times are milliseconds since 1970. */
export type ListingRow = Readonly<typeof blocklistListings.$inferSelect>;

/** The notes about a listing. */
export type ListingNotes = Partial<
  Pick<
    ListingRow,
    | "acknowledgedBy"
    | "acknowledgedAtMs"
    | "delistingRequestedBy"
    | "delistingRequestedAtMs"
    | "note"
    | "noteBy"
    | "noteAtMs"
  >
>;

/** A listing of an address in a range. */
export interface MemberListing extends ListingRow {
  readonly address: string;
}

const table = blocklistListings;

const ofTarget = (targetId: string, listing: string) => and(eq(table.targetId, targetId), eq(table.listing, listing));
/** The second condition is that of the index. */
const inRange = (rangeId: string) => and(eq(table.rangeId, rangeId), ne(table.rangeId, ""));

const OF_RANGE = `SELECT t.value address, l.target_id targetId, l.listing, l.range_id rangeId, l.severity, l.meaning, l.since_ms sinceMs,
    l.seen_at_ms seenAtMs, l.acknowledged_by acknowledgedBy, l.acknowledged_at_ms acknowledgedAtMs,
    l.delisting_requested_by delistingRequestedBy, l.delisting_requested_at_ms delistingRequestedAtMs, l.note,
    l.note_by noteBy, l.note_at_ms noteAtMs
  FROM blocklist_listings l JOIN blocklist_targets t ON t.id = l.target_id WHERE l.range_id = ? AND l.range_id <> ''
  ORDER BY CASE l.severity WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 WHEN 'low' THEN 3 ELSE 4 END,
    l.since_ms DESC, l.target_id, l.listing LIMIT ?`;

/** The listings of targets. */
export class ListingStore {
  readonly #sql;

  constructor(private readonly db: Db) {
    const isOfTarget = eq(table.targetId, sql.placeholder("targetId"));
    this.#sql = statements({ ofTarget: () => db.orm.select().from(table).where(isOfTarget).prepare() });
  }

  of(targetId: string): ListingRow[] {
    return this.#sql.ofTarget.all({ targetId });
  }

  /** The listings of many targets. */
  ofMany(targetIds: readonly string[]): ListingRow[] {
    return this.db.orm
      .select()
      .from(table)
      .where(inArray(table.targetId, [...targetIds]))
      .all();
  }

  /** The listings of the addresses of a range, most severe first. */
  ofRange(rangeId: string, limit: number): MemberListing[] {
    return this.db.sqlite.query<MemberListing, [string, number]>(OF_RANGE).all(rangeId, limit);
  }

  countOfRange(rangeId: string): number {
    return this.db.orm.select({ count: count() }).from(table).where(inRange(rangeId)).get()?.count ?? 0;
  }

  /** The listing ids of the addresses of a range, each once, sorted. */
  namesOfRange(rangeId: string): string[] {
    const rows = this.db.orm
      .selectDistinct({ listing: table.listing })
      .from(table)
      .where(inRange(rangeId))
      .orderBy(table.listing)
      .all();
    return rows.map(({ listing }) => listing);
  }

  insert(_tx: Tx, row: typeof table.$inferInsert) {
    this.db.orm.insert(table).values(row).run();
  }

  update(_tx: Tx, targetId: string, listing: string, change: Partial<ListingRow>) {
    this.db.orm.update(table).set(change).where(ofTarget(targetId, listing)).run();
  }

  remove(_tx: Tx, targetId: string, listings: readonly string[]) {
    if (listings.length === 0) return;
    this.db.orm
      .delete(table)
      .where(and(eq(table.targetId, targetId), inArray(table.listing, [...listings])))
      .run();
  }

  /** Sets notes of a listing of a target, or of all addresses of a range; returns how many listings that were. */
  annotate(_tx: Tx, { id, isRange }: { id: string; isRange: boolean }, listing: string, notes: ListingNotes): number {
    const where = isRange ? and(inRange(id), eq(table.listing, listing)) : ofTarget(id, listing);
    return this.db.orm.update(table).set(notes).where(where).returning({ id: table.targetId }).all().length;
  }
}

/** Until when and why something is muted. Times are milliseconds since 1970. */
export type MuteRow = Readonly<typeof blocklistMutes.$inferSelect>;

const mutes = blocklistMutes;

/** What is known about mutes beside the ids in `muted_lists` of their target. */
export class MuteStore {
  constructor(private readonly db: Db) {}

  of(targetId: string): MuteRow[] {
    return this.db.orm.select().from(mutes).where(eq(mutes.targetId, targetId)).all();
  }

  /** Adds or replaces one. */
  keep(_tx: Tx, row: MuteRow) {
    const { targetId, muted, ...set } = row;
    this.db.orm
      .insert(mutes)
      .values({ targetId, muted, ...set })
      .onConflictDoUpdate({ target: [mutes.targetId, mutes.muted], set })
      .run();
  }

  remove(_tx: Tx, { targetId, muted }: Pick<MuteRow, "targetId" | "muted">) {
    this.db.orm
      .delete(mutes)
      .where(and(eq(mutes.targetId, targetId), eq(mutes.muted, muted)))
      .run();
  }

  /** Removes what is no longer muted, so that it does not apply to the next mute. */
  keepOnly(_tx: Tx, targetId: string, muted: readonly string[]) {
    this.db.orm
      .delete(mutes)
      .where(and(eq(mutes.targetId, targetId), notInArray(mutes.muted, [...muted])))
      .run();
  }

  /** The mutes that end by now, the earliest first. */
  ended(nowMs: number, limit: number): MuteRow[] {
    return this.db.orm
      .select()
      .from(mutes)
      .where(and(isNotNull(mutes.untilMs), lte(mutes.untilMs, nowMs)))
      .orderBy(asc(mutes.untilMs))
      .limit(limit)
      .all();
  }
}

/** An entry of the next mail to a recipient; `body` is JSON text, see `mailEntrySchema`. */
export interface QueuedListingMail extends QueuedMail {
  readonly accountId: string;
  readonly recipient: string;
  readonly body: string;
}

/** What is to be mailed to a recipient of an account. */
interface NewListingMail extends Pick<QueuedListingMail, "accountId" | "recipient" | "createdAtMs"> {
  readonly entry: object;
}

/** Entries of one mail; the rest is in the next one. */
const ENTRIES_MAX = 10_000;

/** What is queued for alert mail and digests about listings. */
export class ListingMailQueue implements MailQueue<QueuedListingMail> {
  constructor(private readonly db: Db) {}

  insert(_tx: Tx, { entry, ...row }: NewListingMail) {
    this.db.orm
      .insert(blocklistAlerts)
      .values({ id: newId(), ...row, body: JSON.stringify(entry) })
      .run();
  }

  recipients(after: string, limit: number): string[] {
    return this.db.orm
      .selectDistinct({ recipient: blocklistAlerts.recipient })
      .from(blocklistAlerts)
      .where(gt(blocklistAlerts.recipient, after))
      .orderBy(asc(blocklistAlerts.recipient))
      .limit(limit)
      .all()
      .map(({ recipient }) => recipient);
  }

  rowsFor(recipient: string): QueuedListingMail[] {
    return this.db.orm
      .select()
      .from(blocklistAlerts)
      .where(eq(blocklistAlerts.recipient, recipient))
      .orderBy(asc(blocklistAlerts.id))
      .limit(ENTRIES_MAX)
      .all();
  }

  remove(_tx: Tx, rows: readonly QueuedListingMail[]) {
    const ids = rows.map(({ id }) => id);
    this.db.orm.delete(blocklistAlerts).where(inArray(blocklistAlerts.id, ids)).run();
  }
}

/** The lists that accounts were notified about, and the accounts that lists concern. */
export class UsabilityStore {
  constructor(private readonly db: Db) {}

  /** Lists that accounts were last notified about as unusable. */
  unusableLists(): string[] {
    const rows = this.db.orm.select({ listId: blocklistUsability.listId }).from(blocklistUsability).all();
    return rows.map(({ listId }) => listId);
  }

  keepUnusable(_tx: Tx, listId: string, sinceMs: number) {
    this.db.orm.insert(blocklistUsability).values({ listId, sinceMs }).onConflictDoNothing().run();
  }

  removeUnusable(_tx: Tx, listId: string) {
    this.db.orm.delete(blocklistUsability).where(eq(blocklistUsability.listId, listId)).run();
  }

  /** Accounts with the kinds of target that they monitor with live keys. */
  watchedKinds() {
    return this.db.orm
      .selectDistinct({ accountId: blocklistTargets.accountId, kind: blocklistTargets.kind })
      .from(blocklistTargets)
      .where(and(sql`monitoring_enabled = 1`, eq(blocklistTargets.mode, "live")))
      .all();
  }
}

/** The query budgets of the lists, in the database. */
export const createBudgetLedger = (db: Db): BudgetLedger => ({
  reserve: (listId, day, { wanted, most }) =>
    db.apart(() =>
      db.transact(() => {
        const row = db.orm
          .select({ reserved: blocklistBudgets.reserved })
          .from(blocklistBudgets)
          .where(and(eq(blocklistBudgets.listId, listId), eq(blocklistBudgets.day, day)))
          .get();
        const before = row?.reserved ?? 0;
        const granted = Math.max(0, Math.min(wanted, most - before));
        const set = { day, reserved: before + granted };
        if (granted > 0)
          db.orm
            .insert(blocklistBudgets)
            .values({ listId, ...set })
            .onConflictDoUpdate({ target: blocklistBudgets.listId, set })
            .run();
        return granted;
      }),
    ),
});

/** Reads how many queries of a day (days since 1970, UTC) are reserved, by the id of the list. */
export type BudgetReader = (day: number) => ReadonlyMap<string, number>;

export const createBudgetReader =
  (db: Db): BudgetReader =>
  (day) => {
    const rows = db.orm.select().from(blocklistBudgets).where(eq(blocklistBudgets.day, day)).all();
    return new Map(rows.map(({ listId, reserved }) => [listId, reserved]));
  };

/** A check without its body. */
export interface CheckHead {
  readonly id: string;
  readonly finishedAtMs: number;
  readonly isChange: 0 | 1;
}

/** `isChange`: only checks that added or removed a listing. */
export type CheckFilter = FiltersOf<Pick<CheckRow, "status" | "trigger" | "isChange">>;

/** An event about a target; `data` is JSON text. */
export interface TargetEvent {
  readonly id: string;
  readonly data: string;
  readonly createdAtMs: number;
  /** When its deliveries were created; at once when it is in the feed only. */
  readonly deliveredAtMs: number | null;
}

export type EventDelivery = Pick<Delivery, "eventId" | "status">;

/** What `blocklist_checks_by_target` has: bodies are not read. */
const filtered = ({ status, trigger, isChange }: CheckFilter): { readonly sql: string; readonly values: string[] } => ({
  sql: [
    ...(status === undefined ? [] : [" AND status = ?"]),
    ...(trigger === undefined ? [] : [" AND trigger = ?"]),
    ...(isChange === true ? [" AND is_change = 1"] : []),
  ].join(""),
  values: [...(status === undefined ? [] : [status]), ...(trigger === undefined ? [] : [trigger])],
});

/** Reads of the history of one target for the dashboard, each with a limit. */
export class TargetHistoryStore {
  constructor(private readonly db: Db) {}

  /** The newest checks that finished after a time, the newest first. */
  heads(targetId: string, afterMs: number, limit: number): CheckHead[] {
    return this.db.sqlite
      .query<CheckHead, [string, number, number]>(
        `SELECT id, finished_at_ms finishedAtMs, is_change isChange FROM blocklist_checks
          WHERE target_id = ? AND finished_at_ms > ? ORDER BY id DESC LIMIT ?`,
      )
      .all(targetId, afterMs, limit);
  }

  /** The bodies of checks by their ids. */
  bodies(ids: readonly string[]): ReadonlyMap<string, string> {
    const rows = this.db.sqlite
      .query<{ id: string; body: string }, [string]>(
        "SELECT c.id, c.body FROM json_each(?) wanted CROSS JOIN blocklist_checks c ON c.id = wanted.value",
      )
      .all(JSON.stringify(ids));
    return new Map(rows.map(({ id, body }) => [id, body]));
  }

  countChecks(targetId: string, filter: CheckFilter): number {
    const { sql, values } = filtered(filter);
    const row = this.db.sqlite
      .query<{ count: number }, string[]>(`SELECT count(*) count FROM blocklist_checks WHERE target_id = ?${sql}`)
      .get(targetId, ...values);
    return row?.count ?? 0;
  }

  /** Ids of checks, the newest first. */
  checkIds(targetId: string, filter: CheckFilter, { offset, limit }: { offset: number; limit: number }): string[] {
    const { sql, values } = filtered(filter);
    return this.db.sqlite
      .query<{ id: string }, (string | number)[]>(
        `SELECT id FROM blocklist_checks WHERE target_id = ?${sql} ORDER BY id DESC LIMIT ? OFFSET ?`,
      )
      .all(targetId, ...values, limit, offset)
      .map(({ id }) => id);
  }

  /** The newest events about a target. */
  events({ accountId, mode }: Owner, targetId: string, limit: number): TargetEvent[] {
    return this.db.sqlite
      .query<TargetEvent, [string, string, string, number]>(
        `SELECT id, data, created_at_ms createdAtMs, delivered_at_ms deliveredAtMs FROM outbox
          WHERE account_id = ? AND mode = ? AND subject = ? ORDER BY id DESC LIMIT ?`,
      )
      .all(accountId, mode, `target:${targetId}`, limit);
  }

  deliveries(eventIds: readonly string[]): EventDelivery[] {
    return this.db.sqlite
      .query<EventDelivery, [string]>(
        `SELECT d.event_id eventId, d.status FROM json_each(?) wanted
          CROSS JOIN webhook_deliveries d ON d.event_id = wanted.value`,
      )
      .all(JSON.stringify(eventIds));
  }
}
