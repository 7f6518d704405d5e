import { backgroundTurn } from "../base/background.ts";
import { type Clock, isoTime } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { type KeyMode, newId, type Random } from "../base/secrets.ts";
import { insufficientCredits } from "../billing/insufficient-credits.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import { orRefusal } from "../db/refusal.ts";
import type { Caller } from "../http/guard.ts";
import { keptCell, normalizeCell } from "../mail/address-in-cell.ts";
import { concludeVerification } from "../verify/verdict.ts";
import { TEST_VERIFIED_AT } from "../verify/test-keys.ts";
import { beginCellEvidence } from "../verify/engine.ts";
import type { ListRow } from "./csv.ts";
import type { ListStore } from "./list-store.ts";
import type { DetectedFormat } from "./detected-format.ts";
import { createAddressIndex } from "./address-index.ts";
import type { JobWriter } from "./job-writer.ts";
import { type ResultColumns, toColumns } from "./result-columns.ts";
import { type ResultsFormat, resultsFormatSchema } from "./results-csv.ts";
import type { JobRow, JobStore, ListTotals } from "./job-store.ts";

export interface BulkIntakeDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
  readonly record: Pick<JobWriter, "endAtOnce">;
  readonly ledger: Ledger;
  readonly clock: Clock;
  readonly random: Random;
}

/** A list to take in, and how the caller calls it. */
export interface IncomingList {
  readonly name: string | null;
  readonly source: string | null;
  readonly webhookUrl: string | null;
  readonly format: ResultsFormat;
  /** How the file was read, as the interface tells it; null where there is none. */
  readonly reading: DetectedFormat | null;
  readonly rowsMax: number;
  readonly batches: AsyncIterable<readonly ListRow[]>;
}

/** What is done in the transaction in which the job begins to exist. */
export interface OnQueue {
  /** The job, when another request with the same key made it first; may throw an AppError. Writes nothing. */
  earlier(): JobRow | null;
  write(tx: Tx, jobId: string): void;
}

/** Rows written in one transaction: it holds the event loop for a few milliseconds. */
const ROWS_PER_TRANSACTION = 500;
const SEED_BITS = 47;

/** Counts the distinct addresses of a list and its rows without one, which share the text "" for an address. */
export const createAddressCounter = (rowsMax: number, seed: bigint) => {
  const positions = createAddressIndex(rowsMax, seed);
  let rows = 0;
  let empty = 0;
  return {
    place(normalizedEmail: string) {
      rows++;
      if (normalizedEmail === "") empty++;
      return positions.place(normalizedEmail);
    },
    totals: (): ListTotals => ({ rows, empty, addresses: positions.size() - (empty > 0 ? 1 : 0) }),
  };
};
type Tally = ReturnType<typeof createAddressCounter>;

/** A seed for `createAddressCounter` that nobody outside knows. */
export const newSeed = (random: Random): bigint =>
  BigInt(random.integer(2 ** SEED_BITS)) * BigInt(random.integer(2 ** SEED_BITS) + 1);

/**
 * Takes lists in: row by row into the database while the job exists for nobody, then, in one transaction, the hold of
 * one credit an address and the job. Other work gets its turn between batches. What fails leaves a job to be removed.
 */
