import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import { isoDay } from "../../foundation/base/days.ts";
import { sendText, streamRows } from "../../foundation/http/response.ts";
import { summaryCsv, writeBounces } from "../../verify/bounces/bounce-view.ts";
import type { BounceFilters, StoredBounce } from "../../verify/bounces/bounce-store.ts";
import type { Bounces, BounceSummary } from "../../verify/bounces/bounces.ts";
import { BOUNCE_KINDS, BOUNCE_SOURCES } from "../../verify/bounces/operations.ts";
import { csvHeaders } from "../../verify/bounces/routes.ts";
import type { KeptPromises } from "../../verify/bounces/promise-counts.ts";
import { replyIn } from "../../verify/bounces/bounce.ts";
import { VERDICTS } from "../../verify/result.ts";
import { Copyable } from "../components/copy.tsx";
import { Day, Num, numberText, Percent, Time } from "../components/figures.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { Badge, DownloadLink, Link, withPath } from "../components/inline.tsx";
import { Pager, rowsParameter } from "../components/pager.tsx";
import { Empty, PageHead, Panel } from "../components/panel.tsx";
import { Table } from "../components/table.tsx";
import { wordsOfVerdict } from "../components/verification.tsx";
import { page } from "../page.ts";
import { usePage } from "../visit.ts";

const SUMMARY_DAYS = 90;

const bouncesQuery = z.object({
  kind: z.enum(BOUNCE_KINDS).optional(),
  source: z.enum(BOUNCE_SOURCES).optional(),
  promised: z.enum(VERDICTS).optional(),
  email: z.string().trim().toLowerCase().max(320).optional(),
  cursor: z.string().refine(isId).optional(),
  rows: rowsParameter,
});

type Query = z.output<typeof bouncesQuery>;

const filtersOf = ({ kind, source, promised, email }: Query): BounceFilters => ({
  kind,
  source,
  promised,
  email: email === "" ? undefined : email,
});

/** What came back, and what had been said about it. */
export const createBouncePages = ({ bounces }: { readonly bounces: Bounces }) => [
  page({ path: "/verify/bounces", query: bouncesQuery }, async ({ viewer, query }) => {
    const window = { before: query.cursor ?? null, limit: query.rows };
    const { rows, next } = await bounces.page(viewer.caller, filtersOf(query), window);
    const summary = await bounces.summary(viewer.caller, SUMMARY_DAYS);
    return { title: "Bounces", section: "verify", body: <BouncesBody {...{ rows, next, query, summary }} /> };
  }),
  page({ path: "/verify/bounces.csv", query: bouncesQuery }, ({ request, viewer, query }) =>
    streamRows(request, writeBounces(bounces, viewer.caller, filtersOf(query)), csvHeaders("bounces")),
  ),
  page({ path: "/verify/bounces/summary.csv" }, async ({ request, viewer }) =>
    sendText(request, summaryCsv(await bounces.summary(viewer.caller, SUMMARY_DAYS)), csvHeaders("bounce-summary")),
  ),
];

interface BouncesProps {
  readonly rows: readonly StoredBounce[];
  readonly next: string | null;
  readonly query: Query;
  readonly summary: BounceSummary;
}

const BouncesBody = ({ rows, next, query, summary }: BouncesProps) => {
  const { url } = usePage();
  const isFiltered = Object.entries(query).some(([name, value]) => name !== "rows" && value !== undefined);
  return (
    <>
      <PageHead title="Bounces" crumbs={[["Verify", "/verify"]]} meta={<Promises summary={summary} />} />
      {summary.providers.length > 0 && <SummaryPanel summary={summary} />}
      <Panel
        title="Reported bounces"
        aside={<DownloadLink href={withPath(url, "/verify/bounces.csv")}>CSV</DownloadLink>}
        isFlush
      >
        {(isFiltered || rows.length > 0) && <BounceFilterForm query={query} />}
        {rows.length === 0 ? <NoBounces isFiltered={isFiltered} /> : <BounceTable rows={rows} />}
        <Pager next={next} shown={rows.length} rows={query.rows} />
      </Panel>
    </>
  );
};

/** How many promises did not hold, of how many, and the share. */
const OwnErrors = ({ promises: { checks, bounced } }: { readonly promises: KeptPromises }) =>
  checks === 0 ? (
    <>–</>
  ) : (
    <>
      <Percent part={Math.min(bounced, checks)} whole={checks} />{" "}
      <span class="soft nowrap">
        {numberText(bounced)} of {numberText(checks)}
      </span>
    </>
  );

