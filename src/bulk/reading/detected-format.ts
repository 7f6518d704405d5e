import { z } from "zod";
import { flagField, nullableText, textField } from "../../foundation/http/schema-fields.ts";
import { COLUMN_REASONS, describeColumnReason } from "./columns-address.ts";
import type { ListShape } from "./csv.ts";
import { ENCODINGS } from "./csv-encoding.ts";
import { DELIMITERS } from "./csv-records.ts";

/** Longer column names are cut: a header may have 64 KiB. */
const NAME_CHARACTERS_SHOWN = 200;

/** How a file is read, as jobs and previews show it. */
export const detectedFormatSchema = z
  .object({
    type: z.enum(["csv", "xlsx"]).meta({ description: "`xlsx`: the first visible sheet of an Excel workbook." }),
    encoding: z.enum(ENCODINGS).meta({ description: "The character encoding of a CSV; `utf-8` for a workbook." }),
    encoding_assumed: z.boolean().default(false).meta({
      description:
        "True when the list is not valid Unicode and no encoding was named. Cells are shown as if the encoding were right; as `windows-1252`, results.csv returns the bytes of your columns unchanged.",
    }),
    delimiter: z.enum(DELIMITERS).nullable().meta({ description: "The character between cells; null: one column." }),
    header: flagField("Whether a row names the columns."),
    title_rows: z
      .int()
      .min(0)
      .meta({ description: "Rows above the header. They are kept in results.csv and not verified." }),
    column: z
      .object({
        index: z.int().min(0).meta({ description: "Zero-based index of the column." }),
        name: nullableText("The name of the column; null without a header."),
        reason: z.enum(COLUMN_REASONS).meta({ description: "Why this column was chosen." }),
        message: textField("The reason as a sentence."),
      })
      .meta({ description: "The column of addresses." }),
  })
  .meta({ title: "ListReading" });
export type DetectedFormat = z.output<typeof detectedFormatSchema>;

/** The name of a column, cut to a length that can be shown. */
export const shownName = (name: string | null): string | null =>
  name === null || name.length <= NAME_CHARACTERS_SHOWN ? name : `${name.slice(0, NAME_CHARACTERS_SHOWN)}…`;

/** The format of a list as the API shows it. */
export const detectedFormatOf = (
  type: DetectedFormat["type"],
  { encoding, delimiter, header, titles, column, columnName, reason }: ListShape,
): DetectedFormat => ({
  type,
  encoding: encoding.name,
  encoding_assumed: encoding.isAssumed,
  delimiter,
  header: header !== null,
  title_rows: titles.length,
  column: { index: column, name: shownName(columnName), reason, message: describeColumnReason(reason) },
});

const DELIMITER_NAMES = { ",": "comma", ";": "semicolon", "\t": "tab", "|": "bar" } as const;

const ASSUMED =
  "\nThe encoding is assumed: the list is not valid Unicode. If letters look wrong, name the encoding with --encoding.";

/** A format in lines for the command line. */
export const describeFormat = (format: DetectedFormat): string => {
  const { type, encoding, encoding_assumed, delimiter, header, title_rows, column } = format;
  const titles = title_rows === 0 ? "" : `, below ${title_rows === 1 ? "a title row" : `${title_rows} title rows`}`;
  const file =
    type === "xlsx"
      ? "Excel workbook"
      : `CSV (${encoding}${delimiter === null ? "" : `, ${DELIMITER_NAMES[delimiter]}`})`;
  const name = column.name === null ? "" : ` ${JSON.stringify(column.name)}`;
  return `${file}, ${header ? `with a header${titles}` : "without a header"}.\nAddresses: column ${column.index}${name}. ${column.message}${encoding_assumed ? ASSUMED : ""}`;
};
