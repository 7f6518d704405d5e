import { afterEach } from "bun:test";
import { createLog } from "../foundation/base/log.ts";
import type { KeyMode } from "../foundation/base/secrets.ts";
import { madeDomain } from "./dmarc-domain.ts";
import { type Db, openDb } from "../foundation/db/open.ts";
import type { AuthenticateMail } from "../dmarc/reports/authentication/mail-authentication.ts";
import { type DomainRow, DomainStore } from "../dmarc/records/domains/domain-store.ts";
import { Ingest } from "../dmarc/reports/ingest/ingest.ts";
import { openIngestStores } from "../dmarc/reports/ingest/ingest-stores.ts";
import { parseFindings } from "../dmarc/reports/ingest/ingestion-finding.ts";
import { type IngestionRow, type IncomingReport, ReportQueue } from "../dmarc/reports/ingest/ingestion-store.ts";
import { type FileReader, readingHere } from "../dmarc/reports/report/file-reader.ts";
import { IngestionWorker } from "../dmarc/reports/ingest/ingestion-worker.ts";
import { Ingestions } from "../dmarc/reports/ingest/ingestions.ts";
import { AUTHOR } from "../dmarc/reports/ingest/report-store.ts";
import { createTestClock, type TestClock } from "./clock.ts";

export interface IngestHarnessOptions {
  /** A file, so that the database can be opened again; default: in memory. */
  readonly path?: string;
  readonly clock?: TestClock;
  readonly authenticate?: AuthenticateMail | null;
  /** Reads in this thread. */
  readonly read?: Parameters<typeof readingHere>[0];
  readonly reader?: FileReader;
  readonly isDiskLow?: () => boolean;
  /** Wraps the database. */
  readonly around?: (db: Db) => Db;
}

export const INGEST_OWNER = { accountId: "account", mode: "live" as KeyMode };

/** The daily counts, in a fixed order. */
const ROLLUPS = [
  "SELECT * FROM dmarc_daily ORDER BY 1, 2, 3, is_trusted",
  // Reports have no column for the author of trusted ones.
  `SELECT domain, day, reporter, CASE is_trusted WHEN 0 THEN author ELSE '' END AS author, sum(reports) AS reports, sum(messages) AS messages,
    sum(aligned) AS aligned, is_trusted FROM dmarc_daily_reporters GROUP BY 1, 2, 3, is_trusted, 4 ORDER BY 1, 2, 3, is_trusted, 4`,
  "SELECT * FROM dmarc_daily_names ORDER BY 1, 2, 3, is_trusted",
] as const;

/** Enrols a domain, by default for `INGEST_OWNER`. */
export const insertDomain = (db: Db, domain: string, change: Partial<DomainRow> = {}): DomainRow =>
  db.transact((tx) => new DomainStore(db).insert(tx, madeDomain({ ...INGEST_OWNER, domain, ...change })));

/** A report as it arrives, by default uploaded by `INGEST_OWNER`. */
const incomingReport = (bytes: Uint8Array | string, change: Partial<IncomingReport> = {}): IncomingReport => ({
  ...INGEST_OWNER,
  ...{ domain: null, via: "http", name: null, client: null, helo: null, mailFrom: null },
  bytes: typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes,
  ...change,
});

/** Ingestion on an open database. */
const composeIngestion = (db: Db, options: IngestHarnessOptions) => {
  const { clock = createTestClock(), authenticate = null, read } = options;
  const reader = options.reader ?? readingHere(read);
  const logged: string[] = [];
  const log = createLog("warn", clock, (line) => logged.push(line));
  const stores = openIngestStores(db);
  const { ingestions: store, domains } = stores;
  const runtime = { db, clock, log };
  const ingest = new Ingest(runtime, { stores, authenticate, reader });
  const reserve = { isLow: () => options.isDiskLow?.() === true };
  const ingester = new IngestionWorker(runtime, { store, ingest, reserve });
  const wake = () => ingester.wake();
  const queue = new ReportQueue(runtime, { store, domains, wake });
  const ingestions = new Ingestions(runtime, { store, ingest, wake });
  return { db, clock, logged, store, stores, domains, ingest, ingester, queue, ingestions };
};

const WEEKLY =
  "domain, source, is_trusted, week, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated";
const FROM_DAYS = `SELECT domain, source, is_trusted, day / 7 week, sum(messages), sum(aligned), sum(aligned_dkim), sum(aligned_spf),
  sum(forwarded), sum(authenticated), sum(quarantined), sum(rejected) FROM dmarc_daily GROUP BY 1, 2, 3, 4 HAVING sum(messages) > 0`;
const FROM_WEEKS = `SELECT ${WEEKLY}, quarantined, rejected FROM dmarc_weekly WHERE messages > 0`;

