import { mostFirst, sumOf } from "../../../foundation/base/sums.ts";
import { dayOfTlsReport, knownTlsFailures, sumTlsSessions } from "../../reports/report/tls-report.ts";
import { parseTlsReportBody, type TlsReportBody } from "../../reports/report/report.ts";
import {
  rawFileName,
  readReports,
  reportDetailView,
  type ReportPage,
  type ShownReport,
  type ShownReportDetail,
} from "./reports.ts";
import type { ReportFilters, TlsReportRow } from "./report-query-store.ts";
import { exportRecords, readRecords } from "./records.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { exportFileName, rangeOf, type QueryContext } from "./domain-query.ts";
import type { DayRange } from "../../../foundation/base/days.ts";
import type { Caller } from "../../../foundation/http/guard.ts";
import type { ForeignFile } from "../../../foundation/http/response.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { FailureReportRow, FailureReportStore } from "../../reports/ingest/report-store.ts";
import { flagField, nullableText, textField, timeField } from "../../../foundation/http/schema-fields.ts";
import { snakeKeys } from "../../../foundation/base/key-case.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { z } from "zod";

/** Which reports to list. Days are UTC days since 1970. */
export interface ReportListQuery extends ReportFilters {
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** What reports are read from. */
type ReportContext = Pick<QueryContext, "clock" | "rollups" | "records" | "reports" | "findDomain">;

/** A report with a page of its records; `next` continues it. */
export interface ReportWithRecords {
  readonly report: Omit<ShownReportDetail, "records_next_cursor">;
  readonly next: string | null;
}

interface PageOf {
  readonly after: string | null;
  readonly limit: number;
}

const EXPORTED_AT_ONCE = 500;

/** The columns of the CSV export of reports. */
export const REPORT_COLUMNS = [
  "id",
  "date",
  "begin",
  "end",
  "received_at",
  "reporter",
  "claimed_name",
  "trusted",
  "authentication",
  "report_id",
  "policy_domain",
  "rows",
  "messages",
  "aligned",
] as const;

/** Reads the aggregate and TLS reports of the caller's domains. Everything throws `not_found` for a domain of another account. */
export class ReportReader {
  constructor(private readonly deps: ReportContext) {}

  /** The newest day first; `next` is not encoded. */
  async list(caller: Caller, id: string, query: ReportListQuery, page: PageOf): Promise<ReportPage> {
    const domain = this.deps.findDomain(caller, id).number;
    const { from, to, ...filters } = query;
    return readReports(this.deps.reports, { domain, range: this.range({ from, to }), filters }, page);
  }

  /** The days of a query; by default the last 30. Throws `Invalid query`. */
  range(days: Pick<ReportListQuery, "from" | "to">): DayRange {
    return rangeOf(days, this.deps.clock.nowMs());
  }

  /** All reports of a query as rows of CSV. */
  async *rows(caller: Caller, id: string, query: ReportListQuery): AsyncGenerator<Cell[][], void> {
    for (let after: string | null = null; ;) {
      const { reports, next } = await this.list(caller, id, query, { after, limit: EXPORTED_AT_ONCE });
      yield reports.map(cellsOf);
      if (next === null) return;
      after = next;
    }
  }

