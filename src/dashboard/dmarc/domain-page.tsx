import { z } from "zod";
import { Link, ButtonLink, Badge, HelpText } from "../components/inline.tsx";
import { Empty, Panel, Callout } from "../components/panel.tsx";
import { countText, numberText, Percent, Time } from "../components/figures.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectTo, redirectToPath } from "../visit.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { BackField, backPath, BulkClassForm, SourceTable } from "./source-classes.tsx";
import { DomainHead, RangeLinks, rangeParameter } from "./domain-head.tsx";
import { CHANGES_SHOWN, RecordChanges } from "./record-changes.tsx";
import { Reporters } from "./reporters.tsx";
import { BlocklistForm } from "./source-details.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";
import type { DomainRow } from "../../dmarc/records/domains/domain-store.ts";
import { readLastCheck, readState } from "../../dmarc/records/domains/domain-state.ts";
import type { ShownAlert } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import type { DomainOverview, ListedStatus } from "../../dmarc/alerts/overview/domain-overview-store.ts";
import type { OutcomeDay } from "../../dmarc/alerts/overview/dmarc-reading.ts";
import type { RecordChange } from "../../dmarc/alerts/overview/record-changes.ts";
import type { Summary } from "../../dmarc/insight/queries/summary.ts";
import { BarChart } from "../components/chart.tsx";
import { Button, PostForm } from "../components/form.tsx";
import { Table } from "../components/table.tsx";
import { policyWords, DOMAIN_STATUS_WORDS, stepWords } from "./dmarc-words.ts";

/** Sources shown on the page of a domain; the others are on a page of their own. */
const SOURCES_SHOWN = 10;

export const domainParameters = z.object({ id: z.string().refine(isId) });
const query = z.object({ days: rangeParameter });

/** A domain: the next step, its mail by outcome, who sends and who reports. */
export const domainPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc/:id", params: domainParameters, query }, async ({ viewer, params: { id }, query: { days } }) => {
    const { overview, reading } = useCases;
    const { row, summary, sources, days: outcomes, changes, reporters } = await reading.domain(viewer.caller, id, days);
    const status = overview.statusOf(row);
    return {
      title: row.domain,
      section: "dmarc",
      body: (
        <>
          <DomainHead
            domain={row}
            current="overview"
            title={row.domain}
            meta={<StatusLine {...{ row, status, reporters: summary.reporters }} />}
            actions={<RangeLinks days={days} />}
          />
          <NextStepCallout
            {...{ row, status, overview: overview.overviewOf(row) }}
            alerts={overview.openAlertsOf(viewer.caller, row).length}
          />
          <OpenAlerts id={id} alerts={overview.openAlertsOf(viewer.caller, row)} />
          <MailChart {...{ domain: row.domain, summary, days: outcomes, changes }} />
          <RecordChanges id={id} changes={useCases.recordHistory.changes(row, CHANGES_SHOWN)} />
          <Panel
            title="Who sends"
            aside={
              <span class="actions">
                {sources.some(({ kind }) => kind === "own") && <BlocklistForm domain={row.domain} />}
                <Link href={`/dmarc/${id}/sources?days=${days}`}>All {countText(sources.length, "source")}</Link>
              </span>
            }
            isFlush
          >
            {sources.length === 0 ? (
              <NoSources />
            ) : (
              <>
                <SourceTable domainId={id} sources={sources.slice(0, SOURCES_SHOWN)} query={`?days=${days}`} />
                <BulkClassForm domainId={id} />
              </>
            )}
          </Panel>
          {summary.names.some(({ header_from: name }) => name !== row.domain) ? (
            <div class="halves">
              <Reporters id={id} reporters={reporters} />
              <HeaderFromNames names={summary.names} />
            </div>
          ) : (
            <Reporters id={id} reporters={reporters} />
          )}
        </>
      ),
    };
  }),
  ...acknowledgeActions(useCases),
];

const NoSources = () => (
  <Empty title="No report covers these days">
    <p>Receivers send reports once a day. The first ones arrive a day or two after the record is published.</p>
  </Empty>
);

