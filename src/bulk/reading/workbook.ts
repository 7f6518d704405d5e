import { open } from "node:fs/promises";
import { written } from "../../foundation/http/csv.ts";
import { looksLikeAddress } from "./columns-address.ts";
import { CSV_ROW_BYTES_MAX, CSV_ROW_CELLS_MAX } from "./csv-records.ts";
import {
  openWorkbook,
  type PartHandler,
  type WorkbookParts,
  WorkbookRefused,
  readSharedStrings,
  type SharedStrings,
  WORKBOOK_LIMITS,
  type WorkbookLimits,
} from "./workbook-parts.ts";

const WORKBOOK = "xl/workbook.xml";
/** The contents of an .ods (ODF 1.3, part 2, §3.1). */
const OPEN_DOCUMENT = "content.xml";
const RELATIONS = "xl/_rels/workbook.xml.rels";
const SMALL_PART_BYTES_MAX = 4 * 1024 * 1024;
/** Header and titles, which are no rows. */
const TITLE_LINES_MAX = 20;
/** A million rows of twenty columns. */
const SHEET_BYTES_MAX = 1024 * 1024 * 1024;
const WRITTEN_AT_ONCE = 256 * 1024;
const ZIP_MAGIC = [0x50, 0x4b, 0x03, 0x04];

/** Whether a file starts like a ZIP archive, as every .xlsx does. */
export const isArchive = async (path: string): Promise<boolean> => {
  const head = await Bun.file(path).slice(0, ZIP_MAGIC.length).bytes();
  return ZIP_MAGIC.every((byte, at) => head[at] === byte);
};

/** Visible sheets of a workbook that can be chosen; the largest workbooks have some dozens. */
const SHEETS_MAX = 1_000;
/** Of these sheets, the first with an address in its first rows is read when none is named. */
const SHEETS_TRIED_MAX = 20;
const ROWS_TRIED_MAX = 200;
const TRIED_BYTES_MAX = 1024 * 1024;
const SHEETS_NAMED_MAX = 100;
const NAMES_IN_MESSAGE_MAX = 10;
/** Excel allows 31. */
export const SHEET_CHARACTERS_MAX = 200;

/** A visible sheet. */
interface Sheet {
  readonly name: string;
  readonly part: string;
}

interface Sheets {
  readonly visible: readonly Sheet[];
  readonly isFrom1904: boolean;
}

/** The visible sheets, in the order of the workbook. */
const findSheets = async (parts: WorkbookParts): Promise<Sheets> => {
  if (!parts.has(WORKBOOK))
    throw new WorkbookRefused(
      `This is ${parts.has(OPEN_DOCUMENT) ? "an OpenDocument file (such as .ods)" : "a ZIP archive"}, not an Excel workbook (.xlsx). Save the list as CSV (UTF-8).`,
    );
  const named: Array<{ readonly name: string; readonly id: string }> = [];
  let isFrom1904 = false;
  await parts.read(WORKBOOK, {
    bytesMax: SMALL_PART_BYTES_MAX,
    handler: {
      open(tag, { id = "", name = "", state = "visible", date1904 = "" }) {
        if (tag === "sheet" && state === "visible" && named.length < SHEETS_MAX) named.push({ name, id });
        if (tag === "workbookPr") isFrom1904 = date1904 === "1" || date1904 === "true";
      },
    },
  });
  const targets = new Map(named.map(({ id }) => [id, "worksheets/sheet1.xml"]));
  await parts.read(RELATIONS, {
    bytesMax: SMALL_PART_BYTES_MAX,
    handler: {
      open(tag, { Id = "", Target }) {
        if (tag === "Relationship" && Target !== undefined && targets.has(Id)) targets.set(Id, Target);
      },
    },
  });
  const visible = named.flatMap(({ name, id }) => {
    const target = targets.get(id) ?? "";
    const part = target.startsWith("/") ? target.slice(1) : `xl/${target}`;
    return parts.has(part) ? [{ name, part }] : [];
  });
  return { visible, isFrom1904 };
};

/** Zero-based column of a reference such as `AB12`; null without one. */
const columnOf = (reference: string | undefined): number | null => {
  const letters = /^[A-Z]{1,3}/.exec(reference ?? "")?.[0];
  if (letters === undefined) return null;
  return [...letters].reduce((sum, letter) => sum * 26 + letter.charCodeAt(0) - 64, 0) - 1;
};

interface SheetDeps {
  readonly strings: SharedStrings;
  readonly dateStyles: ReadonlySet<number>;
  readonly isFrom1904: boolean;
  /** Called for every row that is not empty. */
  readonly onRow: (cells: readonly string[]) => void;
}

