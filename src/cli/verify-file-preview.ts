import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Random } from "../foundation/base/secrets.ts";
import { readRows } from "../bulk/reading/csv.ts";
import { type ListFile, withListFile } from "../bulk/arrival/list-file.ts";
import { describeFormat } from "../bulk/reading/detected-format.ts";
import { type Preview, previewSubmission } from "../bulk/arrival/preview.ts";
import { type Io, print, UsageError } from "./io.ts";
import { table } from "./terminal-text.ts";
import { counted } from "./progress.ts";
import { type FileOptions, layoutOf } from "./verify-file.ts";
import { checkList } from "./verify-file-paths.ts";

const CELL_CHARACTERS_SHOWN = 40;

const shown = (text: string): string =>
  text.length > CELL_CHARACTERS_SHOWN ? `${text.slice(0, CELL_CHARACTERS_SHOWN)}…` : text;

const rowsTable = ({ first_rows: rows }: Preview): string =>
  table(
    ["ROW", "SUBMITTED", "READ AS", "NOTE"],
    rows.map(({ row_index, submitted_email, normalized_email, did_you_mean, reason }) => [
      String(row_index),
      shown(submitted_email),
      reason === null ? shown(normalized_email) : "",
      reason ?? (did_you_mean === null ? "" : `did you mean ${shown(did_you_mean)}?`),
    ]),
  );

const textOf = (preview: Preview, { reading }: ListFile): string => {
  const { rows, addresses, candidates } = preview;
  const others = candidates.filter(({ index }) => index !== reading.column.index);
  const names = others.map(({ index, name }) => `${index}${name === null ? "" : ` ${JSON.stringify(name)}`}`);
  return [
    describeFormat(reading),
    ...(names.length === 0 ? [] : [`Other columns with addresses: ${names.join(", ")}.`]),
    `${counted(rows.total, "row", "rows")}, ${counted(addresses.total, "address", "addresses")}; ${rows.duplicate.toLocaleString("en")} duplicate, ${rows.empty.toLocaleString("en")} empty, ${rows.invalid_syntax.toLocaleString("en")} not an address.`,
    "",
    rowsTable(preview),
  ].join("\n");
};

/** `verify --file LIST --dry-run`: shows how a list is read and what is in it, without the network. */
export const previewFile = async (options: FileOptions, io: Io, random: Random): Promise<void> => {
  const { file, out, force } = options;
  if (file === undefined || file === "") throw new UsageError("--dry-run needs a --file.");
  if (out !== undefined || force) throw new UsageError("--dry-run cannot be combined with --out or --force.");
  const requested = layoutOf(options);
  checkList(resolve(file), file);
  const folder = mkdtempSync(join(tmpdir(), "postwarden-"));
  try {
    await withListFile(resolve(file), { layout: requested, sheetPath: join(folder, "sheet") }, async (list) => {
      const { source, inspection, reading } = list;
      const { shape } = inspection;
      const about = { name: null, source: null, webhookUrl: null, reading, format: shape, rowsMax: shape.rows };
      const order = { inspection, list: { ...about, batches: readRows(source, shape) } };
      const preview = await previewSubmission(order, { credits: { available: 0, isHeld: false }, random });
      const { credits, ...rest } = preview;
      print(io, options.json, rest, () => textOf(preview, list));
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
