import { type Clock, nextTurn } from "../../base/clock.ts";
import { Gate } from "../../base/wait.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import { createJudging, type Read } from "./ingest-judging.ts";
import { createStaging, isLarge, ROWS_PER_COMMIT, weightIn } from "./ingest-large.ts";
import type { IngestStores, Work, Written } from "./ingest-work.ts";
import { StagedReportGone, writeWorks } from "./ingest-write.ts";
import type { NewIngestion } from "./ingestion-store.ts";
import { readWithin, type UnpackAllowance } from "./ingest-unpacking.ts";
import type { ReportReading } from "../report/outcome.ts";
import type { UnpackBudget } from "../report/unpack.ts";
import { kindOfPayload } from "../report/payload.ts";
import { readReportFile } from "../report/read-file.ts";

export interface IngestDeps {
  readonly db: Db;
  readonly stores: IngestStores;
  readonly clock: Clock;
  readonly log: Log;
  /** Null where no mail is judged (and where there is no DNS). */
  readonly authenticate: AuthenticateMail | null;
  /** As in a server unless told. */
  readonly pace?: IngestPace;
  /** Reads what came in; never throws. Tests have it fail. */
  readonly read?: (bytes: Uint8Array, name: string | null, budget: UnpackBudget) => Promise<ReportReading[]>;
}

/** Something to be read and written down. */
export interface IngestItem {
  readonly ingestion: NewIngestion;
  /** As in `Work`. */
  readonly isNew: boolean;
  /** Not to be read any more: reading it has ended the service too often. */
  readonly isGivenUp?: boolean;
}

/** How much is written in one transaction: mails and files, and rows of reports. */
export interface IngestPace {
  readonly works: number;
  readonly rows: number;
}

/** A transaction that holds the event loop for some 20 ms. */
const SERVER_PACE: IngestPace = { works: 64, rows: ROWS_PER_COMMIT };
/** For a process that has nothing else to do: fewer flushes, while a server beside it still gets its turns. */
export const IMPORT_PACE: IngestPace = { works: 256, rows: 3 * ROWS_PER_COMMIT };

/** How long reading goes on before others get their turn. */
const TURN_MS_MAX = 15;
/** How often a report is staged that somebody removes. */
const STAGINGS_MAX = 3;

/** What SQLite says when the disk is full, broken or locked: nothing is wrong with what was to be written. */
const DATABASE_STATES = /^SQLITE_(FULL|READONLY|IOERR|BUSY|CANTOPEN|LOCKED|NOMEM)/;

/** Whether an error is about the state of the database, so that the same write may succeed later. */
export const isDatabaseState = (error: unknown): boolean =>
  error instanceof Error && "code" in error && DATABASE_STATES.test(String(error.code));

/**
 * Reads mails and files and writes down what is in them: the ingestion, its findings, reports, records and rollups, many
 * in one transaction. One that cannot be dealt with is `rejected` as `internal_error`, and does not touch the others.
 */
