import { z } from "zod";
import { countField, nullableText, textField } from "../../foundation/http/schema-fields.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import { keptCell, normalizeCell, readAddressCell } from "../../foundation/mail/address-in-cell.ts";
import { type Inspection, type ListRow, detectedFormatSchema, shownName } from "../reading/csv.ts";
import { AddressIndex, newSeed } from "./intake.ts";
import type { Submission } from "./submission.ts";
import { addressHints } from "../results/job-rows.ts";

const FIRST_ROWS = 10;
const COLUMNS_SHOWN = 50;
const CELL_CHARACTERS_SHOWN = 200;

const columnName = nullableText("The name; null without a header.");

const previewRowSchema = z.object({
  row_index: countField("Zero-based index of the row; header and blank rows are not counted."),
  cells: z
    .array(z.string())
    .meta({ description: `The first ${COLUMNS_SHOWN} cells, ${CELL_CHARACTERS_SHOWN} characters each.` }),
  submitted_email: textField("The cell of the column of addresses."),
  normalized_email: textField("The address to verify; empty when there is none."),
  did_you_mean: nullableText("The address that was probably meant."),
  reason: nullableText("Why the cell does not hold an address; null when it does."),
});

/** The response to `?dry_run=true`: how a list is read and what it would cost. */
export const previewSchema = z
  .object({
    dry_run: z.literal(true).meta({ description: "Always true: nothing was stored, held or verified." }),
    format: detectedFormatSchema
      .nullable()
      .meta({ description: "How the file is read; null for a list submitted as JSON." }),
    sheets: z.array(z.string()).meta({ description: "Names of the visible sheets of a workbook, at most 100." }),
    columns: z
      .array(columnName)
      .meta({ description: `Names of the first ${COLUMNS_SHOWN} columns; empty without a header.` }),
    candidates: z
      .array(
        z.object({
          index: countField("Zero-based index of the column."),
          name: columnName,
          addresses: countField("Sampled rows with an address in this column."),
        }),
      )
      .meta({ description: "Columns that seem to contain addresses." }),
    sampled_rows: countField("Rows examined to detect the format; 0 for a list submitted as JSON."),
    first_rows: z.array(previewRowSchema).meta({ description: `The first ${FIRST_ROWS} rows.` }),
    rows: z
      .object({
        total: countField("Rows of the list, without header and blank rows."),
        empty: countField("Rows without an address, which are free."),
        duplicate: countField("Rows whose address is in an earlier row."),
        invalid_syntax: countField("Rows with a text that is not an address."),
      })
      .meta({ description: "Rows of the list." }),
    addresses: z.object({ total: countField("All.") }).meta({ description: "Distinct addresses." }),
    credits: z
      .object({
        required: countField("What would be held; 0 with a test key."),
        available: countField("Credits of the account that are not held."),
      })
      .meta({ description: "Credits of the account." }),
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

/** Reads a list to its end without storing anything. `isHeld`: whether submitting it would hold credits. */
export const previewSubmission = async (
  { list, inspection, sheets }: Pick<Submission, "list" | "inspection" | "sheets">,
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
    sheets: [...sheets],
    ...candidatesOf(inspection),
    first_rows: firstRows,
    rows: { total: rows, empty, duplicate: rows - empty - addresses, invalid_syntax: invalid },
    addresses: { total: addresses },
    credits: { required: credits.isHeld ? addresses : 0, available: credits.available },
  };
};
