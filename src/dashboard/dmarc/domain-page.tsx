import { z } from "zod";
import { Link } from "../components/link.tsx";
import { Empty } from "../components/empty.tsx";
import { countText } from "../components/number.tsx";
import { Panel } from "../components/panel.tsx";
import { formAction, page, type PageRoute } from "../page.ts";
import { redirectTo, redirectToPath } from "../redirect.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { backPath } from "./class-actions.ts";
import { BulkClassForm } from "./class-form.tsx";
import { DomainHead } from "./domain-head.tsx";
import { HeaderFromNames, MailChart, NextStepCallout, OpenAlerts, StatusLine } from "./domain-view.tsx";
import { Reporters } from "./reporters-panel.tsx";
import { RangeLinks, rangeParameter } from "./range-links.tsx";
import { SourceTable } from "./source-table.tsx";
import type { DmarcPageUseCases } from "./page-use-cases.ts";

/** Sources shown on the page of a domain; the others are on a page of their own. */
const SOURCES_SHOWN = 10;

export const domainParameters = z.object({ id: z.string().refine(isId) });
const query = z.object({ days: rangeParameter });

/** A domain: the next step, its mail by outcome, who sends and who reports. */
export const domainPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc/:id", params: domainParameters, query }, ({ viewer, params: { id }, query: { days } }) => {
    const { overview, reading } = useCases;
    const { row, summary, sources, days: outcomes, changes, reporters } = reading.domain(viewer.caller, id, days);
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
          <NextStepCallout {...{ row, status, overview: overview.overviewOf(row) }} />
          <OpenAlerts id={id} alerts={overview.openAlertsOf(viewer.caller, row)} />
          <MailChart {...{ domain: row.domain, summary, days: outcomes, changes }} />
          <Panel
            title="Who sends"
            aside={<Link href={`/dmarc/${id}/sources?days=${days}`}>All {countText(sources.length, "source")}</Link>}
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
          <div class="halves">
            <Reporters id={id} reporters={reporters} />
            <HeaderFromNames names={summary.names} />
          </div>
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
