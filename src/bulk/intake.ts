import { type Clock, nextTurn } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { newId, type Random } from "../base/secrets.ts";
import type { Ledger } from "../billing/store.ts";
import type { Db, Tx } from "../db/open.ts";
import { orRefusal } from "../db/refusal.ts";
import type { Caller } from "../http/guard.ts";
import { normalizeLoosely, parseAddress } from "../mail/address.ts";
import type { ListRow } from "./csv.ts";
import type { ListStore } from "./list-store.ts";
import { createPositions, type Positions } from "./positions.ts";
import type { ResultsFormat } from "./results-csv.ts";
import type { JobRow, JobStore } from "./store.ts";

export interface IntakeDeps {
  readonly db: Db;
  readonly jobs: JobStore;
  readonly lists: ListStore;
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

export const normalizedOf = (email: string): string => {
  const parsed = parseAddress(email);
  return parsed.ok ? parsed.value.normalized : normalizeLoosely(email);
};

const insufficientCredits = (required: number, available: number) =>
  new AppError("insufficient_credits", {
    message: "The account has not enough credits. `postwarden credits grant` adds some.",
    body: { required, available },
  });

/**
 * Takes lists in: row by row into the database while the job exists for nobody, then, in one transaction, the hold of
 * one credit an address and the job. Other work gets its turn between batches. What fails leaves a job to be removed.
 */
export const createIntake = ({ db, jobs, lists, ledger, clock, random }: IntakeDeps) => {
  const newSeed = (): bigint => BigInt(random.integer(2 ** SEED_BITS)) * BigInt(random.integer(2 ** SEED_BITS) + 1);

  const writeBatch = (tx: Tx, job: number, { rows, positions, width }: Batch): void => {
    const repeated = new Map<number, number>();
    const spelled = new Map<number, string>();
    for (const { rowIndex, cells, email } of rows) {
      const normalizedEmail = normalizedOf(email);
      const { position, isNew } = positions.place(normalizedEmail);
      if (isNew) {
        lists.insertAddress(tx, job, { position, email, normalizedEmail });
        spelled.set(position, email);
      } else repeated.set(position, (repeated.get(position) ?? 0) + 1);
      const first = spelled.get(position) ?? lists.emailAt(job, position) ?? email;
      spelled.set(position, first);
      const isAlone = width === 1 && cells.length === 1;
      const submittedEmail = first === email ? null : email;
      lists.insertRow(tx, job, { rowIndex, position, submittedEmail, cells: isAlone ? null : JSON.stringify(cells) });
    }
    for (const [position, more] of repeated) lists.addRows(tx, job, { position, rows: more });
  };

  /** Writes the rows down, and only counts once it is clear that the credits do not suffice. */
  const writeAll = async (job: number, list: IncomingList, creditsMax: number) => {
    const positions = createPositions(list.rowsMax, newSeed());
    let rows = 0;
    for await (const batch of list.batches) {
      for (let at = 0; at < batch.length; at += ROWS_PER_TRANSACTION) {
        const part = batch.slice(at, at + ROWS_PER_TRANSACTION);
        const write = { rows: part, positions, width: list.format.width };
        if (positions.size() <= creditsMax) db.transact((tx) => writeBatch(tx, job, write));
        else for (const { email } of part) positions.place(normalizedOf(email));
        await nextTurn();
      }
      rows += batch.length;
    }
    return { rows, addresses: positions.size() };
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
    const held = mode === "live" ? ledger.hold(tx, move, totals.addresses) : null;
    if (held !== null && !held.ok) return insufficientCredits(held.error.required, held.error.available);
    onQueue.write(tx, id);
    jobs.queue(tx, number, totals);
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
      const { name, source, webhookUrl, format } = list;
      const { accountId, keyId, mode } = caller;
      const id = newId();
      const createdAtMs = clock.nowMs();
      const job = { id, accountId, keyId, mode, name, source, webhookUrl, format: JSON.stringify(format), createdAtMs };
      const number = await db.commit((tx) => jobs.insert(tx, job));
      try {
        const creditsMax = mode === "live" ? ledger.balance(accountId).available : Number.POSITIVE_INFINITY;
        const totals = await writeAll(number, list, creditsMax);
        // Not everything was written: credits that were granted meanwhile come too late.
        if (totals.addresses > creditsMax) throw insufficientCredits(totals.addresses, creditsMax);
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
  readonly totals: { readonly rows: number; readonly addresses: number };
  readonly onQueue: OnQueue;
}

interface Batch {
  readonly rows: readonly ListRow[];
  readonly positions: Positions;
  readonly width: number;
}

export type Intake = ReturnType<typeof createIntake>;
