import type { WaitingRow } from "../../bulk/results/list-store.ts";
import { Mono } from "../components/copy.tsx";
import { Empty, Panel } from "../components/panel.tsx";
import { Field, Filters, SelectField } from "../components/form.tsx";
import { DownloadLink, Link, withParameters, withPath, Badge } from "../components/inline.tsx";
import { Pager, Table } from "../components/table.tsx";
import { Time } from "../components/figures.tsx";
import { usePage } from "../visit.ts";
import { wordsOfReason } from "../components/verification.tsx";
import { rowNumber } from "./list-facts.tsx";
import { SHOW_OPTIONS } from "./list-result.tsx";

/** A row of a list with the address that was probably meant. */
export interface ShownRow extends WaitingRow {
  readonly suggestion: string | null;
}

export interface RowsPanelProps {
  readonly jobId: string;
  readonly rows: readonly ShownRow[];
  readonly filters: {
    readonly show: string | undefined;
    readonly reason: string | undefined;
    readonly q: string | undefined;
    readonly order: string;
  };
  /** The sub_statuses that occur. */
  readonly reasons: readonly string[];
  readonly cursor: string | undefined;
  readonly next: string | null;
  /** Whether some rows have no result yet. */
  readonly hasOpenRows: boolean;
}

const ADDRESS_CHARACTERS = 30;
/** A shorter beginning of an address says nothing. */
const LOCAL_CHARACTERS_MIN = 6;

const showOptions = (hasOpenRows: boolean): Array<readonly [value: string, text: string]> => [
  ...SHOW_OPTIONS,
  ["risky", "Risky, of every kind"],
  ...(hasOpenRows ? [["unfinished", "Without a result"] as const] : []),
];

/** The result of a row: its sub_status in words. */
const ResultBadge = ({ row }: { readonly row: WaitingRow }) => {
  const { subStatus, dueAtMs } = row;
  const { nowMs } = usePage();
  if (subStatus !== null) {
    const { kind, label } = wordsOfReason(subStatus);
    return <Badge kind={kind}>{label}</Badge>;
  }
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

/** An address, whole on hover. A long one is cut before its domain, which says most. */
const AddressText = ({ address }: { readonly address: string }) => {
  const at = address.lastIndexOf("@");
  const localCharacters = ADDRESS_CHARACTERS - 1 - (address.length - at);
  if (at < 0 || address.length <= ADDRESS_CHARACTERS || localCharacters < LOCAL_CHARACTERS_MIN)
    return <Mono text={address} charactersMax={ADDRESS_CHARACTERS} />;
  return (
    <span class="mono" title={address}>
      {[...address].slice(0, localCharacters).join("")}…{address.slice(at)}
    </span>
  );
};

/** A suggestion differs in its domain only. */
const domainOf = (address: string): string => address.slice(address.lastIndexOf("@") + 1);

const RowTable = ({ jobId, rows }: Pick<RowsPanelProps, "jobId" | "rows">) => (
  <Table
    caption="Rows of the list"
    columns={[
      { title: "Row", align: "end", isWide: true },
      { title: "Address" },
      { title: "Result" },
      { title: "Quality", align: "end", isWide: true },
    ]}
    rows={rows.map((row) => ({
      key: row.rowIndex,
      cells: [
        rowNumber(row.rowIndex),
        <Link href={`/lists/${jobId}/rows/${row.rowIndex}`} class="address">
          {row.submittedEmail.trim() === "" ? "no address" : <AddressText address={row.submittedEmail} />}
        </Link>,
        <>
          <ResultBadge row={row} />
          {row.suggestion !== null && <span class="second">meant {domainOf(row.suggestion)}?</span>}
        </>,
        row.subStatus === null ? "" : row.qualityScore,
      ],
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
export const RowsPanel = ({ jobId, rows, filters, reasons, cursor, next, hasOpenRows }: RowsPanelProps) => {
  const { show = "", reason = "", q = "", order } = filters;
  const path = `/lists/${jobId}`;
  const download = withParameters(withPath(usePage().url, `${path}/results.csv`), { order: null, confirm: null });
  return (
    <Panel title="Addresses" aside={<OrderLink order={order} />} isFlush>
      <Filters action={path}>
        <SelectField name="show" label="Show" value={show} options={showOptions(hasOpenRows)} isImmediate />
        <SelectField
          name="reason"
          label="Reason"
          value={reason}
          options={[["", "Every reason"], ...reasons.map((one) => [one, wordsOfReason(one).label] as const)]}
          isImmediate
        />
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
          <RowTable jobId={jobId} rows={rows} />
        )}
        <Pager next={next} isLater={cursor !== undefined}>
          {rows.length > 0 && <DownloadLink href={download}>CSV of these rows</DownloadLink>}
        </Pager>
      </div>
    </Panel>
  );
};
