import { backgroundTurn, FairQueue } from "../../foundation/base/fair-queue.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { type ByMode, type KeyMode, newId, type Random } from "../../foundation/base/secrets.ts";
import { insufficientCredits } from "../../accounts/billing/store.ts";
import type { Tx } from "../../foundation/db/open.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Caller } from "../../foundation/http/guard.ts";
import { keptCell, normalizeCell } from "../../foundation/mail/address-in-cell.ts";
import type { VerificationEngine } from "../../verify/engine.ts";
import type { ListRow, DetectedFormat } from "../reading/csv.ts";
import type { JobRow, ListTotals } from "../results/job-store.ts";
import type { BulkStores, JobWriter } from "../run/job-writer.ts";
import { type ResultColumns, toColumns } from "../results/result-columns.ts";
import { type ResultsFormat, resultsFormatSchema } from "../results/results-csv.ts";
import { type OnBehalfOf, createShares } from "../../foundation/base/on-behalf-of.ts";

/** A list with the options of its submission. */
export interface IncomingList {
  readonly name: string | null;
  readonly source: string | null;
  readonly webhookUrl: string | null;
  /** Who is mailed at the end. */
  readonly notifyEmail: string | null;
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
    private readonly deps: BulkIntakeOptions,
  ) {}

  async create(caller: Pick<Caller, "accountId" | "keyId" | "mode">, list: IncomingList): Promise<ReceivingJob> {
    const { accountId, keyId, mode } = caller;
    const { name, source, webhookUrl, notifyEmail } = list;
    const job = {
      id: newId(),
      accountId,
      keyId,
      mode,
      name,
      source,
      webhookUrl,
      notifyEmail,
      format: JSON.stringify(resultsFormatSchema.parse(list.format)),
      reading: list.reading === null ? null : JSON.stringify(list.reading),
      createdAtMs: this.runtime.clock.nowMs(),
    };
    const { db } = this.runtime;
    // The commit that queues the job decides: until then, nobody can see it.
    const number = await db.apart(() => db.commit((tx) => this.deps.jobs.insert(tx, job)));
    return { number, id: job.id, accountId, mode };
  }

  /**
   * Writes the rows and distinct addresses in small transactions. Throws 402 `insufficient_credits` when the available
   * credits do not cover the distinct addresses; once that is certain, the remaining rows are only counted.
   */
  async writeRows(job: ReceivingJob, list: IncomingList): Promise<ListTotals> {
    const { db, random } = this.runtime;
    const { available } = this.deps.credits[job.mode].balance(job.accountId);
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
    const { jobs, writer, credits } = this.deps;
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
    return this.deps.jobs.getExisting(job.number);
  }

  #writeBatch(tx: Tx, { number, mode }: ReceivingJob, { rows, index, width }: Batch): void {
    const { lists } = this.deps;
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
    const engine = this.deps.engines[mode];
    return toColumns(engine.conclude(engine.beginCell("")).result);
  }
}

interface Batch {
  readonly rows: readonly ListRow[];
  readonly index: AddressIndex;
  readonly width: number;
}

/** Slots of the hash table per address, so that lookups stay short. */
const SLOTS_PER_ADDRESS = 1.6;
const SLOTS_MIN = 1024;
const EMPTY = -1;
const SEED_BITS = 47;

/** A secret random seed for an `AddressIndex`. */
export const newSeed = (random: Random): bigint =>
  BigInt(random.integer(2 ** SEED_BITS)) * BigInt(random.integer(2 ** SEED_BITS) + 1);

/**
 * Numbers the distinct addresses of a list from 0 in order of first occurrence, and counts its rows. Rows without an
 * address have the text "". Takes 34 MB for a million addresses: it compares 96 bits of hashes with a secret seed instead
 * of the texts. The probability that two of a million addresses collide is 1 in 10^17.
 */
export class AddressIndex {
  readonly #mask: number;
  readonly #hashes: BigUint64Array;
  readonly #otherHashes: Uint32Array;
  readonly #positions: Int32Array;
  #size = 0;
  #rows = 0;
  #empty = 0;

