import { z } from "zod";
import { isoDay } from "../../foundation/base/days.ts";
import { isId } from "../../foundation/base/secrets.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { tlsFailureText } from "../../dmarc/reports/report/tls-report.ts";
import type { TlsReportRow } from "../../dmarc/insight/queries/report-query-store.ts";
import { Badge, type Kind, ButtonLink } from "../components/inline.tsx";
import { BarChart } from "../components/chart.tsx";
import { Mono } from "../components/copy.tsx";
import { Callout, Columns, Empty, Panel } from "../components/panel.tsx";
import { Num, Percent, countText, numberText, percentText, Time } from "../components/figures.tsx";
import { Pager, rowsParameter, firstRows } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead } from "./domain-head.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";
import type { TlsSummary } from "../../dmarc/insight/queries/report-reader.ts";

/** TLS reports of a domain (RFC 8460): whether senders reached it over TLS. */
export const tlsPages = ({
  domains,
  reports,
}: Pick<DmarcReportUseCases, "domains" | "reports">): readonly PageRoute[] => [
  page(
    {
      path: "/dmarc/:id/tls",
      params: z.object({ id: z.string() }),
      query: z.object({ cursor: z.string().refine(isId).optional(), rows: rowsParameter }),
    },
    ({ viewer, params: { id }, query: { cursor, rows: limit } }) => {
      const domain = domains.find(viewer.caller, id);
      const summary = reports.tlsSummary(viewer.caller, id, {});
      const rows = reports.tlsReports(viewer.caller, id, {})({ before: cursor ?? null, limit: limit + 1 });
      return {
        title: `TLS reports about ${domain.domain}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="tls"
              title={`TLS reports about ${domain.domain}`}
              meta="how senders reached your mail servers, last 30 days"
            />
            {rows.length === 0 && cursor === undefined ? (
              <NoTlsReports domain={domain} />
            ) : (
              <>
                <Conclusion summary={summary} domain={domain} />
                <Sessions summary={summary} range={reports.range({})} />
                <Failures summary={summary} domain={domain} />
                <ReportList rows={rows} limit={limit} />
              </>
            )}
          </>
        ),
      };
    },
  ),
];

const NoTlsReports = ({ domain }: { readonly domain: DomainRow }) => (
  <Panel title="Sessions" isFlush>
    <Empty
      title="No TLS reports yet"
      action={<ButtonLink href={`/dmarc/${domain.id}/health#tls_rpt`}>See the TLS-RPT record</ButtonLink>}
    >
      <p>
        Senders such as Google and Microsoft report daily how many connections to your mail servers used TLS, and why
        others failed. Publish a TLS-RPT record with your reporting address, and the reports arrive here.
      </p>
    </Empty>
  </Panel>
);

const Conclusion = ({ summary, domain }: { readonly summary: TlsSummary; readonly domain: DomainRow }) => {
  const { successful, failed, reports, failures, isCut } = summary;
  const all = successful + failed;
  const [worst] = failures;
  const kind: Kind = all === 0 ? "unknown" : failed === 0 ? "ok" : failed / all >= 0.05 ? "bad" : "warn";
  const title =
    all === 0
      ? "The reports of these days count no sessions"
      : failed === 0
        ? `All ${numberText(all)} sessions used TLS as required`
        : `${numberText(failed)} of ${numberText(all)} sessions failed${worst === undefined ? "" : `, mostly because ${tlsFailureText(worst.key, domain.domain).meaning}`}`;
  return (
    <Callout {...{ kind, title }} {...(all === 0 ? {} : { aside: `${percentText(successful / all)} successful` })}>
      <p>
        By {countText(reports, "report")}
        {isCut && ", the newest; older ones of these days are not counted here"}.
      </p>
    </Callout>
  );
};

interface SessionsProps {
  readonly summary: TlsSummary;
  readonly range: { readonly fromDay: number; readonly toDay: number };
}

const POLICY_TYPES: Readonly<Record<string, string>> = {
  sts: "MTA-STS",
  tlsa: "DANE (TLSA)",
  "no-policy-found": "No policy",
  "": "Not stated",
};

const Sessions = ({ summary, range: { fromDay, toDay } }: SessionsProps) => {
  const byDay = new Map(summary.days.map((day) => [day.day, day]));
  const days = Array.from({ length: toDay - fromDay + 1 }, (_, at) => fromDay + at);
  return (
    <Columns
      side={
        <Panel title="By policy" isFlush>
          <Table
            caption="Sessions by policy"
            columns={[{ title: "Policy" }, { title: "Sessions", align: "end" }, { title: "Successful", align: "end" }]}
            rows={summary.policies.map(({ policyType, successful, failed }) => ({
              key: policyType,
              cells: [
                POLICY_TYPES[policyType] ?? policyType,
                <Num value={successful + failed} />,
                <Percent part={successful} whole={successful + failed} />,
              ],
            }))}
          />
        </Panel>
      }
    >
      <Panel title="Sessions a day">
        <BarChart
          caption="TLS sessions a day"
          days={days.map(isoDay)}
          series={[
            { title: "Successful", kind: "ok", values: days.map((day) => byDay.get(day)?.successful ?? null) },
            { title: "Failed", kind: "bad", values: days.map((day) => byDay.get(day)?.failed ?? null) },
          ]}
        />
      </Panel>
    </Columns>
  );
};

const Failures = ({
  summary: { failures, hosts },
  domain,
}: {
  readonly summary: TlsSummary;
  readonly domain: DomainRow;
}) =>
  failures.length === 0 ? null : (
    <Columns
      side={
        <Panel title="By receiving host" isFlush>
          {hosts.length === 0 ? (
            <p class="panel-body soft">The reports name no hosts.</p>
          ) : (
            <Table
              caption="Failed sessions by receiving host"
              columns={[{ title: "Host" }, { title: "Failed", align: "end" }]}
              rows={hosts.map(({ key, failed, resultTypes }) => ({
                key,
                cells: [
                  <>
                    <Mono text={key} />
                    <span class="second">
                      {resultTypes.map((type) => tlsFailureText(type, domain.domain).meaning).join("; ")}
                    </span>
                  </>,
                  <Num value={failed} />,
                ],
              }))}
            />
          )}
        </Panel>
      }
    >
      <Panel title="Why sessions failed" isFlush>
        <ul class="checklist">
          {failures.map(({ key, failed }) => {
            const { meaning, advice } = tlsFailureText(key, domain.domain);
            return (
              <li key={key}>
                <Badge kind="bad">{numberText(failed)}</Badge>
                <div>
                  <b>{`${meaning.charAt(0).toUpperCase()}${meaning.slice(1)}`}</b>{" "}
                  <span class="soft small mono">{key}</span>
                  <p class="small">
                    <span class="soft">What to do:</span> {advice}
                  </p>
                </div>
              </li>
            );
          })}
        </ul>
      </Panel>
    </Columns>
  );

/** The reports of a page. One row more than it holds tells that there is a next one. */
const ReportList = ({ rows, limit }: { readonly rows: readonly TlsReportRow[]; readonly limit: number }) => {
  const { rows: shown, next } = firstRows(rows, limit, ({ id }) => id);
  return (
    <Panel title="Reports" isFlush>
      <Table
        caption="TLS reports, the most recently received first"
        columns={[
          { title: "Reporter" },
          { title: "Period" },
          { title: "Successful", align: "end" },
          { title: "Failed", align: "end" },
          { title: "Received" },
        ]}
        rows={shown.map(({ id, org, reportId, beginMs, endMs, successfulSessions, failedSessions, receivedAtMs }) => ({
          key: id,
          cells: [
            <>
              {org ?? <span class="soft">no name</span>}
              {reportId !== null && (
                <span class="second">
                  <Mono text={reportId} />
                </span>
              )}
            </>,
            beginMs === null ? (
              <span class="soft">not stated</span>
            ) : (
              <>
                <Time atMs={beginMs} style="day" />
                {endMs !== null && endMs - beginMs > 86_400_000 && (
                  <>
                    {" "}
                    to <Time atMs={endMs} style="day" />
                  </>
                )}
              </>
            ),
            <Num value={successfulSessions} />,
            <Num value={failedSessions} />,
            <Time atMs={receivedAtMs} />,
          ],
        }))}
      />
      <Pager next={next} shown={shown.length} rows={limit} />
    </Panel>
  );
};
