import { isBusy } from "../../../foundation/db/group-commit.ts";
import { backgroundTurn } from "../../../foundation/base/fair-queue.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { wait } from "../../../foundation/base/wait.ts";
import type { Tx, Db } from "../../../foundation/db/open.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import { readRecordBody, type RecordBody } from "../report/report.ts";
import { VOUCHED_AS_KNOWN, VOUCHED_BY_NOBODY } from "../../records/domains/reporter-store.ts";
import type { ReportRow } from "../report/report-row.ts";
import type { IngestStores } from "./ingest-stores.ts";
import { addMessages, entryOf, noCounts, type CountedDay, type Counts, rowFacts } from "./rollup.ts";
import { RowCounter, sourceAllowance } from "./row-counter.ts";
import type { DomainRow } from "../../records/domains/domain-store.ts";
import { AUTHOR } from "./report-store.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";

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

interface Step {
  readonly after: LegacyCursor;
  readonly moved: number;
  /** Of these, records whose body no version wrote. */
  readonly unreadable: number;
}

/**
 * Moves the records and counts of legacy sources (`dkim:`, `spf:`, `ip:`, `other`) to sources by address, a few in each
 * transaction: the sums over all sources of a day are the same at any moment, and it resumes anywhere. Counts of records that
 * retention has removed, and of those that cannot be read, stay where they are.
 */
export class SourceRebuild {
  #isStopping: boolean = false;
  /** Legacy sources are never added. */
  #isDone: boolean = false;
  #running: Promise<void> | null = null;

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: {
      store: SourceRebuildStore;
      stores: Pick<IngestStores, "sources" | "counts">;
      /** Awaited after each transaction, with how long that took. */
      pause: (tookMs: number) => Promise<void>;
      recordsPerStep?: number;
    },
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

