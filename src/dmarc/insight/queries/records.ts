import { isoDay, type DayRange } from "../../../foundation/base/days.ts";
import { isoTime } from "../../../foundation/base/clock.ts";
import { authenticatedOrganisation, reporterSchema, reporterView } from "./reporter.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import { endOfDay, type RecordKey, type RecordRow, type RecordScope, type RecordStore } from "./record-store.ts";
import { walk } from "../../../foundation/base/walk.ts";
import { parseRecordBody } from "../../reports/report/report.ts";
import type { SourceName } from "../sources/domain-sources.ts";
import { z } from "zod";
import {
  booleanParameter,
  dayField,
  flagField,
  nextCursorField,
  nullableText,
  textField,
  timeField,
} from "../../../foundation/http/schema-fields.ts";
import { isId } from "../../../foundation/base/secrets.ts";
import { DISPOSITIONS, OVERRIDES, readDomain, readSourceIp } from "../../reports/report/report-values.ts";
import { rangeFields } from "../../../foundation/http/day-range.ts";
import { isSourceKey } from "../sources/source-identity.ts";
import { RANK_STEP } from "../../reports/ingest/rollup.ts";

const alignedResult = (mechanism: string) =>
  z
    .enum(["pass", "fail"])
    .nullable()
    .describe(`The aligned ${mechanism} result; null when the reporter does not give it.`);

const resultFields = {
  result: textField("The result, as in RFC 8601 §2.7."),
  human_result: nullableText("The explanation of the reporter; null for none."),
};

export const recordSchema = z
  .object({
    date: dayField("The UTC day of the middle of the report's period."),
    source_ip: textField("The IP address that sent the messages."),
    reverse_name: nullableText("The reverse DNS name, if it resolves to the address; otherwise null."),
    asn: z.int().positive().nullable().describe("The AS that announces the address; null when unknown."),
    as_name: nullableText("The name of that AS; null when unknown."),
    country: nullableText(
      "ISO 3166-1 alpha-2 country of the network's registration, or from POSTWARDEN_GEOIP_DB; null when unknown.",
    ),
    source: textField("The key of the source that the record belongs to."),
    source_name: textField("The display name of that source."),
    count: z.int().positive().describe("Number of messages."),
    aligned: flagField("Whether the messages passed DMARC."),
    dkim: alignedResult("DKIM"),
    spf: alignedResult("SPF"),
    disposition: z
      .enum(DISPOSITIONS)
      .nullable()
      .describe("What the receiver did with the messages; null when the reporter does not say."),
    forwarded: flagField("Whether the receiver recognized the messages as forwarded."),
    header_from: nullableText("The domain in From; null when the reporter does not give it."),
    envelope_from: nullableText("The envelope domain (MAIL FROM); null when the reporter does not give it."),
    envelope_to: nullableText("The recipient domain; null when the reporter does not give it."),
    reasons: z
      .array(
        z.object({
          type: z.enum(OVERRIDES).describe("The kind of override."),
          comment: nullableText("The comment of the reporter; null for none."),
        }),
      )
      .describe("Why the receiver did not apply the policy."),
    dkim_results: z
      .array(
        z.object({
          domain: nullableText("The signing domain (`d=`); null when not reported."),
          selector: nullableText("The selector (`s=`); null when not reported."),
          ...resultFields,
        }),
      )
      .describe("The DKIM signatures that the receiver checked."),
    spf_results: z
      .array(
        z.object({
          domain: nullableText("The domain checked; null when not reported."),
          scope: z
            .enum(["mfrom", "helo"])
            .nullable()
            .describe("`mfrom`: the envelope domain; `helo`: the HELO name; null when not reported."),
          ...resultFields,
        }),
      )
      .describe("The SPF checks of the receiver."),
    report: z
      .object({
        id: z.uuid().describe("The id of the report."),
        org_name: nullableText("The reporter name in the report; null when there is none."),
        reporter: reporterSchema,
        report_id: nullableText("The id that the reporter gave the report; null for none."),
        begin: timeField("The beginning of the report's period."),
        end: timeField("The end of the report's period."),
      })
      .describe("The report that the record is from."),
  })
  .meta({ title: "DmarcRecord" });

/** The filters that each record must pass, besides the scope. `source` is a source key. */
type RowFilters = Pick<RecordFilters, "source" | "source_ip" | "disposition" | "aligned" | "header_from" | "reporter">;

/** Which records to read. */
export interface RecordQuery {
  readonly scope: RecordScope;
  readonly range: DayRange;
  readonly filters: RowFilters;
  /** The names of sources in the range, by their numbers: see `DomainSources.names`. */
  readonly names: ReadonlyMap<number, SourceName>;
}

