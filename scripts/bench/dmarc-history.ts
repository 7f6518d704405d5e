import { newId } from "../../src/foundation/base/secrets.ts";
import type { Db } from "../../src/foundation/db/open.ts";

/** A busy domain: the number of its reports, rows per report, days and sources. */
export const HISTORY = { reports: 100_000, rows: 10, days: 90, sources: 400 } as const;
const DAY_MS = 86_400_000;
/** Of the sources, those known by a signature, by the envelope's domain, and the addresses that are left. */
const SIGNED = 5;
const ENVELOPED = 25;

const RECORD_BODY = JSON.stringify({
  envelopeFrom: "bounce.example.net",
  envelopeTo: null,
  reasons: [],
  dkimResults: [{ domain: "example.net", selector: "s1", result: "pass", humanResult: null }],
  spfResults: [{ domain: "bounce.example.net", scope: "mfrom", result: "pass", humanResult: null }],
});
const REPORT_BODY = JSON.stringify({
  ...{ version: "1.0", extraContactInfo: null, generator: null, errors: [], notices: [], skippedRows: [] },
});
const POLICY = JSON.stringify({
  ...{ domain: "history-lab.com", p: "none", sp: null, np: null, adkim: "r", aspf: "r", pct: 100, fo: null },
  ...{ testing: null, discoveryMethod: null },
});

const keyOf = (n: number): string => {
  if (n <= SIGNED) return `${ipOf(n)} mail${n}.history-lab.com/s1 - -`;
  return n <= ENVELOPED ? `${ipOf(n)} -/- sender${n}.example -` : `${ipOf(n)} -/- - -`;
};
const ipOf = (n: number): string => `100.${64 + (n % 60)}.${n % 250}.${1 + (n % 200)}`;

/** Half of the reports' rows are of the signed sources. */
const sourceOf = (report: number, row: number): number =>
  row < HISTORY.rows / 2
    ? 1 + ((report + row) % SIGNED)
    : 1 + SIGNED + ((report * 7 + row * 31) % (HISTORY.sources - SIGNED));

/** The sums that the service keeps, out of the rows. */
const ROLLUPS = [
  `INSERT INTO dmarc_daily (domain, day, source, messages, aligned, aligned_dkim, aligned_spf, forwarded, authenticated, quarantined, rejected)
    SELECT domain, day, source, sum(count), sum(iif(is_aligned, count, 0)), sum(iif(dkim = 'pass', count, 0)), 0, 0,
      sum(iif(is_aligned, 0, count)), 0, 0 FROM dmarc_records WHERE domain = ?1 GROUP BY domain, day, source`,
  `INSERT INTO dmarc_daily_reporters (domain, day, reporter, reports, messages, aligned)
    SELECT domain, day, org, count(*), sum(messages), sum(aligned) FROM dmarc_reports WHERE domain = ?1 GROUP BY day, org`,
  `INSERT INTO dmarc_daily_names (domain, day, name, messages, aligned)
    SELECT domain, day, header_from, sum(count), sum(iif(is_aligned, count, 0)) FROM dmarc_records WHERE domain = ?1
      GROUP BY day, header_from`,
  `INSERT INTO dmarc_names (domain, name, first_day, first_seen_at_ms, is_reviewed)
    SELECT domain, name, min(day), 0, 1 FROM dmarc_daily_names WHERE domain = ?1 GROUP BY name`,
];

/** Writes the sources; the answer are their numbers, at the places 1 to `HISTORY.sources`. */
const fillSources = (
  { sqlite }: Db,
  domain: number,
  span: { firstDay: number; lastDay: number },
): readonly number[] => {
  const source = sqlite.prepare(
    "INSERT INTO dmarc_sources (domain, key, first_day, last_day, first_seen_at_ms, is_reviewed) VALUES (?, ?, ?, ?, 0, 1)",
  );
  return Array.from({ length: HISTORY.sources + 1 }, (_, n) => {
    if (n === 0) return 0;
    return Number(source.run(domain, keyOf(n), span.firstDay, span.lastDay).lastInsertRowid);
  });
};

const fillReports = ({ sqlite }: Db, domain: number, sources: readonly number[], lastDay: number): void => {
  const insertReport = sqlite.prepare(
    `INSERT INTO dmarc_reports (id, domain, ingestion, org, email, report_id, begin_ms, end_ms, day, received_at_ms, policy_domain,
      policy, body, rows, messages, aligned, sameness, content, authenticity, authenticity_body, is_complete)
      VALUES (?, ?, ?, ?, null, ?, ?, ?, ?, ?, 'history-lab.com', ?, ?, ?, ?, ?, ?, '', null, null, 1)`,
  );
  const insertRecord = sqlite.prepare(
    `INSERT INTO dmarc_records (report, position, domain, day, source, source_ip, count, disposition, dkim, spf, is_aligned,
      is_forwarded, header_from, rank, body) VALUES (?, ?, ?, ?, ?, ?, ?, 'none', ?, 'fail', ?, 0, 'history-lab.com', ?, ?)`,
  );
  for (let n = 0; n < HISTORY.reports; n++) {
    const day = lastDay - (n % HISTORY.days);
    const rows = Array.from({ length: HISTORY.rows }, (_, row) => {
      const source = sourceOf(n, row);
      return { source, count: 1 + ((n + row) % 20), isAligned: source <= SIGNED };
    });
    const messages = rows.reduce((sum, { count }) => sum + count, 0);
    const aligned = rows.reduce((sum, { count, isAligned }) => sum + (isAligned ? count : 0), 0);
    const [beginMs, org] = [day * DAY_MS, `reporter${n % 40}.example`];
    const { lastInsertRowid } = insertReport.run(
      ...[newId(), domain, newId(), org, `h${n}`, beginMs, beginMs + DAY_MS - 1, day, beginMs + DAY_MS, POLICY],
      ...[REPORT_BODY, HISTORY.rows, messages, aligned, `h${n}`],
    );
    for (const [position, { source, count, isAligned }] of rows.entries()) {
      insertRecord.run(
        ...[lastInsertRowid, position, domain, day, sources[source] ?? 0, ipOf(source), count],
        ...[isAligned ? "pass" : "fail", isAligned ? 1 : 0, (isAligned ? 0 : 20_000_000_000) + count, RECORD_BODY],
      );
    }
  }
};

/** Gives a domain its history, straight into the tables and their sums; the messages in it. */
export const fillHistory = (db: Db, domainId: string, lastDay: number): number => {
  const { sqlite } = db;
  const found = sqlite.query("SELECT number FROM dmarc_domains WHERE id = ?").get(domainId) as {
    number: number;
  } | null;
  if (found === null) throw new Error("the domain is not there");
  db.transact(() => {
    const sources = fillSources(db, found.number, { firstDay: lastDay - HISTORY.days + 1, lastDay });
    fillReports(db, found.number, sources, lastDay);
    for (const statement of ROLLUPS) sqlite.prepare(statement).run(found.number);
  });
  const sum = sqlite.query("SELECT sum(messages) AS n FROM dmarc_daily WHERE domain = ?").get(found.number);
  return (sum as { n: number }).n;
};