  /** A report with a page of its records, failing ones first; `next` is not encoded. Throws `not_found`. */
  async detail(caller: Caller, id: string, reportId: string, page: PageOf): Promise<ReportWithRecords> {
    const { rollups, records, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const report = this.#find(domain.number, reportId);
    const range = { fromDay: report.day, toDay: report.day };
    const names = await DomainSources.read(rollups, domain, (all) => all.names(range));
    const query = { scope: { report: report.number }, range, filters: {}, names };
    const read = await readRecords(records, query, page);
    return { report: reportDetailView(report, read.records), next: read.next };
  }

  /** All records of a report as rows of CSV, with a name for the file. Throws `not_found`. */
  async recordRows(caller: Caller, id: string, reportId: string) {
    const { rollups, records, findDomain } = this.deps;
    const domain = findDomain(caller, id);
    const { number, day } = this.#find(domain.number, reportId);
    const range = { fromDay: day, toDay: day };
    const names = await DomainSources.read(rollups, domain, (all) => all.names(range));
    const query = { scope: { report: number }, range, filters: {}, names };
    return { fileName: exportFileName("report", domain, range, "csv"), batches: exportRecords(records, query, null) };
  }

  /** The mail or file that brought a report, and a name for the file. Throws `not_found`, also when it is no longer stored. */
  async raw(caller: Caller, id: string, reportId: string): Promise<ForeignFile> {
    const { reports, findDomain } = this.deps;
    const { ingestion } = this.#find(findDomain(caller, id).number, reportId);
    const raw = await reports.findRaw(ingestion);
    if (raw !== undefined) return { bytes: raw.bytes, fileName: rawFileName(raw, ingestion) };
    throw new AppError("not_found", {
      message: "The mail or file that brought the report is no longer stored (raw_retention_days).",
    });
  }

  /** TLS reports of a range of days, or all of them, the most recently received first. */
  tlsReports(
    caller: Caller,
    id: string,
    days: Pick<ReportListQuery, "from" | "to">,
  ): (page: { before: string | null; limit: number }) => TlsReportRow[] {
    const { reports, findDomain } = this.deps;
    const domain = findDomain(caller, id).number;
    const range = days.from === undefined && days.to === undefined ? null : this.range(days);
    return ({ before, limit }) => reports.tlsReports(domain, before, limit, range);
  }

  /** Sums of the last days by day, policy, failure and host, of the newest TLS reports. */
  tlsSummary(caller: Caller, id: string, days: Pick<ReportListQuery, "from" | "to">): TlsSummary {
    const { reports, findDomain } = this.deps;
    const domain = findDomain(caller, id).number;
    return sumTlsReports(reports.tlsReports(domain, null, TLS_REPORTS_SUMMED_MAX, null), this.range(days));
  }

  #find(domain: number, id: string) {
    const report = this.deps.reports.find(domain, id);
    if (report !== undefined) return report;
    throw new AppError("not_found", { message: "There is no such report of this domain." });
  }
}

const cellsOf = (report: ShownReport) => {
  const { reporter, authenticity } = report;
  const flat: Record<(typeof REPORT_COLUMNS)[number], Cell> = {
    ...report,
    reporter: reporter.name,
    claimed_name: reporter.claimed_name,
    trusted: reporter.trusted,
    authentication: authenticity?.result ?? null,
  };
  return REPORT_COLUMNS.map((column) => flat[column]);
};

/** TLS sessions of mail to a domain. */
interface TlsSessions {
  readonly successful: number;
  readonly failed: number;
}

/** Failed sessions of one kind; `key` is a result type of RFC 8460, an MX host or the name of a reporter. */
interface TlsFailureCount {
  readonly key: string;
  readonly failed: number;
}

/** The TLS reports of some days, summed up. */
export interface TlsSummary extends TlsSessions {
  readonly reports: number;
  /** Days with reports, in order. A day without one is absent: that is not a day without sessions. */
  readonly days: ReadonlyArray<TlsSessions & { readonly day: number }>;
  /** `sts`, `tlsa`, `no-policy-found`, or what the reporter wrote; empty when it did not say. The most sessions first. */
  readonly policies: ReadonlyArray<TlsSessions & { readonly policyType: string }>;
  /** Failures by result type; those without details are `unspecified`. The most failed sessions first. */
  readonly failures: readonly TlsFailureCount[];
  /** Failures by receiving MX host, where the report names one. The most failed sessions first. */
  readonly hosts: ReadonlyArray<TlsFailureCount & { readonly resultTypes: readonly string[] }>;
  /** Whether there may be older reports of these days that are not counted. */
  readonly isCut: boolean;
}

/** Reports that one summary reads, the newest. */
export const TLS_REPORTS_SUMMED_MAX = 1_000;
/** Hosts and policies listed. */
const LISTED_MAX = 20;

type Policy = TlsReportBody["policies"][number];

interface DayPolicy {
  readonly day: number;
  readonly policy: Policy;
}

/** Sums up TLS reports by the day that most of a report is about, by policy, failure and host. Pure. */
export const sumTlsReports = (rows: readonly TlsReportRow[], { fromDay, toDay }: DayRange): TlsSummary => {
  const inRange = rows.filter((row) => dayOfTlsReport(row) >= fromDay && dayOfTlsReport(row) <= toDay);
  const all = inRange.flatMap((row) =>
    parseTlsReportBody(row.body).policies.map((policy) => ({ day: dayOfTlsReport(row), policy })),
  );
  const failures = all.flatMap(({ policy }) => knownTlsFailures(policy));
  const byDay = Map.groupBy(all, ({ day }) => day);
  const byPolicy = Map.groupBy(all, ({ policy }) => policy.policyType ?? "");
  const byHost = Map.groupBy(failures, ({ mxHost }) => mxHost ?? "");
  // Reports stored by older versions, and some reporters, name no host.
  byHost.delete("");
  return {
    ...sessionsOf(all),
    reports: inRange.length,
    days: [...byDay].map(([day, of]) => ({ day, ...sessionsOf(of) })).toSorted((a, b) => a.day - b.day),
    policies: [...byPolicy]
      .map(([policyType, of]) => ({ policyType, ...sessionsOf(of) }))
      .toSorted((a, b) => b.successful + b.failed - a.successful - a.failed)
      .slice(0, LISTED_MAX),
    failures: countsOf(Map.groupBy(failures, ({ resultType }) => resultType)),
    hosts: countsOf(byHost).map((count) => ({
      ...count,
      resultTypes: [...new Set(byHost.get(count.key)?.map(({ resultType }) => resultType))],
    })),
    isCut: rows.length >= TLS_REPORTS_SUMMED_MAX,
  };
};

const sessionsOf = (all: readonly DayPolicy[]) => sumTlsSessions(all.map(({ policy }) => policy));

const countsOf = (groups: ReadonlyMap<string, Policy["failures"]>) =>
  [...groups]
    .map(([key, of]) => ({ key, failed: sumOf(of, "sessions") }))
    .filter(({ failed }) => failed > 0)
    .toSorted(mostFirst("failed"))
    .slice(0, LISTED_MAX);

export const failureReportSchema = z
  .object({
    id: z.uuid().describe("The id of the failure report."),
    received_at: timeField("When the report was received."),
    redacted: flagField(
      "Whether local parts, names, the subject and other header fields were removed before it was stored.",
    ),
    feedback_type: nullableText("The type of feedback; `auth-failure` for DMARC."),
    auth_failure: nullableText("What failed: `dmarc`, `dkim`, `spf`, …"),
    reported_domain: nullableText("The domain that the message used in From."),
    source_ip: nullableText("The IP address that sent the message."),
    arrival_date: nullableText("When the message arrived, as the reporter writes it."),
    delivery_result: nullableText("What the receiver did with it: `delivered`, `spam`, `policy`, `reject`, `other`."),
    identity_alignment: nullableText("The mechanisms that were not aligned (RFC 9991)."),
    authentication_results: nullableText("The Authentication-Results header of the receiver."),
    original_mail_from: nullableText("The envelope sender of the message."),
    original_rcpt_to: nullableText("The envelope recipient of the message."),
    dkim_domain: nullableText("The signing domain of the DKIM signature that failed."),
    dkim_selector: nullableText("The selector of that signature."),
    dkim_identity: nullableText("The identity (`i=`) of that signature."),
    spf_dns: nullableText("The SPF record that was evaluated."),
    user_agent: nullableText("The software that generated the report."),
    ingestion_id: textField("The id of the mail that brought the report."),
  })
  .meta({ title: "DmarcFailureReport" });

export const failureReportDetailSchema = failureReportSchema
  .extend({
    headers: z
      .array(
        z.object({
          name: textField("The name of the header field."),
          value: textField("Its value."),
        }),
      )
      .describe("Header fields of the message, in order. Its body is never stored."),
  })
  .meta({ title: "DmarcFailureReportDetail" });

/** A failure report with the header of its message. */
export type FailureReportDetail = Readonly<z.infer<typeof failureReportDetailSchema>>;
/** A failure report in a list. */
export type ShownFailureReport = Omit<FailureReportDetail, "headers">;

/** The part of a failure report that is stored as JSON. */
const storedReportSchema = failureReportDetailSchema.omit({
  id: true,
  received_at: true,
  redacted: true,
  ingestion_id: true,
});

/** Reads the failure reports of the caller's domains. Everything throws `not_found` for a domain of another account. */
export class FailureReports {
  constructor(
    private readonly deps: Pick<QueryContext, "findDomain">,
    private readonly store: Pick<FailureReportStore, "listFailures" | "findFailure">,
  ) {}

  /** The most recently received first. */
  list(
    caller: Caller,
    id: string,
  ): (page: { readonly before: string | null; readonly limit: number }) => readonly ShownFailureReport[] {
    const { number } = this.deps.findDomain(caller, id);
    return (page) => this.store.listFailures(number, page).map(listView);
  }

  /** Throws `not_found`. */
  find(caller: Caller, id: string, reportId: string): FailureReportDetail {
    const row = this.store.findFailure(this.deps.findDomain(caller, id).number, reportId);
    if (row !== undefined) return detailView(row);
    throw new AppError("not_found", { message: "There is no such failure report of this domain." });
  }
}

const detailView = (row: FailureReportRow) => {
  const { headers, ...fields } = storedReportSchema.parse(snakeKeys(JSON.parse(row.body)));
  const { id, isRedacted: redacted, ingestion: ingestion_id } = row;
  return { id, received_at: isoTime(row.receivedAtMs), redacted, ...fields, ingestion_id, headers };
};

const listView = (row: FailureReportRow) => {
  const { headers: _, ...shown } = detailView(row);
  return shown;
};
