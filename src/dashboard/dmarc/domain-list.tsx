import { z } from "zod";
import type { DomainList, DomainListItem } from "../../dmarc/alerts/overview/dmarc-overview.ts";
import {
  DOMAIN_ORDERS,
  type DomainOrder,
  LISTED_STATUSES,
  type ListedStatus,
} from "../../dmarc/alerts/overview/domain-overview-store.ts";
import { tagSchema } from "../../dmarc/records/domains/enrolments.ts";
import { readLastCheck, readState } from "../../dmarc/records/domains/domain-state.ts";
import { Sparkline } from "../components/chart.tsx";
import { Empty, PageHead, Panel } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { ButtonLink, DownloadLink, Link, Badge, HelpText } from "../components/inline.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { type Column, Table, type TableRow } from "../components/table.tsx";
import { Time, countText, numberText, Percent } from "../components/figures.tsx";
import { page, type PageRoute } from "../page.ts";
import type { View } from "../visit.ts";
import { domainCsv } from "./domain-csv.ts";
import { tagPath } from "./tag-page.tsx";
import type { ShownTag } from "../../dmarc/tag-routes.ts";
import { policyWords, DOMAIN_STATUS_WORDS, stepWords } from "./dmarc-words.ts";
import type { DmarcPageUseCases } from "./use-cases.ts";

const TEXT_CHARACTERS_MAX = 253;
/** More tags than these are folded: the list of domains is what the page is for. */
const TAGS_OPEN_MAX = 3;

const query = z.object({
  status: z.enum(LISTED_STATUSES).optional(),
  text: z.string().trim().max(TEXT_CHARACTERS_MAX).default(""),
  tag: tagSchema.optional(),
  sort: z.enum(DOMAIN_ORDERS).default("worst"),
  /** The rows before this page. */
  cursor: z.coerce.number().int().min(0).max(100_000).default(0),
  rows: rowsParameter,
});
type ListState = z.output<typeof query>;

/** All domains of the account, worst first, and the same as CSV. */
export const domainListPages = ({ overview, tags }: DmarcPageUseCases): readonly PageRoute[] => [
  page({ path: "/dmarc", query }, ({ viewer, query: state }) => {
    const counts = overview.countByStatus(viewer.caller);
    if (counts.size === 0) return { title: "DMARC", section: "dmarc", body: <FirstDomain /> };
    const { status = null, text, tag = null, sort, cursor, rows } = state;
    const list = overview.list(viewer.caller, { status, text, tag, order: sort, limit: rows, offset: cursor });
    return listView({ list, counts, state, tags: tags.list(viewer.caller) });
  }),
  page({ path: "/dmarc.csv", query }, ({ request, viewer, query: { status = null, text, tag = null, sort } }) =>
    domainCsv(request, (limit, offset) =>
      overview.list(viewer.caller, { status, text, tag, order: sort, limit, offset }),
    ),
  ),
];

interface ListProps {
  readonly list: DomainList;
  readonly counts: ReadonlyMap<ListedStatus, number>;
  readonly state: ListState;
  readonly tags: readonly ShownTag[];
}

const listView = (props: ListProps): View => {
  const { list, counts, state, tags } = props;
  const { cursor, rows } = state;
  const total = [...counts.values()].reduce((sum, count) => sum + count, 0);
  return {
    title: "DMARC",
    section: "dmarc",
    body: (
      <>
        <PageHead
          title="DMARC"
          meta={<ListSummary counts={counts} total={total} />}
          actions={
            <>
              <ButtonLink href="/dmarc/intake">Received reports</ButtonLink>
              <DownloadLink href={csvPath(state)}>CSV</DownloadLink>
              <ButtonLink kind="main" href="/dmarc/new" icon="plus">
                Enroll a domain
              </ButtonLink>
            </>
          }
        />
        <TagTable tags={tags} current={state.tag} />
        <Panel isFlush>
          <ListFilters {...state} tags={tags} />
          <ListRows {...list} sort={state.sort} />
          <Pager
            next={list.hasMore ? String(cursor + rows) : null}
            shown={list.domains.length}
            total={listTotal(props)}
            rows={rows}
          />
        </Panel>
      </>
    ),
  };
};

/** How many domains the filters let pass, where that is counted: without a text and a tag. */
const listTotal = ({ counts, state: { status, text, tag } }: ListProps): number | undefined => {
  if (text !== "" || tag !== undefined) return undefined;
  return status === undefined ? [...counts.values()].reduce((sum, count) => sum + count, 0) : counts.get(status);
};

const csvPath = ({ status, text, tag, sort }: ListState): string => {
  const parameters = new URLSearchParams({
    sort,
    text,
    ...(status === undefined ? {} : { status }),
    ...(tag === undefined ? {} : { tag }),
  });
  return `/dmarc.csv?${parameters}`;
};