  async #rebuild() {
    const { clock, log } = this.runtime;
    let after: LegacyCursor = { domain: 0, number: 0 };
    let [records, unreadable, startedMs] = [0, 0, 0];
    while (!this.#isStopping && this.deps.store.legacySourcesAfter(after, 1).length > 0) {
      await backgroundTurn(null);
      const beganMs = clock.monotonicMs();
      if (records === 0) startedMs = beganMs;
      const done = this.#tryStep(after);
      if (records === 0 && done !== null && done.moved > 0) log.info("rebuilding DMARC sources by address");
      after = done?.after ?? after;
      records += done?.moved ?? 0;
      unreadable += done?.unreadable ?? 0;
      await this.deps.pause(clock.monotonicMs() - beganMs);
    }
    if (unreadable > 0)
      log.warn("records of DMARC reports cannot be read: their counts stay with the former source", {
        records: unreadable,
      });
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
    const { store, stores, recordsPerStep = RECORDS_PER_STEP } = this.deps;
    const counter = new RowCounter(stores.sources, { tx, nowMs: this.runtime.clock.nowMs() });
    counter.beginReport(sourceAllowance(VOUCHED_AS_KNOWN));
    let last = after;
    let unreadable = 0;
    const left = { records: recordsPerStep, characters: CHARACTERS_PER_STEP };
    for (const source of store.legacySourcesAfter(after, SOURCES_PER_STEP)) {
      const records = takeWithin(store.recordsOf(source.number, left.records), left);
      unreadable += this.#moveRecords({ tx, counter }, source, records);
      if (store.hasRecords(source.number)) break;
      if (records.length > 0) store.finishSource(tx, source);
      last = source;
      if (left.records <= 0 || left.characters <= 0) break;
    }
    counter.flush();
    return { after: last, moved: recordsPerStep - left.records, unreadable };
  }

  /** Returns how many records could not be read: they then belong to no source. */
  #moveRecords(
    { tx, counter }: { tx: Tx; counter: RowCounter },
    source: LegacySource,
    records: readonly LegacyRecord[],
  ): number {
    const { store, stores } = this.deps;
    const domain = { number: source.domain, domain: source.name, mode: source.mode };
    const balance = new CountBalance(store, source);
    const inherited = new Set<number>();
    let unreadable = 0;
    for (const record of records) {
      if (record.isComplete === 0) {
        // The report of this record is being removed.
        store.moveRecord(tx, record.rowid, 0);
        continue;
      }
      const body = readRecordBody(record.body);
      if (body === null) {
        store.moveRecord(tx, record.rowid, 0);
        unreadable += 1;
        continue;
      }
      const row: ReportRow = { ...record, ...body };
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
    return unreadable;
  }

  /** Earlier versions counted all reports as trusted ones. */
  #voucherOf({ domain }: LegacySource, { day, org, author, messages, voucher }: LegacyRecord) {
    if (voucher !== VOUCHED_BY_NOBODY) return voucher;
    const key = { reporter: org?.toLowerCase() ?? "", author };
    return this.deps.stores.counts.isCountedApart({ domain, day, key }, messages) ? voucher : VOUCHED_AS_KNOWN;
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

  #take(number: number, day: CountedDay, wanted: Counts) {
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

/** The last source that a walk through the legacy sources has done. */
export interface LegacyCursor {
  readonly domain: number;
  readonly number: number;
}

/** A source that an earlier version stored, by what authenticated and not by address. */
export interface LegacySource extends LegacyCursor {
  /** The name of the domain. */
  readonly name: string;
  readonly mode: DomainRow["mode"];
  readonly firstDay: number;
  readonly lastDay: number;
  readonly firstSeenAtMs: number;
  readonly isReviewed: 0 | 1;
}

/** A record of such a source, and what its report says about how it was counted. */
export interface LegacyRecord extends Omit<ReportRow, keyof RecordBody> {
  readonly rowid: number;
  readonly day: number;
  readonly body: string;
  /** 0 when the report is not counted, or deleted. */
  readonly isComplete: 0 | 1;
  readonly voucher: number;
  readonly org: string | null;
  /** Empty for a trusted report: see `CountedReporter`. */
  readonly author: string;
  readonly messages: number;
  /** Alignment modes of the published policy. */
  readonly adkim: "r" | "s" | null;
  readonly aspf: "r" | "s" | null;
}

const RECORDS = `SELECT c.rowid, c.day, c.source_ip AS sourceIp, c.count, c.disposition, c.dkim, c.spf, c.header_from AS headerFrom, c.body,
  coalesce(r.is_complete, 0) AS isComplete, CASE WHEN instr(r.sameness, ' ') > 0 THEN 0 ELSE coalesce(r.voucher, 1) END AS voucher, r.org, coalesce(${AUTHOR}, '') AS author,
  coalesce(r.messages, 0) AS messages, r.policy ->> 'adkim' AS adkim, r.policy ->> 'aspf' AS aspf
  FROM dmarc_records c LEFT JOIN dmarc_reports r ON r.number = c.report WHERE c.source = ? LIMIT ?`;

/** First and last day on which a source (2) of a domain (1) is counted between two days (3, 4); day by day, as the index wants it. */
const COUNTED_DAYS = `WITH RECURSIVE days (day) AS (SELECT ?3 UNION ALL SELECT day + 1 FROM days WHERE day < ?4)
  SELECT min(n.day) AS firstDay, max(n.day) AS lastDay FROM days CROSS JOIN dmarc_daily n ON n.domain = ?1 AND n.day = days.day AND n.source = ?2`;

const legacySources = (where: string) =>
  `SELECT s.domain, s.number, d.domain AS name, d.mode, s.first_day AS firstDay, s.last_day AS lastDay,
    s.first_seen_at_ms AS firstSeenAtMs, s.is_reviewed AS isReviewed
    FROM dmarc_sources s INDEXED BY dmarc_sources_legacy CROSS JOIN dmarc_domains d ON d.number = s.domain AND d.deleted_at_ms IS NULL
    WHERE instr(s.key, ' ') = 0 AND ${where} ORDER BY s.domain, s.number LIMIT ?`;

const STATEMENTS = {
  ofDomain: rows<LegacySource, [number, number, number]>(legacySources("s.domain = ? AND s.number > ?")),
  ofNextDomains: rows<LegacySource, [number, number]>(legacySources("s.domain > ?")),
  records: rows<LegacyRecord, [number, number]>(RECORDS),
  hasRecords: rows<unknown, [number]>("SELECT 1 FROM dmarc_records WHERE source = ? LIMIT 1"),
  move: "UPDATE dmarc_records SET source = ? WHERE rowid = ?",
  inherit:
    "UPDATE dmarc_sources SET first_seen_at_ms = min(first_seen_at_ms, ?), is_reviewed = max(is_reviewed, ?) WHERE number = ?",
  counts: rows<Counts, [number, number, number, number]>(
    `SELECT messages, aligned, aligned_dkim AS alignedDkim, aligned_spf AS alignedSpf, forwarded, authenticated, quarantined, rejected
      FROM dmarc_daily WHERE domain = ? AND day = ? AND source = ? AND is_trusted = ?`,
  ),
  countedDays: rows<{ firstDay: number | null; lastDay: number | null }, number[]>(COUNTED_DAYS),
  setDays: "UPDATE dmarc_sources SET first_day = ?, last_day = ? WHERE number = ?",
  remove: "DELETE FROM dmarc_sources WHERE number = ?",
};

/** Moves records of legacy sources to other sources. */
export class SourceRebuildStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  /** The next legacy sources after one, of domains that are not deleted; none after the last. */
  legacySourcesAfter({ domain, number }: LegacyCursor, limit: number): LegacySource[] {
    const same = this.#sql.ofDomain.all(domain, number, limit);
    return same.length > 0 ? same : this.#sql.ofNextDomains.all(domain, limit);
  }

  recordsOf(number: number, limit: number): LegacyRecord[] {
    return this.#sql.records.all(number, limit);
  }

  hasRecords(number: number): boolean {
    return this.#sql.hasRecords.get(number) !== null;
  }

  /** Gives a record to another source; to none when `source` is 0. */
  moveRecord(_tx: Tx, rowid: number, source: number): void {
    this.#sql.move.run(source, rowid);
  }

  /** A source that takes over records of another was first seen when that was. */
  inherit(_tx: Tx, number: number, { firstSeenAtMs, isReviewed }: LegacySource): void {
    this.#sql.inherit.run(firstSeenAtMs, isReviewed, number);
  }

  /** What is counted of a source on a day; null for nothing. */
  countsOf({ domain, number }: LegacyCursor, { day, voucher }: CountedDay): Counts | null {
    return this.#sql.counts.get(domain, day, number, voucher);
  }

  /** Leaves a source without records only the days on which it is still counted; removes it when there are none. */
  finishSource(_tx: Tx, { domain, number, firstDay, lastDay }: LegacySource): void {
    const days = this.#sql.countedDays.get(domain, number, firstDay, lastDay);
    if (days === null || days.firstDay === null || days.lastDay === null) this.#sql.remove.run(number);
    else if (days.firstDay !== firstDay || days.lastDay !== lastDay)
      this.#sql.setDays.run(days.firstDay, days.lastDay, number);
  }
}
