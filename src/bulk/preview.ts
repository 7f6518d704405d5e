import { z } from "zod";
import type { Random } from "../base/secrets.ts";
import { keptCell, normalizeCell, readAddressCell } from "../mail/address-in-cell.ts";
import type { Inspection, ListRow } from "./csv.ts";
import { AddressIndex, newSeed } from "./address-index.ts";
import { detectedFormatSchema, shownName } from "./detected-format.ts";
import type { Submission } from "./submission.ts";
import { addressHints } from "./address-hints.ts";

const FIRST_ROWS = 10;
const COLUMNS_SHOWN = 50;
const CELL_CHARACTERS_SHOWN = 200;

const count = z.int().min(0);
const cells = z.array(z.string());

/** What `?dry_run=true` answers: what would be made of a list, with nothing stored or held. */
export const previewSchema = z
  .object({
    dry_run: z.literal(true),
    format: detectedFormatSchema
      .nullable()
      .meta({ description: "How the file was read; null for a list that was given as JSON." }),
    columns: z
      .array(z.string().nullable())
      .meta({ description: `Names of the first ${COLUMNS_SHOWN} columns; empty without a header.` }),
    candidates: z
      .array(z.object({ index: count, name: z.string().nullable(), addresses: count }))
      .meta({ description: "Columns with what looks like addresses: in how many of the first `sampled_rows` rows." }),
    sampled_rows: count,
    first_rows: z
      .array(
        z.object({
          row_index: count,
          cells: cells.meta({
            description: `The first ${COLUMNS_SHOWN} cells, ${CELL_CHARACTERS_SHOWN} characters each.`,
          }),
          submitted_email: z.string(),
          normalized_email: z.string(),
          did_you_mean: z.string().nullable(),
          reason: z.string().nullable().meta({ description: "Why the cell holds no address; null when it holds one." }),
        }),
      )
      .meta({ description: `The first ${FIRST_ROWS} rows.` }),
    rows: z.object({
      total: count,
      empty: count.meta({ description: "Rows without an address: free." }),
      duplicate: count.meta({ description: "Rows whose address stands in a row before." }),
      invalid_syntax: count.meta({ description: "Rows with a text that is no address." }),
    }),
    addresses: z.object({ total: count.meta({ description: "Distinct addresses." }) }),
    credits: z.object({
      required: count.meta({ description: "What would be held; 0 with a test key." }),
      available: count,
    }),
  })
  .meta({ title: "BulkPreview" });
export type Preview = z.output<typeof previewSchema>;

const rowShown = ({ rowIndex, cells: all, email }: ListRow): Preview["first_rows"][number] => {
  const submitted = keptCell(email);
  const { suggestion, problem } = addressHints(submitted);
  return {
    row_index: rowIndex,
    cells: all.slice(0, COLUMNS_SHOWN).map((cell) => cell.slice(0, CELL_CHARACTERS_SHOWN)),
    submitted_email: submitted,
    normalized_email: normalizeCell(email),
    did_you_mean: suggestion,
    reason: problem,
  };
};

const candidatesOf = (inspection: Inspection | null): Pick<Preview, "candidates" | "sampled_rows" | "columns"> => {
  if (inspection === null) return { candidates: [], sampled_rows: 0, columns: [] };
  const { candidates, sampleRows, shape } = inspection;
  return {
    columns: (shape.header ?? []).slice(0, COLUMNS_SHOWN).map((name) => shownName(name)),
    candidates: candidates
      .slice(0, COLUMNS_SHOWN)
      .map(({ column, name, addresses }) => ({ index: column, name: shownName(name), addresses })),
    sampled_rows: sampleRows,
  };
};

/** Reads a list through to its end and says what would be made of it. `available`: unheld credits; null: nothing is held. */
export const previewSubmission = async (
  { list, inspection }: Pick<Submission, "list" | "inspection">,
  { credits, random }: { credits: { available: number; isHeld: boolean }; random: Random },
): Promise<Preview> => {
  const index = new AddressIndex(list.rowsMax, newSeed(random));
  const firstRows: Preview["first_rows"] = [];
  let invalid = 0;
  for await (const batch of list.batches) {
    for (const row of batch) {
      if (firstRows.length < FIRST_ROWS) firstRows.push(rowShown(row));
      const read = readAddressCell(row.email);
      if (!read.ok && read.error !== "empty") invalid++;
      index.add(read.ok ? read.value.address.normalized : normalizeCell(row.email));
    }
  }
  const { rows, empty, addresses } = index.totals;
  return {
    dry_run: true,
    format: list.reading,
    ...candidatesOf(inspection),
    first_rows: firstRows,
    rows: { total: rows, empty, duplicate: rows - empty - addresses, invalid_syntax: invalid },
    addresses: { total: addresses },
    credits: { required: credits.isHeld ? addresses : 0, available: credits.available },
  };
};
