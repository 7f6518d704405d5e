import { and, asc, count, desc, eq, getTableColumns, gte, inArray, lt, ne, notInArray, sql } from "drizzle-orm";
import type { SQLiteUpdateSetSource } from "drizzle-orm/sqlite-core";
import type { IdWindow } from "../../foundation/base/walk.ts";
import type { Db, Tx } from "../../foundation/db/open.ts";
import { bulkCounts, bulkJobs, bulkMails } from "../../foundation/db/schema.ts";
import { type ResultsFormat, resultsFormatSchema } from "./results-csv.ts";
import type { JobFilters } from "./schemas.ts";
import { statements } from "../../foundation/db/statements.ts";

export type StoredStatus = JobRow["status"];
/** The statuses in the API: jobs of the two others are hidden. */
export type JobStatus = Exclude<StoredStatus, "receiving" | "deleting">;

/** A job as stored, without the format of its export (`formatOf`), whose header may have 64 KiB. */
export type JobRow = Readonly<Omit<typeof bulkJobs.$inferSelect, "format">>;

export type NewJob = Pick<
  JobRow,
  "id" | "accountId" | "keyId" | "mode" | "name" | "source" | "reading" | "webhookUrl" | "notifyEmail" | "createdAtMs"
> & { readonly format: string };

/** Whose jobs: those of one mode of an account. */
export type JobOwner = Pick<JobRow, "accountId" | "mode">;

/** The size of a list. */
export interface ListTotals {
  readonly rows: number;
  /** Rows without an address. */
  readonly empty: number;
  /** Distinct addresses. */
  readonly addresses: number;
}

/** Finished rows of a job by `sub_status`. */
export interface SubStatusCount {
  readonly subStatus: string;
  readonly rows: number;
}

/** What a batch of results adds to the counters of its job. */
export interface Advance {
  readonly rows: number;
  readonly addresses: number;
  readonly charged: number;
  readonly released: number;
}

/** What a retry removes from the counters of its job. */
export interface Reopened {
  readonly subStatuses: readonly string[];
  readonly rows: number;
  readonly addresses: number;
}

/** The reference of the hold of a job's current round in the ledger. */
export const holdReference = ({ id, round }: Pick<JobRow, "id" | "round">): string =>
  round === 0 ? id : `${id}/${round}`;

/** Jobs of an account among which older ones of the same name are looked for. */
const NAMESAKES_AMONG = 5_000;

const HIDDEN: StoredStatus[] = ["receiving", "deleting"];
const ENDED: StoredStatus[] = ["completed", "cancelled", "failed"];

const table = bulkJobs;
const { format: _format, ...columns } = getTableColumns(table);

const prepare = (db: Db) =>
  statements({
    byNumber: () =>
      db.orm
        .select(columns)
        .from(table)
        .where(eq(table.number, sql.placeholder("number")))
        .prepare(),
    withStatus: () =>
      db.orm
        .select(columns)
        .from(table)
        .where(inArray(table.status, sql`(select value from json_each(${sql.placeholder("statuses")}))`))
        .orderBy(asc(table.number))
        .prepare(),
    resetting: () =>
      db.orm
        .select(columns)
        .from(table)
        .where(and(eq(table.isResetting, true), ne(table.status, "deleting")))
        .prepare(),
    advance: () =>
      db.sqlite.prepare<unknown, [number, number, number, number, number]>(
        `UPDATE bulk_jobs SET rows_finished = rows_finished + ?, addresses_finished = addresses_finished + ?,
      credits_charged = credits_charged + ?, credits_released = credits_released + ? WHERE number = ?`,
      ),
    addCount: () =>
      db.sqlite.prepare<unknown, [number, string, number]>(
        `INSERT INTO bulk_counts (job, sub_status, rows) VALUES (?, ?, ?)
      ON CONFLICT (job, sub_status) DO UPDATE SET rows = rows + excluded.rows`,
      ),
  });

/** The jobs and the counts of their results. */
export class JobStore {
  readonly #statements: ReturnType<typeof prepare>;

  constructor(private readonly db: Db) {
    this.#statements = prepare(db);
  }

