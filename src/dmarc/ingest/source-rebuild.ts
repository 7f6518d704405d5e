import { backgroundTurn } from "../../base/background.ts";
import type { Clock } from "../../base/clock.ts";
import { wait } from "../../base/wait.ts";
import type { Log } from "../../base/log.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { PublishedPolicy } from "../report/report.ts";
import type { ReportRow } from "../report/report-row.ts";
import { sourceAllowance, type RowCounter, createRowCounter } from "./row-counter.ts";
import { rowFacts } from "./row-facts.ts";
import type { CountStore } from "./count-store.ts";
import type { RecordBody } from "./report-store.ts";
import { addMessages, type CountedDay, type Counts, entryOf, noCounts } from "./rollup.ts";
import type { LegacyCursor, LegacyRecord, LegacySource, SourceRebuildStore } from "./source-rebuild-store.ts";

export interface SourceRebuildDeps {
  readonly db: Db;
  readonly store: SourceRebuildStore;
  readonly counts: CountStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Called after each transaction with how long it took; the next one begins when it resolves. */
  readonly pause: (tookMs: number) => Promise<void>;
  /** `RECORDS_PER_STEP` unless told. */
  readonly recordsPerStep?: number;
}

/** Records moved in one transaction, and the characters of their bodies: it holds the event loop for some 10 ms. */
export const RECORDS_PER_STEP = 150;
const CHARACTERS_PER_STEP = 128 * 1024;
/** Sources looked at in one transaction. */
const SOURCES_PER_STEP = 100;

const PAUSE_MS_MAX = 100;
/** How many times as long as a transaction took the pause after it is: requests have most of the time. */
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
 * Moves the records of sources that were stored by what authenticated (`dkim:`, `spf:`, `ip:`, `other`) to sources by address,
 * with what was counted of them: some in each transaction, so that the sums over all sources of a day are the same at any
 * moment, and it resumes anywhere. What is counted of records that are gone stays where it is.
 */
export const createSourceRebuild = (deps: SourceRebuildDeps) => {
  const { db, store, counts, clock, log, pause, recordsPerStep = RECORDS_PER_STEP } = deps;
  let isStopping = false;
  /** No source of the old kind is ever added. */
  let isDone = false;
  let running: Promise<void> | null = null;

  const step = (tx: Tx, after: LegacyCursor): Step => {
    const counting = createRowCounter(counts, { tx, nowMs: clock.nowMs() });
    counting.beginReport(sourceAllowance({ isTrusted: true }));
    const moving = { tx, store, counts, counting };
    let at = after;
    const left = { records: recordsPerStep, characters: CHARACTERS_PER_STEP };
    for (const source of store.legacySourcesAfter(after, SOURCES_PER_STEP)) {
      const records = within(store.recordsOf(source.number, left.records), left);
      moveRecords(moving, source, records);
      if (store.hasRecords(source.number)) break;
      if (records.length > 0) store.settle(tx, source);
      at = source;
      if (left.records <= 0 || left.characters <= 0) break;
    }
    counting.flush(new Map());
    return { after: at, moved: recordsPerStep - left.records };
  };

  /** Does not wait for the disk: what a power cut undoes is done again. Null while another process holds the database. */
  const tryStep = (after: LegacyCursor): Step | null => {
    try {
      return db.transactUnsynced((tx) => step(tx, after));
    } catch (error) {
      if (isBusy(error)) return null;
      throw error;
    }
  };

  const rebuild = async (): Promise<void> => {
    let after: LegacyCursor = { domain: 0, number: 0 };
    let [records, startedMs] = [0, 0];
    while (!isStopping) {
      if (store.legacySourcesAfter(after, 1).length === 0) break;
      await backgroundTurn(null);
      const beganMs = clock.monotonicMs();
      if (records === 0) startedMs = beganMs;
      const done = tryStep(after);
      if (records === 0 && done !== null && done.moved > 0) log.info("rebuilding DMARC sources by address");
      after = done?.after ?? after;
      records += done?.moved ?? 0;
      await pause(clock.monotonicMs() - beganMs);
    }
    if (isStopping) return;
    isDone = true;
    if (records === 0) return;
    const seconds = Math.round((clock.monotonicMs() - startedMs) / 1000);
    log.info("rebuilt DMARC sources by address", { records, seconds });
  };

  return {
    /** Moves what is left to be moved. Rejects when the database cannot be written; the next run resumes. */
    async run(): Promise<void> {
      if (isDone || isStopping) return;
      running ??= rebuild().finally(() => {
        running = null;
      });
      await running;
    },
    /** Ends a run after its present transaction. */
    async stop(): Promise<void> {
      isStopping = true;
      await running?.catch(() => undefined);
    },
  };
};

