import { and, asc, desc, eq, getTableColumns, inArray, lt, ne, notInArray, sql } from "drizzle-orm";
import type { KeyMode } from "../base/secrets.ts";
import type { Db, Tx } from "../db/open.ts";
import { bulkCounts, bulkJobs } from "../db/schema.ts";
import type { JobFilters } from "./schemas.ts";

/** Statuses that the interface knows, and the two of jobs that exist for nobody outside. */
export type JobStatus = "queued" | "running" | "completed" | "cancelled" | "failed";
export type StoredStatus = JobStatus | "receiving" | "deleting";

/**
 * A job as it is stored. `reading` is JSON of the interface: how a file was read; null when there was none. What its
 * export depends on is read apart (`formatOf`): a header may have 64 KiB.
 */
export interface JobRow {
  readonly number: number;
  readonly id: string;
  readonly accountId: string;
  readonly keyId: string;
  readonly mode: KeyMode;
  readonly name: string | null;
  readonly source: string | null;
  readonly status: StoredStatus;
  readonly reading: string | null;
  readonly webhookUrl: string | null;
  readonly rowsTotal: number;
  readonly rowsFinished: number;
  readonly rowsEmpty: number;
  readonly addressesTotal: number;
  readonly addressesFinished: number;
  readonly creditsCharged: number;
  readonly creditsReleased: number;
  readonly round: number;
  readonly isResetting: boolean;
  readonly createdAtMs: number;
  readonly startedAtMs: number | null;
  readonly completedAtMs: number | null;
}

export type NewJob = Pick<
  JobRow,
  "id" | "accountId" | "keyId" | "mode" | "name" | "source" | "reading" | "webhookUrl" | "createdAtMs"
> & { readonly format: string };

/** What of a list there is to work off. */
export interface ListTotals {
  readonly rows: number;
  /** Rows without an address. */
  readonly empty: number;
  /** Distinct addresses. */
  readonly addresses: number;
}

/** How many of a job's rows ended so. */
export interface SubStatusCount {
  readonly subStatus: string;
  readonly rows: number;
}

/** What a batch of results adds to its job. */
export interface Advance {
  readonly rows: number;
  readonly addresses: number;
  readonly charged: number;
  readonly released: number;
}

/** What a further round begins with. */
export interface Reopened {
  readonly subStatuses: readonly string[];
  readonly rows: number;
  readonly addresses: number;
}

/** What the ledger calls the hold of a job's present round. */
export const holdReference = ({ id, round }: Pick<JobRow, "id" | "round">): string =>
  round === 0 ? id : `${id}/${round}`;

const HIDDEN: StoredStatus[] = ["receiving", "deleting"];

