import { and, eq, inArray, ne, sql } from "drizzle-orm";
import type { Db, Tx } from "../db/open.ts";
import { blocklistListings } from "../db/schema-blocklist.ts";
import type { Severity } from "../dnsbl/blocklist.ts";

/** What lists a target now, and what was noted about it. Times are milliseconds since 1970. */
export interface ListingRow {
  readonly targetId: string;
  readonly listing: string;
  readonly rangeId: string;
  readonly severity: Severity | null;
  readonly meaning: string | null;
  readonly sinceMs: number;
  readonly seenAtMs: number;
  readonly acknowledgedBy: string | null;
  readonly acknowledgedAtMs: number | null;
  readonly delistingRequestedBy: string | null;
  readonly delistingRequestedAtMs: number | null;
  readonly note: string | null;
  readonly noteBy: string | null;
  readonly noteAtMs: number | null;
}

/** What people note about a listing. */
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

/** A listing of an address of a range. */
export interface MemberListing extends ListingRow {
  readonly address: string;
}

/** Access to the listings of targets. */
export const createListingStore = (db: Db) => {
  const table = blocklistListings;
  const ofTarget = (targetId: string, listing: string) => and(eq(table.targetId, targetId), eq(table.listing, listing));
  const ofRange = db.sqlite.prepare<MemberListing, [string, number]>(
    `SELECT t.value address, l.target_id targetId, l.listing, l.range_id rangeId, l.severity, l.meaning, l.since_ms sinceMs,
        l.seen_at_ms seenAtMs, l.acknowledged_by acknowledgedBy, l.acknowledged_at_ms acknowledgedAtMs,
        l.delisting_requested_by delistingRequestedBy, l.delisting_requested_at_ms delistingRequestedAtMs, l.note,
        l.note_by noteBy, l.note_at_ms noteAtMs
      FROM blocklist_listings l JOIN blocklist_targets t ON t.id = l.target_id WHERE l.range_id = ? AND l.range_id <> ''
      ORDER BY CASE l.severity WHEN 'critical' THEN 0 WHEN 'high' THEN 1 WHEN 'medium' THEN 2 WHEN 'low' THEN 3 ELSE 4 END,
        l.since_ms DESC, l.target_id, l.listing LIMIT ?`,
  );

  return {
    of: (targetId: string): ListingRow[] => db.orm.select().from(table).where(eq(table.targetId, targetId)).all(),
    /** Of the addresses of a range, the worst first. */
    ofRange: (rangeId: string, limit: number): MemberListing[] => ofRange.all(rangeId, limit),
    countOfRange: (rangeId: string): number =>
      db.orm
        .select({ count: sql<number>`count(*)` })
        .from(table)
        .where(and(eq(table.rangeId, rangeId), ne(table.rangeId, "")))
        .get()?.count ?? 0,
    /** Ids of what lists any address of a range, each once, in order. */
    namesOfRange: (rangeId: string): string[] =>
      db.orm
        .selectDistinct({ listing: table.listing })
        .from(table)
        .where(and(eq(table.rangeId, rangeId), ne(table.rangeId, "")))
        .orderBy(table.listing)
        .all()
        .map(({ listing }) => listing),
    insert: (_tx: Tx, row: ListingRow): void => void db.orm.insert(table).values(row).run(),
    update: (_tx: Tx, targetId: string, listing: string, change: Partial<ListingRow>): void =>
      void db.orm.update(table).set(change).where(ofTarget(targetId, listing)).run(),
    remove(_tx: Tx, targetId: string, listings: readonly string[]): void {
      if (listings.length === 0) return;
      db.orm
        .delete(table)
        .where(and(eq(table.targetId, targetId), inArray(table.listing, [...listings])))
        .run();
    },
    removeAll: (_tx: Tx, targetId: string): void => void db.orm.delete(table).where(eq(table.targetId, targetId)).run(),
    /** Notes about a listing of a target, or of all addresses of a range; says how many listings that were. */
    annotate(_tx: Tx, { id, isRange }: { id: string; isRange: boolean }, listing: string, notes: ListingNotes): number {
      const where = isRange
        ? and(eq(table.rangeId, id), ne(table.rangeId, ""), eq(table.listing, listing))
        : ofTarget(id, listing);
      return db.orm.update(table).set(notes).where(where).returning({ id: table.targetId }).all().length;
    },
  };
};

export type ListingStore = ReturnType<typeof createListingStore>;
