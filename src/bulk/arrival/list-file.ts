import { rm } from "node:fs/promises";
import { AppError } from "../../foundation/base/errors.ts";
import {
  type Inspection,
  inspectList,
  type InspectOptions,
  type FileSample,
  listRefused,
  sampleRecords,
  type DetectedFormat,
  detectedFormatOf,
} from "../reading/csv.ts";
import { fileSource, type ByteSource } from "../reading/csv-records.ts";
import { LIST_BYTES_MAX } from "./upload.ts";
import { isArchive, writeWorkbookAsCsv } from "../reading/workbook.ts";
import { WorkbookRefused } from "../reading/workbook-parts.ts";
import { stat } from "node:fs/promises";
import { looksLikeAddress } from "../reading/columns-address.ts";

/** A list in a file. */
export interface ListFile {
  readonly source: ByteSource;
  readonly inspection: Inspection;
  readonly reading: DetectedFormat;
}

export interface ListFileOptions {
  readonly layout: Pick<InspectOptions, "column" | "header" | "encoding">;
  /** Where the CSV of a workbook is written: a new file. */
  readonly sheetPath: string;
}

const IS_JSON = 'This is JSON, not CSV. Send {"emails":[…]} with Content-Type: application/json.';

const refuse = (message: string): AppError => new AppError("Invalid request body", { message });

/** 400 with the reason and the invalid rows when the list cannot be accepted. */
const inspectOrRefuse = async (source: ByteSource, options: InspectOptions): Promise<Inspection> => {
  const inspected = await inspectList(source, options);
  if (!inspected.ok) throw listRefused(inspected.error);
  return inspected.value;
};

const writeCsv = async (path: string, target: string): Promise<void> => {
  try {
    await writeWorkbookAsCsv(path, target, { bytesMax: LIST_BYTES_MAX });
  } catch (error) {
    throw error instanceof WorkbookRefused ? refuse(error.message) : error;
  }
};

/**
 * Detects the format of the list in a file, a CSV or the first visible sheet of an Excel workbook (.xlsx), and passes it
 * to `work`. A workbook is converted to CSV first; that file is deleted afterwards. Throws 400 when the file is not a list.
 */
export const withListFile = async <T>(
  path: string,
  { layout, sheetPath }: ListFileOptions,
  work: (list: ListFile) => Promise<T>,
): Promise<T> => {
  if (await isJsonList(path)) throw refuse(IS_JSON);
  if (!(await isArchive(path))) {
    const source = fileSource(path);
    const inspection = await inspectOrRefuse(source, layout);
    return work({ source, inspection, reading: detectedFormatOf("csv", inspection.shape) });
  }
  if (layout.encoding !== undefined) throw refuse("An Excel workbook is always UTF-8. Leave out the encoding.");
  try {
    await writeCsv(path, sheetPath);
    const source = fileSource(sheetPath);
    const inspection = await inspectOrRefuse(source, { ...layout, delimiter: "," });
    return await work({ source, inspection, reading: detectedFormatOf("xlsx", inspection.shape) });
  } finally {
    await rm(sheetPath, { force: true });
  }
};

/** The first rows of a file that is not accepted as a list; null when it has no rows that can be shown. */
export const sampleFile = async (
  path: string,
  { sheetPath, rowsMax }: { readonly sheetPath: string; readonly rowsMax: number },
): Promise<FileSample | null> => {
  const isWorkbook = await isArchive(path);
  try {
    if (isWorkbook) await writeCsv(path, sheetPath);
    const source = fileSource(isWorkbook ? sheetPath : path);
    const sampled = await sampleRecords(source, isWorkbook ? { rowsMax, delimiter: "," } : { rowsMax });
    return sampled.ok && sampled.value.records.length > 0 ? sampled.value : null;
  } catch (error) {
    if (error instanceof AppError) return null;
    throw error;
  } finally {
    await rm(sheetPath, { force: true });
  }
};

/** Only the beginning of a file is examined: parsing a long JSON text could take a second. */
const HEAD_BYTES = 64 * 1024;
const BYTE_ORDER_MARK = /^\ufeff/;

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    // The text is not JSON.
    return null;
  }
};

const hasEmails = (value: unknown): boolean =>
  Array.isArray(value)
    ? value.some((entry) => typeof entry === "string" && looksLikeAddress(entry))
    : typeof value === "object" && value !== null && "emails" in value && Array.isArray(value.emails);

/** Whether a text starts like an object with `emails`, or like an array with an address among its first strings. */
const startsLikeList = (head: string): boolean => {
  if (/^\{\s*"/.test(head)) return /"emails"\s*:\s*\[/.test(head);
  if (!/^\[\s*"/.test(head)) return false;
  return head.matchAll(/"([^"\\]*)"\s*,/g).some(([, entry = ""]) => looksLikeAddress(entry));
};

/** Whether a file contains a JSON list (an object with `emails`, or an array of addresses) instead of CSV. */
export const isJsonList = async (path: string): Promise<boolean> => {
  const file = Bun.file(path);
  const head = (await file.slice(0, HEAD_BYTES).text()).replace(BYTE_ORDER_MARK, "").trimStart();
  if (!/^[[{]/.test(head)) return false;
  if (/^\{\s*"emails"\s*:\s*\[/.test(head)) return true;
  const { size } = await stat(path);
  return size <= HEAD_BYTES ? hasEmails(parsed(head)) : startsLikeList(head);
};