const cellText = (raw: string, type: string, isDate: boolean, { strings, isFrom1904 }: SheetDeps): string => {
  if (type === "s") return strings.at(Number(raw));
  if (type === "b") return raw === "1" ? "TRUE" : "FALSE";
  if (type !== "n" || raw === "") return raw;
  const date = isDate ? serialDate(Number(raw), isFrom1904) : null;
  return date ?? (/e/i.test(raw) ? String(Number(raw)) : raw);
};

/** Reads the cells of a sheet: values without number formats, formulas as their results. */
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
      else if (name === "row" && cells.length > 0) deps.onRow(cells);
    },
  };
};

type CellDeps = Omit<SheetDeps, "onRow">;

/** Whether one of the first rows of a sheet holds an address. A sheet that cannot be read holds none. */
const hasAddress = async (parts: WorkbookParts, { part }: Sheet, deps: CellDeps): Promise<boolean> => {
  let rows = 0;
  let isFound: boolean = false;
  const onRow = (cells: readonly string[]): void => {
    rows++;
    isFound ||= cells.some(looksLikeAddress);
  };
  const handler = createSheetHandler({ ...deps, onRow });
  const isEnough = () => isFound || rows >= ROWS_TRIED_MAX;
  try {
    await parts.read(part, { handler, bytesMax: TRIED_BYTES_MAX, isEnough });
  } catch (error) {
    if (!(error instanceof WorkbookRefused)) throw error;
  }
  return isFound;
};

/** The names that a sheet can be chosen by. */
const choosable = (visible: readonly Sheet[]): readonly string[] =>
  visible.flatMap(({ name }) => (name.length <= SHEET_CHARACTERS_MAX ? [name] : [])).slice(0, SHEETS_NAMED_MAX);

/** The sheet that is named, else the first with an address, else the first. */
const chooseSheet = async (
  parts: WorkbookParts,
  { visible, wanted }: { readonly visible: readonly Sheet[]; readonly wanted: string | undefined },
  deps: CellDeps,
): Promise<Sheet> => {
  const [first] = visible;
  if (first === undefined) throw new WorkbookRefused("The Excel workbook has no visible sheet.");
  if (wanted !== undefined) {
    const alike = ({ name }: Sheet) => name.toLowerCase() === wanted.toLowerCase();
    const found = visible.find(({ name }) => name === wanted) ?? visible.find(alike);
    if (found !== undefined) return found;
    const names = choosable(visible);
    const shown = names.slice(0, NAMES_IN_MESSAGE_MAX).map((name) => JSON.stringify(name));
    throw new WorkbookRefused(
      `The workbook has no visible sheet ${JSON.stringify(wanted)}. It has ${shown.join(", ")}${names.length > shown.length ? ", …" : ""}.`,
    );
  }
  if (visible.length === 1) return first;
  for (const sheet of visible.slice(0, SHEETS_TRIED_MAX)) if (await hasAddress(parts, sheet, deps)) return sheet;
  return first;
};

export interface WorkbookOptions {
  /** Maximum size of the CSV. */
  readonly bytesMax: number;
  readonly limits?: WorkbookLimits;
  /** The name of a visible sheet, in either case. Undefined: the first with addresses. */
  readonly sheet?: string | undefined;
}

/** The sheet of a workbook that was read, and the names of the visible ones: the first 100. */
export interface SheetChoice {
  readonly sheet: string;
  readonly sheets: readonly string[];
}

interface CsvFile {
  writeFile(bytes: Uint8Array): Promise<unknown>;
}

/** Writes rows as CSV, many at once. `end` resolves when all is written. */
const createCsvWriter = (file: CsvFile, bytesMax: number, limits: WorkbookLimits) => {
  let pending = "\ufeff";
  let bytes = 0;
  let lines = 0;
  let writing: Promise<unknown> = Promise.resolve();
  const flush = (): void => {
    const text = Buffer.from(pending);
    pending = "";
    bytes += text.length;
    if (bytes > bytesMax) throw new WorkbookRefused(`The sheet exceeds ${bytesMax.toLocaleString("en")} bytes as CSV.`);
    writing = writing.then(() => file.writeFile(text));
    // Awaited at the end; if the sheet is refused before, the rejection must be handled.
    writing.catch(() => undefined);
  };
  return {
    onRow: (cells: readonly string[]): void => {
      lines++;
      if (lines > limits.rows + TITLE_LINES_MAX)
        throw new WorkbookRefused(`The sheet has more than ${limits.rows.toLocaleString("en")} rows. Split it.`);
      pending += `${cells.map(written).join(",")}\r\n`;
      if (pending.length >= WRITTEN_AT_ONCE) flush();
    },
    end: async (): Promise<void> => {
      flush();
      await writing;
    },
  };
};

