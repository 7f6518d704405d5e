import { isoDay, type DayRange } from "../../../foundation/base/days.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { authenticitySchema, type ShownReport, type ShownReportDetail, type ShownTlsReport } from "./report-schemas.ts";
import type {
  ReportFacts,
  ReportFilters,
  ReportKey,
  ReportQueryStore,
  ReportRowStored,
  TlsReportRow,
} from "./report-query-store.ts";
import { stretchOf, type Walk, walk } from "../../../foundation/base/walk.ts";
import type { ShownRecord } from "./record-schemas.ts";
import { authenticatedOrganisation, reporterView } from "./reporter.ts";
import { suffixOf } from "../../reports/report/payload.ts";
import { parsePublishedPolicy, parseReportBody, parseTlsReportBody } from "../../reports/report/report-json.ts";

export interface ReportPage {
  readonly reports: readonly ShownReport[];
  readonly next: string | null;
}

/** Reports looked at in one step where filters apply: some milliseconds. */
const STEP = 20_000;
const CURSOR = /^(\d{1,6})\.(\d{1,15})$/;

export const isReportCursor = (text: string): boolean => CURSOR.test(text);

const readCursor = (text: string): ReportKey => {
  const [day = 0, number = 0] = text.split(".").map(Number);
  return { day, number };
};

interface ReportListOf {
  readonly domain: number;
  readonly range: DayRange;
  readonly filters: ReportFilters;
}

/** A page of reports: the newest day first; within a day the most recently received first. */
export const readReports = async (
  store: ReportQueryStore,
  list: ReportListOf,
  page: { readonly after: string | null; readonly limit: number },
): Promise<ReportPage> => {
  const range = daysToRead(store, list);
  if (range === undefined) return { reports: [], next: null };
  const start = { day: range.toDay + 1, number: -1 };
  const first = page.after === null ? start : readCursor(page.after);
  const { rows, next } = await walk<ReportRowStored, ReportKey>(
    { read: readingOf(store, { ...list, range }), keyOf, step: STEP, weigh: (row) => JSON.stringify(row).length },
    {
      before: first.day > range.toDay ? start : first,
      limit: page.limit,
    },
  );
  return { reports: rows.map(reportView), next: next === null ? null : `${next.day}.${next.number}` };
};

const keyOf = ({ day, number }: ReportKey): ReportKey => ({ day, number });

const isFiltered = (filters: ReportFilters): boolean => Object.values(filters).some((value) => value !== undefined);

const daysToRead = (store: ReportQueryStore, { domain, range, filters }: ReportListOf): DayRange | undefined =>
  isFiltered(filters) ? store.daysOf(domain, range, filters) : range;

/** Where few reports pass, only those that do are read whole. */
const readingOf = (
  store: ReportQueryStore,
  { domain, range: { fromDay }, filters }: ReportListOf,
): Walk<ReportRowStored, ReportKey>["read"] => {
  if (!isFiltered(filters)) {
    return (before, looks) =>
      stretchOf(store.reports(domain, fromDay, before, looks), looks, { keyOf, passes: () => true });
  }
  const scope = { domain, fromDay };
  return (before, looks, wanted) => {
    const end = store.keyAt(scope, before, filters, looks);
    const found = store.matching(scope, { before, end }, filters, wanted);
    const last = found.length === wanted ? found.at(-1) : undefined;
    const passing = found.filter((report) => passesFilters(report, filters));
    const rows = passing.flatMap(({ number }) => store.findByNumber(number) ?? []);
    return { rows, end: last === undefined ? (end ?? null) : keyOf(last) };
  };
};

const passesFilters = (report: ReportFacts, { reporter, authenticity, trusted }: ReportFilters): boolean =>
  (reporter === undefined || (report.org?.toLowerCase() ?? "") === reporter || report.author === reporter) &&
  (trusted === undefined || (report.author === "") === trusted) &&
  (authenticity === undefined || report.authenticity === authenticity);

const policyView = (text: string): ShownReport["policy"] => {
  const { discoveryMethod, ...policy } = parsePublishedPolicy(text);
  return { ...policy, discovery_method: discoveryMethod };
};

const storedAuthenticitySchema = authenticitySchema.omit({ result: true });
const NOT_CHECKED = { from: null, spf: null, dkim: [], dmarc: null, message: null };

const authenticityView = ({ authenticity: result, authenticityBody: body }: ReportRowStored) =>
  result === null
    ? null
    : { result, ...(body === null ? NOT_CHECKED : storedAuthenticitySchema.parse(JSON.parse(body))) };

/** A report without its records. */
export const reportView = (row: ReportRowStored): ShownReport => {
  const { notices, skippedRows } = parseReportBody(row.body);
  const authenticity = authenticityView(row);
  const authenticatedAs = authenticity?.result === "pass" ? authenticatedOrganisation(authenticity.from) : null;
  return {
    id: row.id,
    org_name: row.org,
    reporter: reporterView({ ...row, authenticatedAs }),
    email: row.email,
    report_id: row.reportId,
    begin: isoTime(row.beginMs),
    end: isoTime(row.endMs),
    date: isoDay(row.day),
    received_at: isoTime(row.receivedAtMs),
    policy_domain: row.policyDomain,
    policy: policyView(row.policy),
    rows: row.rows,
    messages: row.messages,
    aligned: row.aligned,
    authenticity,
    notices: [...notices],
    skipped_rows: [...skippedRows],
    ingestion_id: row.ingestion,
    raw_available: row.hasRaw === 1,
  };
};

/** A report with its records. */
export const reportDetailView = (
  row: ReportRowStored,
  records: readonly ShownRecord[],
): Omit<ShownReportDetail, "records_next_cursor"> => {
  const { version, generator, extraContactInfo, errors } = parseReportBody(row.body);
  return {
    ...reportView(row),
    version,
    generator,
    extra_contact_info: extraContactInfo,
    errors: [...errors],
    records: [...records],
  };
};

export const tlsReportView = (row: TlsReportRow): ShownTlsReport => {
  const { contact, policies } = parseTlsReportBody(row.body);
  return {
    id: row.id,
    org_name: row.org,
    report_id: row.reportId,
    contact,
    begin: row.beginMs === null ? null : isoTime(row.beginMs),
    end: row.endMs === null ? null : isoTime(row.endMs),
    received_at: isoTime(row.receivedAtMs),
    successful_sessions: row.successfulSessions,
    failed_sessions: row.failedSessions,
    policies: policies.map(({ domain, policyType, successfulSessions, failedSessions, failures }) => ({
      domain,
      policy_type: policyType,
      successful_sessions: successfulSessions,
      failed_sessions: failedSessions,
      failures: failures.map(({ resultType, sessions, mxHost = null }) => ({
        ...{ result_type: resultType, sessions },
        receiving_mx_hostname: mxHost,
      })),
    })),
    ingestion_id: row.ingestion,
  };
};

/** The file name of a download: the original name in plain characters. */
export const rawFileName = (
  { name, bytes }: { readonly name: string | null; readonly bytes: Uint8Array },
  id: string,
): string => {
  const plain = name?.replace(/[^\w.!@+-]+/g, "_").slice(-100) ?? "";
  return /[A-Za-z0-9]/.test(plain) ? plain : `${id}${suffixOf(bytes)}`;
};
