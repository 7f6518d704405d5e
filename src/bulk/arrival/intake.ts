import { backgroundTurn } from "../../foundation/base/background.ts";
import type { AppError } from "../../foundation/base/errors.ts";
import { type ByMode, type KeyMode, newId } from "../../foundation/base/secrets.ts";
import { insufficientCredits } from "../../accounts/billing/plans.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Caller } from "../../foundation/http/guard.ts";
import { keptCell, normalizeCell } from "../../foundation/mail/address-in-cell.ts";
import type { VerificationEngine } from "../../verify/engine.ts";
import { AddressIndex, newSeed } from "../results/address-index.ts";
import type { ListRow } from "../reading/csv.ts";
import type { DetectedFormat } from "../reading/detected-format.ts";
import type { JobRow, ListTotals } from "../results/job-store.ts";
import type { BulkStores, JobWriter } from "../run/job-writer.ts";
import { type ResultColumns, toColumns } from "../results/result-columns.ts";
import { type ResultsFormat, resultsFormatSchema } from "../results/results-csv.ts";

/** A list with the options of its submission. */
export interface IncomingList {
  readonly name: string | null;
  readonly source: string | null;
  readonly webhookUrl: string | null;
  readonly format: ResultsFormat;
  /** How the file was read; null for a JSON list. */
  readonly reading: DetectedFormat | null;
  readonly rowsMax: number;
  readonly batches: AsyncIterable<readonly ListRow[]>;
}

/** A job whose rows are being written; not visible in the API. */
export interface ReceivingJob extends Pick<Caller, "accountId" | "mode"> {
  readonly number: number;
  readonly id: string;
}

export interface BulkIntakeOptions extends BulkStores {
  readonly writer: JobWriter;
  readonly engines: ByMode<VerificationEngine>;
}

/** Rows written in one transaction, which takes a few milliseconds. */
const ROWS_PER_TRANSACTION = 500;

/** Writes a list into the database: `create` a job, `writeRows`, then `queue` it. Discard the job when a step fails. */
export class BulkIntake {
  constructor(
    private readonly runtime: Runtime,
    private readonly options: BulkIntakeOptions,
  ) {}

  async create(caller: Pick<Caller, "accountId" | "keyId" | "mode">, list: IncomingList): Promise<ReceivingJob> {
    const { accountId, keyId, mode } = caller;
    const { name, source, webhookUrl } = list;
    const job = {
      ...{ id: newId(), accountId, keyId, mode, name, source, webhookUrl },
      format: JSON.stringify(resultsFormatSchema.parse(list.format)),
      reading: list.reading === null ? null : JSON.stringify(list.reading),
      createdAtMs: this.runtime.clock.nowMs(),
    };
    const { db } = this.runtime;
    // The commit that queues the job decides: until then, nobody can see it.
    const number = await db.apart(() => db.commit((tx) => this.options.jobs.insert(tx, job)));
    return { number, id: job.id, accountId, mode };
  }

  /**
   * Writes the rows and distinct addresses in small transactions. Throws 402 `insufficient_credits` when the available
   * credits do not cover the distinct addresses; once that is certain, the remaining rows are only counted.
   */
  async writeRows(job: ReceivingJob, list: IncomingList): Promise<ListTotals> {
    const { db, random } = this.runtime;
    const { available } = this.options.credits[job.mode].balance(job.accountId);
    const index = new AddressIndex(list.rowsMax, newSeed(random));
    for await (const batch of list.batches) {
      for (let at = 0; at < batch.length; at += ROWS_PER_TRANSACTION) {
        const rows = batch.slice(at, at + ROWS_PER_TRANSACTION);
        await backgroundTurn(job.accountId);
        // Nobody can see the job yet: the commit that queues it makes these rows durable.
        if (index.totals.addresses <= available)
          db.transactUnsynced((tx) => this.#writeBatch(tx, job, { rows, index, width: list.format.width }));
        else for (const { email } of rows) index.add(normalizeCell(email));
      }
    }
    const { addresses: required } = index.totals;
    // Rows are missing then, so credits that were granted meanwhile do not help.
    if (required > available) throw insufficientCredits({ required, available });
    return index.totals;
  }

  /** Holds the credits and queues the job. A refusal is returned, with nothing written. */
  queue(tx: Tx, { number, id, accountId, mode }: ReceivingJob, totals: ListTotals): AppError | null {
    const { jobs, writer, credits } = this.options;
    const move = { accountId, reference: id, atMs: this.runtime.clock.nowMs() };
    const held = totals.addresses > 0 ? credits[mode].hold(tx, move, totals.addresses) : null;
    if (held !== null && !held.ok) return insufficientCredits(held.error);
    jobs.queue(tx, number, totals);
    if (totals.addresses === 0) writer.completeEmpty(tx, number);
    return null;
  }

  /** All three steps; a failed job stays as `receiving`. */
  async receive(caller: Pick<Caller, "accountId" | "keyId" | "mode">, list: IncomingList): Promise<JobRow> {
    const job = await this.create(caller, list);
    const totals = await this.writeRows(job, list);
    const refusal = await this.runtime.db.commit((tx) => this.queue(tx, job, totals));
    if (refusal !== null) throw refusal;
    return this.options.jobs.getExisting(job.number);
  }

  #writeBatch(tx: Tx, { number, mode }: ReceivingJob, { rows, index, width }: Batch): void {
    const { lists } = this.options;
    const repeats = new Map<number, number>();
    const spellings = new Map<number, string>();
    for (const { rowIndex, cells, email: cell } of rows) {
      const normalizedEmail = normalizeCell(cell);
      const email = keptCell(cell);
      const { position, isNew } = index.add(normalizedEmail);
      if (isNew) {
        lists.insertAddress(tx, number, { position, email, normalizedEmail });
        if (normalizedEmail === "") lists.finish(tx, number, { position, columns: this.#resultWithoutAddress(mode) });
        spellings.set(position, email);
      } else repeats.set(position, (repeats.get(position) ?? 0) + 1);
      const first = spellings.get(position) ?? lists.emailAt(number, position) ?? email;
      spellings.set(position, first);
      const isAlone = width === 1 && cells.length === 1 && email === cell;
      const submittedEmail = first === email ? null : email;
      lists.insertRow(tx, number, {
        rowIndex,
        position,
        submittedEmail,
        cells: isAlone ? null : JSON.stringify(cells),
      });
    }
    for (const [position, more] of repeats) lists.addRows(tx, number, { position, rows: more });
  }

  #resultWithoutAddress(mode: KeyMode): ResultColumns {
    const engine = this.options.engines[mode];
    return toColumns(engine.conclude(engine.beginCell("")).result);
  }
}

interface Batch {
  readonly rows: readonly ListRow[];
  readonly index: AddressIndex;
  readonly width: number;
}