/**
 * Writes a visible sheet of the workbook at `path` as CSV to the new file `target`: UTF-8 with a byte order mark, commas,
 * CRLF. Dates are written as ISO 8601. The workbook is streamed; only the shared strings are kept in memory.
 * Throws `WorkbookRefused` with a sentence for people and may leave a partial `target`.
 */
export const writeWorkbookAsCsv = async (
  path: string,
  target: string,
  { bytesMax, limits = WORKBOOK_LIMITS, sheet: wanted }: WorkbookOptions,
): Promise<SheetChoice> => {
  const parts = await openWorkbook(path);
  const file = await open(target, "wx", 0o600).catch((error: unknown) => {
    parts.close();
    throw error;
  });
  try {
    const { visible, isFrom1904 } = await findSheets(parts);
    const [strings, dateStyles] = [await readSharedStrings(parts, limits), await readDateStyles(parts)];
    const deps = { strings, dateStyles, isFrom1904 };
    const { name, part } = await chooseSheet(parts, { visible, wanted }, deps);
    const { onRow, end } = createCsvWriter(file, bytesMax, limits);
    await parts.read(part, { handler: createSheetHandler({ ...deps, onRow }), bytesMax: SHEET_BYTES_MAX });
    await end();
    return { sheet: name, sheets: choosable(visible) };
  } finally {
    await file.close();
    parts.close();
  }
};

/** The names of the visible sheets of the workbook at `path`: the first 100. Throws `WorkbookRefused`. */
export const sheetNames = async (path: string): Promise<readonly string[]> => {
  const parts = await openWorkbook(path);
  try {
    return choosable((await findSheets(parts)).visible);
  } finally {
    parts.close();
  }
};

const PART_BYTES_MAX = 16 * 1024 * 1024;
const STYLES_MAX = 65_536;
const DAY_MS = 86_400_000;
const SECOND_MS = 1_000;
/** Day 0 of Excel: day 60 is 29 February 1900, which did not exist (ECMA-376 §18.17.4.1). */
const EPOCH_1900_MS = Date.UTC(1899, 11, 30);
const EPOCH_1904_MS = Date.UTC(1904, 0, 1);
const YEAR_10000_MS = Date.UTC(10_000, 0, 1);

/** Built-in number formats of dates and times (ECMA-376 §18.8.30). */
const isBuiltInDate = (id: number): boolean =>
  (id >= 14 && id <= 22) || (id >= 27 && id <= 36) || (id >= 45 && id <= 47) || (id >= 50 && id <= 58);

/** Excel refuses longer formats. */
const FORMAT_CHARACTERS_MAX = 255;
// input ≤ 255 characters
const IGNORED_IN_FORMAT = /"[^"]*"|\\.|_.|\[[^\]]*\]/g;

/** Ignores quoted texts, escapes, colours and conditions of a format. */
const isDateFormat = (code: string): boolean =>
  code.length <= FORMAT_CHARACTERS_MAX && /[dmyhs]/i.test(code.replace(IGNORED_IN_FORMAT, ""));

/** The styles that show a number as a date: the indices in the attribute `s` of cells. */
export const readDateStyles = async (parts: WorkbookParts): Promise<ReadonlySet<number>> => {
  const dateFormats = new Set<number>();
  const styles = new Set<number>();
  let at = 0;
  let isInCells = false;
  await parts.read("xl/styles.xml", {
    bytesMax: PART_BYTES_MAX,
    handler: {
      open(name, { numFmtId = "", formatCode = "" }) {
        if (name === "numFmt" && isDateFormat(formatCode) && dateFormats.size < STYLES_MAX)
          dateFormats.add(Number(numFmtId));
        else if (name === "cellXfs") isInCells = true;
        else if (name === "xf" && isInCells) {
          const id = Number(numFmtId);
          if ((isBuiltInDate(id) || dateFormats.has(id)) && at < STYLES_MAX) styles.add(at);
          at++;
        }
      },
      close(name) {
        if (name === "cellXfs") isInCells = false;
      },
    },
  });
  return styles;
};

/** A serial number as ISO 8601: a date, a time of day, or both separated by a space. Null when it is invalid. */
export const serialDate = (serial: number, isFrom1904: boolean): string | null => {
  const ms = Math.round((serial * DAY_MS) / SECOND_MS) * SECOND_MS;
  const timeMs = (isFrom1904 ? EPOCH_1904_MS : EPOCH_1900_MS) + ms;
  if (!(serial >= 0 && timeMs < YEAR_10000_MS)) return null;
  const iso = new Date(timeMs).toISOString();
  const [date, time] = [iso.slice(0, 10), iso.slice(11, 19)];
  if (serial < 1) return time;
  return ms % DAY_MS === 0 ? date : `${date} ${time}`;
};
