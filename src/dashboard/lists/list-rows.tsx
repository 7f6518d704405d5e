import type { JobRow } from "../../bulk/results/job-store.ts";
import type { WaitingRow } from "../../bulk/results/row-store.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { DownloadLink, Link, withParameters, Badge } from "../components/inline.tsx";
import { Pager } from "../components/pager.tsx";
import { Table, type TableRow } from "../components/table.tsx";
import { countText, numberText, Time } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { wordsOfReason } from "../components/verification.tsx";
import { isOpenList, rowNumber } from "./list-facts.tsx";
import type { ReasonCounts } from "./list-result.tsx";
import { showOptions } from "./list-download.tsx";
import { cleanAddress } from "../../bulk/results/results-csv.ts";

/** A row of a list with the address that was probably meant. */
export interface ShownRow extends WaitingRow {
  readonly suggestion: string | null;
}

export interface RowsPanelProps {
  readonly job: JobRow;
  readonly rows: readonly ShownRow[];
  readonly filters: {
    readonly show: string | undefined;
    readonly reason: string | undefined;
    readonly q: string | undefined;
    /** The number of the trouble with a mail host. */
    readonly host: number | undefined;
    readonly order: string;
  };
  /** Rows that pass the filters; null when they are not counted. */
  readonly count: number | null;
  readonly reasons: ReasonCounts;
  /** The rows of a full page. */
  readonly limit: number;
  readonly next: string | null;
}

/** The result of a row: its sub_status in words. A list that has ended verifies no further row. */
const ResultBadge = ({ job, row }: Pick<RowsPanelProps, "job"> & { readonly row: WaitingRow }) => {
  const { subStatus, dueAtMs } = row;
  const { nowMs } = usePage();
  if (subStatus !== null) {
    const { kind, label } = wordsOfReason(subStatus);
    return <Badge kind={kind}>{label}</Badge>;
  }
  if (!isOpenList({ job }))
    return (
      <Badge kind="unknown" icon="ban">
        Not verified
      </Badge>
    );
  return (
    <>
      <Badge kind="unknown" icon="clock">
        Waiting
      </Badge>
      {dueAtMs > nowMs && (
        <span class="second">
          again <Time atMs={dueAtMs} />
        </span>
      )}
    </>
  );
};

/** A suggestion differs in its domain only. */
const domainOf = (address: string): string => address.slice(address.lastIndexOf("@") + 1);

/** Rows without an address have none. */
const menuOf = ({ submittedEmail: email }: WaitingRow): Pick<TableRow, "menu"> =>
  email.trim() === ""
    ? {}
    : {
        menu: {
          about: email,
          copy: { text: email, label: "Copy the address" },
          acts: [{ text: "Verify again", icon: "refresh-cw", action: "/verify", field: ["email", email] }],
        },
      };

const RowTable = ({ job, rows }: Pick<RowsPanelProps, "job" | "rows">) => (
  <Table
    caption="Rows of the list"
    columns={[
      { title: "Row", align: "end" },
      { title: "Address", isMain: true },
      { title: "Result" },
      { title: "Quality", align: "end" },
    ]}
    rows={rows.map((row) => ({
      key: row.rowIndex,
      cells: [
        rowNumber(row.rowIndex),
        <Link href={`/lists/${job.id}/rows/${row.rowIndex}`} class="address">
          {row.submittedEmail.trim() === "" ? (
            "no address"
          ) : (
            <Mono text={cleanAddress(row.submittedEmail)} title={row.submittedEmail} />
          )}
        </Link>,
        <>
          <ResultBadge {...{ job, row }} />
          {row.suggestion !== null && <span class="second">meant {domainOf(row.suggestion)}?</span>}
        </>,
        row.subStatus === null ? "" : row.qualityScore,
      ],
      ...menuOf(row),
    }))}
  />
);

/** Turns the order round. */
const OrderLink = ({ order }: { readonly order: string }) => {
  const { url } = usePage();
  const isLast = order === "last";
  return (
    <a href={withParameters(url, { order: isLast ? null : "last", cursor: null })}>
      {isLast ? "Show the first row first" : "Show the last row first"}
    </a>
  );
};

/** The rows of a list with their results, filtered and page by page. */
export const RowsPanel = ({ job, rows, filters, count, reasons, limit, next }: RowsPanelProps) => {
  const { show = "", reason = "", q = "", host, order } = filters;
  const path = `/lists/${job.id}`;
  const shown = { show: show === "" ? null : show, reason: reason === "" ? null : reason, q: q === "" ? null : q };
  const download = withParameters(`${path}/results.csv`, { ...shown, host: host === undefined ? null : String(host) });
  return (
    <Panel title="Addresses" aside={<OrderLink order={order} />} isFlush>
      {host !== undefined && (
        <p class="panel-body soft">
          Only addresses that one mail host refused or delayed. <Link href={path}>Show all rows</Link>
        </p>
      )}
      <Filters action={path}>
        <SelectField name="show" label="Show" value={show} options={showOptions(job, show)} />
        <SelectField
          name="reason"
          label="Reason"
          value={reason}
          options={[
            ["", "Every reason"],
            ...reasons.map(
              ({ subStatus, rows: count }) =>
                [subStatus, `${wordsOfReason(subStatus).label} (${numberText(count)})`] as const,
            ),
          ]}
        />
        {host !== undefined && <input type="hidden" name="host" value={host} />}
        {order === "last" && <input type="hidden" name="order" value={order} />}
        <Field name="q" type="search" label="Address contains" value={q} />
      </Filters>
      <div id="rows">
        {rows.length === 0 ? (
          <Empty title={next === null ? "No row matches" : "No row matches so far"}>
            <p>
              Choose another filter, or <Link href={path}>show all rows</Link>.
            </p>
          </Empty>
        ) : (
          <RowTable job={job} rows={rows} />
        )}
        <Pager next={next} shown={rows.length} total={count ?? undefined} rows={limit}>
          {rows.length > 0 && (
            <DownloadLink href={download}>
              CSV of {count === null ? "these rows" : `these ${countText(count, "row")}`}
            </DownloadLink>
          )}
        </Pager>
      </div>
    </Panel>
  );
};
