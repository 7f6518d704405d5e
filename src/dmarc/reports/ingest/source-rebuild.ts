import { backgroundTurn } from "../../../foundation/base/fair-queue.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { wait } from "../../../foundation/base/wait.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { parseRecordBody } from "../report/report.ts";
import { VOUCHED_AS_KNOWN, VOUCHED_BY_NOBODY } from "../../records/domains/reporter-store.ts";
import type { ReportRow } from "../report/report-row.ts";
import type { IngestStores } from "./ingest-stores.ts";
import { addMessages, entryOf, noCounts, type CountedDay, type Counts } from "./rollup.ts";
import { RowCounter, sourceAllowance } from "./row-counter.ts";
import type { LegacyCursor, LegacyRecord, LegacySource, SourceRebuildStore } from "./source-rebuild-store.ts";
import { rowFacts } from "./source-key.ts";

/** What the rebuild uses beside the runtime. */
export interface SourceRebuildParts {
  readonly store: SourceRebuildStore;
  readonly stores: Pick<IngestStores, "sources" | "counts">;
  /** Awaited after each transaction, with how long that took. */
  readonly pause: (tookMs: number) => Promise<void>;
  readonly recordsPerStep?: number;
}

/** Records moved in one transaction, and the characters of their bodies: it holds the event loop for some 10 ms. */
export const RECORDS_PER_STEP = 150;
const CHARACTERS_PER_STEP = 128 * 1024;
/** Sources examined in one transaction. */
const SOURCES_PER_STEP = 100;

const PAUSE_MS_MAX = 100;
/** The pause after a transaction, as a multiple of how long that took: requests have most of the time. */
const PAUSE_FACTOR = 3;
export const paceOf = (clock: Clock) => (tookMs: number) =>
  wait(clock, Math.min(PAUSE_MS_MAX, Math.ceil(PAUSE_FACTOR * tookMs)));

const isBusy = (error: unknown): boolean =>
  error instanceof Error && "code" in error && String(error.code).startsWith("SQLITE_BUSY");

interface Step {
  readonly after: LegacyCursor;
  readonly moved: number;
}

/**
 * Moves the records and counts of legacy sources (`dkim:`, `spf:`, `ip:`, `other`) to sources by address, a few in each
 * transaction: the sums over all sources of a day are the same at any moment, and it resumes anywhere. Counts of records that
 * retention has removed stay where they are.
 */
