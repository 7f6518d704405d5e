import { rm } from "node:fs/promises";
import { AppError } from "../base/errors.ts";
import { type Inspection, inspectList, type InspectOptions, listRefused } from "./csv.ts";
import { fileSource, type ByteSource } from "./byte-source.ts";
import { type DetectedFormat, detectedFormatOf } from "./detected-format.ts";
import { LIST_BYTES_MAX } from "./upload.ts";
import { isJsonList } from "./upload-json.ts";
import { isArchive, writeWorkbookAsCsv } from "./workbook.ts";
import { WorkbookRefused } from "./workbook-parts.ts";

/** A list in a file, found out about. */
export interface ListFile {
  readonly source: ByteSource;
  readonly inspection: Inspection;
  readonly reading: DetectedFormat;
}

export interface ListFileOptions {
  readonly wish: Pick<InspectOptions, "column" | "header">;
  /** Where the CSV of a workbook lies meanwhile: a new file. */
  readonly sheetPath: string;
}

const IS_JSON = 'This is JSON, not CSV: send JSON without a Content-Type of text/csv, as the body {"emails":[…]}.';

const refuse = (message: string): AppError => new AppError("Invalid request body", { message });

/** 400 with the reason and the rows at fault when the list cannot be taken. */
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
 * Finds out how the list in a file is written, a CSV or the first visible sheet of an Excel workbook (.xlsx), and hands
 * it to `work`. A workbook is read as the CSV that it is written to; that is gone afterwards. Throws an
 * AppError (400) for what is no list.
 */
export const withListFile = async <T>(
  path: string,
  { wish, sheetPath }: ListFileOptions,
  work: (list: ListFile) => Promise<T>,
): Promise<T> => {
  if (await isJsonList(path)) throw refuse(IS_JSON);
  if (!(await isArchive(path))) {
    const source = fileSource(path);
    const inspection = await inspectOrRefuse(source, wish);
    return work({ source, inspection, reading: detectedFormatOf("csv", inspection.shape) });
  }
  try {
    await writeCsv(path, sheetPath);
    const source = fileSource(sheetPath);
    const inspection = await inspectOrRefuse(source, { ...wish, delimiter: "," });
    return await work({ source, inspection, reading: detectedFormatOf("xlsx", inspection.shape) });
  } finally {
    await rm(sheetPath, { force: true });
  }
};
