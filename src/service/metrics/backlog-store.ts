import type { Db } from "../../foundation/db/open.ts";
import { statements } from "../../foundation/db/statements.ts";

/** Counts of rows stop here, so that a scrape stays fast; more counts as this many. */
export const COUNTED_MAX = 20_000;
/** Webhook queues that are examined for the longest due attempt, by an index alone. */
const QUEUES_DUE_MAX = 2_000;
/** Webhook queues that are examined for their oldest event: each is a row somewhere in the file. */
const QUEUES_EXAMINED_MAX = 100;

/** Lists of one status. */
export interface JobBacklog {
  readonly status: string;
  readonly jobs: number;
  /** Rows without a result. */
  readonly rowsLeft: number;
}

interface Credits {
  readonly available: number;
  readonly held: number;
}

/** A delivery that waits for the end of a maintenance window is not late. */
const NOT_HELD = `NOT EXISTS (SELECT 1 FROM webhook_holds AS hold
  WHERE hold.account_id = delivery.account_id AND hold.mode = delivery.mode AND hold.url = delivery.url)`;

/** The statements of the metrics; a test checks the query plan of each. */
export const prepareBacklog = ({ sqlite }: Pick<Db, "sqlite">) =>
  statements({
    pending: () =>
      sqlite.prepare<{ count: number }, [number]>(
        "SELECT count(*) AS count FROM (SELECT 1 FROM verifications WHERE status = 'pending' LIMIT ?)",
      ),
    jobs: () =>
      sqlite.prepare<JobBacklog, []>(
        `SELECT status, count(*) AS jobs, sum(rows_total - rows_finished) AS rowsLeft FROM bulk_jobs
      WHERE status IN ('receiving', 'queued', 'running', 'deleting') GROUP BY status`,
      ),
    reports: () =>
      sqlite.prepare<{ count: number }, [number]>(
        "SELECT count(*) AS count FROM (SELECT 1 FROM dmarc_ingestions WHERE status = 'pending' LIMIT ?)",
      ),
    oldestReport: () =>
      sqlite.prepare<{ receivedAtMs: number }, []>(
        "SELECT received_at_ms AS receivedAtMs FROM dmarc_ingestions WHERE status = 'pending' ORDER BY id LIMIT 1",
      ),
    oldestEvent: () =>
      sqlite.prepare<{ createdAtMs: number }, []>(
        "SELECT created_at_ms AS createdAtMs FROM outbox WHERE delivered_at_ms IS NULL ORDER BY id LIMIT 1",
      ),
    webhookDue: () =>
      sqlite.prepare<{ dueAtMs: number | null }, [number]>(
        `SELECT min(due_at_ms) AS dueAtMs
      FROM (SELECT due_at_ms FROM webhook_deliveries AS delivery WHERE due_at_ms IS NOT NULL AND ${NOT_HELD} LIMIT ?)`,
      ),
    webhookEvent: () =>
      sqlite.prepare<{ eventId: string | null }, [number]>(
        `SELECT min(event_id) AS eventId
      FROM (SELECT event_id FROM webhook_deliveries AS delivery WHERE due_at_ms IS NOT NULL AND ${NOT_HELD} LIMIT ?)`,
      ),
    nextCheck: () =>
      sqlite.prepare<{ dueAtMs: number | null }, []>(
        `SELECT min(next_check_at_ms) AS dueAtMs FROM blocklist_targets
      WHERE monitoring_enabled = 1 AND members IS NULL`,
      ),
    credits: () =>
      sqlite.prepare<Credits, []>(
        "SELECT coalesce(sum(credits_available), 0) AS available, coalesce(sum(credits_held), 0) AS held FROM accounts",
      ),
  });

/** When an event was created, by its id (UUIDv7, RFC 9562 §5.7); null for another id. */
const timeOfId = (id: string | null): number | null => {
  const ms = Number.parseInt((id ?? "").replaceAll("-", "").slice(0, 12), 16);
  return Number.isNaN(ms) ? null : ms;
};

const earliest = (...times: readonly (number | null | undefined)[]): number | null => {
  const known = times.filter((time) => typeof time === "number");
  return known.length === 0 ? null : Math.min(...known);
};

/** How much work waits in the database. Every read uses an index and has a limit: a scrape takes about a millisecond. */
export class BacklogStore {
  readonly #statements;

  constructor(private readonly db: Pick<Db, "sqlite" | "snapshot">) {
    this.#statements = prepareBacklog(db);
  }

  /** When the oldest event that is not delivered to each of its URLs was created; null without one. */
  oldestEventMs(): number | null {
    const { oldestEvent, webhookEvent } = this.#statements;
    const undelivered = webhookEvent.get(QUEUES_EXAMINED_MAX)?.eventId ?? null;
    return earliest(oldestEvent.get()?.createdAtMs, timeOfId(undelivered));
  }

  /** Times are milliseconds since 1970; null where nothing waits. Throws the errors of SQLite. */
  read() {
    return this.db.snapshot(() => {
      const { pending, jobs, reports, oldestReport, nextCheck, credits, webhookDue } = this.#statements;
      return {
        pendingVerifications: pending.get(COUNTED_MAX)?.count ?? 0,
        jobs: jobs.all(),
        pendingReports: reports.get(COUNTED_MAX)?.count ?? 0,
        oldestReportMs: oldestReport.get()?.receivedAtMs ?? null,
        oldestEventMs: this.oldestEventMs(),
        webhookDueMs: webhookDue.get(QUEUES_DUE_MAX)?.dueAtMs ?? null,
        checkDueMs: nextCheck.get()?.dueAtMs ?? null,
        credits: credits.get() ?? { available: 0, held: 0 },
      };
    });
  }
}

export type Backlog = ReturnType<BacklogStore["read"]>;
