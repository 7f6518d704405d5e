import { isoDay, type DayRange } from "../../../foundation/base/days.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import type {
  ReportFacts,
  ReportFilters,
  ReportKey,
  ReportQueryStore,
  ReportRowStored,
  TlsReportRow,
} from "./report-query-store.ts";
import { type ReadRows, walk } from "../../../foundation/base/walk.ts";
import { type ShownRecord, recordSchema } from "./records.ts";
import { authenticatedOrganisation, reporterView, reporterSchema } from "./reporter.ts";
import { suffixOf } from "../../reports/report/unpack.ts";
import { parsePublishedPolicy, parseReportBody, parseTlsReportBody } from "../../reports/report/report.ts";
import { z } from "zod";
import {
  countField,
  dayField,
  flagField,
  nextCursorField,
  nullableText,
  nullableTime,
  textField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import { POLICIES } from "../../records/record/record-values.ts";

export const AUTHENTICITIES = ["pending", "pass", "fail", "unknown"] as const;

const policy = (of: string) => z.enum(POLICIES).nullable().describe(`The policy for ${of}.`);

const authenticitySchema = z
  .object({
    result: z
      .enum(AUTHENTICITIES)
      .describe(
        "`pass`: the mail is authenticated as the reporter's. `fail`: it is not. `unknown`: there is not enough evidence. `pending`: not checked yet.",
      ),
    from: nullableText("The header_from domain of the mail; null when there is not exactly one."),
    spf: z
      .object({
        result: textField("The SPF result, as in RFC 8601."),
        domain: nullableText("The domain checked; null when unknown."),
      })
      .nullable()
      .describe("The SPF result of the mail; null when the client address is unknown."),
    dkim: z
      .array(
        z.object({
          domain: nullableText("The signing domain."),
          selector: nullableText("The selector."),
          result: textField("The DKIM result, as in RFC 8601."),
          aligned: flagField("Whether the signing domain is aligned with header_from."),
        }),
      )
      .describe("The DKIM signatures of the mail."),
    dmarc: z
      .object({
        result: textField("The DMARC result."),
        policy: nullableText("The policy of the header_from domain; null for none."),
      })
      .nullable()
      .describe("The DMARC result of the mail; null without a header_from domain."),
    message: nullableText("The authentication results in a sentence; null while they are pending."),
  })
  .meta({ title: "DmarcReportAuthenticity" });

export interface ReportPage {
  readonly reports: readonly ShownReport[];
  readonly next: string | null;
}

/** Reports looked at in one step where filters apply: some milliseconds. */
const STEP = 20_000;
const CURSOR = /^(\d{1,6})\.(\d{1,15})$/;

export const isReportCursor = (text: string): boolean => CURSOR.test(text);

const readCursor = (text: string) => {
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

const keyOf = ({ day, number }: ReportKey) => ({ day, number });

const isFiltered = (filters: ReportFilters) => Object.values(filters).some((value) => value !== undefined);

const daysToRead = (store: ReportQueryStore, { domain, range, filters }: ReportListOf) =>
  isFiltered(filters) ? store.daysOf(domain, range, filters) : range;

/** Where few reports pass, only those that do are read whole. */
const readingOf = (
  store: ReportQueryStore,
  { domain, range: { fromDay }, filters }: ReportListOf,
): ReadRows<ReportRowStored, ReportKey> => {
  if (!isFiltered(filters)) {
    return (before, looks) => {
      const rows = store.reports(domain, fromDay, before, looks);
      const last = rows.at(-1);
      return { rows, next: last === undefined || rows.length < looks ? null : keyOf(last) };
    };
  }
  const scope = { domain, fromDay };
  return (before, looks, wanted) => {
    const end = store.keyAt(scope, before, filters, looks);
    const found = store.matching(scope, { before, end }, filters, wanted);
    const last = found.length === wanted ? found.at(-1) : undefined;
    const passing = found.filter((report) => passesFilters(report, filters));
    const rows = passing.flatMap(({ number }) => store.findByNumber(number) ?? []);
    return { rows, next: last === undefined ? (end ?? null) : keyOf(last) };
  };
};

const passesFilters = (report: ReportFacts, { reporter, authenticity, trusted }: ReportFilters) =>
  (reporter === undefined || (report.org?.toLowerCase() ?? "") === reporter || report.author === reporter) &&
  (trusted === undefined || (report.author === "") === trusted) &&
  (authenticity === undefined || report.authenticity === authenticity);

const policyView = (text: string) => {
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
const reportView = (row: ReportRowStored): ShownReport => {
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

export const tlsReportView = (row: TlsReportRow): Readonly<z.infer<typeof tlsReportSchema>> => {
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
        result_type: resultType,
        sessions,
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

const alignment = (mechanism: string) =>
  z.enum(["r", "s"]).nullable().describe(`${mechanism} alignment: \`r\` relaxed, \`s\` strict.`);

const policySchema = z
  .object({
    domain: textField("The domain with the DMARC record."),
    p: policy("the domain"),
    sp: policy("subdomains"),
    np: policy("subdomains that do not exist"),
    adkim: alignment("DKIM"),
    aspf: alignment("SPF"),
    pct: z.number().nullable().describe("Percentage of failing mail that the policy applies to."),
    fo: nullableText("When failure reports are requested."),
    testing: z.boolean().nullable().describe("Whether the record has `t=y`."),
    discovery_method: z
      .enum(["psl", "treewalk"])
      .nullable()
      .describe("How the reporter found the record: public suffix list or DNS tree walk."),
  })
  .meta({
    title: "DmarcReportedPolicy",
    description: "The policy that the reporter found; null where it does not say.",
  });

const reportSchema = z
  .object({
    id: z.uuid().describe("The id of the report."),
    org_name: nullableText("The reporter name in the report; null when there is none. `reporter` says who sent it."),
    reporter: reporterSchema,
    email: nullableText("The contact address in the report; null when there is none."),
    report_id: nullableText("The id that the reporter gave the report; null for none."),
    begin: timeField("The beginning of the report's period."),
    end: timeField("The end of the report's period."),
    date: dayField("The UTC day that the report counts for: the middle of its period."),
    received_at: timeField("When the report was received."),
    policy_domain: textField("The domain that the report is about."),
    policy: policySchema,
    rows: countField("Number of records."),
    messages: countField("Number of messages."),
    aligned: countField("Messages that passed DMARC."),
    authenticity: authenticitySchema
      .nullable()
      .describe("Authentication results of the mail that brought the report; null when none did."),
    notices: z.array(z.string()).describe("Faults of the report that did not prevent reading it."),
    skipped_rows: z
      .array(z.object({ reason: textField("Why they were skipped."), rows: countField("Number of records.") }))
      .describe("Records that could not be counted."),
    ingestion_id: textField("The id of the ingestion (mail or file) that brought the report."),
    raw_available: flagField("Whether that mail or file is still stored."),
  })
  .meta({ title: "DmarcReport" });

export type ShownReport = Readonly<z.infer<typeof reportSchema>>;

export const reportsSchema = z
  .object({ reports: z.array(reportSchema).describe("The reports."), next_cursor: nextCursorField })
  .meta({ title: "DmarcReportList" });

export const reportDetailSchema = reportSchema
  .extend({
    version: nullableText("The version of the report format; null when not given."),
    generator: nullableText("The software that generated the report; null when not given."),
    extra_contact_info: nullableText("Additional contact information of the reporter; null for none."),
    errors: z.array(z.string()).describe("Errors that the reporter states about its own processing."),
    records: z.array(recordSchema).describe("The records, failing ones first, at most 1000."),
    records_next_cursor: nullableText("The cursor for `GET …/records?report=…&cursor=…`; null when all are here."),
  })
  .meta({ title: "DmarcReportDetail" });

export type ShownReportDetail = Readonly<z.infer<typeof reportDetailSchema>>;

const sessionFields = {
  successful_sessions: countField("Sessions with TLS as the policy requires."),
  failed_sessions: countField("Sessions that failed."),
};

const tlsPolicySchema = z.object({
  domain: nullableText("The domain that the policy is for."),
  policy_type: nullableText("`sts`, `tlsa` or `no-policy-found`."),
  ...sessionFields,
  failures: z
    .array(
      z.object({
        result_type: textField("The type of failure (RFC 8460 §4.3)."),
        sessions: countField("Sessions that failed in this way."),
        receiving_mx_hostname: nullableText("The MX host; null when not reported."),
      }),
    )
    .describe("The failures by type."),
});

const tlsReportSchema = z
  .object({
    id: z.uuid().describe("The id of the report."),
    org_name: nullableText("The name of the reporter; null when there is none."),
    report_id: nullableText("The id that the reporter gave the report; null for none."),
    contact: nullableText("The contact of the reporter; null for none."),
    begin: nullableTime("The beginning of the report's period; null when not given."),
    end: nullableTime("The end of the report's period; null when not given."),
    received_at: timeField("When the report was received."),
    ...sessionFields,
    policies: z.array(tlsPolicySchema).describe("The sessions by policy."),
    ingestion_id: textField("The id of the ingestion (mail or file) that brought the report."),
  })
  .meta({ title: "TlsReport" });

export const tlsReportsSchema = z
  .object({ tls_reports: z.array(tlsReportSchema).describe("The reports."), next_cursor: nextCursorField })
  .meta({ title: "TlsReportList" });