const ListSummary = ({
  counts,
  total,
}: {
  readonly counts: ReadonlyMap<ListedStatus, number>;
  readonly total: number;
}) => (
  <>
    <span>{countText(total, "domain")}</span>
    {LISTED_STATUSES.filter((status) => status !== "active" && (counts.get(status) ?? 0) > 0).map((status) => (
      <Link key={status} href={`/dmarc?status=${status}`}>
        {numberText(counts.get(status) ?? 0)} {DOMAIN_STATUS_WORDS[status].text.toLowerCase()}
      </Link>
    ))}
  </>
);

const ORDER_WORDS: Readonly<Record<DomainOrder, string>> = {
  worst: "Worst first",
  name: "Name",
  messages: "Most messages",
  aligned: "Lowest aligned share",
  last_report: "Last report",
};

const TAG_COLUMNS: readonly Column[] = [
  { title: "Tag" },
  { title: "Domains", align: "end" },
  { title: "Messages in 30 days", align: "end" },
  { title: "Aligned", align: "end" },
  { title: "Failing, to act on", align: "end" },
  { title: "Open alerts", align: "end" },
  { title: "Digest" },
];

/** "12 tags, 3 with open alerts". */
const tagsSummary = (tags: readonly ShownTag[]): string => {
  const alerted = tags.filter(({ open_alerts: alerts }) => alerts > 0).length;
  return `${countText(tags.length, "tag")}${alerted === 0 ? "" : `, ${numberText(alerted)} with open alerts`}`;
};

/** The groups of domains with their figures; nothing where no domain has a tag. */
const TagTable = ({ tags, current }: { readonly tags: readonly ShownTag[]; readonly current: string | undefined }) =>
  tags.length === 0 ? null : (
    <details class="panel fold" open={current === undefined && tags.length <= TAGS_OPEN_MAX}>
      <summary>{tagsSummary(tags)}</summary>
      <Table
        caption="Tags"
        columns={TAG_COLUMNS}
        rows={tags.map(({ tag, domains, messages, aligned, actionable, open_alerts: alerts, digest }) => ({
          key: tag,
          cells: [
            <Link href={`/dmarc?tag=${encodeURIComponent(tag)}`} isCurrent={tag === current}>
              {tag}
            </Link>,
            numberText(domains),
            numberText(messages),
            messages === 0 ? <span class="soft">–</span> : <Percent part={aligned} whole={messages} />,
            numberText(actionable),
            numberText(alerts),
            <Link href={tagPath(tag)}>{digest}</Link>,
          ],
        }))}
      />
    </details>
  );

const ListFilters = ({ status, text, tag, tags, sort }: ListState & { readonly tags: readonly ShownTag[] }) => (
  <Filters action="/dmarc">
    <Field name="text" label="Name or label" type="search" value={text} />
    <SelectField
      name="status"
      label="Status"
      value={status ?? ""}
      options={[["", "All"], ...LISTED_STATUSES.map((one) => [one, DOMAIN_STATUS_WORDS[one].text] as const)]}
    />
    {tags.length > 0 && (
      <SelectField
        name="tag"
        label="Tag"
        value={tag ?? ""}
        options={[["", "All"], ...tags.map((one) => [one.tag, one.tag] as const)]}
      />
    )}
    <SelectField
      name="sort"
      label="Order"
      value={sort}
      options={DOMAIN_ORDERS.map((one) => [one, ORDER_WORDS[one]] as const)}
    />
  </Filters>
);

const COLUMNS: readonly Column[] = [
  { title: "Domain", sort: "name", isMain: true },
  { title: "Status" },
  { title: "Policy" },
  { title: "Aligned", align: "end", sort: "aligned" },
  { title: "30 days", sort: "messages" },
  { title: "Last report", sort: "last_report" },
  { title: "Next step", isText: true },
];

const ListRows = ({ domains, sort }: DomainList & { readonly sort: string }) =>
  domains.length === 0 ? (
    <Empty title="No domain matches" action={<ButtonLink href="/dmarc">Show all domains</ButtonLink>}>
      <p>Change the filters.</p>
    </Empty>
  ) : (
    <Table caption="Domains" columns={COLUMNS} rows={domains.map(rowOf)} sort={sort} />
  );

