import { isoDay, type DayRange } from "../../base/days.ts";
import { Elysia } from "elysia";
import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { isId } from "../../base/secrets.ts";
import type { Db } from "../../db/open.ts";
import { sendJson } from "../../http/response.ts";
import { readJson } from "../../http/body.ts";
import type { Caller, Guard } from "../../http/guard.ts";
import { namesOf, pageParameters, parametersOf, readPage, readParameters, writeCursor } from "../../http/query.ts";
import { csvResponse, rowFormatOf, wantsCsv } from "./csv.ts";
import { ndjsonResponse } from "./ndjson.ts";
import type { DomainRow } from "../domains/domain-store.ts";
import { rangeOf } from "../sources/day-range.ts";
import { recordFiltersSchema, type RecordFilters } from "./record-schemas.ts";
import type { RecordScope, RecordStore } from "./record-store.ts";
import type { ReportQueryStore } from "./report-query-store.ts";
import { rangeSchema, sourceChangeSchema, sourceFiltersSchema, sourcesChangeSchema } from "./source-schemas.ts";
import type { RollupStore } from "../sources/rollup-store.ts";
import {
  exportRecords,
  isRecordCursor,
  readRecords,
  RECORD_COLUMNS,
  recordBatches,
  type RecordQuery,
} from "./records.ts";
import { exportSources, isSourceCursor, pageOfSources, SOURCE_COLUMNS } from "./sources-page.ts";
import { SourceClassifier } from "../sources/classify-sources.ts";
import { DomainSources } from "../sources/domain-sources.ts";
import { summarizeDomain } from "./summary.ts";
import { timeseriesOf } from "./timeseries.ts";

export interface SourceRouteDeps {
  readonly guard: Guard;
  readonly db: Db;
  readonly clock: Clock;
  readonly store: RollupStore;
  readonly records: RecordStore;
  readonly reports: ReportQueryStore;
  /** The caller's domain; throws `not_found` for one that is not there, or not the caller's. */
  readonly findDomain: (caller: Caller, id: string) => DomainRow;
  /** What to do next about a domain's policy, as the interface answers it. */
  readonly advise: (domain: DomainRow) => unknown;
}

const PATH = "/v1/dmarc/domains/:id";

const cursorOf = (next: string | null): string | null => (next === null ? null : writeCursor(next));

/** `findDomain` for an id out of a path, whatever form it has. */
export const createDomainFinder =
  (findDomain: SourceRouteDeps["findDomain"]) =>
  (caller: Caller, id: string): DomainRow => {
    if (isId(id)) return findDomain(caller, id);
    throw new AppError("not_found", { message: "There is no such domain." });
  };

const fileName = (
  what: string,
  { domain }: DomainRow,
  { from, to }: { from: string; to: string },
  suffix = "csv",
): string => `${what}-${domain.replace(/[^a-z0-9.-]/g, "_")}-${from}-${to}.${suffix}`;

const dates = ({ fromDay, toDay }: DayRange) => ({ from: isoDay(fromDay), to: isoDay(toDay) });

