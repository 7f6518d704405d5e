import { z } from "zod";
import { sendFile } from "../../foundation/http/response.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { csvResponse } from "../../dmarc/insight/queries/domain-query.ts";
import { isRecordCursor, RECORD_COLUMNS, type ShownRecord } from "../../dmarc/insight/queries/records.ts";
import type { ShownReport } from "../../dmarc/insight/queries/reports.ts";
import type { ReportWithRecords } from "../../dmarc/insight/queries/report-reader.ts";
import { reporterWords } from "../../dmarc/insight/queries/reporter.ts";
import { Mono } from "../components/copy.tsx";
import { DownloadLink, Link, Badge, type Kind } from "../components/inline.tsx";
import { Callout, Columns, Panel, Row, Rows } from "../components/panel.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { Time, Num, numberText, percentText } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead } from "./domain-head.tsx";
import { dispositionWords, overrideWords, resultKind, authenticityWords, spfSentence } from "./report-words.ts";
import type { DmarcReportUseCases } from "./use-cases.ts";

const params = z.object({ id: z.string(), reportId: z.string() });
const PATH = "/dmarc/:id/reports/:reportId";

/** One aggregate report with its records. */
export const reportPages = ({
  domains,
  reports,
}: Pick<DmarcReportUseCases, "domains" | "reports">): readonly PageRoute[] => [
  page(
    {
      path: PATH,
      params,
      query: z.object({ cursor: z.string().refine(isRecordCursor).optional(), rows: rowsParameter }),
    },
    async ({ viewer, params: { id, reportId }, query: { cursor, rows } }) => {
      const domain = domains.find(viewer.caller, id);
      const { report, next } = await reports.detail(viewer.caller, id, reportId, {
        after: cursor ?? null,
        limit: rows,
      });
      return {
        title: `Report of ${reporterWords(report.reporter)}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="reports"
              title={`Report of ${reporterWords(report.reporter)} for ${report.date}`}
              meta={
                <span>
                  received <Time atMs={Date.parse(report.received_at)} style="full" />
                </span>
              }
              actions={
                report.raw_available ? (
                  <DownloadLink href={`/dmarc/${id}/reports/${reportId}/raw`}>
                    {report.authenticity === null ? "Original file" : "Original mail"}
                  </DownloadLink>
                ) : undefined
              }
            />
            <Conclusion report={report} />
            <Columns side={<AuthenticationPanel report={report} />}>
              <Facts report={report} />
            </Columns>
            <Panel title="Records" aside={<Count report={report} />} isFlush>
              <RecordTable domain={domain} records={report.records} />
              <Pager next={next} shown={report.records.length} rows={rows}>
                <DownloadLink href={`/dmarc/${id}/reports/${reportId}/records.csv`}>CSV</DownloadLink>
              </Pager>
            </Panel>
          </>
        ),
      };
    },
  ),
  ...filePages(reports),
];

/** The records of a report as CSV, and the mail or file that brought it. */
const filePages = (reports: DmarcReportUseCases["reports"]): readonly PageRoute[] => [
  page({ path: `${PATH}/records.csv`, params }, async ({ request, viewer, params: { id, reportId } }) => {
    const { fileName, batches } = await reports.recordRows(viewer.caller, id, reportId);
    return csvResponse(request, fileName, { columns: RECORD_COLUMNS, batches });
  }),

  page({ path: `${PATH}/raw`, params }, async ({ request, viewer, params: { id, reportId } }) =>
    sendFile(request, await reports.raw(viewer.caller, id, reportId)),
  ),
];

const Count = ({ report }: { readonly report: ShownReport }) => (
  <>{numberText(report.rows)} in all, those that fail first</>
);

const Conclusion = ({ report }: { readonly report: ShownReport }) => {
  const { messages, aligned, reporter, policy_domain: domain } = report;
  const failing = messages - aligned;
  const kind: Kind = messages === 0 ? "unknown" : failing === 0 ? "ok" : aligned === 0 ? "bad" : "warn";
  const title =
    messages === 0
      ? "The report counts no messages"
      : failing === 0
        ? `${messages === 1 ? "The one message" : `All ${numberText(messages)} messages`} in the name of ${domain} passed DMARC`
        : `${numberText(failing)} of ${numberText(messages)} messages in the name of ${domain} failed DMARC`;
  return (
    <Callout
      kind={kind}
      title={title}
      {...(messages === 0 ? {} : { aside: `${percentText(aligned / messages)} passed` })}
    >
      {reporter.trusted ? undefined : (
        <p>
          This report is not trusted: its mail is not authenticated as the reporter's. It is counted separately, and
          advice ignores it.
        </p>
      )}
    </Callout>
  );
};

const orDash = (text: string | null) => (text === null || text === "" ? <span class="soft">not stated</span> : text);

const Facts = ({ report }: Pick<ReportWithRecords, "report">) => {
  const { policy } = report;
  const tags = Object.entries({
    p: policy.p,
    sp: policy.sp,
    np: policy.np,
    adkim: policy.adkim,
    aspf: policy.aspf,
    pct: policy.pct,
    fo: policy.fo,
    t: policy.testing === true ? "y" : null,
  }).flatMap(([tag, value]) => (value === null ? [] : [`${tag}=${value}`]));
  return (
    <Panel title="What the report says" isFlush>
      <Rows>
        <Row label="Period">
          <Time atMs={Date.parse(report.begin)} style="full" /> to <Time atMs={Date.parse(report.end)} style="full" />
        </Row>
        <Row label="Name of the reporter">{orDash(report.org_name)}</Row>
        <Row label="Contact">{report.email === null ? orDash(null) : <Mono text={report.email} />}</Row>
        {report.extra_contact_info !== null && <Row label="More contact information">{report.extra_contact_info}</Row>}
        <Row label="Report id">{report.report_id === null ? orDash(null) : <Mono text={report.report_id} />}</Row>
        <Row label="Policy that the reporter found">
          <span class="mono">{tags.join("; ") || "–"}</span>
        </Row>
        {report.generator !== null && <Row label="Software">{report.generator}</Row>}
        {[...report.errors, ...report.notices].map((text) => (
          <Row key={text} label="Remark">
            {text}
          </Row>
        ))}
        {report.skipped_rows.map(({ reason, rows }) => (
          <Row key={reason} label="Records that could not be counted">
            <Num value={rows} />: {reason}
          </Row>
        ))}
      </Rows>
    </Panel>
  );
};

const RecordTable = ({ domain, records }: { readonly domain: DomainRow; readonly records: readonly ShownRecord[] }) =>
  records.length === 0 ? (
    <p class="panel-body soft">The report has no records.</p>
  ) : (
    <Table
      caption="Records of the report"
      columns={[
        { title: "Sent by", isMain: true },
        { title: "Messages", align: "end" },
        { title: "DMARC" },
        { title: "SPF and DKIM" },
        { title: "What the receiver did" },
        { title: "From", isMono: true },
      ]}
      rows={records.map((record, at) => recordRow(domain, record, at))}
    />
  );

const recordRow = (domain: DomainRow, record: ShownRecord, at: number): TableRow => {
  const [kind, word] = dispositionWords(record);
  return {
    key: at,
    cells: [
      <>
        <Link href={`/dmarc/${domain.id}/sources/${encodeURIComponent(record.source)}`}>{record.source_name}</Link>
        <span class="second mono nowrap">{record.source_ip}</span>
        {record.reverse_name !== null && (
          <span class="second">
            <Mono text={record.reverse_name} />
          </span>
        )}
      </>,
      <Num value={record.count} />,
      <Badge kind={record.aligned ? "ok" : "bad"}>{record.aligned ? "Passed" : "Failed"}</Badge>,
      <Results record={record} />,
      <>
        <Badge kind={kind}>{word}</Badge>
        {record.reasons.length > 0 && <span class="second">because of {overrideWords(record)}</span>}
      </>,
      record.header_from === null ? (
        "–"
      ) : (
        <span class="nowrap">
          <Mono text={record.header_from} />
        </span>
      ),
    ],
  };
};

const RESULTS_MAX = 4;

/** The checks of the receiver, with whether each is aligned with From. */
const Results = ({ record }: { readonly record: ShownRecord }) => {
  const spf = record.spf_results.map(({ domain, result }) => ({ what: "SPF", domain, selector: null, result }));
  const dkim = record.dkim_results.map(({ domain, selector, result }) => ({ what: "DKIM", domain, selector, result }));
  const all = [...spf, ...dkim];
  if (all.length === 0) return <span class="soft">No results stated</span>;
  return (
    <ul class="results small">
      {all.slice(0, RESULTS_MAX).map(({ what, domain, selector, result }, at) => (
        <li key={at}>
          {what} <Badge kind={resultKind(result)}>{result}</Badge>{" "}
          <Mono text={`${domain ?? "?"}${selector === null ? "" : ` (${selector})`}`} />
        </li>
      ))}
      {all.length > RESULTS_MAX && <li class="soft">and {all.length - RESULTS_MAX} more</li>}
      <li class="soft">
        aligned: SPF {record.spf ?? "not stated"}, DKIM {record.dkim ?? "not stated"}
      </li>
    </ul>
  );
};

type Authenticity = NonNullable<ShownReport["authenticity"]>;

/** How the mail that brought a report was authenticated, in words. */
const AuthenticationPanel = ({ report }: { readonly report: ShownReport }) => {
  const { authenticity } = report;
  const [kind, word] = authenticityWords(authenticity);
  return (
    <Panel title="Is it the reporter's?" aside={<Badge kind={kind}>{word}</Badge>}>
      {authenticity === null ? (
        <p class="soft">It was uploaded or imported by you, so it is trusted without its mail.</p>
      ) : authenticity.result === "pending" ? (
        <p class="soft">SPF, DKIM and DMARC of the mail that brought it are checked within minutes.</p>
      ) : (
        <Findings authenticity={authenticity} />
      )}
    </Panel>
  );
};

const Findings = ({ authenticity }: { readonly authenticity: Authenticity }) => {
  const { message, from, spf, dkim, dmarc } = authenticity;
  return (
    <>
      {message !== null && <p>{message}</p>}
      <ul class="checklist inner">
        <li>
          <Badge kind={spf === null ? "unknown" : resultKind(spf.result)}>{`SPF ${spf?.result ?? "unknown"}`}</Badge>
          <p class="small">
            {spf === null
              ? "The address of the server that delivered the mail is not known."
              : spfSentence(spf.result, spf.domain)}
          </p>
        </li>
        {dkim.length === 0 && (
          <li>
            <Badge kind="unknown">DKIM none</Badge>
            <p class="small">The mail has no signature.</p>
          </li>
        )}
        {dkim.map(({ domain, selector, result, aligned }, at) => (
          <li key={at}>
            <Badge kind={resultKind(result)}>{`DKIM ${result}`}</Badge>
            <p class="small">
              Signed by <span class="mono">{domain ?? "an unknown domain"}</span>
              {selector !== null && (
                <>
                  {" "}
                  with the key <span class="mono">{selector}</span>
                </>
              )}
              , {aligned ? "which is the domain in From or belongs to it" : "which is not the domain in From"}.
            </p>
          </li>
        ))}
        <li>
          <Badge
            kind={dmarc === null ? "unknown" : resultKind(dmarc.result)}
          >{`DMARC ${dmarc?.result ?? "unknown"}`}</Badge>
          <p class="small">
            {from === null ? (
              "The mail does not have exactly one domain in From."
            ) : (
              <>
                From <span class="mono">{from}</span>
                {dmarc !== null &&
                  (dmarc.policy === null ? ", which has no DMARC policy." : `, whose policy is p=${dmarc.policy}.`)}
              </>
            )}
          </p>
        </li>
      </ul>
    </>
  );
};
