/** What must be true of the database after a stream of report mails, however often the binary was killed. */
import type { Database } from "bun:sqlite";
import { messagesOf, orgOf, ROWS } from "../bench/dmarc-mails.ts";
import { brokenIn, type Claim, count, one, openDatabase } from "./claims.ts";

const COUNTS = [
  "messages",
  "aligned",
  "aligned_dkim",
  "aligned_spf",
  "forwarded",
  "authenticated",
  "quarantined",
  "rejected",
];

/** Sums over the rows, named like the columns of a rollup. Authentication is not computed here. */
const RECOUNT = `sum(count) AS messages, sum(iif(is_aligned, count, 0)) AS aligned,
  sum(iif(dkim = 'pass', count, 0)) AS aligned_dkim, sum(iif(spf = 'pass', count, 0)) AS aligned_spf,
  sum(iif(is_forwarded AND NOT is_aligned, count, 0)) AS forwarded,
  sum(iif(disposition = 'quarantine', count, 0)) AS quarantined, sum(iif(disposition = 'reject', count, 0)) AS rejected`;
const RECOUNTED = COUNTS.filter((name) => name !== "authenticated");

/** Reports that were uploaded and those that came by mail are counted in lines of their own, which are added here. Lines of the rollup that differ from the rows they are the sum of, and lines that one of both lacks. */
const wrongDays = (db: Database): number => {
  const columns = ["domain", "day", "source", ...RECOUNTED.map((name) => `sum(${name})`)].join(", ");
  const stored = `SELECT ${columns} FROM dmarc_daily GROUP BY domain, day, source`;
  const recounted = `SELECT domain, day, source, ${RECOUNT} FROM dmarc_records GROUP BY domain, day, source`;
  return count(db, `(${stored} EXCEPT ${recounted})`) + count(db, `(${recounted} EXCEPT ${stored})`);
};

/** Weeks of a source that are not the sum of their days, and those that one of both lacks. */
const wrongWeeks = (db: Database): number => {
  const key = "domain, source, is_trusted";
  const stored = `SELECT ${key}, week, ${COUNTS.join(", ")} FROM dmarc_weekly`;
  const recounted = `SELECT ${key}, day / 7 AS week, ${COUNTS.map((name) => `sum(${name})`).join(", ")} FROM dmarc_daily
    GROUP BY ${key}, day / 7`;
  return count(db, `(${stored} EXCEPT ${recounted})`) + count(db, `(${recounted} EXCEPT ${stored})`);
};

const wrongReporters = (db: Database): number => {
  const stored =
    "SELECT day, reporter, sum(reports), sum(messages), sum(aligned) FROM dmarc_daily_reporters GROUP BY day, reporter";
  const recounted =
    "SELECT day, lower(org), count(*), sum(messages), sum(aligned) FROM dmarc_reports GROUP BY day, lower(org)";
  return count(db, `(${stored} EXCEPT ${recounted})`) + count(db, `(${recounted} EXCEPT ${stored})`);
};

const wrongNames = (db: Database): number => {
  const stored = "SELECT day, name, sum(messages), sum(aligned) FROM dmarc_daily_names GROUP BY day, name";
  const recounted =
    "SELECT day, header_from, sum(count), sum(iif(is_aligned, count, 0)) FROM dmarc_records GROUP BY day, header_from";
  return count(db, `(${stored} EXCEPT ${recounted})`) + count(db, `(${recounted} EXCEPT ${stored})`);
};

/** Numbers of the mails that lie in the database as they came. */
const keptMails = (db: Database): ReadonlySet<number> => {
  const kept = new Set<number>();
  for (const { bytes } of db.query("SELECT bytes FROM dmarc_raw").iterate() as Iterable<{ bytes: Uint8Array }>) {
    const number = /^Message-ID: <r(\d+)@/m.exec(Buffer.from(bytes).toString("latin1"))?.[1];
    if (number !== undefined) kept.add(Number(number));
  }
  return kept;
};

