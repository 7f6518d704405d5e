import { z } from "zod";
import type { ApiKey } from "../../accounts/store.ts";
import type { HistoryFilters } from "../../verify/history-store.ts";
import { SUB_STATUSES, VERDICTS, resultSchema } from "../../verify/result.ts";
import type { VerificationRow } from "../../verify/store.ts";
import { isId } from "../../foundation/base/secrets.ts";
import { Mono } from "../components/copy.tsx";
import { Empty } from "../components/empty.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { ResultBadge } from "../components/result-badge.tsx";
import { VerifyBox } from "../components/verify-box.tsx";
import { DownloadLink, Link } from "../components/link.tsx";
import { PageHead, Panel } from "../components/panel.tsx";
import { Pager, Table } from "../components/table.tsx";
import { Time } from "../components/time.tsx";
import { usePage } from "../context.ts";
import { localMidnight } from "../local-day.ts";
import type { Viewer } from "../visit.ts";
import { withPath } from "../url.ts";
import { wordsOfReason, wordsOfVerdict } from "../verdict-words.ts";

/** The filters of the history, as in its URL. */
export const verificationsQuery = z.object({
  verdict: z.enum(VERDICTS).optional(),
  sub_status: z.enum(SUB_STATUSES).optional(),
  status: z.enum(["pending", "completed"]).optional(),
  key: z.string().max(100).optional(),
  from: z.iso.date().optional(),
  to: z.iso.date().optional(),
  q: z.string().trim().max(200).optional(),
  cursor: z.string().refine(isId).optional(),
});

type Query = z.output<typeof verificationsQuery>;

/** The filters of a query; its days are those of the viewer's zone. */
export const filtersOf = (query: Query, { timeZone }: Pick<Viewer, "timeZone">): HistoryFilters => ({
  ...{ verdict: query.verdict, subStatus: query.sub_status, status: query.status, keyId: query.key, text: query.q },
  fromMs: query.from === undefined ? undefined : localMidnight(query.from, 0, timeZone),
  beforeMs: query.to === undefined ? undefined : localMidnight(query.to, 1, timeZone),
});

export interface VerificationsBodyProps {
  readonly rows: readonly VerificationRow[];
  readonly next: string | null;
  readonly query: Query;
  readonly keys: readonly ApiKey[];
  readonly nameOf: (keyId: string) => string | null;
}

/** The box, and below it everything that was verified one by one. */
export const VerificationsBody = (props: VerificationsBodyProps) => {
  const { rows, next, query } = props;
  const { url } = usePage();
  const isFiltered = Object.values(query).some((value) => value !== undefined);
  return (
    <>
      <PageHead title="Verify" />
      <Panel title="Verify an address">
        <VerifyBox />
      </Panel>
      <Panel title="History" aside={<DownloadLink href={withPath(url, "/verify.csv")}>CSV</DownloadLink>} isFlush>
        {(isFiltered || rows.length > 0) && <HistoryFilterForm {...props} />}
        {rows.length === 0 ? <NoRows isFiltered={isFiltered} hasMore={next !== null} /> : <HistoryTable {...props} />}
        <Pager next={next} isLater={query.cursor !== undefined} />
      </Panel>
    </>
  );
};

const any = (text: string): readonly [string, string] => ["", text];

const HistoryFilterForm = ({ query, keys }: VerificationsBodyProps) => (
  <Filters action="/verify">
    <Field name="q" label="Address contains" type="search" value={query.q ?? ""} />
    <SelectField
      name="verdict"
      label="Verdict"
      value={query.verdict ?? ""}
      options={[any("Every verdict"), ...VERDICTS.map((verdict) => [verdict, wordsOfVerdict(verdict).label] as const)]}
    />
    <SelectField
      name="sub_status"
      label="Reason"
      value={query.sub_status ?? ""}
      options={[any("Every reason"), ...SUB_STATUSES.map((reason) => [reason, wordsOfReason(reason).label] as const)]}
    />
    <SelectField
      name="key"
      label="Key"
      value={query.key ?? ""}
      options={[any("Every key and user"), ...keys.map(({ id, name }) => [id, name] as const)]}
    />
    <Field name="from" label="From" type="date" value={query.from ?? ""} />
    <Field name="to" label="To" type="date" value={query.to ?? ""} />
  </Filters>
);

const NoRows = ({ isFiltered, hasMore }: { readonly isFiltered: boolean; readonly hasMore: boolean }) =>
  isFiltered ? (
    <Empty
      title={hasMore ? "Nothing so far" : "Nothing matches"}
      action={<Link href="/verify">Remove the filters</Link>}
    >
      <p>
        {hasMore
          ? "None of the newest verifications match. Older ones are on the next page."
          : "No verification matches these filters."}
      </p>
    </Empty>
  ) : (
    <Empty title="Nothing verified yet">
      <p>
        Enter an address above. You see its verdict, and everything that it rests on: the DNS responses, what the mail
        server said, and the line that decided. Addresses of lists are on the page of their list.
      </p>
    </Empty>
  );

const HistoryTable = ({ rows, nameOf }: VerificationsBodyProps) => (
  <Table
    caption="Verifications, the newest first"
    isStacked
    columns={[
      { title: "Address" },
      { title: "Result" },
      { title: "Quality", align: "end", isWide: true },
      { title: "Requested by", isWide: true },
      { title: "When", align: "end" },
    ]}
    rows={rows.map((row) => ({
      key: row.id,
      cells: [
        <Link href={`/verify/${row.id}`}>
          <Mono text={row.email} />
        </Link>,
        <ResultBadge row={row} />,
        row.result === null ? "–" : resultSchema.parse(JSON.parse(row.result)).quality_score,
        nameOf(row.keyId) ?? "–",
        <Time atMs={row.createdAtMs} />,
      ],
    }))}
  />
);
