import { z } from "zod";
import { DAY_MS, type DayRange, isoDay } from "../../foundation/base/days.ts";
import { csvResponse, exportFileName, RANGE_DAYS_MAX } from "../../dmarc/insight/queries/domain-query.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { REPORT_COLUMNS, type ReportListQuery } from "../../dmarc/insight/queries/report-reader.ts";
import { AUTHENTICITIES, type ShownReport, isReportCursor } from "../../dmarc/insight/queries/reports.ts";
import { reporterWords } from "../../dmarc/insight/queries/reporter.ts";
import { parseDay } from "../../foundation/http/day-range.ts";
import { Empty, Panel } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, Link, Badge } from "../components/inline.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { Day, Time, Num, Percent } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead } from "./domain-head.tsx";
import { authenticityWords } from "./report-words.ts";
import { ReportUpload } from "./intake-panels.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

const params = z.object({ id: z.string() });
const PATH = "/dmarc/:id/reports";

const dayText = z.string().refine((text) => parseDay(text) !== null);

const filterFields = {
  from: dayText,
  to: dayText,
  reporter: z.string().trim().min(1).max(255),
  authenticity: z.enum(AUTHENTICITIES),
  trusted: z.enum(["true", "false"]),
};
const query = z
  .object({ ...filterFields, cursor: z.string().refine(isReportCursor) })
  .partial()
  .extend({ rows: rowsParameter });
type Query = z.output<typeof query>;

/** The days of a query; the first one is left out where the two are no range. */
const daysOf = ({ from, to }: Pick<Query, "from" | "to">): Pick<ReportListQuery, "from" | "to"> => {
  const [fromDay, toDay] = [from, to].map((text) => (text === undefined ? null : parseDay(text)));
  const last = toDay ?? undefined;
  const isRange = fromDay != null && (last === undefined || (fromDay <= last && last - fromDay < RANGE_DAYS_MAX));
  return { ...(last === undefined ? {} : { to: last }), ...(isRange ? { from: fromDay } : {}) };
};

const listQueryOf = ({ reporter, authenticity, trusted, from, to }: Query): ReportListQuery => ({
  ...daysOf({ from, to }),
  reporter: reporter?.toLowerCase(),
  authenticity,
  trusted: trusted === undefined ? undefined : trusted === "true",
});

/** The aggregate reports of a domain. */
export const reportsPages = ({
  domains,
  reports,
  clock,
}: Pick<DmarcReportUseCases, "domains" | "reports" | "clock">): readonly PageRoute[] => [
  page({ path: PATH, params, query }, async ({ viewer, params: { id }, query: given }) => {
    const domain = domains.find(viewer.caller, id);
    const wanted = listQueryOf(given);
    const range = reports.range(safeDays(wanted, clock.nowMs()));
    const days = { from: range.fromDay, to: range.toDay };
    const found = await reports.list(
      viewer.caller,
      id,
      { ...wanted, ...days },
      { after: given.cursor ?? null, limit: given.rows },
    );
    return {
      title: `Reports about ${domain.domain}`,
      section: "dmarc",
      body: (
        <>
          <DomainHead
            domain={domain}
            current="reports"
            title={`Reports about ${domain.domain}`}
            meta={<LastReport domain={domain} />}
            actions={<ButtonLink href={`/dmarc/intake?domain=${id}`}>Received and rejected</ButtonLink>}
          />
          <Panel title="Aggregate reports" aside={<RangeText {...range} />} isFlush>
            <ReportFilters domain={domain} query={given} range={range} />
            {found.reports.length === 0 ? (
              <NoReports domain={domain} isFiltered={domain.lastReportAtMs !== null || Object.keys(given).length > 1} />
            ) : (
              <ReportTable domain={domain} reports={found.reports} />
            )}
            <Pager next={found.next} shown={found.reports.length} rows={given.rows}>
              <DownloadLink href={csvPath(id, given)}>CSV</DownloadLink>
            </Pager>
          </Panel>
          <ReportUpload />
        </>
      ),
    };
  }),

  page({ path: `${PATH}.csv`, params, query }, ({ request, viewer, params: { id }, query: given }) => {
    const domain = domains.find(viewer.caller, id);
    const wanted = listQueryOf(given);
    const range = reports.range(safeDays(wanted, clock.nowMs()));
    const batches = reports.rows(viewer.caller, id, { ...wanted, from: range.fromDay, to: range.toDay });
    return csvResponse(request, exportFileName("reports", domain, range, "csv"), { columns: REPORT_COLUMNS, batches });
  }),
];

