import { eq, gt, lte } from "drizzle-orm";
import type { Db, Tx } from "../foundation/db/open.ts";
import { machineAcknowledgements } from "../foundation/db/schema-users.ts";

/** Why a warning is not shown, who decided it (`user:<id>`), and until when. */
export type MachineAcknowledgement = Readonly<typeof machineAcknowledgements.$inferSelect>;

const table = machineAcknowledgements;

/** Warnings about this machine that an operator knows about. */
export class MachineAcknowledgementStore {
  constructor(private readonly db: Db) {}

  /** The acknowledgements that have not ended. */
  valid(nowMs: number): readonly MachineAcknowledgement[] {
    return this.db.orm.select().from(table).where(gt(table.untilMs, nowMs)).all();
  }

  /** Replaces that of the same warning, and removes those that have ended. */
  keep(_tx: Tx, acknowledgement: MachineAcknowledgement): void {
    this.db.orm.delete(table).where(lte(table.untilMs, acknowledgement.acknowledgedAtMs)).run();
    this.db.orm
      .insert(table)
      .values(acknowledgement)
      .onConflictDoUpdate({ target: table.warning, set: acknowledgement })
      .run();
  }

  /** Returns whether there was one. */
  remove(_tx: Tx, warning: string): boolean {
    return (
      this.db.orm.delete(table).where(eq(table.warning, warning)).returning({ warning: table.warning }).all().length > 0
    );
  }
}
