import { eq, sql } from "drizzle-orm";
import type { Db } from "../foundation/db/open.ts";
import { type blocklistChecks, blocklistTargets } from "../foundation/db/schema-blocklist.ts";

type TargetRow = Readonly<typeof blocklistTargets.$inferSelect>;
type CheckRow = Readonly<typeof blocklistChecks.$inferSelect>;

/** What every check writes of its target. */
export type CheckedState = Pick<TargetRow, "status" | "listedOn" | "unknownChecks" | "nextCheckAtMs"> & {
  readonly lastCheckedAtMs: number;
};

const UPDATE_STATE = `UPDATE blocklist_targets SET status = ?, listed_on = ?, unknown_checks = ?, last_checked_at_ms = ?,
  next_check_at_ms = ? WHERE id = ?`;
const INSERT_CHECK = `INSERT INTO blocklist_checks (id, target_id, "trigger", started_at_ms, finished_at_ms, status, is_change, body)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)`;

const prepareTarget = ({ orm }: Pick<Db, "orm">) =>
  orm
    .select()
    .from(blocklistTargets)
    .where(eq(blocklistTargets.id, sql.placeholder("id")))
    .prepare();

/** The statements that every check runs, prepared by the first one. */
export class CheckedTargetStore {
  #target: ReturnType<typeof prepareTarget> | undefined;

  constructor(private readonly db: Pick<Db, "orm" | "sqlite">) {}

  findTarget(id: string): TargetRow | undefined {
    this.#target ??= prepareTarget(this.db);
    return this.#target.get({ id });
  }

  updateState(id: string, state: CheckedState): void {
    const { status, listedOn, unknownChecks, lastCheckedAtMs, nextCheckAtMs } = state;
    this.db.sqlite
      .query(UPDATE_STATE)
      .run(status, JSON.stringify(listedOn), unknownChecks, lastCheckedAtMs, nextCheckAtMs, id);
  }

  insertCheck({ id, targetId, trigger, startedAtMs, finishedAtMs, status, isChange, body }: CheckRow): void {
    this.db.sqlite.query(INSERT_CHECK).run(id, targetId, trigger, startedAtMs, finishedAtMs, status, isChange, body);
  }
}