/** Throws where the sums of a week are not those of its days, whatever was done to them. */
const requireWeeklySums = ({ sqlite }: Db): void => {
  for (const [one, other] of [
    [FROM_DAYS, FROM_WEEKS],
    [FROM_WEEKS, FROM_DAYS],
  ]) {
    const wrong = sqlite.query(`SELECT * FROM (${one}) EXCEPT SELECT * FROM (${other})`).all();
    if (wrong.length > 0) throw new Error(`the sums of weeks are not those of their days: ${JSON.stringify(wrong)}`);
  }
};

/** Ingestion with its database, for the tests of one file. */
export const createIngestHarness = () => {
  const opened: Db[] = [];
  afterEach(() => {
    for (const db of opened.splice(0)) {
      requireWeeklySums(db);
      db.close();
    }
  });

  return (options: IngestHarnessOptions = {}) => {
    const { path = ":memory:", around = (db) => db } = options;
    const result = openDb(path);
    if (!result.ok) throw new Error(result.error.kind);
    opened.push(result.value);
    // Nothing here survives a power cut, and waiting for the disk takes most of the time on a busy machine.
    result.value.sqlite.run("PRAGMA synchronous = OFF");
    const parts = composeIngestion(around(result.value), options);
    const { db, store, ingestions } = parts;
    const all = <R = Record<string, unknown>>(sql: string): R[] => db.sqlite.query<R, []>(sql).all();

    return {
      ...parts,
      incoming: incomingReport,
      all,
      /** How many rows a table has. */
      count: (table: string): number => all<{ n: number }>(`SELECT count(*) AS n FROM ${table}`)[0]?.n ?? 0,
      enrol: (domain: string, change: Partial<DomainRow> = {}): DomainRow => insertDomain(db, domain, change),
      /** Uploads one file; returns its ingestion and findings. */
      async upload(bytes: Uint8Array | string, change: Partial<IncomingReport> = {}) {
        const [row] = await ingestions.ingestFiles([incomingReport(bytes, change)]);
        if (row === undefined) throw new Error("no ingestion");
        return { row, findings: parseFindings(row) };
      },
      find(id: string): IngestionRow {
        const row = store.find(INGEST_OWNER, id);
        if (row === undefined) throw new Error(`no ingestion ${id}`);
        return row;
      },
      /** The daily counts as stored. */
      rollups: () => ROLLUPS.map((sql) => all(sql)),
      /** The daily counts as computed from the records. */
      recount: () => RECOUNTS.map((sql) => all(sql)),
    };
  };
};

/** Sample reports always state the aligned results, so that the columns of the records suffice. */
const TRUST = "CASE WHEN instr(sameness, ' ') > 0 THEN 0 ELSE voucher END";
const RECOUNTS = [
  `SELECT c.domain, c.day, source, sum(count) AS messages, sum(count * is_aligned) AS aligned, sum(count * (dkim IS 'pass')) AS aligned_dkim,
    sum(count * (spf IS 'pass')) AS aligned_spf, sum(count * is_forwarded) AS forwarded,
    sum(count * (NOT is_aligned AND c.body LIKE '%"result":"pass"%')) AS authenticated, sum(count * (disposition IS 'quarantine')) AS quarantined,
    sum(count * (disposition IS 'reject')) AS rejected, ${TRUST} AS is_trusted FROM dmarc_records c JOIN dmarc_reports r ON r.number = c.report
    GROUP BY 1, 2, 3, is_trusted ORDER BY 1, 2, 3, is_trusted`,
  `SELECT domain, day, lower(coalesce(org, '')) AS reporter, author, count(*) AS reports, sum(messages) AS messages, sum(aligned) AS aligned, is_trusted
    FROM (SELECT r.domain, r.day, r.org, ${AUTHOR} AS author, ${TRUST} AS is_trusted, (SELECT sum(count) FROM dmarc_records WHERE report = r.number) AS messages,
      (SELECT sum(count * is_aligned) FROM dmarc_records WHERE report = r.number) AS aligned FROM dmarc_reports r WHERE r.is_complete = 1)
    GROUP BY 1, 2, 3, is_trusted, author ORDER BY 1, 2, 3, is_trusted, author`,
  `SELECT r.domain, r.day, CASE WHEN r.header_from = d.domain OR r.header_from LIKE '%.' || d.domain THEN r.header_from ELSE '' END AS name,
    sum(r.count) AS messages, sum(r.count * r.is_aligned) AS aligned, ${TRUST} AS is_trusted FROM dmarc_records r
    JOIN dmarc_domains d ON d.number = r.domain JOIN dmarc_reports p ON p.number = r.report
    GROUP BY 1, 2, 3, is_trusted ORDER BY 1, 2, 3, is_trusted`,
] as const;

export type IngestHarness = ReturnType<ReturnType<typeof createIngestHarness>>;