export interface RecordPage {
  readonly records: readonly ShownRecord[];
  readonly next: string | null;
}

/** Rows read in one step where filters apply: some ten milliseconds. */
const STEP = 5_000;
/** The same where each step sorts all rows. */
const STEP_SORTED = 20_000;
/** Each record may have kilobytes of results and reasons. */
const ROWS_AT_ONCE = 250;
/** Size of a record in a page without its results and reasons. */
const RECORD_BYTES = 600;
const EXPORTED_AT_ONCE = 500;

const CURSOR = /^(\d{1,6})\.(\d{1,12})\.(\d{1,15})\.(\d{1,9})$/;

export const isRecordCursor = (text: string): boolean => CURSOR.test(text);

const readCursor = (text: string) => {
  const [day = 0, rank = 0, report = 0, position = 0] = text.split(".").map(Number);
  return { day, rank, report, position };
};

/** The day of the record at which a cursor stands. */
export const recordDay = (cursor: string): string => isoDay(readCursor(cursor).day);

const writeKey = ({ day, rank, report, position }: RecordKey) => `${day}.${rank}.${report}.${position}`;

/** A source that was stored while the records were read has no name yet. */
const shownNameOf = ({ source }: RecordRow, { names }: Pick<RecordQuery, "names">) =>
  names.get(source) ?? { key: "pending", name: "pending" };

/** The filters that SQLite cannot evaluate, or that no index supports. */
const passes = (row: RecordRow, query: Pick<RecordQuery, "filters" | "names">) => {
  const { source, reporter } = query.filters;
  return (
    (source === undefined || shownNameOf(row, query).key === source) &&
    (reporter === undefined || (row.org?.toLowerCase() ?? "") === reporter)
  );
};

const traitsOf = ({ source_ip, disposition, aligned, header_from, reporter }: RowFilters) => ({
  sourceIp: source_ip ?? null,
  disposition: disposition ?? null,
  aligned: aligned ?? null,
  headerFrom: header_from ?? null,
  reporter: reporter ?? null,
});

/**
 * A page of records: the newest day first; within a day failing before forwarded before aligned records, and of each the most
 * messages first.
 */
export const readRecords = async (
  store: RecordStore,
  query: RecordQuery,
  page: { readonly after: string | null; readonly limit: number },
): Promise<RecordPage> => {
  const { scope, range, filters } = query;
  const start = endOfDay(range.toDay + 1);
  const first = page.after === null ? start : readCursor(page.after);
  const bottom = endOfDay(range.fromDay);
  const traits = traitsOf(filters);
  const isSorted = "report" in scope || ("sources" in scope && scope.sources.length > 1);
  const { rows, next } = await walk<RecordRow, RecordKey>(
    {
      read: (before, looks, wanted) => {
        const window = { before, end: store.keyAt(scope, { before, end: bottom }, looks) };
        const found = store.records(scope, { before, end: window.end ?? bottom }, traits, wanted);
        const last = found.at(-1);
        const isCut = last !== undefined && found.length === wanted;
        return {
          rows: found.filter((row) => passes(row, query)),
          next: isCut ? last : nextWindow(window.end, filters),
        };
      },
      keyOf: (row) => row,
      step: isSorted ? STEP_SORTED : STEP,
      rowsAtOnce: ROWS_AT_ONCE,
      weigh: ({ body }) => body.length + RECORD_BYTES,
    },
    {
      before: first.day > range.toDay ? start : first,
      limit: page.limit,
    },
  );
  return { records: rows.map((row) => recordView(row, query)), next: next === null ? null : writeKey(next) };
};

/** Where the next window begins. After the first aligned record of a day no failing one follows. */
const nextWindow = (end: RecordKey | undefined, { aligned }: RowFilters) => {
  if (end === undefined) return null;
  return aligned === false && end.rank < RANK_STEP ? endOfDay(end.day) : end;
};

/** All records after a cursor, in batches. */
export async function* recordBatches(
  store: RecordStore,
  query: RecordQuery,
  from: string | null,
): AsyncGenerator<readonly ShownRecord[], void> {
  for (let after = from; ;) {
    const { records, next } = await readRecords(store, query, { after, limit: EXPORTED_AT_ONCE });
    yield records;
    if (next === null) return;
    after = next;
  }
}

/** The same records as rows of CSV. */
export async function* exportRecords(
  store: RecordStore,
  query: RecordQuery,
  from: string | null,
): AsyncGenerator<ReadonlyArray<readonly Cell[]>, void> {
  for await (const records of recordBatches(store, query, from)) yield records.map(recordCells);
}