export const createIngest = (deps: IngestDeps) => {
  const { db, stores, clock, log, authenticate, pace = SERVER_PACE, read = readReportFile } = deps;
  const staging = createStaging({ db, stores, clock, log });
  const judging = createJudging({ stores, authenticate });
  const gate = new Gate(1);

  const failed = (work: Pick<Work, "ingestion" | "isNew">, failure: Work["failure"]): Work => {
    const { ingestion, isNew } = work;
    return { ...NOTHING_KNOWN, ingestion, isNew, readings: [], failure, isMail: false };
  };

  const fail = (work: Pick<Work, "ingestion" | "isNew">, cause: unknown): Work => {
    log.error("a report could not be dealt with; its bytes are kept", { ingestion: work.ingestion.id, cause });
    return failed(work, "internal_error");
  };

  /** What is in it; whether it is authentic may still be open. */
  const readItem = async (item: IngestItem, allowance: UnpackAllowance): Promise<Work> => {
    const { ingestion, isNew } = item;
    try {
      if (item.isGivenUp) return failed(item, "gave_up");
      // What one unpacks to is in memory meanwhile, whoever brought it.
      const readings = await gate.run(() =>
        readWithin(allowance, (budget) => read(ingestion.bytes, ingestion.name, budget)),
      );
      if (readings === null) return failed(item, "upload_too_large");
      const isMail = kindOfPayload(ingestion.bytes) === "message";
      return { ...NOTHING_KNOWN, ingestion, isNew, readings, failure: null, isMail };
    } catch (error) {
      if (isDatabaseState(error)) throw error;
      return fail(item, error);
    }
  };

  const commit = (works: readonly Work[]): Promise<(Written | null)[]> =>
    db.commit((tx) => writeWorks(stores, { tx, nowMs: clock.nowMs() }, works));

  const writeOne = async (work: Work): Promise<(Written | null)[]> => {
    try {
      return await commit([work]);
    } catch (error) {
      if (isDatabaseState(error) || error instanceof StagedReportGone) throw error;
      return commit([fail(work, error)]);
    }
  };

  const write = async (works: readonly Work[]): Promise<(Written | null)[]> => {
    try {
      return await commit(works);
    } catch (error) {
      if (isDatabaseState(error)) throw error;
      // One of them is to blame; by itself it takes nobody with it.
      const written: (Written | null)[] = [];
      for (const work of works) written.push(...(await writeOne(work)));
      return written;
    }
  };

  const writeLarge = async (work: Work): Promise<(Written | null)[]> => {
    for (let staging_ = 1; ; staging_ += 1) {
      try {
        const staged = await staging.stage(work);
        try {
          return await writeOne(staged);
        } finally {
          await staging.discard(staged);
        }
      } catch (error) {
        if (error instanceof StagedReportGone && staging_ < STAGINGS_MAX) continue;
        if (isDatabaseState(error)) throw error;
        return commit([fail(work, error)]);
      }
    }
  };

  const finish = async (reads: readonly Read[]): Promise<(Written | null)[]> => {
    const works = await Promise.all(reads.map(judging.conclude));
    const [first] = works;
    if (first === undefined) return [];
    const written = works.length === 1 && hasLarge(first) ? await writeLarge(first) : await write(works);
    for (const one of written) if (one !== null) report(one);
    await staging.removeReplaced(written.flatMap((one) => one?.replaced ?? []));
    return written;
  };

  const report = ({ ingestion, ending }: Written): void => {
    for (const { reason, report_id, domain } of ending.findings) {
      if (reason !== "duplicate_differs") continue;
      log.warn("a report came again with other rows; the first is kept", {
        ingestion: ingestion.id,
        report_id,
        domain,
      });
    }
  };

  return {
    /**
     * Reads and writes down some items, and says of each in its order what became of it; null for one that did not wait
     * any more. Together they may unpack to `unpackedBytesMax`. Rejects when the database cannot be written: what was not written by then is as it was before.
     */
    async process(
      items: readonly IngestItem[],
      unpackedBytesMax = Number.POSITIVE_INFINITY,
    ): Promise<(Written | null)[]> {
      const written: (Written | null)[] = [];
      let reads: Read[] = [];
      let rows = 0;
      const allowance = { bytesLeft: unpackedBytesMax };
      let turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
      const flush = async (): Promise<void> => {
        const ready = reads;
        reads = [];
        rows = 0;
        written.push(...(await finish(ready)));
        turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
      };
      for (const item of items) {
        const work = await readItem(item, allowance);
        const more = rowsIn(work);
        const isAlone = hasLarge(work);
        if (isAlone || rows + more > pace.rows) await flush();
        reads.push(judging.begin(work));
        rows += more;
        if (isAlone || reads.length >= pace.works) await flush();
        if (clock.monotonicMs() < turnEndsMs) continue;
        await nextTurn();
        turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
      }
      await flush();
      return written;
    },
    /** Removes what a crash left half written. To be done before anything is read. */
    removeIncomplete: staging.removeIncomplete,
  };
};

const NOTHING_KNOWN: Pick<Work, "proof" | "staged"> = { proof: null, staged: new Map() };

const rowsIn = ({ readings }: Work): number =>
  readings.reduce((sum, { report }) => sum + (report === null ? 0 : weightIn(report)), 0);

const hasLarge = ({ readings }: Work): boolean => readings.some(({ report }) => report !== null && isLarge(report));

export type Ingest = ReturnType<typeof createIngest>;