const acknowledgeActions = ({ domains, overview }: DmarcPageUseCases): readonly PageRoute[] => [
  formAction(
    {
      path: "/dmarc/:id/alerts/:alert/acknowledge",
      params: domainParameters.extend({ alert: z.string().refine(isId) }),
      form: z.object({ back: z.string().default("") }),
    },
    async ({ viewer, params: { id, alert }, form }) => {
      await overview.acknowledge(() => domains.find(viewer.caller, id), alert);
      return redirectToPath(backPath(viewer, form.back, `/dmarc/${id}`), { ok: "Acknowledged." });
    },
  ),
  formAction(
    { path: "/dmarc/:id/pause", params: domainParameters, form: z.object({ monitoring: z.enum(["on", "off"]) }) },
    async ({ viewer, params: { id }, form: { monitoring } }) => {
      const isOn = monitoring === "on";
      const { domain } = await domains.change(viewer.caller, id, { monitoringEnabled: isOn });
      return redirectTo(viewer, `/dmarc/${id}/settings`, {
        ok: isOn ? `${domain} is monitored again.` : `Monitoring of ${domain} is paused.`,
      });
    },
  ),
];

interface StatusProps {
  readonly row: DomainRow;
  readonly status: ListedStatus;
  readonly reporters: number;
}

/** The line below the name of a domain: status, policy, reports. */
const StatusLine = ({ row, status, reporters }: StatusProps) => {
  const { kind, text } = DOMAIN_STATUS_WORDS[status];
  return (
    <>
      <Badge kind={kind}>{text}</Badge>
      <span class="mono">{policyWords(readState(row.state)?.believed.policy)}</span>
      {row.lastReportAtMs === null ? (
        <span>no report yet</span>
      ) : (
        <span>
          reports from {countText(reporters, "receiver")}, the last <Time atMs={row.lastReportAtMs} />
        </span>
      )}
      {row.label !== null && <span>{row.label}</span>}
    </>
  );
};

/** What to do next: what is broken comes before the advice. */
const NextStepCallout = ({
  row,
  status,
  overview,
  alerts,
}: {
  readonly row: DomainRow;
  readonly status: ListedStatus;
  readonly overview: DomainOverview | null;
  /** Open alerts of the domain. */
  readonly alerts: number;
}) => {
  const failed = readLastCheck(row.lastCheck)?.checks.find(({ ok }) => ok === false);
  if (row.status === "action_required")
    return (
      <Callout kind="bad" title="Reports cannot arrive" actions={<RecordLink id={row.id} />}>
        <p>{failed?.message ?? "The last check of the DNS failed."}</p>
      </Callout>
    );
  if (row.status === "pending")
    return (
      <Callout kind="info" title="Next step: publish the record" actions={<RecordLink id={row.id} />}>
        <p>{failed?.message ?? "Reports arrive when the DMARC record has the reporting address of this domain."}</p>
      </Callout>
    );
  if (status === "paused")
    return (
      <Callout kind="unknown" title="Monitoring is paused" actions={<SettingsLink id={row.id} />}>
        <p>Reports are still accepted and counted, but the DNS is not checked.</p>
      </Callout>
    );
  return <AdviceCallout id={row.id} overview={overview} alerts={alerts} />;
};

const RecordLink = ({ id }: { readonly id: string }) => (
  <ButtonLink kind="main" href={`/dmarc/${id}/record`}>
    Show the record
  </ButtonLink>
);

const SettingsLink = ({ id }: { readonly id: string }) => (
  <ButtonLink href={`/dmarc/${id}/settings`}>Settings</ButtonLink>
);

const AdviceCallout = ({
  id,
  overview,
  alerts,
}: {
  readonly id: string;
  readonly overview: DomainOverview | null;
  readonly alerts: number;
}) => {
  const actions = (
    <ButtonLink kind="main" href={`/dmarc/${id}/advice`}>
      See the advice
    </ButtonLink>
  );
  if (overview === null)
    return (
      <Callout kind="unknown" title="The next step is being worked out" actions={actions}>
        <p>It is here within a minute.</p>
      </Callout>
    );
  const { next, computedAtMs } = overview;
  const aside = (
    <>
      as of <Time atMs={computedAtMs} />
    </>
  );
  if (next === null)
    return (
      <Callout
        kind={alerts === 0 ? "ok" : "warn"}
        title={`No step is left.${alerts === 0 ? "" : alerts === 1 ? " 1 alert is open." : ` ${alerts} alerts are open.`}`}
        aside={aside}
        actions={actions}
      >
        <p>The policy is as strict as the advice goes. New senders and failures are still watched.</p>
      </Callout>
    );
  return (
    <Callout
      kind={next.action === "wait" ? "unknown" : "info"}
      title={`Next step: ${stepWords(next)}`}
      aside={aside}
      actions={actions}
    >
      <p>
        <HelpText text={next.why} />
      </p>
    </Callout>
  );
};

