import { nextTurn } from "../../../foundation/base/clock.ts";
import { isDatabaseState } from "../../../foundation/base/errors.ts";
import type { DbClockLog } from "../../../foundation/db/runtime.ts";
import type { AuthenticateMail } from "../authentication/mail-authentication.ts";
import type { ReportReading, Report } from "../report/report.ts";
import { kindOfPayload } from "../report/unpack.ts";
import {
  type FileReader,
  type FileToRead,
  readingHere,
  type ReadOutcome,
  type UnpackAllowance,
} from "../report/file-reader.ts";
import { type IngestedItem, writeIngestions, ROWS_PER_COMMIT, RowsAhead, weightOfRows } from "./ingest-write.ts";
import type { IngestStores } from "./ingest-stores.ts";
import type { IngestionFailure } from "./ingestion-finding.ts";
import type { NewIngestion } from "./ingestion-store.ts";
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

/** Mails and files written in one transaction: as many as another thread reads meanwhile. */
const ITEMS_PER_COMMIT = 32;

/** What ingesting uses beside the runtime. */
export interface IngestDeps {
  readonly stores: IngestStores;
  /** Null where no mail is authenticated. */
  readonly authenticate: AuthenticateMail | null;
  /** By default files are read in this thread. */
  readonly reader?: FileReader;
}

/** How long the event loop is held before others have their turn. */
const TURN_MS_MAX = 15;
/** How often a large report is written whose rows another process removes. */
const WRITES_MAX = 3;

/**
 * Reads mails and files and writes what is in them. Per item: unpack and parse, authenticate the mail, and write ingestion,
 * findings, reports, records and daily counts, many items in one transaction. An item that fails is `rejected` as
 * `internal_error` and does not affect the others.
 */
export class Ingest {
  readonly #rowsAhead: RowsAhead;
  readonly #reader: FileReader;

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: IngestDeps,
  ) {
    this.#reader = deps.reader ?? readingHere();
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
    let batch: Promise<ReadIngestion>[] = [];
    let rows = 0;
    let turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    let findDomain = createEnrolledDomainFinder(this.deps.stores.domains);
    const flush = async () => {
      const ready = await Promise.all(batch);
      batch = [];
      rows = 0;
      findDomain = createEnrolledDomainFinder(this.deps.stores.domains);
      const added = ready.flatMap(({ ingestion, isNew }) => (isNew ? ingestion : []));
      ingested.push(...(await this.deps.stores.ingestions.raw.adding(added, () => this.#writeIsolated(ready))));
      turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    };
    for await (const parsed of this.#unpackAndParse(items, { bytesLeft: unpackedBytesMax })) {
      const more = weightOfRows(parsed.readings);
      if (batch.length > 0 && rows + more > ROWS_PER_COMMIT) await flush();
      const authenticated = this.#authenticate(parsed, findDomain);
      // The promise may reject before the flush awaits it.
      authenticated.catch(() => undefined);
      batch.push(authenticated);
      rows += more;
      if (rows >= ROWS_PER_COMMIT || batch.length >= ITEMS_PER_COMMIT) await flush();
      if (clock.monotonicMs() < turnEndsMs) continue;
      await nextTurn();
      turnEndsMs = clock.monotonicMs() + TURN_MS_MAX;
    }
    if (batch.length > 0) await flush();
    return ingested;
  }

  /** Removes the mails and reports that a crash left incomplete; returns how many reports. To be done before anything is read. */
  async removeIncomplete(): Promise<number> {
    await this.deps.stores.ingestions.raw.removeStray({ unfinished: true });
    return this.#rowsAhead.removeAll();
  }

  /** Unpacks and parses the items, in their order. */
  async *#unpackAndParse(
    items: readonly IngestItem[],
    allowance: UnpackAllowance,
  ): AsyncGenerator<ReadIngestion, void> {
    const outcomes = this.#read(
      items.flatMap(({ isGivenUp, ingestion }) => (isGivenUp ? [] : ingestion)),
      allowance,
    );
    for (const item of items)
      yield item.isGivenUp ? failed(item, "gave_up") : this.#parsed(item, await outcomes.next());
  }

  async *#read(files: readonly FileToRead[], allowance: UnpackAllowance): AsyncGenerator<ReadOutcome, never> {
    let ahead: ReturnType<FileReader["read"]> | null = null;
    for (let at = 0; at < files.length;) {
      const read = await (ahead ?? this.#reader.read(files.slice(at), allowance));
      at += read.length;
      // Another thread reads the next ones while these are written.
      const isAhead = this.#reader.isBeside && at < files.length;
      ahead = isAhead ? this.#reader.read(files.slice(at), allowance) : null;
      yield* read;
    }
    throw new Error("there are no more files");
  }

  #parsed(item: IngestItem, { value: outcome }: { readonly value: ReadOutcome }): ReadIngestion {
    if (!outcome.ok) {
      const { reason, error } = outcome.error;
      return reason === "internal_error" ? this.#fail(item, error) : failed(item, reason);
    }
    const { ingestion, isNew } = item;
    const isMail = kindOfPayload(ingestion.bytes) === "message";
    return { ingestion, isNew, ...outcome.value, failure: null, isMail, authentication: null };
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
