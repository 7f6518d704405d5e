import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import type { FailureReportDetail, ShownFailureReport } from "../../dmarc/insight/queries/report-reader.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, Callout, Columns, Panel, Row, Rows } from "../components/panel.tsx";
import { ButtonLink, Link, Badge } from "../components/inline.tsx";
import { Pager, rowsParameter, firstRows } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead } from "./domain-head.tsx";
import type { DmarcReportUseCases } from "./use-cases.ts";

const PATH = "/dmarc/:id/failures";

type UseCases = Pick<DmarcReportUseCases, "domains" | "failures">;

/** Failure reports of a domain (RFC 9991): single messages that failed. */
export const failurePages = (useCases: UseCases): readonly PageRoute[] => [listPage(useCases), onePage(useCases)];

const listPage = ({ domains, failures }: UseCases): PageRoute =>
  page(
    {
      path: PATH,
      params: z.object({ id: z.string() }),
      query: z.object({ cursor: z.string().refine(isId).optional(), rows: rowsParameter }),
    },
    ({ viewer, params: { id }, query: { cursor, rows: limit } }) => {
      const domain = domains.find(viewer.caller, id);
      const found = failures.list(viewer.caller, id)({ before: cursor ?? null, limit: limit + 1 });
      const { rows, next } = firstRows(found, limit, (report) => report.id);
      return {
        title: `Failure reports about ${domain.domain}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="failures"
              title={`Failure reports about ${domain.domain}`}
              meta="about single messages; few receivers send them"
            />
            <Panel title="Single messages" isFlush>
              {rows.length === 0 && cursor === undefined ? (
                <NoFailures domain={domain} />
              ) : (
                <>
                  <FailureTable domain={domain} reports={rows} />
                  <Pager next={next} shown={rows.length} rows={limit} />
                </>
              )}
            </Panel>
          </>
        ),
      };
    },
  );

const onePage = ({ domains, failures }: UseCases): PageRoute =>
  page(
    { path: `${PATH}/:reportId`, params: z.object({ id: z.string(), reportId: z.string() }) },
    ({ viewer, params: { id, reportId } }) => {
      const domain = domains.find(viewer.caller, id);
      const report = failures.find(viewer.caller, id, reportId);
      return {
        title: `Failure report about ${domain.domain}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="failures"
              title={`A message from ${report.reported_domain ?? domain.domain} that failed`}
              meta={
                <span>
                  reported <Time atMs={Date.parse(report.received_at)} style="full" />
                </span>
              }
              actions={<ButtonLink href={`/dmarc/${id}/failures`}>All failure reports</ButtonLink>}
            />
            <FailureView report={report} />
          </>
        ),
      };
    },
  );

const NoFailures = ({ domain }: { readonly domain: DomainRow }) =>
  domain.storeFailureReports ? (
    <Empty title="No failure reports yet">
      <p>
        They arrive only if the record of {domain.domain} has a <span class="mono">ruf</span> tag with your reporting
        address, and few receivers send them.
      </p>
    </Empty>
  ) : (
    <Empty
      title="Failure reports are not stored"
      action={<ButtonLink href={`/dmarc/${domain.id}/settings`}>Settings of the domain</ButtonLink>}
    >
      <p>
        A failure report shows the header of a single message that failed, and so contains personal data. They are
        counted, but not stored unless you switch that on in the settings of the domain; local parts, names and subjects
        are removed unless you say otherwise.
      </p>
    </Empty>
  );

const DELIVERIES: Readonly<Record<string, string>> = {
  delivered: "Delivered",
  spam: "Put into the spam folder",
  policy: "Held back by policy",
  reject: "Rejected",
  other: "Something else",
};

const deliveryText = (result: string | null): string =>
  result === null ? "Not stated" : (DELIVERIES[result.toLowerCase()] ?? result);

const CAUSES: Readonly<Record<string, string>> = {
  dmarc: "DMARC",
  dkim: "DKIM",
  spf: "SPF",
  adsp: "ADSP",
  bodyhash: "DKIM: the body was changed",
  revoked: "DKIM: the key is revoked",
  signature: "DKIM: the signature is wrong",
};

const causeText = (failure: string | null): string =>
  failure === null ? "Not stated" : (CAUSES[failure.toLowerCase()] ?? failure);

const FailureTable = ({
  domain,
  reports,
}: {
  readonly domain: DomainRow;
  readonly reports: readonly ShownFailureReport[];
}) => (
  <Table
    caption="Failure reports, the most recently received first"
    columns={[
      { title: "Reported" },
      { title: "Sent by", isMono: true },
      { title: "What failed" },
      { title: "What the receiver did" },
      { title: "Signed by", isMono: true },
      { title: "Envelope sender", isMono: true },
    ]}
    rows={reports.map((report) => ({
      key: report.id,
      cells: [
        <Link href={`/dmarc/${domain.id}/failures/${report.id}`}>
          <Time atMs={Date.parse(report.received_at)} />
        </Link>,
        report.source_ip ?? "–",
        causeText(report.auth_failure),
        deliveryText(report.delivery_result),
        report.dkim_domain === null ? "–" : <Mono text={report.dkim_domain} />,
        report.original_mail_from === null ? "–" : <Mono text={report.original_mail_from} />,
      ],
    }))}
  />
);

const FailureView = ({ report }: { readonly report: FailureReportDetail }) => {
  const facts: ReadonlyArray<readonly [string, string | null]> = [
    ["Sent by", report.source_ip],
    ["Arrived at the receiver", report.arrival_date],
    ["Envelope sender", report.original_mail_from],
    ["Envelope recipient", report.original_rcpt_to],
    ["Not aligned", report.identity_alignment],
    ["Signing domain (DKIM)", report.dkim_domain],
    ["Selector (DKIM)", report.dkim_selector],
    ["Identity (DKIM)", report.dkim_identity],
    ["SPF record that was evaluated", report.spf_dns],
    ["Software of the reporter", report.user_agent],
  ];
  return (
    <>
      <Callout
        kind="warn"
        label={causeText(report.auth_failure)}
        title={report.delivery_result === null ? "Delivery not stated" : deliveryText(report.delivery_result)}
      >
        {report.authentication_results !== null && <p class="mono">{report.authentication_results}</p>}
      </Callout>
      <Columns side={<Redaction report={report} />}>
        <Panel title="What the report says" isFlush>
          <Rows>
            {facts.flatMap(([label, value]) =>
              value === null
                ? []
                : [
                    <Row key={label} label={label}>
                      <span class="mono">{value}</span>
                    </Row>,
                  ],
            )}
          </Rows>
        </Panel>
      </Columns>
      <Panel title="Header of the message" isFlush>
        {report.headers.length === 0 ? (
          <p class="panel-body soft">The report contains no header.</p>
        ) : (
          <Table
            caption="Header fields of the message"
            columns={[{ title: "Field" }, { title: "Value", isMono: true, isText: true }]}
            rows={report.headers.map(({ name, value }, at) => ({ key: at, cells: [<b>{name}</b>, value] }))}
          />
        )}
      </Panel>
    </>
  );
};

const Redaction = ({ report: { redacted } }: { readonly report: FailureReportDetail }) => (
  <Panel title="Privacy" aside={<Badge kind={redacted ? "ok" : "info"}>{redacted ? "Redacted" : "As received"}</Badge>}>
    <p class="soft">
      {redacted
        ? "Local parts, names, the subject and other header fields were removed before the report was stored."
        : "The header is stored as it was received, with names and addresses, because redaction was off for this domain."}{" "}
      The body of the message is never stored.
    </p>
  </Panel>
);
