import { and, asc, eq, isNotNull, lte, notInArray } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { blocklistMutes } from "../foundation/db/schema-blocklist.ts";

/** Until when and why something is muted. Times are milliseconds since 1970. */
export type MuteRow = Readonly<typeof blocklistMutes.$inferSelect>;

const table = blocklistMutes;

/** What is known about mutes beside the ids in `muted_lists` of their target. */
export class MuteStore {
  constructor(private readonly db: Pick<Db, "orm">) {}

  of(targetId: string): MuteRow[] {
    return this.db.orm.select().from(table).where(eq(table.targetId, targetId)).all();
  }

  /** Adds or replaces one. */
  keep(_tx: Tx, row: MuteRow): void {
    const { targetId, muted, ...set } = row;
    this.db.orm
      .insert(table)
      .values({ targetId, muted, ...set })
      .onConflictDoUpdate({ target: [table.targetId, table.muted], set })
      .run();
  }

  remove(_tx: Tx, { targetId, muted }: Pick<MuteRow, "targetId" | "muted">): void {
    this.db.orm
      .delete(table)
      .where(and(eq(table.targetId, targetId), eq(table.muted, muted)))
      .run();
  }

  /** Removes what is no longer muted, so that it does not apply to the next mute. */
  keepOnly(_tx: Tx, targetId: string, muted: readonly string[]): void {
    this.db.orm
      .delete(table)
      .where(and(eq(table.targetId, targetId), notInArray(table.muted, [...muted])))
      .run();
  }

  /** Those that end by now, the earliest first. */
  ended(nowMs: number, limit: number): MuteRow[] {
    return this.db.orm
      .select()
      .from(table)
      .where(and(isNotNull(table.untilMs), lte(table.untilMs, nowMs)))
      .orderBy(asc(table.untilMs))
      .limit(limit)
      .all();
  }
}