  /** Inserts a job whose rows are still being received, and returns its number. */
  insert(_tx: Tx, job: NewJob): number {
    const values = { ...job, status: "receiving" } as const;
    return this.db.orm.insert(table).values(values).returning({ number: table.number }).get().number;
  }

  get(number: number): JobRow | undefined {
    return this.#statements.byNumber.get({ number });
  }

  /** The same for a job that must exist. */
  getExisting(number: number): JobRow {
    const job = this.get(number);
    if (job === undefined) throw new Error(`bulk job ${number} does not exist`);
    return job;
  }

  /** How the results of a job are exported. */
  formatOf(number: number): ResultsFormat {
    const row = this.db.orm.select({ format: table.format }).from(table).where(eq(table.number, number)).get();
    return resultsFormatSchema.parse(JSON.parse(row?.format ?? "null"));
  }

  find(id: string): JobRow | undefined {
    const visible = and(eq(table.id, id), notInArray(table.status, HIDDEN));
    return this.db.orm.select(columns).from(table).where(visible).get();
  }

  /** The jobs of an account and mode, newest first, older than the id `before` and not older than `from`. */
  list(
    { accountId, mode }: JobOwner,
    { status, text = null }: JobFilters & { readonly text?: string | null },
    { before, from, limit }: IdWindow,
  ): JobRow[] {
    const matching = and(
      ...[eq(table.accountId, accountId), eq(table.mode, mode), notInArray(table.status, HIDDEN)],
      status === undefined ? undefined : eq(table.status, status),
      text === null ? undefined : sql`instr(lower(${table.name}), ${text.toLowerCase()}) > 0`,
      before === null ? undefined : lt(table.id, before),
      from === undefined ? undefined : gte(table.id, from),
    );
    return this.db.orm.select(columns).from(table).where(matching).orderBy(desc(table.id)).limit(limit).all();
  }

  /** The id `places` jobs behind the newest older than `before`; null when there are fewer. */
  idBehind({ accountId, mode }: JobOwner, before: string | null, places: number): string | null {
    const older = before === null ? undefined : lt(table.id, before);
    const matching = and(eq(table.accountId, accountId), eq(table.mode, mode), older);
    const ids = this.db.orm.select({ id: table.id }).from(table).where(matching).orderBy(desc(table.id));
    return ids.limit(1).offset(places).get()?.id ?? null;
  }

  /** The jobs of an account and mode that have not ended, oldest first. */
  unfinished({ accountId, mode }: JobOwner): JobRow[] {
    // Written like the condition of the partial index, and with a plus, so that this index is used and not that of the account.
    const open = sql`status in ('receiving', 'queued', 'running', 'deleting') and +account_id = ${accountId}`;
    const own = and(eq(table.mode, mode), inArray(table.status, ["queued", "running"]));
    return this.db.orm.select(columns).from(table).where(and(open, own)).orderBy(asc(table.number)).all();
  }

  /** How many of the newest `looks` jobs of an account and mode were completed since a time. */
  countCompleted({ accountId, mode }: JobOwner, sinceMs: number, looks: number): number {
    const row = this.db.sqlite
      .query<{ jobs: number }, [string, string, number, number]>(
        `SELECT count(*) jobs FROM (SELECT status, completed_at_ms FROM bulk_jobs
          WHERE account_id = ? AND mode = ? ORDER BY id DESC LIMIT ?) WHERE status = 'completed' AND completed_at_ms >= ?`,
      )
      .get(accountId, mode, looks, sinceMs);
    return row?.jobs ?? 0;
  }

  /** Jobs with the name of one that are older, newest first; only the newest of the account are looked at. */
  namesakes({ id, name, ...owner }: JobOwner & Pick<JobRow, "id" | "name">, limit: number): JobRow[] {
    if (name === null) return [];
    const oldest = this.idBehind(owner, id, NAMESAKES_AMONG);
    const alike = and(
      ...[eq(table.accountId, owner.accountId), eq(table.mode, owner.mode), inArray(table.status, ENDED)],
      ...[eq(table.name, name), lt(table.id, id), oldest === null ? undefined : gte(table.id, oldest)],
    );
    return this.db.orm.select(columns).from(table).where(alike).orderBy(desc(table.id)).limit(limit).all();
  }