  constructor(
    private readonly addressesMax: number,
    private readonly seed: bigint,
  ) {
    const slots = 2 ** Math.ceil(Math.log2(Math.max(SLOTS_MIN, addressesMax * SLOTS_PER_ADDRESS)));
    this.#mask = slots - 1;
    this.#hashes = new BigUint64Array(slots);
    this.#otherHashes = new Uint32Array(slots);
    this.#positions = new Int32Array(slots).fill(EMPTY);
  }

  get totals(): ListTotals {
    return { rows: this.#rows, empty: this.#empty, addresses: this.#size - (this.#empty > 0 ? 1 : 0) };
  }

  /** Counts a row and returns the number of its address; `isNew` on the first occurrence. */
  add(normalizedEmail: string): { readonly position: number; readonly isNew: boolean } {
    this.#rows++;
    if (normalizedEmail === "") this.#empty++;
    const { slot, hash, other } = this.#look(normalizedEmail);
    const position = this.#positions[slot] ?? EMPTY;
    if (position !== EMPTY) return { position, isNew: false };
    if (this.#size >= this.addressesMax) throw new Error(`more than ${this.addressesMax} addresses`);
    this.#hashes[slot] = hash;
    this.#otherHashes[slot] = other;
    this.#positions[slot] = this.#size;
    return { position: this.#size++, isNew: true };
  }

  /** The number of an address; null when it was not added. */
  find(normalizedEmail: string): number | null {
    const position = this.#positions[this.#look(normalizedEmail).slot] ?? EMPTY;
    return position === EMPTY ? null : position;
  }

  /** The slot of an address, or the empty one that it belongs in. */
  #look(normalizedEmail: string): { readonly slot: number; readonly hash: bigint; readonly other: number } {
    const hash = Bun.hash.wyhash(normalizedEmail, this.seed);
    const other = Number(Bun.hash.wyhash(normalizedEmail, this.seed ^ 0x9e37_79b9_7f4a_7c15n) & 0xffff_ffffn);
    let slot = Number(hash & 0xffff_ffffn) & this.#mask;
    while ((this.#positions[slot] ?? EMPTY) !== EMPTY) {
      if (this.#hashes[slot] === hash && this.#otherHashes[slot] === other) break;
      slot = (slot + 1) & this.#mask;
    }
    return { slot, hash, other };
  }
}

/** Lists read at a time; a large one may take 40 MB, a workbook 100 MB. One slot is reserved for small lists, one for large ones. */
const SLOTS = 3;
const SLOTS_PER_KIND_MAX = SLOTS - 1;
/** Lists that may wait: 80 small and 20 large ones, and of these only a share of one account. */
const WAITING_MAX = { realtime: 80, bulk: 20 } as const;
/** A small list is read within a second. */
export const SMALL_ROWS_MAX = 10_000;
export const SMALL_BYTES_MAX = 512 * 1024;
const RETRY_AFTER_S = 30;

interface IntakeSlotOptions {
  readonly accountId: string;
  readonly isSmall: boolean;
}

/**
 * Limits how many lists are read and written at a time. The others wait: small lists before large ones, and the accounts
 * in turn. When too many wait, of an account or in all, a list is refused with 503 `unavailable`.
 */
export class IntakeSlots {
  readonly #queue = new FairQueue<() => void>();
  readonly #waiting = { realtime: waitingShares(WAITING_MAX.realtime), bulk: waitingShares(WAITING_MAX.bulk) };
  readonly #running = { realtime: 0, bulk: 0 };

  /** Waits for a slot, and holds it until it is disposed of. */
  async take({ accountId, isSmall }: IntakeSlotOptions): Promise<Disposable> {
    const who: OnBehalfOf = { account: accountId, priority: isSmall ? "realtime" : "bulk" };
    await this.#acquire(who);
    return { [Symbol.dispose]: () => this.#release(who) };
  }

  #acquire(who: OnBehalfOf): Promise<void> | undefined {
    if (this.#hasSlot(who)) {
      this.#running[who.priority]++;
      return undefined;
    }
    const waiting = this.#waiting[who.priority];
    if (!waiting.mayHold(who)) throw tooMany();
    waiting.hold(who);
    return new Promise((resolve) => this.#queue.add(who, resolve));
  }

  #release({ priority }: OnBehalfOf): void {
    this.#running[priority]--;
    const hasSlot = (who: OnBehalfOf) => this.#hasSlot(who);
    for (let next = this.#queue.take(hasSlot); next !== undefined; next = this.#queue.take(hasSlot)) {
      this.#waiting[next.who.priority].release(next.who);
      this.#running[next.who.priority]++;
      next.item();
    }
  }

  #hasSlot({ priority }: OnBehalfOf): boolean {
    const { realtime, bulk } = this.#running;
    return realtime + bulk < SLOTS && this.#running[priority] < SLOTS_PER_KIND_MAX;
  }
}

const waitingShares = (placesMax: number) => createShares({ placesMax, realtimeShare: 0 });

const tooMany = (): AppError =>
  new AppError("unavailable", {
    message: "Too many lists are being read. Try again later.",
    headers: { "retry-after": String(RETRY_AFTER_S) },
  });

interface UploadBudgetLimits {
  /** Files of one account that are being received or wait to be read. */
  readonly filesPerAccountMax: number;
  /** Bytes of these lists on the disk, of one account and of all. */
  readonly bytesPerAccountMax: number;
  readonly bytesMax: number;
}

const MIB = 1024 ** 2;
const GIB = 1024 * MIB;
const LIMITS: UploadBudgetLimits = { filesPerAccountMax: 40, bytesPerAccountMax: GIB, bytesMax: 4 * GIB };

const sizeText = (bytes: number): string => {
  if (bytes % MIB !== 0) return `${bytes} bytes`;
  return bytes % GIB === 0 ? `${bytes / GIB} GiB` : `${bytes / MIB} MiB`;
};

/** The disk space reserved for one upload. */
export interface UploadReservation {
  /** The upload is complete and has no more than these bytes. */
  shrink(bytes: number): void;
  /** The file is deleted. */
  release(): void;
}

const busy = (message: string): AppError =>
  new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });

/** Limits the disk space of uploads. The largest possible size is reserved in advance, so that no upload fails halfway. */
export class UploadBudget {
  readonly #limits: UploadBudgetLimits;
  readonly #accounts = new Map<string, { files: number; bytes: number }>();
  #bytes = 0;

