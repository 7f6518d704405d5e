import { open } from "node:fs/promises";
import { written } from "../http/csv.ts";
import { ROWS_MAX } from "./csv.ts";
import { CSV_ROW_BYTES_MAX, CSV_ROW_CELLS_MAX } from "./csv-records.ts";
import { readDateStyles, serialDate } from "./workbook-dates.ts";
import { openWorkbook, type PartHandler, type WorkbookParts, WorkbookRefused } from "./workbook-parts.ts";
import { readSharedStrings, type SharedStrings } from "./workbook-strings.ts";

const WORKBOOK = "xl/workbook.xml";
const RELATIONS = "xl/_rels/workbook.xml.rels";
const SMALL_PART_BYTES_MAX = 4 * 1024 * 1024;
/** With a header and titles above the rows. */
const LINES_MAX = ROWS_MAX + 20;
/** A million rows of twenty columns. */
const SHEET_BYTES_MAX = 1024 * 1024 * 1024;
const WRITTEN_AT_ONCE = 256 * 1024;
const ZIP_MAGIC = [0x50, 0x4b, 0x03, 0x04];

/** Whether a file begins as a ZIP archive does, as every .xlsx. */
export const isArchive = async (path: string): Promise<boolean> => {
  const head = await Bun.file(path).slice(0, ZIP_MAGIC.length).bytes();
  return ZIP_MAGIC.every((byte, at) => head[at] === byte);
};

interface SheetPlace {
  readonly part: string;
  readonly isFrom1904: boolean;
}

/** Where the first sheet that is not hidden lies. */
const findSheet = async (parts: WorkbookParts): Promise<SheetPlace> => {
  if (!parts.has(WORKBOOK))
    throw new WorkbookRefused(
      "This is a ZIP archive, but no Excel workbook (.xlsx). Send the list itself, as CSV or .xlsx.",
    );
  let relation: string | null = null;
  let isFrom1904 = false;
  await parts.read(WORKBOOK, {
    bytesMax: SMALL_PART_BYTES_MAX,
    handler: {
      open(name, { id = "", state = "visible", date1904 = "" }) {
        if (name === "sheet" && state === "visible") relation ??= id;
        if (name === "workbookPr") isFrom1904 = date1904 === "1" || date1904 === "true";
      },
    },
  });
  let target = "worksheets/sheet1.xml";
  await parts.read(RELATIONS, {
    bytesMax: SMALL_PART_BYTES_MAX,
    handler: {
      open(name, attributes) {
        if (name === "Relationship" && attributes.Id === relation) target = attributes.Target ?? target;
      },
    },
  });
  const part = target.startsWith("/") ? target.slice(1) : `xl/${target}`;
  if (relation === null || !parts.has(part)) throw new WorkbookRefused("The Excel workbook has no visible sheet.");
  return { part, isFrom1904 };
};

/** Zero-based column of a reference such as `AB12`; null where a cell does not say. */
const columnOf = (reference: string | undefined): number | null => {
  const letters = /^[A-Z]{1,3}/.exec(reference ?? "")?.[0];
  if (letters === undefined) return null;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
};

interface SheetDeps {
  readonly strings: SharedStrings;
  readonly dateStyles: ReadonlySet<number>;
  readonly isFrom1904: boolean;
  /** Called for every row with its CSV line. */
  readonly onLine: (line: string) => void;
}

const cellText = (raw: string, type: string, isDate: boolean, { strings, isFrom1904 }: SheetDeps): string => {
  if (type === "s") return strings.at(Number(raw));
  if (type === "b") return raw === "1" ? "TRUE" : "FALSE";
  if (type !== "n" || raw === "") return raw;
  const date = isDate ? serialDate(Number(raw), isFrom1904) : null;
  return date ?? (/e/i.test(raw) ? String(Number(raw)) : raw);
};

