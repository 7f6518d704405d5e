import { z } from "zod";
import {
  HOST_RESULTS,
  isHostCursor,
  type OwnHostQuery,
  pageOfHosts,
  type ShownHost,
} from "../../dmarc/insight/queries/own-host-routes.ts";
import { decodeCursor, encodeCursor } from "../../foundation/http/route-input.ts";
import { Badge, ButtonLink, DownloadLink } from "../components/inline.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { Day, countText, numberText, Percent } from "../components/figures.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Table } from "../components/table.tsx";
import { page, type PageRoute } from "../page.ts";
import { DomainHead, RangeLinks, rangeParameter } from "./domain-head.tsx";
import { domainParameters } from "./domain-page.tsx";
import { BlocklistForm } from "./source-details.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";

const TEXT_CHARACTERS_MAX = 253;

const query = z.object({
  days: rangeParameter,
  result: z.enum(HOST_RESULTS).optional(),
  department: z.string().trim().max(TEXT_CHARACTERS_MAX).default(""),
  cursor: z.string().transform(decodeCursor).refine(isHostCursor).optional(),
  rows: rowsParameter,
});
type HostsState = z.output<typeof query>;

const hostQuery = ({ reading }: DmarcPageUseCases, { days, result, department }: HostsState): OwnHostQuery => {
  const { fromDay, toDay } = reading.range(days);
  return { from: fromDay, to: toDay, result, department };
};

const parametersOf = ({ days, result, department }: HostsState): string =>
  new URLSearchParams({ days: String(days), department, ...(result === undefined ? {} : { result }) }).toString();

/** The own servers of a domain one by one, and the same as CSV. */
export const ownHostPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => [
  page(
    { path: "/dmarc/:id/own-hosts", params: domainParameters, query },
    async ({ viewer, params: { id }, query: state }) => {
      const found = await useCases.ownHosts.list(viewer.caller, id, hostQuery(useCases, state));
      const { domain, hosts, counts } = found;
      const { page: shown, next } = pageOfHosts(hosts, { after: state.cursor ?? null, limit: state.rows });
      const views = await useCases.ownHosts.view(found, shown);
      return {
        title: `Own servers of ${domain.domain}`,
        section: "dmarc",
        body: (
          <>
            <DomainHead
              domain={domain}
              current="sources"
              title={`Own servers of ${domain.domain}`}
              more={[["Sources", `/dmarc/${id}/sources`]]}
              meta={
                <>
                  {counts.failing > 0 && <Badge kind="bad">{numberText(counts.failing)} failing</Badge>}
                  <span>{numberText(counts.passing)} passing</span>
                  <span>most failing first</span>
                </>
              }
              actions={
                <>
                  <BlocklistForm domain={domain.domain} />
                  <RangeLinks days={state.days} />
                  <DownloadLink href={`/dmarc/${id}/own-hosts.csv?${parametersOf(state)}`}>
                    CSV of {countText(hosts.length, "server")}
                  </DownloadLink>
                </>
              }
            />
            <Panel isFlush>
              <HostFilters id={id} state={state} counts={counts} />
              {views.length === 0 ? <NoHost id={id} /> : <HostTable hosts={views} id={id} />}
              <Pager
                next={next === null ? null : encodeCursor(next)}
                shown={shown.length}
                total={hosts.length}
                rows={state.rows}
              />
            </Panel>
            <p class="soft small">
              A server counts by all of its mail in the range: it fails while less than 90 % is aligned, without
              forwarded mail. A server that was fixed has an earlier last failure than last day.
            </p>
          </>
        ),
      };
    },
  ),
  page(
    { path: "/dmarc/:id/own-hosts.csv", params: domainParameters, query },
    async ({ request, viewer, params: { id }, query: state }) =>
      useCases.ownHosts.csv(request, await useCases.ownHosts.list(viewer.caller, id, hostQuery(useCases, state))),
  ),
];

const NoHost = ({ id }: { readonly id: string }) => (
  <Empty title="No server matches" action={<ButtonLink href={`/dmarc/${id}/own-hosts`}>Show all servers</ButtonLink>}>
    <p>Change the filters, or choose a longer range.</p>
  </Empty>
);

interface HostFiltersProps {
  readonly id: string;
  readonly state: HostsState;
  readonly counts: Readonly<Record<"all" | "failing" | "passing", number>>;
}

const HostFilters = ({ id, state, counts }: HostFiltersProps) => (
  <Filters action={`/dmarc/${id}/own-hosts`}>
    <input type="hidden" name="days" value={state.days} />
    <SelectField
      name="result"
      label="Result"
      value={state.result ?? ""}
      options={[
        ["", `All (${numberText(counts.all)})`],
        ["failing", `Only failing (${numberText(counts.failing)})`],
        ["passing", `Only passing (${numberText(counts.passing)})`],
      ]}
    />
    <Field name="department" label="Department" type="search" value={state.department} />
  </Filters>
);

const HostTable = ({ hosts, id }: { readonly hosts: readonly ShownHost[]; readonly id: string }) => (
  <Table
    caption="Own servers"
    columns={[
      { title: "Server", isMain: true },
      { title: "Department" },
      { title: "Messages", align: "end" },
      { title: "Failing", align: "end" },
      { title: "Aligned", align: "end" },
      { title: "Result" },
      { title: "Last day" },
      { title: "Last failure" },
    ]}
    rows={hosts.map((host) => ({
      key: host.ip,
      cells: [
        <>
          <b>{host.reverse_name ?? (host.lookup_pending ? "name not looked up yet" : "no reverse name")}</b>
          <span class="second mono">{host.ip}</span>
        </>,
        host.department === null ? (
          <span class="soft">not known</span>
        ) : (
          <a href={`/dmarc/${id}/own-hosts?department=${encodeURIComponent(host.department)}`}>{host.department}</a>
        ),
        numberText(host.messages),
        numberText(host.failing),
        <Percent part={host.aligned} whole={host.messages} />,
        <Badge kind={host.result === "failing" ? "bad" : "ok"}>
          {host.result === "failing" ? "Failing" : "Passing"}
        </Badge>,
        <>
          <Day day={host.last_day} />
          <span class="second nowrap">
            since <Day day={host.first_day} />
          </span>
        </>,
        host.last_failing_day === null ? "none" : <Day day={host.last_failing_day} />,
      ],
    }))}
  />
);
