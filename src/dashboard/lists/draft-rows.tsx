import type { Preview } from "../../bulk/arrival/preview.ts";
import type { FileSample } from "../../bulk/reading/csv.ts";
import { Mono } from "../components/copy.tsx";
import { Badge } from "../components/inline.tsx";
import { Panel } from "../components/panel.tsx";
import { type Column, Table } from "../components/table.tsx";
import { encodingName, rowNumber, separatorName } from "./list-facts.tsx";

const ROWS_SHOWN = 5;
const COLUMNS_SHOWN = 8;
const CELL_CHARACTERS_MAX = 80;

const Cell = ({ text }: { readonly text: string }) => (
  <span class="nowrap">
    <Mono text={text} />
  </span>
);

/** What a row's address is read as: the address, what was probably meant, or why there is none. */
const ReadAs = ({ row }: { readonly row: Preview["first_rows"][number] }) => {
  const { normalized_email: address, did_you_mean: meant, reason } = row;
  if (address === "") return <Badge kind="unknown">No address</Badge>;
  if (reason !== null) return <span class="bad-text">{reason}</span>;
  return (
    <>
      <Cell text={address} />
      {meant !== null && <span class="second">meant {meant}?</span>}
    </>
  );
};

const hidden = (count: number): string => (count > COLUMNS_SHOWN ? `first ${COLUMNS_SHOWN} of ${count} columns` : "");

/** The first rows of a list, with the address that is read from each. */
export const FirstRows = ({ preview }: { readonly preview: Preview }) => {
  const { format, columns: names, first_rows } = preview;
  const rows = first_rows.slice(0, ROWS_SHOWN);
  const count = Math.max(names.length, ...rows.map(({ cells }) => cells.length));
  const shown = Math.min(COLUMNS_SHOWN, count);
  const columns: Column[] = Array.from({ length: shown }, (_, at) => ({
    title: names[at] ? <Cell text={names[at]} /> : `Column ${at + 1}`,
  }));
  return (
    <Panel title={rows.length < ROWS_SHOWN ? "The rows" : "The first five rows"} aside={hidden(count)} isFlush>
      <Table
        caption="The first rows of the file"
        isScrolled
        columns={[{ title: "Row", align: "end" }, { title: "Verified as" }, ...columns]}
        rows={rows.map((row) => ({
          key: row.row_index,
          cells: [
            rowNumber(row.row_index),
            <ReadAs row={row} />,
            ...columns.map((_, at) =>
              at === format?.column.index ? (
                <b>
                  <Cell text={row.cells[at] ?? ""} />
                </b>
              ) : (
                <Cell text={row.cells[at] ?? ""} />
              ),
            ),
          ],
        }))}
      />
    </Panel>
  );
};

interface SampleProps {
  readonly sample: FileSample;
  /** The sheet of a workbook; null for a CSV. */
  readonly sheet: string | null;
}

/** The first rows of a file that is no list, as they are. */
export const SampleRows = ({ sample, sheet }: SampleProps) => {
  const { encoding, delimiter, records } = sample;
  const width = Math.max(...records.map((cells) => cells.length));
  const columns = Array.from({ length: Math.min(COLUMNS_SHOWN, width) }, (_, at) => ({ title: `Column ${at + 1}` }));
  return (
    <Panel
      title="What the file begins with"
      aside={
        sheet === null
          ? `${encodingName(encoding.name, encoding.isAssumed)}, ${separatorName(delimiter)}`
          : `sheet “${sheet}”`
      }
      isFlush
    >
      <Table
        caption="The first rows of the file"
        isScrolled
        columns={columns}
        rows={records.map((cells, at) => ({
          key: at,
          cells: columns.map((_, column) => <Cell text={(cells[column] ?? "").slice(0, CELL_CHARACTERS_MAX)} />),
        }))}
      />
    </Panel>
  );
};
