import { nextTurn } from "../../../foundation/base/clock.ts";
import { Gate } from "../../../foundation/base/wait.ts";
import { isDatabaseState } from "../../../foundation/base/errors.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { ReportReading, Report } from "../report/report.ts";
import { kindOfPayload, createUnpackBudget, UNPACK_LIMITS, type UnpackBudget } from "../report/unpack.ts";
import { readReportFile } from "../report/read-file.ts";
import { type IngestedItem, writeIngestions, ROWS_PER_COMMIT, RowsAhead, weightOfRows } from "./ingest-write.ts";
import type { IngestStores } from "./ingest-stores.ts";
import type { IngestionFailure } from "./ingestion-finding.ts";
import type { NewIngestion } from "./ingestion-store.ts";
import { hashRows } from "./report-twins.ts";
import { createEnrolledDomainFinder, type FindEnrolledDomain, isUnsolicitedMail } from "./report-trust.ts";
import { type ReadIngestion, type ReportAhead, RowsAheadGone } from "./store-report.ts";

/** A mail or file that is to be read and written. */
export interface IngestItem {
  readonly ingestion: NewIngestion;
  /** Whether the database does not have it yet. Otherwise it is written only while it is pending there. */
  readonly isNew: boolean;
  /** Whether the mail is skipped because it crashed the service repeatedly. */
  readonly isGivenUp?: boolean;
}

/** How much is written in one transaction: mails and files, and rows of reports. */
export interface IngestPace {
  readonly items: number;
  readonly rows: number;
}

/** A transaction that holds the event loop for some 20 ms. */
const SERVER_PACE: IngestPace = { items: 64, rows: ROWS_PER_COMMIT };
/** For a process that does nothing else: fewer flushes to disk, short enough for a server on the same database. */
export const IMPORT_PACE: IngestPace = { items: 256, rows: 3 * ROWS_PER_COMMIT };

/** What ingesting uses beside the runtime. */
export interface IngestDeps {
  readonly stores: IngestStores;
  /** Null where no mail is authenticated. */
  readonly authenticate: AuthenticateMail | null;
  readonly pace?: IngestPace;
  /** Replaced by tests. */
  readonly read?: typeof readReportFile;
}

/** How long the event loop is held before others have their turn. */
const TURN_MS_MAX = 15;
/** Unpacked bytes after which the garbage is collected: a decompression bomb leaves hundreds of megabytes behind. */
const COLLECT_AFTER_BYTES = 16 * 1024 * 1024;
/** How often a large report is written whose rows another process removes. */
const WRITES_MAX = 3;

/**
 * Reads mails and files and writes what is in them. Per item: unpack and parse, authenticate the mail, and write ingestion,
 * findings, reports, records and daily counts, many items in one transaction. An item that fails is `rejected` as
 * `internal_error` and does not affect the others.
 */