export const createBulkIntake = ({ db, jobs, lists, record, ledger, clock, random }: BulkIntakeDeps) => {
  const resultOfNone = (mode: KeyMode): ResultColumns => {
    const verifiedAt = mode === "test" ? TEST_VERIFIED_AT : isoTime(clock.nowMs());
    return toColumns(concludeVerification(beginCellEvidence(""), verifiedAt).result);
  };

  const writeBatch = (tx: Tx, job: number, { rows, tally, width, mode }: Batch): void => {
    const repeated = new Map<number, number>();
    const spelled = new Map<number, string>();
    for (const { rowIndex, cells, email: cell } of rows) {
      const normalizedEmail = normalizeCell(cell);
      const email = keptCell(cell);
      const { position, isNew } = tally.place(normalizedEmail);
      if (isNew) {
        lists.insertAddress(tx, job, { position, email, normalizedEmail });
        if (normalizedEmail === "") lists.finish(tx, job, { position, columns: resultOfNone(mode) });
        spelled.set(position, email);
      } else repeated.set(position, (repeated.get(position) ?? 0) + 1);
      const first = spelled.get(position) ?? lists.emailAt(job, position) ?? email;
      spelled.set(position, first);
      const isAlone = width === 1 && cells.length === 1 && email === cell;
      const submittedEmail = first === email ? null : email;
      lists.insertRow(tx, job, { rowIndex, position, submittedEmail, cells: isAlone ? null : JSON.stringify(cells) });
    }
    for (const [position, more] of repeated) lists.addRows(tx, job, { position, rows: more });
  };

  /** Writes the rows down, and only counts once it is clear that the credits do not suffice. */
  const writeAll = async (
    job: number,
    list: IncomingList,
    { accountId, creditsMax, mode }: Writing,
  ): Promise<ListTotals> => {
    const tally = createAddressCounter(list.rowsMax, newSeed(random));
    for await (const batch of list.batches) {
      for (let at = 0; at < batch.length; at += ROWS_PER_TRANSACTION) {
        const part = batch.slice(at, at + ROWS_PER_TRANSACTION);
        const write = { rows: part, tally, width: list.format.width, mode };
        await backgroundTurn(accountId);
        // The job exists for nobody yet: the commit that queues it makes all of this durable.
        if (tally.totals().addresses <= creditsMax) db.transactUnsynced((tx) => writeBatch(tx, job, write));
        else for (const { email } of part) tally.place(normalizeCell(email));
      }
    }
    return tally.totals();
  };

  const existing = (job: JobRow | undefined): JobRow => {
    if (job === undefined) throw new Error("a job that was just written is not there");
    return job;
  };

  /** Queues the job whose rows are written; returns the job of an earlier request, or a refusal, with nothing written. */
  const queue = (tx: Tx, { number, id, accountId, mode }: Receiving, { totals, onQueue }: Queued) => {
    const earlier = orRefusal(() => onQueue.earlier());
    if (earlier !== null) return earlier;
    const move = { accountId, reference: id, atMs: clock.nowMs() };
    const held = mode === "live" && totals.addresses > 0 ? ledger.hold(tx, move, totals.addresses) : null;
    if (held !== null && !held.ok) return insufficientCredits(held.error);
    onQueue.write(tx, id);
    jobs.queue(tx, number, totals);
    if (totals.addresses === 0) record.endAtOnce(tx, number);
    return null;
  };

  return {
    /**
     * Takes a list in and answers its job, queued. 402 `insufficient_credits` when the unheld credits do not cover the
     * distinct addresses. With `number` of a job that is to be removed, `discard` is called for whatever fails.
     */
    async receive(
      caller: Pick<Caller, "accountId" | "keyId" | "mode">,
      list: IncomingList,
      { onQueue, discard }: { onQueue: OnQueue; discard: (number: number) => void },
    ): Promise<JobRow> {
      const { name, source, webhookUrl } = list;
      const format = JSON.stringify(resultsFormatSchema.parse(list.format));
      const reading = list.reading === null ? null : JSON.stringify(list.reading);
      const { accountId, keyId, mode } = caller;
      const id = newId();
      const createdAtMs = clock.nowMs();
      const job = { id, accountId, keyId, mode, name, source, webhookUrl, format, reading, createdAtMs };
      const number = await db.commit((tx) => jobs.insert(tx, job));
      try {
        const creditsMax = mode === "live" ? ledger.balance(accountId).available : Number.POSITIVE_INFINITY;
        const totals = await writeAll(number, list, { accountId, creditsMax, mode });
        // Not everything was written: credits that were granted meanwhile come too late.
        if (totals.addresses > creditsMax)
          throw insufficientCredits({ required: totals.addresses, available: creditsMax });
        const receiving = { number, id, accountId, mode };
        const earlier = await db.commit((tx) => queue(tx, receiving, { totals, onQueue }));
        if (earlier instanceof AppError) throw earlier;
        if (earlier === null) return existing(jobs.get(number));
        discard(number);
        return earlier;
      } catch (error) {
        discard(number);
        throw error;
      }
    },
  };
};

interface Receiving extends Pick<Caller, "accountId" | "mode"> {
  readonly number: number;
  readonly id: string;
}

interface Queued {
  readonly totals: ListTotals;
  readonly onQueue: OnQueue;
}

interface Batch {
  readonly rows: readonly ListRow[];
  readonly tally: Tally;
  readonly width: number;
  readonly mode: KeyMode;
}

interface Writing {
  readonly accountId: string;
  readonly creditsMax: number;
  readonly mode: KeyMode;
}

export type BulkIntake = ReturnType<typeof createBulkIntake>;