interface Stored {
  readonly reportId: string;
  readonly org: string;
  readonly rows: number;
  readonly messages: number;
  readonly recordRows: number;
  readonly recordMessages: number;
}

const isWrong = ({ reportId, org, rows, messages, recordRows, recordMessages }: Stored): boolean => {
  const n = Number(reportId.slice(1));
  const expected = messagesOf(n);
  return (
    org !== orgOf(n) || rows !== ROWS || recordRows !== ROWS || messages !== expected || recordMessages !== expected
  );
};

/** Everything there is to claim about a database into which mails number 0 to `sent - 1` went. */
export const claimsOf = (folder: string, sent: number, acknowledged: ReadonlySet<number>): readonly Claim[] => {
  const db = openDatabase(folder);
  try {
    const reports = db
      .query(
        `SELECT report_id AS reportId, org, rows, messages,
          (SELECT count(*) FROM dmarc_records WHERE report = number) AS recordRows,
          (SELECT coalesce(sum(count), 0) FROM dmarc_records WHERE report = number) AS recordMessages FROM dmarc_reports`,
      )
      .all() as Stored[];
    const numbers = new Set(reports.map(({ reportId }) => Number(reportId.slice(1))));
    const kept = keptMails(db);
    const missing = (there: ReadonlySet<number>) => [...acknowledged].filter((n) => !there.has(n)).length;
    const total = Array.from({ length: sent }, (_, n) => messagesOf(n)).reduce((sum, n) => sum + n, 0);
    const sum = (table: string) => one<{ n: number }>(db, `SELECT coalesce(sum(messages), 0) AS n FROM ${table}`).n;
    return [
      ["mails that were not accepted with 250", sent - acknowledged.size],
      ["accepted mails that are not stored as received", missing(kept)],
      ["accepted mails whose report is missing", missing(numbers)],
      ["reports that are stored more than once", reports.length - numbers.size],
      ["reports that were not sent", [...numbers].filter((n) => !(n >= 0 && n < sent)).length],
      ["reports that are not complete", count(db, "dmarc_reports WHERE is_complete = 0")],
      ["reports whose rows or messages differ from those sent", reports.filter(isWrong).length],
      ["rows without a report", count(db, "dmarc_records WHERE report NOT IN (SELECT number FROM dmarc_reports)")],
      ["ingestions still pending", count(db, "dmarc_ingestions WHERE status <> 'done'")],
      [
        "ingestions neither stored nor duplicate",
        count(db, "dmarc_ingestions WHERE outcome NOT IN ('stored', 'duplicate')"),
      ],
      [
        "difference between reports and ingestions that stored one",
        Math.abs(reports.length - count(db, "dmarc_ingestions WHERE outcome = 'stored'")),
      ],
      [
        "reports without the ingestion that brought them",
        count(db, "dmarc_reports WHERE ingestion NOT IN (SELECT id FROM dmarc_ingestions)"),
      ],
      [
        "ingestions without their bytes",
        count(db, "dmarc_ingestions WHERE id NOT IN (SELECT ingestion FROM dmarc_raw)"),
      ],
      [
        "raw mails without an ingestion",
        count(db, "dmarc_raw WHERE ingestion NOT IN (SELECT id FROM dmarc_ingestions)"),
      ],
      ["difference between messages sent and daily totals", Math.abs(total - sum("dmarc_daily"))],
      ["difference between messages sent and totals by reporter", Math.abs(total - sum("dmarc_daily_reporters"))],
      ["difference between messages sent and totals by name", Math.abs(total - sum("dmarc_daily_names"))],
      ["days of a source that are not the sum of their rows", wrongDays(db)],
      ["weeks of a source that are not the sum of their days", wrongWeeks(db)],
      ["days of a reporter that are not the sum of its reports", wrongReporters(db)],
      ["days of a name that are not the sum of their rows", wrongNames(db)],
      brokenIn(db),
    ];
  } finally {
    db.close();
  }
};