  constructor(limits: UploadBudgetLimits = LIMITS) {
    this.#limits = limits;
  }

  /** Bytes reserved for all uploads. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Throws 503 `unavailable` when the account, or all accounts together, exceed the limits. */
  reserve(accountId: string, bytes: number): UploadReservation {
    const { filesPerAccountMax, bytesPerAccountMax, bytesMax } = this.#limits;
    const own = this.#accounts.get(accountId) ?? { files: 0, bytes: 0 };
    if (own.files >= filesPerAccountMax) throw busy(`An account can upload ${filesPerAccountMax} lists at a time.`);
    if (own.bytes + bytes > bytesPerAccountMax)
      throw busy(`Concurrent uploads exceed ${sizeText(bytesPerAccountMax)} for this account.`);
    if (this.#bytes + bytes > bytesMax) throw busy("Too many lists are being uploaded. Try again later.");
    this.#accounts.set(accountId, own);
    own.files++;
    let reserved = 0;
    const resize = (now: number): void => {
      own.bytes += now - reserved;
      this.#bytes += now - reserved;
      reserved = now;
    };
    resize(bytes);
    return {
      shrink: (now) => resize(Math.min(reserved, now)),
      release: () => {
        resize(0);
        own.files--;
        if (own.files === 0) this.#accounts.delete(accountId);
      },
    };
  }
}