const rowOf = (item: DomainListItem): TableRow => {
  const { row, overview } = item;
  return {
    key: row.id,
    cells: [
      <>
        <Link href={`/dmarc/${row.id}`} class="plain">
          {row.domain}
        </Link>
        {row.label !== null && <span class="second">{row.label}</span>}
        {row.tags.length > 0 && (
          <span class="second">
            {row.tags.map((tag) => (
              <Link key={tag} href={`/dmarc?tag=${encodeURIComponent(tag)}`} class="tag">
                {tag}
              </Link>
            ))}
          </span>
        )}
      </>,
      <StatusCell {...item} />,
      <PolicyCell {...item} />,
      overview === null || overview.messages30 === 0 ? (
        <span class="soft">–</span>
      ) : row.sendsMail === false && overview.aligned30 === 0 ? (
        <span class="soft">sends no mail</span>
      ) : (
        <>
          <Percent part={overview.aligned30} whole={overview.messages30} />
          <span class="second">
            7 days: <Percent part={overview.aligned7} whole={overview.messages7} />
          </span>
        </>
      ),
      <TrafficCell {...item} />,
      row.lastReportAtMs === null ? <span class="soft">none yet</span> : <Time atMs={row.lastReportAtMs} />,
      <StepCell {...item} />,
    ],
    menu: {
      about: row.domain,
      copy: { text: row.domain, label: "Copy the domain" },
      acts: [
        { text: "Check the record", icon: "refresh-cw", action: `/dmarc/${row.id}/record/check` },
        { text: "Settings", icon: "settings", href: `/dmarc/${row.id}/settings` },
        { text: "Delete …", icon: "trash-2", href: `/dmarc/${row.id}/delete` },
      ],
    },
  };
};

const StatusCell = ({ row, status, attention }: DomainListItem) => {
  const { kind, text } = DOMAIN_STATUS_WORDS[status];
  const [worst] = attention;
  const failed = readLastCheck(row.lastCheck)?.checks.find(({ ok }) => ok === false);
  return (
    <>
      <Badge kind={status === "active" && worst !== undefined ? worst.severity : kind}>
        {status === "active" && worst !== undefined ? worst.label : text}
      </Badge>
      {status === "active" && worst !== undefined && (
        <span class="second reason">
          <HelpText text={worst.title} />
        </span>
      )}
      {status === "action_required" && failed !== undefined && <span class="second reason">{failed.message}</span>}
      {status === "silent" && row.lastReportAtMs !== null && (
        <span class="second">
          since <Time atMs={row.lastReportAtMs} style="day" />
        </span>
      )}
      {status === "pending" && <span class="second">until the record is published</span>}
    </>
  );
};

const PolicyCell = ({ row }: DomainListItem) => {
  const policy = readState(row.state)?.believed.policy;
  return (
    <>
      <span class={policy == null ? "soft" : "mono nowrap"}>{policyWords(policy)}</span>
      {policy?.inherited_from != null && <span class="second">of {policy.inherited_from}</span>}
    </>
  );
};

const TrafficCell = ({ row, overview }: DomainListItem) => {
  if (overview === null) return <span class="soft">within a minute</span>;
  if (overview.messages30 === 0) return <span class="soft">no mail reported</span>;
  const days = overview.messages.filter((count) => count !== null).length;
  const total = numberText(overview.messages30);
  return (
    <span class="traffic">
      <Sparkline
        series={[
          { kind: "ok", values: overview.messages.map((all, at) => all && all - (overview.failing[at] ?? 0)) },
          { kind: row.sendsMail === false ? "unknown" : "bad", values: overview.failing },
        ]}
        label={`${total} messages, ${numberText(overview.aligned30)} aligned, reports about ${days} of 30 days`}
      />
      <span class="second num">{countText(overview.messages30, "message")}</span>
    </span>
  );
};

const StepCell = ({ row, overview }: DomainListItem) => {
  if (overview === null) return <span class="soft">–</span>;
  const { next } = overview;
  return next === null ? (
    <span class="soft">No step left</span>
  ) : (
    <Link href={`/dmarc/${row.id}/advice`}>{stepWords(next)}</Link>
  );
};

const FirstDomain = () => (
  <Panel>
    <Empty
      isPage
      title="See who sends mail in your name"
      action={
        <ButtonLink kind="main" href="/dmarc/new" icon="plus">
          Enroll your first domain
        </ButtonLink>
      }
    >
      <p>
        Mail receivers such as Google, Microsoft and Yahoo send a daily report about the mail they saw from your domain:
        which servers sent it, and whether it passed SPF, DKIM and DMARC. They send it to the address in your DMARC
        record.
      </p>
      <ol class="plain-steps">
        <li>Enroll a domain. It gets a reporting address of its own.</li>
        <li>Publish the TXT record that we show. It is your present record with this address added.</li>
        <li>The first reports arrive within a day or two. They show your own services, forwarders and forgers.</li>
        <li>Step by step you get advice on how to make receivers reject forged mail, without losing your own.</li>
      </ol>
    </Empty>
  </Panel>
);