/** Jobs, the counts of their outcomes, and the events about them. */
export const createJobStore = (db: Db) => {
  const table = bulkJobs;
  const { format, ...columns } = getTableColumns(table);
  const byNumber = db.orm
    .select(columns)
    .from(table)
    .where(eq(table.number, sql.placeholder("number")))
    .prepare();
  const advance = db.sqlite.prepare<unknown, [number, number, number, number, number]>(
    `UPDATE bulk_jobs SET rows_finished = rows_finished + ?, addresses_finished = addresses_finished + ?,
      credits_charged = credits_charged + ?, credits_released = credits_released + ? WHERE number = ?`,
  );
  const count = db.sqlite.prepare<unknown, [number, string, number]>(
    `INSERT INTO bulk_counts (job, sub_status, rows) VALUES (?, ?, ?)
      ON CONFLICT (job, sub_status) DO UPDATE SET rows = rows + excluded.rows`,
  );

  return {
    /** Enters a job that is being received, and answers its number. */
    insert: (_tx: Tx, job: NewJob): number =>
      db.orm
        .insert(table)
        .values({ ...job, status: "receiving" })
        .returning({ number: table.number })
        .get().number,

    get: (number: number): JobRow | undefined => byNumber.get({ number }),
    /** What the job's export depends on, as JSON. */
    formatOf: (number: number): string | undefined =>
      db.orm.select({ format }).from(table).where(eq(table.number, number)).get()?.format,
    find: (id: string): JobRow | undefined =>
      db.orm
        .select(columns)
        .from(table)
        .where(and(eq(table.id, id), notInArray(table.status, HIDDEN)))
        .get(),
    /** Newest first, those of one account and mode, older than the id `before`. */
    list: (
      { accountId, mode }: { readonly accountId: string; readonly mode: KeyMode },
      { status }: JobFilters,
      page: { before: string | null; limit: number },
    ): JobRow[] =>
      db.orm
        .select(columns)
        .from(table)
        .where(
          and(
            eq(table.accountId, accountId),
            eq(table.mode, mode),
            notInArray(table.status, HIDDEN),
            status === undefined ? undefined : eq(table.status, status),
            page.before === null ? undefined : lt(table.id, page.before),
          ),
        )
        .orderBy(desc(table.id))
        .limit(page.limit)
        .all(),
    /** How many jobs of an account have not ended, those that are being taken in among them. */
    countUnfinished: (accountId: string): number =>
      db.orm
        .select({ count: sql<number>`count(*)` })
        .from(table)
        .where(and(eq(table.accountId, accountId), sql`status in ('receiving', 'queued', 'running')`))
        .get()?.count ?? 0,
    /** Oldest first. */
    withStatus: (statuses: readonly StoredStatus[]): JobRow[] =>
      db.orm
        .select(columns)
        .from(table)
        .where(inArray(table.status, [...statuses]))
        .orderBy(asc(table.number))
        .all(),

    /** Jobs whose addresses are still to be opened for another round. */
    resetting: (): JobRow[] =>
      db.orm
        .select()
        .from(table)
        .where(and(eq(table.isResetting, true), ne(table.status, "deleting")))
        .all(),

    /** The list has arrived whole: from now on the job exists. */
    queue: (_tx: Tx, number: number, { rows, empty, addresses }: ListTotals): void =>
      void db.orm
        .update(table)
        .set({
          status: "queued",
          rowsTotal: rows,
          rowsEmpty: empty,
          rowsFinished: empty,
          addressesTotal: addresses,
        })
        .where(eq(table.number, number))
        .run(),
    begin: (_tx: Tx, number: number, startedAtMs: number): void =>
      void db.orm
        .update(table)
        .set({ status: "running", startedAtMs })
        .where(and(eq(table.number, number), eq(table.status, "queued")))
        .run(),
    end: (_tx: Tx, number: number, end: { status: JobStatus; completedAtMs: number }): void =>
      void db.orm.update(table).set(end).where(eq(table.number, number)).run(),
    /** A finished job is queued again, without those of its results that are counted under these sub_statuses. */
    queueAgain(_tx: Tx, number: number, { subStatuses, rows, addresses }: Reopened): void {
      db.orm
        .delete(bulkCounts)
        .where(and(eq(bulkCounts.job, number), inArray(bulkCounts.subStatus, [...subStatuses])))
        .run();
      db.orm
        .update(table)
        .set({
          status: "queued",
          startedAtMs: null,
          completedAtMs: null,
          isResetting: true,
          round: sql`round + 1`,
          rowsFinished: sql`rows_finished - ${rows}`,
          addressesFinished: sql`addresses_finished - ${addresses}`,
        })
        .where(eq(table.number, number))
        .run();
    },
    /** Nothing of the round before is left at the addresses that are to be checked again. */
    endReset: (_tx: Tx, number: number): void =>
      void db.orm.update(table).set({ isResetting: false }).where(eq(table.number, number)).run(),

    /** Takes a job out of everybody's sight. */
    hide: (_tx: Tx, number: number): void =>
      void db.orm
        .update(table)
        .set({ status: "deleting" })
        .where(and(eq(table.number, number), ne(table.status, "deleting")))
        .run(),
    /** The last trace; its rows have gone before. */
    remove(_tx: Tx, number: number): void {
      db.orm.delete(bulkCounts).where(eq(bulkCounts.job, number)).run();
      db.orm.delete(table).where(eq(table.number, number)).run();
    },

    advance: (_tx: Tx, number: number, by: Advance): void =>
      void advance.run(by.rows, by.addresses, by.charged, by.released, number),
    addCount: (_tx: Tx, number: number, { subStatus, rows }: SubStatusCount): void =>
      void count.run(number, subStatus, rows),
    counts: (number: number): SubStatusCount[] =>
      db.orm
        .select({ subStatus: bulkCounts.subStatus, rows: bulkCounts.rows })
        .from(bulkCounts)
        .where(eq(bulkCounts.job, number))
        .all(),
  };
};

export type JobStore = ReturnType<typeof createJobStore>;