const Promises = ({ summary: { total, checksFromDay } }: Pick<BouncesProps, "summary">) =>
  checksFromDay === null ? null : (
    <span>
      {numberText(total.bounced)} of {numberText(total.checks)} addresses that checks called deliverable since{" "}
      <Day day={isoDay(checksFromDay)} /> bounced (
      <Percent part={Math.min(total.bounced, total.checks)} whole={total.checks} />)
    </span>
  );

const SummaryPanel = ({ summary: { providers } }: Pick<BouncesProps, "summary">) => (
  <Panel
    title={`Hard bounces of the last ${SUMMARY_DAYS} days, by the check before`}
    aside={<DownloadLink href="/verify/bounces/summary.csv">CSV</DownloadLink>}
    isFlush
  >
    <Table
      caption="Addresses that bounced, by provider and by the verdict before"
      columns={[
        { title: "Provider", isMain: true },
        { title: "Deliverable", align: "end" },
        { title: "Risky", align: "end" },
        { title: "Undeliverable", align: "end" },
        { title: "Not checked", align: "end" },
        { title: "Soft bounces", align: "end" },
        { title: "Own errors", align: "end" },
      ]}
      rows={providers.map(({ provider, hard, soft, promises }) => ({
        key: provider ?? "",
        cells: [
          provider ?? "Not known",
          <Num value={hard.deliverable} />,
          <Num value={hard.risky} />,
          <Num value={hard.undeliverable} />,
          <Num value={hard.not_verified} />,
          <Num value={soft} />,
          <OwnErrors promises={promises} />,
        ],
      }))}
    />
  </Panel>
);

const any = (text: string): readonly [string, string] => ["", text];
const KIND_WORDS = { hard: "Hard", soft: "Soft" } as const;
const SOURCE_WORDS = {
  postfix: "Postfix",
  ses: "Amazon SES",
  sendgrid: "SendGrid",
  mailgun: "Mailgun",
  postmark: "Postmark",
  mailbox: "Bounce mailbox",
} as const;

const BounceFilterForm = ({ query }: Pick<BouncesProps, "query">) => (
  <Filters action="/verify/bounces">
    <Field name="email" label="Address" type="search" value={query.email ?? ""} />
    <SelectField
      name="kind"
      label="Kind"
      value={query.kind ?? ""}
      options={[any("Every kind"), ...BOUNCE_KINDS.map((kind) => [kind, KIND_WORDS[kind]] as const)]}
    />
    <SelectField
      name="source"
      label="Reported by"
      value={query.source ?? ""}
      options={[any("Every source"), ...BOUNCE_SOURCES.map((source) => [source, SOURCE_WORDS[source]] as const)]}
    />
    <SelectField
      name="promised"
      label="Check before"
      value={query.promised ?? ""}
      options={[any("Every verdict"), ...VERDICTS.map((verdict) => [verdict, wordsOfVerdict(verdict).label] as const)]}
    />
  </Filters>
);

const NoBounces = ({ isFiltered }: { readonly isFiltered: boolean }) =>
  isFiltered ? (
    <Empty title="Nothing matches" action={<Link href="/verify/bounces">Remove the filters</Link>}>
      <p>No bounce matches these filters.</p>
    </Empty>
  ) : (
    <Empty title="No bounces reported yet">
      <p>
        Let your mail server or mail service report what comes back to <code>POST /v1/bounces</code>. The next check of
        such an address then knows it, and this page compares bounces with what was promised. The guide to outgoing mail
        says how.
      </p>
    </Empty>
  );

const WORDS_CHARACTERS_MAX = 160;
const cut = (text: string): string =>
  text.length <= WORDS_CHARACTERS_MAX ? text : `${text.slice(0, WORDS_CHARACTERS_MAX)}…`;

/** What the server said, without what the reporter wrote in front of it. */
const wordsOf = ({ diagnostic, status }: StoredBounce): string =>
  cut((diagnostic === null ? null : (replyIn(diagnostic) ?? diagnostic)) ?? status ?? "–");

const BounceTable = ({ rows }: Pick<BouncesProps, "rows">) => (
  <Table
    caption="Bounces, the last reported first"
    columns={[
      { title: "Address", isMain: true },
      { title: "Kind" },
      { title: "What the server said", isText: true },
      { title: "Check before" },
      { title: "Reported by" },
      { title: "When", align: "end" },
    ]}
    rows={rows.map((row) => ({
      key: row.id,
      cells: [
        <Copyable text={row.email} />,
        <Badge kind={row.kind === "hard" ? "bad" : "warn"}>{KIND_WORDS[row.kind]}</Badge>,
        wordsOf(row),
        row.promised === null ? "–" : wordsOfVerdict(row.promised).label,
        SOURCE_WORDS[row.source],
        <Time atMs={row.bouncedAtMs} />,
      ],
    }))}
  />
);
