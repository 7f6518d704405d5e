import { z } from "zod";
import type { ReportShare } from "../../dmarc/records/domains/share-store.ts";
import { SHARE_DAYS_MAX } from "../../dmarc/records/domains/shares.ts";
import { DAY_MS } from "../../foundation/base/days.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { Button, Field, Filters, PostForm, SelectField } from "../components/form.tsx";
import { Callout, PageHead, Panel } from "../components/panel.tsx";
import { ButtonLink } from "../components/inline.tsx";
import { type Column, Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { optionalText, formAction, page, publicPage, type PageRoute } from "../page.ts";
import { redirectTo, usePage, type View } from "../visit.ts";
import { CopyBlock } from "../components/copy.tsx";
import { domainParameters } from "./domain-page.tsx";
import { DomainHead } from "./domain-head.tsx";
import { MonthReport, monthNamed, monthQuery, monthsUntil, monthTitle } from "./month-report.tsx";
import type { DmarcPageUseCases } from "./use-cases.ts";

const NOTE_CHARACTERS_MAX = 200;
const DAYS_NEEDED = `Must be a whole number of days from 1 to ${SHARE_DAYS_MAX}`;
const DAYS_DEFAULT = 30;

const form = z.object({
  days: z.coerce.number(DAYS_NEEDED).int(DAYS_NEEDED).min(1, DAYS_NEEDED).max(SHARE_DAYS_MAX, DAYS_NEEDED),
  note: optionalText(NOTE_CHARACTERS_MAX),
});

/** The monthly report of a domain, for users and, by a link that ends, for anybody. */
export const monthPages = (useCases: DmarcPageUseCases): readonly PageRoute[] => {
  const { domains, reading, overview, shares, clock } = useCases;
  const view = async (id: string, caller: Parameters<typeof domains.find>[0], name?: string): Promise<View> => {
    const row = domains.find(caller, id);
    const nowMs = clock.nowMs();
    const month = monthNamed(name, nowMs, (range) => reading.mailDays(row, range));
    const facts = await reading.month(row, month.range);
    return {
      title: `${row.domain}, ${monthTitle(month.name)}`,
      section: "dmarc",
      body: (
        <>
          <DomainHead domain={row} current="month" title={`Monthly report of ${row.domain}`} />
          <MonthChoice action={`/dmarc/${id}/month`} current={month.name} nowMs={nowMs} />
          <MonthReport {...{ row, month, facts, overview: overview.overviewOf(row) }} />
          <ShareLinks id={id} shares={shares.list(row)} nowMs={nowMs} />
        </>
      ),
    };
  };
  return [
    page({ path: "/dmarc/:id/month", params: domainParameters, query: monthQuery }, ({ viewer, params, query }) =>
      view(params.id, viewer.caller, query.month),
    ),
    formAction(
      { path: "/dmarc/:id/shares", params: domainParameters, form },
      async ({ viewer, params: { id }, form: { days, note } }) => {
        const wanted = { expiresAtMs: clock.nowMs() + days * DAY_MS, note };
        const created = await shares.create(() => domains.find(viewer.caller, id), wanted);
        return newLinkView(id, domains.find(viewer.caller, id).domain, created);
      },
      { rerender: ({ viewer, params: { id } }) => view(id, viewer.caller) },
    ),
    formAction(
      { path: "/dmarc/:id/shares/:share/revoke", params: domainParameters.extend({ share: z.string().refine(isId) }) },
      async ({ viewer, params: { id, share } }) => {
        await shares.revoke(() => domains.find(viewer.caller, id), share);
        return redirectTo(viewer, `/dmarc/${id}/month`, { ok: "The link shows nothing any more." });
      },
    ),
    sharedPage(useCases),
  ];
};

/** The report for anybody who has the link. */
const sharedPage = ({ reading, overview, shares, clock }: DmarcPageUseCases): PageRoute =>
  publicPage(
    { path: "/r/:token", params: z.object({ token: z.string() }), query: monthQuery },
    async ({ params: { token }, query }) => {
      const { row, share } = await shares.open(token);
      const month = monthNamed(query.month, clock.nowMs(), (range) => reading.mailDays(row, range));
      const facts = await reading.month(row, month.range);
      return {
        title: `${row.domain}, ${monthTitle(month.name)}`,
        section: null,
        isBare: true,
        body: (
          <>
            <MonthChoice action={`/r/${token}`} current={month.name} nowMs={clock.nowMs()} />
            <MonthReport {...{ row, month, facts, overview: overview.overviewOf(row) }} />
            <p class="soft small no-print">
              This link ends on <Time atMs={share.expiresAtMs} style="day" />.
            </p>
          </>
        ),
      };
    },
  );

const MonthChoice = (props: { readonly action: string; readonly current: string; readonly nowMs: number }) => (
  <div class="no-print stack">
    <Filters action={props.action}>
      <SelectField
        name="month"
        label="Month"
        value={props.current}
        options={monthsUntil(props.nowMs).map(({ name }) => [name, monthTitle(name)] as const)}
      />
    </Filters>
    <p class="soft">To save this page as PDF, print it and choose PDF as the printer.</p>
  </div>
);

const newLinkView = (
  id: string,
  domain: string,
  { url, expiresAtMs }: { readonly url: string; readonly expiresAtMs: number },
): View => ({
  title: `Link to the report of ${domain}`,
  section: "dmarc",
  isShownOnce: true,
  body: (
    <>
      <PageHead
        title={`Link to the report of ${domain}`}
        crumbs={[
          ["DMARC", "/dmarc"],
          [domain, `/dmarc/${id}`],
          ["Monthly report", `/dmarc/${id}/month`],
        ]}
      />
      <Callout
        kind="ok"
        title="Copy the link now: it is not shown again"
        actions={<ButtonLink href={`/dmarc/${id}/month`}>Back to the report</ButtonLink>}
      >
        <CopyBlock text={url} label="Read-only link" />
        <p>
          Anybody who has it can read the monthly reports of this domain until <Time atMs={expiresAtMs} style="day" />.
        </p>
      </Callout>
    </>
  ),
});

const COLUMNS: readonly Column[] = [
  { title: "For" },
  { title: "Created" },
  { title: "Ends" },
  { title: "Last used" },
  { title: "Revoke", isTitleHidden: true },
];

/** The read-only links to the report of a domain, and the form for another one. */
const ShareLinks = ({
  id,
  shares,
  nowMs,
}: {
  readonly id: string;
  readonly shares: readonly ReportShare[];
  readonly nowMs: number;
}) => {
  const { may } = usePage();
  if (!may(`/dmarc/${id}/shares`)) return null;
  return (
    <div class="no-print">
      <Panel title="Read-only links">
        <p class="soft">A link shows this report, and nothing else, to anybody who has it.</p>
        <PostForm action={`/dmarc/${id}/shares`} class="form">
          <Field name="note" label="For whom" value={null} />
          <Field name="days" label="Ends after days" type="number" value={DAYS_DEFAULT} />
          <Button kind="main">Create a link</Button>
        </PostForm>
      </Panel>
      {shares.length > 0 && (
        <Panel title="Links" isFlush>
          <Table
            caption="Links"
            columns={COLUMNS}
            rows={shares.map((share) => ({ key: share.id, cells: cellsOf(id, share, nowMs) }))}
          />
        </Panel>
      )}
    </div>
  );
};

const cellsOf = (id: string, share: ReportShare, nowMs: number) => {
  const { note, createdAtMs, expiresAtMs, revokedAtMs, lastUsedAtMs } = share;
  const isOpen = revokedAtMs === null && expiresAtMs > nowMs;
  return [
    note ?? <span class="soft">–</span>,
    <Time atMs={createdAtMs} style="day" />,
    revokedAtMs === null ? (
      <Time atMs={expiresAtMs} style="day" />
    ) : (
      <span>
        revoked <Time atMs={revokedAtMs} style="day" />
      </span>
    ),
    lastUsedAtMs === null ? <span class="soft">never</span> : <Time atMs={lastUsedAtMs} />,
    isOpen ? (
      <PostForm action={`/dmarc/${id}/shares/${share.id}/revoke`}>
        <Button>Revoke</Button>
      </PostForm>
    ) : (
      <span class="soft">ended</span>
    ),
  ];
};