export class SourceRebuild {
  #isStopping: boolean = false;
  /** Legacy sources are never added. */
  #isDone: boolean = false;
  #running: Promise<void> | null = null;

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly parts: SourceRebuildParts,
  ) {}

  /** Moves everything that is left. Rejects when the database cannot be written; the next run resumes. */
  async run(): Promise<void> {
    if (this.#isDone || this.#isStopping) return;
    this.#running ??= this.#rebuild().finally(() => {
      this.#running = null;
    });
    await this.#running;
  }

  /** Ends a run after its present transaction. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    await this.#running?.catch(() => undefined);
  }

  async #rebuild(): Promise<void> {
    const { clock, log } = this.runtime;
    let after: LegacyCursor = { domain: 0, number: 0 };
    let [records, startedMs] = [0, 0];
    while (!this.#isStopping && this.parts.store.legacySourcesAfter(after, 1).length > 0) {
      await backgroundTurn(null);
      const beganMs = clock.monotonicMs();
      if (records === 0) startedMs = beganMs;
      const done = this.#tryStep(after);
      if (records === 0 && done !== null && done.moved > 0) log.info("rebuilding DMARC sources by address");
      after = done?.after ?? after;
      records += done?.moved ?? 0;
      await this.parts.pause(clock.monotonicMs() - beganMs);
    }
    if (this.#isStopping) return;
    this.#isDone = true;
    if (records === 0) return;
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    log.info("rebuilt DMARC sources by address", { records, seconds });
  }

  /** Not synced to disk: what a power cut undoes is done again. Null while another process holds the database. */
  #tryStep(after: LegacyCursor): Step | null {
    try {
      return this.runtime.db.transactUnsynced((tx) => this.#step(tx, after));
    } catch (error) {
      if (isBusy(error)) return null;
      throw error;
    }
  }

  #step(tx: Tx, after: LegacyCursor): Step {
    const { store, stores, recordsPerStep = RECORDS_PER_STEP } = this.parts;
    const counter = new RowCounter(stores.sources, { tx, nowMs: this.runtime.clock.nowMs() });
    counter.beginReport(sourceAllowance(VOUCHED_AS_KNOWN));
    let last = after;
    const left = { records: recordsPerStep, characters: CHARACTERS_PER_STEP };
    for (const source of store.legacySourcesAfter(after, SOURCES_PER_STEP)) {
      const records = takeWithin(store.recordsOf(source.number, left.records), left);
      this.#moveRecords({ tx, counter }, source, records);
      if (store.hasRecords(source.number)) break;
      if (records.length > 0) store.finishSource(tx, source);
      last = source;
      if (left.records <= 0 || left.characters <= 0) break;
    }
    counter.flush();
    return { after: last, moved: recordsPerStep - left.records };
  }

  #moveRecords(
    { tx, counter }: { readonly tx: Tx; readonly counter: RowCounter },
    source: LegacySource,
    records: readonly LegacyRecord[],
  ): void {
    const { store, stores } = this.parts;
    const domain = { number: source.domain, domain: source.name, mode: source.mode };
    const balance = new CountBalance(store, source);
    const inherited = new Set<number>();
    for (const record of records) {
      if (record.isComplete === 0) {
        // The report of this record is being removed.
        store.moveRecord(tx, record.rowid, 0);
        continue;
      }
      const row: ReportRow = { ...record, ...parseRecordBody(record.body) };
      const facts = rowFacts(row, source.name, record);
      counter.beginReport({ ...counter.allowance(), isKnown: record.voucher === VOUCHED_AS_KNOWN });
      const number = counter.sourceOf(domain, { ip: row.sourceIp, day: record.day, key: facts.key });
      if (!inherited.has(number)) store.inherit(tx, number, source);
      inherited.add(number);
      store.moveRecord(tx, record.rowid, number);
      const wanted = noCounts();
      addMessages(wanted, { row, facts });
      balance.move(number, { day: record.day, voucher: this.#voucherOf(source, record) }, wanted);
    }
    for (const { number, counts, day, voucher } of balance.moved()) {
      const where = { domain: source.domain, day, voucher };
      stores.counts.addSource(tx, { ...where, key: source.number }, counts, -1);
      stores.counts.addSource(tx, { ...where, key: number }, counts);
    }
  }

  /** Earlier versions counted all reports as trusted ones. */
  #voucherOf({ domain }: LegacySource, { day, org, author, messages, voucher }: LegacyRecord): number {
    if (voucher !== VOUCHED_BY_NOBODY) return voucher;
    const key = { reporter: org?.toLowerCase() ?? "", author };
    return this.parts.stores.counts.isCountedApart({ domain, day, key }, messages) ? voucher : VOUCHED_AS_KNOWN;
  }
}

/** The first of some records, as many as a step may still move: one at least. */
const takeWithin = (
  records: readonly LegacyRecord[],
  left: { records: number; characters: number },
): readonly LegacyRecord[] => {
  const end = records.findIndex(({ body }) => {
    if (left.characters <= 0) return true;
    left.characters -= body.length;
    left.records -= 1;
    return false;
  });
  return end === -1 ? records : records.slice(0, end);
};

interface MovedCounts extends CountedDay {
  /** Of the source that the counts go to. */
  readonly number: number;
  readonly counts: Counts;
}

const FIGURES = Object.keys(noCounts()) as (keyof Counts)[];

/** What is counted of a legacy source, by day and voucher: never more is moved to other sources than there is. */
class CountBalance {
  readonly #left = new Map<string, Counts>();
  readonly #moved = new Map<string, MovedCounts>();

  constructor(
    private readonly store: SourceRebuildStore,
    private readonly source: LegacySource,
  ) {}

  /** Moves counts to a source; what is missing under this voucher is taken from the others. */
  move(number: number, day: CountedDay, wanted: Counts): void {
    this.#take(number, day, wanted);
    for (const voucher of [VOUCHED_AS_KNOWN, VOUCHED_BY_NOBODY]) {
      if (wanted.messages > 0 && voucher !== day.voucher) this.#take(number, { ...day, voucher }, wanted);
    }
  }

  moved(): Iterable<MovedCounts> {
    return this.#moved.values();
  }

  #take(number: number, day: CountedDay, wanted: Counts): void {
    const key = `${day.day} ${day.voucher}`;
    const there = entryOf(this.#left, key, () => this.store.countsOf(this.source, day) ?? noCounts());
    if (there.messages <= 0) return;
    // All other figures go with the last messages.
    const isAll = there.messages <= wanted.messages;
    const to = entryOf(this.#moved, `${key} ${number}`, () => ({ ...day, number, counts: noCounts() }));
    for (const figure of FIGURES) {
      const some = isAll ? there[figure] : Math.min(there[figure], wanted[figure]);
      there[figure] -= some;
      to.counts[figure] += some;
      wanted[figure] = Math.max(0, wanted[figure] - some);
    }
  }
}