  /** The number of jobs of an account that have not ended, including those being received. */
  countUnfinished(accountId: string): number {
    const unfinished = and(eq(table.accountId, accountId), sql`status in ('receiving', 'queued', 'running')`);
    const row = this.db.orm.select({ jobs: count() }).from(table).where(unfinished).get();
    return row?.jobs ?? 0;
  }

  /** Oldest first. */
  withStatus(statuses: readonly StoredStatus[]): JobRow[] {
    return this.#statements.withStatus.all({ statuses: JSON.stringify(statuses) });
  }

  /** The numbers of visible jobs that ended before a time, oldest first. */
  endedBefore(beforeMs: number): number[] {
    const ended = and(inArray(table.status, ENDED), lt(table.completedAtMs, beforeMs));
    const rows = this.db.orm.select({ number: table.number }).from(table).where(ended).orderBy(asc(table.number)).all();
    return rows.map(({ number }) => number);
  }

  hasEndedBefore(number: number, beforeMs: number): boolean {
    const job = this.get(number);
    return job !== undefined && ENDED.includes(job.status) && (job.completedAtMs ?? beforeMs) < beforeMs;
  }

  /** Changes how the results of a job are exported. */
  setFormat(_tx: Tx, number: number, format: ResultsFormat): void {
    this.#set(number, { format: JSON.stringify(format) });
  }

  /** Jobs to retry whose old results are not removed yet. */
  resetting(): JobRow[] {
    return this.#statements.resetting.all();
  }

  /** The list is complete: the job becomes visible. */
  queue(_tx: Tx, number: number, { rows, empty, addresses }: ListTotals): void {
    this.#set(number, {
      status: "queued",
      rowsTotal: rows,
      rowsEmpty: empty,
      rowsFinished: empty,
      addressesTotal: addresses,
    });
  }

  begin(_tx: Tx, number: number, startedAtMs: number): void {
    const queued = and(eq(table.number, number), eq(table.status, "queued"));
    this.db.orm.update(table).set({ status: "running", startedAtMs }).where(queued).run();
  }

  end(_tx: Tx, number: number, end: { readonly status: JobStatus; readonly completedAtMs: number }): void {
    this.#set(number, end);
  }

  /** Queues a completed job again, without its results of these sub_statuses. */
  queueAgain(_tx: Tx, number: number, { subStatuses, rows, addresses }: Reopened): void {
    const reopened = and(eq(bulkCounts.job, number), inArray(bulkCounts.subStatus, [...subStatuses]));
    this.db.orm.delete(bulkCounts).where(reopened).run();
    this.#set(number, {
      status: "queued",
      startedAtMs: null,
      completedAtMs: null,
      isResetting: true,
      round: sql`round + 1`,
      rowsFinished: sql`rows_finished - ${rows}`,
      addressesFinished: sql`addresses_finished - ${addresses}`,
    });
  }

  /** The old results of a job to retry are removed. */
  endReset(_tx: Tx, number: number): void {
    this.#set(number, { isResetting: false });
  }

  /** Hides a job that is to be removed. */
  hide(_tx: Tx, number: number): void {
    const visible = and(eq(table.number, number), ne(table.status, "deleting"));
    this.db.orm.update(table).set({ status: "deleting" }).where(visible).run();
  }

  /** Removes a job whose rows are gone. */
  remove(_tx: Tx, number: number): void {
    this.db.orm.delete(bulkCounts).where(eq(bulkCounts.job, number)).run();
    this.db.orm.delete(bulkMails).where(eq(bulkMails.job, number)).run();
    this.db.orm.delete(table).where(eq(table.number, number)).run();
  }

  advance(_tx: Tx, number: number, { rows, addresses, charged, released }: Advance): void {
    this.#statements.advance.run(rows, addresses, charged, released, number);
  }

  addCount(_tx: Tx, number: number, { subStatus, rows }: SubStatusCount): void {
    this.#statements.addCount.run(number, subStatus, rows);
  }

  counts(number: number): SubStatusCount[] {
    const { subStatus, rows } = bulkCounts;
    return this.db.orm.select({ subStatus, rows }).from(bulkCounts).where(eq(bulkCounts.job, number)).all();
  }

  #set(number: number, change: SQLiteUpdateSetSource<typeof table>): void {
    this.db.orm.update(table).set(change).where(eq(table.number, number)).run();
  }
}