/** A record as the API returns it. */
export const recordView = (row: RecordRow, query: Pick<RecordQuery, "names">): ShownRecord => {
  const { envelopeFrom, envelopeTo, reasons, dkimResults, spfResults } = parseRecordBody(row.body);
  const { key: source, name: source_name } = shownNameOf(row, query);
  return {
    date: isoDay(row.day),
    source_ip: row.sourceIp,
    reverse_name: row.isConfirmed === 1 ? row.reverseName : null,
    asn: row.asn,
    as_name: row.asName,
    country: row.country,
    source,
    source_name,
    count: row.count,
    aligned: row.isAligned === 1,
    dkim: row.dkim,
    spf: row.spf,
    disposition: row.disposition,
    forwarded: row.isForwarded === 1,
    header_from: row.headerFrom,
    envelope_from: envelopeFrom,
    envelope_to: envelopeTo,
    reasons: [...reasons],
    dkim_results: dkimResults.map(({ humanResult, ...result }) => ({ ...result, human_result: humanResult })),
    spf_results: spfResults.map(({ humanResult, ...result }) => ({ ...result, human_result: humanResult })),
    report: {
      id: row.reportRef,
      org_name: row.org,
      reporter: reporterView({ ...row, authenticatedAs: authenticatedOrganisation(row.authenticatedFrom) }),
      report_id: row.reportId,
      begin: isoTime(row.beginMs),
      end: isoTime(row.endMs),
    },
  };
};

/** The columns of the CSV export. The entries of a list are in one cell, separated by `; `. */
export const RECORD_COLUMNS = [
  ...recordSchema.keyof().options,
  ...(["org_name", "report_id", "begin", "end", "authenticated_as", "trusted"] as const),
];

const recordCells = (record: ShownRecord): Cell[] => {
  const { report, reasons, dkim_results, spf_results } = record;
  const { id, reporter, ...reportCells } = report;
  const flat: Record<(typeof RECORD_COLUMNS)[number], Cell> = {
    ...record,
    reasons: reasons.map(({ type, comment }) => (comment === null ? type : `${type}: ${comment}`)).join("; "),
    dkim_results: dkim_results
      .map(({ domain, selector, result }) => {
        return `${selector === null ? "" : `${selector}._domainkey.`}${domain ?? ""}=${result}`;
      })
      .join("; "),
    spf_results: spf_results
      .map(({ domain, scope, result }) => `${scope ?? "mfrom"}:${domain ?? ""}=${result}`)
      .join("; "),
    report: id,
    ...reportCells,
    authenticated_as: reporter.authenticated_as,
    trusted: reporter.trusted,
  };
  return RECORD_COLUMNS.map((column) => flat[column]);
};

const ipFilter = z.string().transform((text, context) => {
  const source = readSourceIp(text);
  if (typeof source !== "string") return source.ip;
  context.addIssue({ code: "custom", message: "Must be an IPv4 or IPv6 address" });
  return z.NEVER;
});

const domainFilter = z.string().transform((text, context) => {
  const read = readDomain(text);
  if (read !== null) return read;
  context.addIssue({ code: "custom", message: "Must be a domain name" });
  return z.NEVER;
});

/** The name of a reporter in any case; empty for those without a name. */
export const reporterFilter = z.string().transform((text) => text.toLowerCase());

/** The filters of the list of records. */
export const recordFilters = {
  ...rangeFields,
  source: z
    .string()
    .refine(isSourceKey, "Must be the key of a source, as /sources returns it")
    .optional()
    .describe("Only records of the source with this key."),
  source_ip: ipFilter.optional().describe("Only records from this IP address."),
  disposition: z.enum(DISPOSITIONS).optional().describe("Only records with this disposition."),
  aligned: booleanParameter("`true`: only records that passed DMARC. `false`: only those that failed."),
  header_from: domainFilter.optional().describe("Only records with this domain in From."),
  reporter: reporterFilter
    .optional()
    .describe("Only records of this reporter name, ignoring case; empty: without a name."),
  report: z
    .string()
    .refine(isId, "Must be the id of a report")
    .optional()
    .describe("Only records of the report with this id; whatever its day, unless a range is given."),
};

export type RecordFilters = z.output<z.ZodObject<typeof recordFilters>>;

export type ShownRecord = Readonly<z.infer<typeof recordSchema>>;

/** A line of the export of all domains. */
export const exportedRecordSchema = recordSchema
  .extend({
    domain_id: z.uuid().describe("The id of the domain."),
    domain: textField("The domain."),
    cursor: textField("Resumes the export after this record."),
  })
  .meta({ title: "DmarcExportedRecord" });

export type ExportedRecord = Readonly<z.infer<typeof exportedRecordSchema>>;

export const recordsSchema = z
  .object({
    records: z.array(recordSchema).describe("The records."),
    next_cursor: nextCursorField,
  })
  .meta({ title: "DmarcRecordList" });