/** Reads the cells of a sheet as a spreadsheet shows them, without its formats: formulas as what they came to. */
const createSheetHandler = (deps: SheetDeps): PartHandler => {
  let cells: string[] = [];
  let rowBytes = 0;
  let rowNumber = 0;
  let cell = { column: 0, type: "n", isDate: false };
  let raw = "";
  let isValue = false;

  const refuse = (reason: string): never => {
    throw new WorkbookRefused(`Row ${rowNumber} of the sheet cannot be read: ${reason}.`);
  };
  const endCell = (): void => {
    const text = cellText(raw, cell.type, cell.isDate, deps);
    rowBytes += text.length;
    if (rowBytes > CSV_ROW_BYTES_MAX) refuse(`longer than ${CSV_ROW_BYTES_MAX / 1024} KiB`);
    if (text === "") return;
    while (cells.length < cell.column) cells.push("");
    cells[cell.column] = text;
  };

  return {
    open(name, { r, t = "n", s = "" }) {
      if (name === "row") {
        rowNumber = r === undefined ? rowNumber + 1 : Number(r);
        cells = [];
        rowBytes = 0;
        cell = { column: -1, type: "n", isDate: false };
      } else if (name === "c") {
        const column = columnOf(r) ?? cell.column + 1;
        if (column >= CSV_ROW_CELLS_MAX) refuse(`more than ${CSV_ROW_CELLS_MAX} cells`);
        cell = { column, type: t, isDate: deps.dateStyles.has(Number(s)) };
        raw = "";
      } else if (name === "v" || name === "t") isValue = true;
      else if (name === "rPh") isValue = false;
    },
    text(piece) {
      if (isValue) raw += piece;
      if (raw.length > CSV_ROW_BYTES_MAX) refuse(`longer than ${CSV_ROW_BYTES_MAX / 1024} KiB`);
    },
    close(name) {
      if (name === "v" || name === "t") isValue = false;
      else if (name === "c") endCell();
      else if (name === "row" && cells.length > 0) deps.onLine(`${cells.map(written).join(",")}\r\n`);
    },
  };
};

export interface WorkbookLimits {
  /** Of the CSV that it comes to. */
  readonly bytesMax: number;
}

/**
 * Writes the first visible sheet of the workbook at `path` as CSV to the new file `target`: UTF-8 with a byte order mark,
 * commas, CRLF. Dates are written as ISO 8601. Everything is read in pieces; what is kept meanwhile are the shared texts.
 * Throws `WorkbookRefused` with a sentence for people; `target` may then be there in part.
 */
export const writeWorkbookAsCsv = async (path: string, target: string, { bytesMax }: WorkbookLimits): Promise<void> => {
  const parts = await openWorkbook(path);
  const file = await open(target, "wx", 0o600).catch((error: unknown) => {
    parts.close();
    throw error;
  });
  try {
    const { part, isFrom1904 } = await findSheet(parts);
    const [strings, dateStyles] = [await readSharedStrings(parts), await readDateStyles(parts)];
    let pending = "\ufeff";
    let bytes = 0;
    let lines = 0;
    let writing: Promise<unknown> = Promise.resolve();
    const flush = (): void => {
      const text = Buffer.from(pending);
      pending = "";
      bytes += text.length;
      if (bytes > bytesMax) throw new WorkbookRefused("As CSV the sheet has more bytes than a list may have.");
      writing = writing.then(() => file.writeFile(text));
      // It is awaited at the end; a sheet that is refused before must not leave a rejection behind.
      writing.catch(() => undefined);
    };
    const onLine = (line: string): void => {
      lines++;
      if (lines > LINES_MAX)
        throw new WorkbookRefused(`The sheet has more than ${ROWS_MAX.toLocaleString("en")} rows. Send it in parts.`);
      pending += line;
      if (pending.length >= WRITTEN_AT_ONCE) flush();
    };
    const handler = createSheetHandler({ strings, dateStyles, isFrom1904, onLine });
    await parts.read(part, { handler, bytesMax: SHEET_BYTES_MAX });
    flush();
    await writing;
  } finally {
    await file.close();
    parts.close();
  }
};