/** A first day in the future, without a last one, is left out. */
const safeDays = ({ from, to }: ReportListQuery, nowMs: number): Pick<ReportListQuery, "from" | "to"> =>
  from !== undefined && to === undefined && from * DAY_MS > nowMs ? {} : { from, to };

const csvPath = (id: string, { cursor: _, rows: __, ...given }: Query): string => {
  const text = new URLSearchParams(
    Object.entries(given).filter((entry): entry is [string, string] => entry[1] !== undefined),
  );
  return `/dmarc/${id}/reports.csv${text.size === 0 ? "" : `?${text}`}`;
};

const LastReport = ({ domain: { lastReportAtMs } }: { readonly domain: DomainRow }) =>
  lastReportAtMs === null ? (
    <>no report has arrived yet</>
  ) : (
    <span>
      the last one arrived <Time atMs={lastReportAtMs} />
    </span>
  );

const RangeText = ({ fromDay, toDay }: DayRange) => (
  <>
    <Day day={isoDay(fromDay)} /> to <Day day={isoDay(toDay)} />
  </>
);

interface FiltersProps {
  readonly domain: DomainRow;
  readonly query: Query;
  readonly range: DayRange;
}

const ReportFilters = ({ domain, query: given, range }: FiltersProps) => (
  <Filters action={`/dmarc/${domain.id}/reports`}>
    <Field name="from" label="From" type="date" value={isoDay(range.fromDay)} />
    <Field name="to" label="To" type="date" value={isoDay(range.toDay)} />
    <Field name="reporter" label="Reporter" type="search" value={given.reporter ?? null} placeholder="google.com" />
    <SelectField
      name="authenticity"
      label="Mail of the report"
      value={given.authenticity ?? ""}
      options={[
        ["", "Any"],
        ["pass", "Authenticated"],
        ["fail", "Not authenticated"],
        ["unknown", "Not known"],
        ["pending", "Being checked"],
      ]}
    />
    <SelectField
      name="trusted"
      label="Trusted"
      value={given.trusted ?? ""}
      options={[
        ["", "All reports"],
        ["true", "Trusted only"],
        ["false", "Untrusted only"],
      ]}
    />
  </Filters>
);

const NoReports = ({ domain, isFiltered }: { readonly domain: DomainRow; readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="No report matches">
      <p>Choose other days or filters.</p>
    </Empty>
  ) : (
    <Empty title="No reports yet" action={<ButtonLink href={`/dmarc/${domain.id}/record`}>See the record</ButtonLink>}>
      <p>
        Mail receivers send one report a day, beginning 24 to 48 hours after the record is published. You can import
        reports that you already have below.
      </p>
    </Empty>
  );

const ReportTable = ({ domain, reports }: { readonly domain: DomainRow; readonly reports: readonly ShownReport[] }) => (
  <Table
    caption="Aggregate reports, the newest day first"
    columns={[
      { title: "Day" },
      { title: "Reporter", isMain: true },
      { title: "Messages", align: "end" },
      { title: "Passed", align: "end" },
      { title: "Records", align: "end" },
      { title: "Mail" },
      { title: "Received" },
    ]}
    rows={reports.map((report) => reportRow(domain, report))}
  />
);

/** Most reports are about a day. */
const isLong = ({ begin, end }: ShownReport): boolean => Date.parse(end) - Date.parse(begin) > DAY_MS;

const reportRow = (domain: DomainRow, report: ShownReport): TableRow => {
  const [kind, word] = authenticityWords(report.authenticity);
  return {
    key: report.id,
    cells: [
      <>
        <Day day={report.date} />
        {isLong(report) && (
          <span class="second nowrap">
            <Time atMs={Date.parse(report.begin)} style="day" /> to <Time atMs={Date.parse(report.end)} style="day" />
          </span>
        )}
      </>,
      <>
        <Link href={`/dmarc/${domain.id}/reports/${report.id}`}>{reporterWords(report.reporter)}</Link>
        {report.policy_domain !== domain.domain && <span class="second">about {report.policy_domain}</span>}
      </>,
      <Num value={report.messages} />,
      <Percent part={report.aligned} whole={report.messages} />,
      <Num value={report.rows} />,
      <Badge kind={report.reporter.trusted || kind !== "ok" ? kind : "warn"}>{word}</Badge>,
      <Time atMs={Date.parse(report.received_at)} />,
    ],
  };
};