/** Open problems, with the fix. */
export const OpenAlerts = ({
  id,
  alerts,
  hasLink = true,
}: {
  readonly id: string;
  readonly alerts: readonly ShownAlert[];
  /** Whether a link leads to the page of all alerts. */
  readonly hasLink?: boolean;
}) =>
  alerts.length === 0 ? null : (
    <Panel
      title="Needs attention"
      {...(hasLink ? { aside: <Link href={`/dmarc/${id}/alerts`}>All alerts</Link> } : {})}
      isFlush
    >
      <ul class="items">
        {alerts.map((alert) => (
          <li key={alert.id}>
            <div>
              <Badge kind={alert.severity}>{alert.label}</Badge>
            </div>
            <h3>
              <HelpText text={alert.title} />
            </h3>
            <div class="actions">
              <ButtonLink href={alert.action.path}>{alert.action.text}</ButtonLink>
              <PostForm action={`/dmarc/${id}/alerts/${alert.id}/acknowledge`}>
                <BackField />
                <Button kind="quiet" title="It needs nobody any more">
                  Acknowledge
                </Button>
              </PostForm>
            </div>
            <p class="detail">
              <HelpText text={alert.detail} />
              {alert.sinceMs !== null && (
                <>
                  {" "}
                  Raised <Time atMs={alert.sinceMs} />.
                </>
              )}
            </p>
          </li>
        ))}
      </ul>
    </Panel>
  );

const sum = (days: readonly OutcomeDay[], part: "forwarded"): number => days.reduce((all, day) => all + day[part], 0);

interface MailChartProps {
  readonly domain: string;
  readonly summary: Summary;
  readonly days: readonly OutcomeDay[];
  readonly changes: readonly RecordChange[];
}

/** Messages a day by outcome, with marks where the record changed. */
const MailChart = ({ domain, summary, days, changes }: MailChartProps) => {
  const known = (count: (day: OutcomeDay) => number) => days.map((day) => (day.isReported ? count(day) : null));
  const { messages, aligned } = summary;
  return (
    <Panel
      title={`Mail in the name of ${domain}`}
      aside={
        <>
          {countText(messages, "message")}, <Percent part={aligned} whole={messages} /> aligned
        </>
      }
    >
      {messages === 0 ? (
        <p class="soft">No report covers these days; mail may have been sent.</p>
      ) : (
        <BarChart
          caption={`Messages a day in the name of ${domain}`}
          unit="messages"
          days={days.map(({ day }) => day)}
          series={[
            { title: "Aligned", kind: "ok", values: known((day) => day.aligned) },
            { title: "Failing, from your own services", kind: "warn", values: known((day) => day.own) },
            { title: "Failing, from other senders", kind: "bad", values: known((day) => day.strangers) },
            ...(sum(days, "forwarded") > 0
              ? [{ title: "Failing, forwarded", kind: "unknown" as const, values: known((day) => day.forwarded) }]
              : []),
          ]}
          markers={changes.map(({ day, text }) => ({ day, text }))}
        />
      )}
      {summary.unauthenticated_note !== null && <p class="soft small">{summary.unauthenticated_note}</p>}
      {summary.unknown_reporter_note !== null && <p class="soft small">{summary.unknown_reporter_note}</p>}
    </Panel>
  );
};

/** The domains in From; shown where there is another one than the domain itself. */
const HeaderFromNames = ({ names }: { readonly names: Summary["names"] }) => (
  <Panel title="Domains in From" isFlush>
    <Table
      caption="Domains in From (header_from)"
      columns={[{ title: "Domain in From" }, { title: "Messages", align: "end" }, { title: "Aligned", align: "end" }]}
      rows={names.map(({ header_from: name, messages, aligned }) => ({
        key: name ?? "",
        cells: [
          name === null ? <span class="soft">other domains</span> : <span class="mono">{name}</span>,
          numberText(messages),
          <Percent part={aligned} whole={messages} />,
        ],
      }))}
    />
  </Panel>
);