/** The first of some records, as many as a step may still move: one at least. */
const within = (
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

interface Moving {
  readonly tx: Tx;
  readonly store: SourceRebuildStore;
  readonly counts: CountStore;
  readonly counting: RowCounter;
}

const moveRecords = (
  { tx, store, counts, counting }: Moving,
  source: LegacySource,
  records: readonly LegacyRecord[],
) => {
  const domain = { number: source.domain, domain: source.name, mode: source.mode };
  const balance = createBalance(store, source);
  const inherited = new Set<number>();
  for (const record of records) {
    if (record.isComplete === 0) {
      // It is being removed.
      store.moveRecord(tx, record.rowid, 0);
      continue;
    }
    const row = rowOf(record);
    const facts = rowFacts(row, source.name, JSON.parse(record.policy) as Pick<PublishedPolicy, "adkim" | "aspf">);
    counting.beginReport({ ...counting.allowance(), isTrusted: record.isTrusted === 1 });
    const number = counting.sourceOf(domain, { ip: row.sourceIp, day: record.day, key: facts.key });
    if (!inherited.has(number)) store.inherit(tx, number, source);
    inherited.add(number);
    store.moveRecord(tx, record.rowid, number);
    const wanted = noCounts();
    addMessages(wanted, { row, facts });
    balance.move(number, { day: record.day, isTrusted: isAmongTrusted(counts, source, record) }, wanted);
  }
  for (const { number: key, counts: some, ...day } of balance.taken()) {
    counts.takeBack(tx, { domain: source.domain, ...day, key: source.number }, some);
    counts.count(tx, { domain: source.domain, ...day, key }, some);
  }
};

const rowOf = ({ sourceIp, count, disposition, dkim, spf, headerFrom, body }: LegacyRecord): ReportRow => ({
  ...{ sourceIp, count, disposition, dkim, spf, headerFrom },
  ...(JSON.parse(body) as RecordBody),
});

/** Where a record is counted: reports that came before trusted ones were counted apart were all counted with those. */
const isAmongTrusted = (counts: CountStore, { domain }: LegacySource, record: LegacyRecord): boolean =>
  record.isTrusted === 1 ||
  !counts.isCountedApart(
    { domain, day: record.day, key: { reporter: record.org?.toLowerCase() ?? "", author: record.author } },
    record.messages,
  );

interface Taken extends CountedDay {
  /** Of the source that it goes to. */
  readonly number: number;
  readonly counts: Counts;
}

const FIGURES = Object.keys(noCounts()) as (keyof Counts)[];

/** What is counted of a source, by day and trust: never more is moved to others than is there. */
const createBalance = (store: SourceRebuildStore, source: LegacySource) => {
  const left = new Map<string, Counts>();
  const taken = new Map<string, Taken>();

  const take = (number: number, day: CountedDay, wanted: Counts): void => {
    const place = `${day.day} ${day.isTrusted}`;
    const there = entryOf(left, place, () => store.countsOf(source, day) ?? noCounts());
    if (there.messages <= 0) return;
    // With its last messages goes all that is counted.
    const isAll = there.messages <= wanted.messages;
    const to = entryOf(taken, `${place} ${number}`, () => ({ ...day, number, counts: noCounts() }));
    for (const figure of FIGURES) {
      const some = isAll ? there[figure] : Math.min(there[figure], wanted[figure]);
      there[figure] -= some;
      to.counts[figure] += some;
      wanted[figure] = Math.max(0, wanted[figure] - some);
    }
  };

  return {
    move(number: number, day: CountedDay, wanted: Counts): void {
      take(number, day, wanted);
      if (wanted.messages > 0) take(number, { ...day, isTrusted: !day.isTrusted }, wanted);
    },
    taken: (): Iterable<Taken> => taken.values(),
  };
};
