import type { Db, Tx } from "./open.ts";

const HOUR_MS = 60 * 60 * 1000;
const DAY_MS = 24 * HOUR_MS;

interface PlannedTime {
  readonly table: string;
  readonly column: string;
  /** Nothing is planned further ahead. */
  readonly aheadMsMax: number;
  readonly where: string;
}

const PLANNED: readonly PlannedTime[] = [
  {
    ...{ table: "blocklist_targets", column: "next_check_at_ms", aheadMsMax: 7 * HOUR_MS },
    where: "monitoring_enabled = 1 AND members IS NULL",
  },
  // Domains of test keys are planned for never.
  {
    ...{ table: "dmarc_domains", column: "next_check_at_ms", aheadMsMax: 2 * DAY_MS },
    where: "deleted_at_ms IS NULL AND monitoring_enabled = 1 AND mode = 'live'",
  },
  { table: "dmarc_domains", column: "digest_due_at_ms", aheadMsMax: 33 * DAY_MS, where: "deleted_at_ms IS NULL" },
  { table: "dmarc_tag_digests", column: "due_at_ms", aheadMsMax: 33 * DAY_MS, where: "true" },
  { table: "account_notifications", column: "blacklist_digest_due_at_ms", aheadMsMax: 33 * DAY_MS, where: "true" },
  // An overview is computed again on the day after its own.
  { table: "dmarc_overviews", column: "computed_at_ms", aheadMsMax: HOUR_MS, where: "true" },
  { table: "dmarc_health", column: "due_at_ms", aheadMsMax: 2 * DAY_MS, where: "true" },
  { table: "dmarc_mta_sts", column: "due_at_ms", aheadMsMax: 2 * DAY_MS, where: "true" },
  { table: "webhook_deliveries", column: "due_at_ms", aheadMsMax: 2 * DAY_MS, where: "due_at_ms IS NOT NULL" },
  { table: "webhook_pauses", column: "until_ms", aheadMsMax: 2 * DAY_MS, where: "true" },
];

/**
 * Makes scheduled work due now that is planned further ahead than anything is: it was planned while the system's clock was
 * wrong, and would otherwise wait for years. Returns how many rows that were.
 */
export const correctPlannedTimes = ({ sqlite }: Db, _tx: Tx, nowMs: number): number =>
  PLANNED.reduce((changed, { table, column, aheadMsMax, where }) => {
    const sql = `UPDATE ${table} SET ${column} = ? WHERE ${where} AND ${column} > ?`;
    return changed + sqlite.query<unknown, [number, number]>(sql).run(nowMs, nowMs + aheadMsMax).changes;
  }, 0);