/** The endpoints that read what reports said: summary, time series, sources, records, advice. */
export const createSourceRoutes = (deps: SourceRouteDeps) => {
  const { guard, db, clock, store, records, reports, advise } = deps;
  const find = createDomainFinder(deps.findDomain);
  const classifier = new SourceClassifier({ db, clock }, store);
  const read = { demand: { scope: "dmarc:read" } } as const;
  const reading = (query: readonly string[]) => ({ demand: { scope: "dmarc:read", query } }) as const;
  const write = { parse: "none", demand: { scope: "dmarc:write" } } as const;

  const rangeIn = (request: Request): DayRange =>
    rangeOf(readParameters(parametersOf(request), rangeSchema), clock.nowMs());

  /** Where to look, and when: a report is looked at whole, whatever its day, unless a range is said. */
  const questionOf = (domain: DomainRow, filters: RecordFilters): RecordQuery => {
    const { from, to, source, report: reportId, ...rest } = filters;
    const range = rangeOf({ from, to }, clock.nowMs());
    if (reportId === undefined) {
      return db.snapshot(() => {
        const sources = new DomainSources(store, domain);
        const place: RecordScope =
          source === undefined ? { domain: domain.number } : { sources: sources.numbersOf(source, range) };
        return { place, range, filters: rest, names: sources.names(range) };
      });
    }
    const report = reports.find(domain.number, reportId);
    if (report === undefined) return { place: { sources: [] }, range, filters: rest, names: new Map() };
    const whole = from === undefined && to === undefined ? { fromDay: report.day, toDay: report.day } : range;
    const names = new DomainSources(store, domain).names(whole, { byNetwork: source?.startsWith("net:") === true });
    return { place: { report: report.number }, range: whole, filters: { ...rest, source }, names };
  };

  return new Elysia({ name: "dmarc-reading" })
    .use(guard)
    .get(
      `${PATH}/summary`,
      ({ request, params, caller }) =>
        db.snapshot(() => summarizeDomain(store, find(caller, params.id), rangeIn(request))),
      reading(namesOf(rangeSchema)),
    )
    .get(
      `${PATH}/timeseries`,
      ({ request, params, caller }) =>
        db.snapshot(() => timeseriesOf(store, find(caller, params.id), rangeIn(request))),
      reading(namesOf(rangeSchema)),
    )
    .get(`${PATH}/advice`, ({ params, caller }) => db.snapshot(() => advise(find(caller, params.id))), read)
    .get(
      `${PATH}/sources`,
      ({ request, params, caller }) => {
        const domain = find(caller, params.id);
        const { limit, after, filters } = readPage(request, sourceFiltersSchema, isSourceCursor);
        const range = rangeOf(filters, clock.nowMs());
        const { classification } = filters;
        const sources = db
          .snapshot(() =>
            new DomainSources(store, domain).sources(range, { byNetwork: filters.unauthenticated === "by_network" }),
          )
          .filter((source) => classification === undefined || source.classification === classification);
        if (wantsCsv(request))
          return csvResponse(request, fileName("sources", domain, dates(range)), {
            columns: SOURCE_COLUMNS,
            batches: exportSources(sources),
          });
        const { page, next } = pageOfSources(sources, { after, limit });
        return sendJson(request, { sources: page, next_cursor: cursorOf(next) }, { vary: "accept" });
      },
      reading(pageParameters(sourceFiltersSchema)),
    )
    .patch(
      `${PATH}/sources`,
      async ({ request, params, caller }) => {
        find(caller, params.id);
        const change = await readJson(request, sourcesChangeSchema);
        return { sources: await classifier.classify(() => find(caller, params.id), change) };
      },
      write,
    )
    .patch(
      `${PATH}/sources/:key`,
      async ({ request, params, caller }) => {
        find(caller, params.id);
        const { classification } = await readJson(request, sourceChangeSchema);
        // A key with a broken escape (`%E0`) comes as null.
        const change = { keys: [`${params.key}`], classification };
        const [source] = await classifier.classify(() => find(caller, params.id), change);
        return source;
      },
      write,
    )
    .get(
      `${PATH}/records`,
      async ({ request, params, caller }) => {
        const domain = find(caller, params.id);
        const { limit, after, filters } = readPage(request, recordFiltersSchema, isRecordCursor);
        const question = questionOf(domain, filters);
        const format = rowFormatOf(request);
        const name = fileName("records", domain, dates(question.range), format);
        if (format === "ndjson") return ndjsonResponse(request, name, recordBatches(records, question, after));
        if (format === "csv") {
          return csvResponse(request, name, {
            columns: RECORD_COLUMNS,
            batches: exportRecords(records, question, after),
          });
        }
        const page = await readRecords(records, question, { after, limit });
        return sendJson(request, { records: page.records, next_cursor: cursorOf(page.next) }, { vary: "accept" });
      },
      reading(pageParameters(recordFiltersSchema)),
    );
};