export class Ingest {
  readonly #pace: IngestPace;
  readonly #rowsAhead: RowsAhead;
  readonly #gate = new Gate(1);

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: IngestDeps,
  ) {
    this.#pace = deps.pace ?? SERVER_PACE;
    this.#rowsAhead = new RowsAhead(runtime, deps.stores);
  }

  /**
   * Returns what became of each item, in their order; null for one that is no longer pending. All items together may
   * unpack to `unpackedBytesMax`. Rejects when the database cannot be written: what was not written by then is unchanged.
   */
  async process(
    items: readonly IngestItem[],
    unpackedBytesMax = Number.POSITIVE_INFINITY,
  ): Promise<(IngestedItem | null)[]> {
    const { clock } = this.runtime;
    const ingested: (IngestedItem | null)[] = [];
    const allowance = { bytesLeft: unpackedBytesMax };
    let batch: Promise<ReadIngestion>[] = [];
    let rows = 0;
    let turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    let findDomain = createEnrolledDomainFinder(this.deps.stores.domains);
    const flush = async () => {
      const ready = await Promise.all(batch);
      batch = [];
      rows = 0;
      findDomain = createEnrolledDomainFinder(this.deps.stores.domains);
      ingested.push(...(await this.#writeIsolated(ready)));
      turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    };
    for (const item of items) {
      const parsed = await this.#unpackAndParse(item, allowance);
      const more = weightOfRows(parsed.readings);
      if (batch.length > 0 && rows + more > this.#pace.rows) await flush();
      const authenticated = this.#authenticate(parsed, findDomain);
      // The promise may reject before the flush awaits it.
      authenticated.catch(() => undefined);
      batch.push(authenticated);
      rows += more;
      if (rows >= this.#pace.rows || batch.length >= this.#pace.items) await flush();
      if (clock.monotonicMs() < turnEndsMs) continue;
      await nextTurn();
      turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    }
    if (batch.length > 0) await flush();
    return ingested;
  }

  /** Removes the reports that a crash left incomplete; returns how many. To be done before anything is read. */
  removeIncomplete(): Promise<number> {
    return this.#rowsAhead.removeAll();
  }

  async #unpackAndParse(item: IngestItem, allowance: { bytesLeft: number }): Promise<ReadIngestion> {
    if (item.isGivenUp) return failed(item, "gave_up");
    const { ingestion, isNew } = item;
    try {
      // One at a time: what an item unpacks to is in memory meanwhile.
      const readings = await this.#gate.run(() => this.#readWithin(ingestion, allowance));
      if (readings === null) return failed(item, "upload_too_large");
      const isMail = kindOfPayload(ingestion.bytes) === "message";
      const rowsHashes = await hashedRows(readings);
      return { ingestion, isNew, readings, rowsHashes, failure: null, isMail, authentication: null };
    } catch (error) {
      if (isDatabaseState(error)) throw error;
      return this.#fail(item, error);
    }
  }

  /** Null for an item that exceeds what is left of the budget of the batch: alone it can be read. */
  async #readWithin(
    { bytes, name }: NewIngestion,
    allowance: { bytesLeft: number },
  ): Promise<readonly ReportReading[] | null> {
    const budget: UnpackBudget = createUnpackBudget();
    const given = Math.min(budget.bytesLeft, allowance.bytesLeft);
    if (given <= 0) return null;
    budget.bytesLeft = given;
    const readings = await (this.deps.read ?? readReportFile)(bytes, name, budget);
    const used = given - budget.bytesLeft;
    allowance.bytesLeft -= used;
    if (used >= COLLECT_AFTER_BYTES) Bun.gc(false);
    const isOver = readings.some(({ reason }) => reason === "mail_too_large");
    return isOver && given < UNPACK_LIMITS.mailBytesMax ? null : readings;
  }

  /** Authenticates the mail of an item if it has a report for an enrolled domain. */
  async #authenticate(parsed: ReadIngestion, findDomain: FindEnrolledDomain): Promise<ReadIngestion> {
    const { ingestion } = parsed;
    const { authenticate } = this.deps;
    if (authenticate === null || !isUnsolicitedMail(ingestion) || ingestion.mode === "test") return parsed;
    const isWanted =
      policyDomains(parsed.readings).some((domain) => findDomain(ingestion, domain) !== undefined) ||
      failingDomains(parsed.readings).some((domain) => findDomain(ingestion, domain)?.storeFailureReports);
    if (!isWanted) return parsed;
    const { bytes, client, helo, mailFrom } = ingestion;
    const receivedAtMs = ingestion.deliveredAtMs ?? ingestion.receivedAtMs;
    try {
      return { ...parsed, authentication: await authenticate({ bytes, client, helo, mailFrom, receivedAtMs }) };
    } catch (error) {
      return this.#fail(parsed, error);
    }
  }

  /** Writes a batch; if that fails for another reason than the state of the database, each item separately. */
  async #writeIsolated(batch: readonly ReadIngestion[]): Promise<(IngestedItem | null)[]> {
    try {
      return await this.#write(batch);
    } catch (error) {
      if (isDatabaseState(error)) throw error;
      const [only] = batch;
      if (batch.length === 1 && only !== undefined) return this.#commit([this.#fail(only, error)], new Map());
      const ingested: (IngestedItem | null)[] = [];
      for (const one of batch) ingested.push(...(await this.#writeIsolated([one])));
      return ingested;
    }
  }

  /** Writes the rows of large reports ahead, then everything else in one transaction. */
  async #write(batch: readonly ReadIngestion[]): Promise<(IngestedItem | null)[]> {
    for (let tries = 1; ; tries += 1) {
      const ahead = new Map<Report, ReportAhead>();
      try {
        await this.#rowsAhead.write(batch, ahead);
        return await this.#commit(batch, ahead);
      } catch (error) {
        if (!(error instanceof RowsAheadGone) || tries >= WRITES_MAX) throw error;
      } finally {
        await this.#rowsAhead.remove([...ahead.values()].map(({ number }) => number));
      }
    }
  }

  async #commit(
    batch: readonly ReadIngestion[],
    ahead: ReadonlyMap<Report, ReportAhead>,
  ): Promise<(IngestedItem | null)[]> {
    const { db, clock, log } = this.runtime;
    const { stores } = this.deps;
    const { ingested, withdrawn } = await db.commit((tx) => {
      const written = writeIngestions(stores, { tx, nowMs: clock.nowMs(), batch, ahead });
      for (const { ingestion, result } of written.ingested.filter((one) => one !== null)) {
        const { mode, via } = ingestion;
        for (const { outcome, reason } of result.findings) db.note(tx, { kind: "report", mode, via, outcome, reason });
      }
      return written;
    });
    for (const { ingestion, result } of ingested.filter((one) => one !== null)) {
      for (const { reason, report_id, domain } of result.findings) {
        if (reason !== "duplicate_differs") continue;
        const fields = { ingestion: ingestion.id, report_id, domain };
        log.warn("a report was received again with different records; kept the first one", fields);
      }
    }
    await this.#rowsAhead.remove(withdrawn);
    return ingested;
  }

  #fail(item: Pick<IngestItem, "ingestion" | "isNew">, error: unknown): ReadIngestion {
    this.runtime.log.error("ingestion failed; its bytes are stored", { ingestion: item.ingestion.id, error });
    return failed(item, "internal_error");
  }
}

const failed = (
  { ingestion, isNew }: Pick<IngestItem, "ingestion" | "isNew">,
  failure: IngestionFailure,
): ReadIngestion => ({
  ingestion,
  isNew,
  readings: [],
  rowsHashes: new Map(),
  failure,
  isMail: false,
  authentication: null,
});

const hashedRows = async (readings: readonly ReportReading[]): Promise<ReadonlyMap<Report, string>> => {
  const hashes = new Map<Report, string>();
  for (const { report } of readings) if (report !== null) hashes.set(report, await hashRows(report));
  return hashes;
};

const failingDomains = (readings: readonly ReportReading[]) => [
  ...new Set(readings.flatMap(({ failureReport }) => failureReport?.reportedDomain ?? [])),
];

const policyDomains = (readings: readonly ReportReading[]) => [
  ...new Set(
    readings.flatMap(({ report, tlsReport }) => [
      ...(report === null ? [] : [report.policy.domain]),
      ...(tlsReport?.policies.flatMap(({ domain }) => domain ?? []) ?? []),
    ]),
  ),
];
