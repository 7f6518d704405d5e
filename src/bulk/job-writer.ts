import type { Clock } from "../base/clock.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import { insertEvent } from "../db/outbox.ts";
import type { AttemptOutcome } from "./attempt.ts";
import { isUnfinished, jobView } from "./job-object.ts";
import type { ListStore } from "./list-store.ts";
import { type Advance, holdReference, type JobRow, type JobStore } from "./job-store.ts";

export interface JobWriterDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly ledger: Ledger;
  readonly clock: Clock;
}

/** What came of one attempt, to be written down. */
export interface AttemptedAddress {
  readonly position: number;
  /** The bucket of its domain. */
  readonly bucket: number;
  /** How many rows have the address. */
  readonly rows: number;
  /** Whether it was tried before, so that there may be evidence of that to drop. */
  readonly isRetry: boolean;
  readonly outcome: AttemptOutcome;
}

const EVENT_OF = { completed: "bulk.completed", cancelled: "bulk.cancelled", failed: "bulk.failed" } as const;
const NOTE_OF = { cancelled: "cancelled", failed: "failed" } as const;

/** The writes that move a job on, each inside the caller's transaction. They only read and write the database. */
export const createJobWriter = ({ db, jobs, lists, ledger, clock }: JobWriterDeps) => {
  const tell = (tx: Tx, number: number, status: keyof typeof EVENT_OF): void => {
    const job = jobs.get(number);
    if (job === undefined) return;
    insertEvent(db, tx, {
      accountId: job.accountId,
      mode: job.mode,
      type: EVENT_OF[status],
      subject: `job:${job.id}`,
      data: jobView(job, jobs.counts(number)),
      url: job.webhookUrl,
      createdAtMs: clock.nowMs(),
    });
  };

  const end = (tx: Tx, number: number, status: keyof typeof EVENT_OF): void => {
    jobs.end(tx, number, { status, completedAtMs: clock.nowMs() });
    tell(tx, number, status);
  };

  /** Writes one outcome; false when the address was finished before. */
  const writeOne = (tx: Tx, job: number, { position, isRetry, outcome }: AttemptedAddress): boolean => {
    if (outcome.kind === "later") {
      const isOpen = lists.postpone(tx, job, { position, dueAtMs: outcome.dueAtMs });
      if (isOpen && outcome.evidence !== null) lists.saveEvidence(tx, job, { position, body: outcome.evidence });
      return false;
    }
    if (!lists.finish(tx, job, { position, columns: outcome.columns })) return false;
    if (outcome.evidence !== null) lists.saveEvidence(tx, job, { position, body: outcome.evidence });
    else if (isRetry) lists.dropEvidence(tx, job, position);
    return true;
  };

  /**
   * The credits of finished addresses, in one entry for those spent and one for those given back. A reference names the
   * first address of its entry, and the ledger takes a reference once: no address can be charged a second time.
   */
  const account = (tx: Tx, job: JobRow, finished: readonly Finished[]): Pick<Advance, "charged" | "released"> => {
    if (job.mode === "test") return { charged: 0, released: 0 };
    const charged = finished.filter(({ chargeable }) => chargeable);
    const released = finished.filter(({ chargeable }) => !chargeable);
    const move = (first: number) => ({
      accountId: job.accountId,
      reference: `${holdReference(job)}#${first}`,
      atMs: clock.nowMs(),
    });
    const [spent, free] = [charged[0], released[0]];
    if (spent !== undefined) ledger.settle(tx, move(spent.position), charged.length);
    if (free !== undefined)
      ledger.release(tx, { ...move(free.position), credits: released.length }, "the mail servers were not heard");
    return { charged: charged.length, released: released.length };
  };

  return {
    begin: (tx: Tx, number: number): void => jobs.begin(tx, number, clock.nowMs()),
    /** Ends a queued job that has no address, and so nothing to work off. */
    endAtOnce(tx: Tx, number: number): void {
      jobs.begin(tx, number, clock.nowMs());
      end(tx, number, "completed");
    },

    /**
     * Writes down what attempts came to, with the end of their holds and, after the last one, the end of the job and its
     * event. Whatever comes after the job's end is dropped.
     */
    attempted(tx: Tx, number: number, all: readonly AttemptedAddress[]): void {
      const job = jobs.get(number);
      if (job === undefined || !isUnfinished(job)) return;
      const finished: Finished[] = [];
      const counts = new Map<string, number>();
      for (const one of all) {
        if (!writeOne(tx, number, one) || one.outcome.kind !== "done") continue;
        const { columns, chargeable } = one.outcome;
        finished.push({ position: one.position, rows: one.rows, chargeable });
        counts.set(columns.subStatus, (counts.get(columns.subStatus) ?? 0) + one.rows);
      }
      if (finished.length === 0) return;
      for (const [subStatus, rows] of counts) jobs.addCount(tx, number, { subStatus, rows });
      const rows = finished.reduce((sum, one) => sum + one.rows, 0);
      jobs.advance(tx, number, { rows, addresses: finished.length, ...account(tx, job, finished) });
      if (job.addressesFinished + finished.length === job.addressesTotal) end(tx, number, "completed");
    },

    /** Ends an unfinished job before its time: what is finished stays, the credits of the rest go back. */
    abort(tx: Tx, job: JobRow, status: "cancelled" | "failed"): void {
      const left = job.addressesTotal - job.addressesFinished;
      if (job.mode === "live" && left > 0) {
        const move = { accountId: job.accountId, reference: holdReference(job), atMs: clock.nowMs(), credits: left };
        ledger.release(tx, move, NOTE_OF[status]);
        jobs.advance(tx, job.number, { rows: 0, addresses: 0, charged: 0, released: left });
      }
      end(tx, job.number, status);
    },
  };
};

interface Finished {
  readonly position: number;
  readonly rows: number;
  readonly chargeable: boolean;
}

export type JobWriter = ReturnType<typeof createJobWriter>;
