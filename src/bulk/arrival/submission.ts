import { createHash } from "node:crypto";
import { rm, stat } from "node:fs/promises";
import type { Clock } from "../../foundation/base/clock.ts";
import { AppError, type ErrorCode } from "../../foundation/base/errors.ts";
import { newId, sha256 } from "../../foundation/base/secrets.ts";
import { keptCell } from "../../foundation/mail/address-in-cell.ts";
import { checked, readJson, parametersOf, readQuery } from "../../foundation/http/body.ts";
import {
  LIST_BATCH_ROWS_MAX,
  type Inspection,
  type ListRow,
  readRows,
  inspectList,
  type InspectOptions,
  type FileSample,
  listRefused,
  sampleRecords,
  type DetectedFormat,
  detectedFormatOf,
} from "../reading/csv.ts";
import { fileSource, type ByteSource } from "../reading/csv-records.ts";
import { type IncomingList, SMALL_BYTES_MAX, SMALL_ROWS_MAX, type UploadReservation } from "./intake.ts";
import { JSON_LIST_FORMAT } from "../results/results-csv.ts";
import { jsonListSchema, jsonQuerySchema, type UploadOrder, uploadOptionsSchema } from "../results/schemas.ts";
import { receiveUpload, type Upload, uploadBytesMax, LIST_BYTES_MAX } from "./upload.ts";
import {
  isArchive,
  type SheetChoice,
  sheetNames,
  type WorkbookOptions,
  writeWorkbookAsCsv,
} from "../reading/workbook.ts";
import type { WebhookUrls } from "../../notifications/webhooks/url-store.ts";
import { WorkbookRefused } from "../reading/workbook-parts.ts";
import { looksLikeAddress } from "../reading/columns-address.ts";

/** A received list. `hash` identifies the list and its options. Disposed of, its slot is free and its files are deleted. */
export interface Submission extends AsyncDisposable {
  readonly list: IncomingList;
  /** Null for a JSON list. */
  readonly inspection: Inspection | null;
  /** The names of the visible sheets of a workbook; none for others. */
  readonly sheets: readonly string[];
  /** Only a preview is requested. */
  readonly isDryRun: boolean;
  hash(): Promise<string>;
}

/** 100,000 addresses of 80 characters. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;
const JSON_TYPE = /^application\/(.+\+)?json$/;
/** Without a stated type clients send none, or that of a form (curl). */
const JSON_TYPES = /^$|^application\/(.+\+)?json$|^application\/x-www-form-urlencoded$/;

async function* rowsOfEmails(emails: readonly string[]): AsyncGenerator<readonly ListRow[], void> {
  for (let from = 0; from < emails.length; from += LIST_BATCH_ROWS_MAX) {
    const batch = emails.slice(from, from + LIST_BATCH_ROWS_MAX);
    yield batch.map((text, at) => {
      const email = keptCell(text);
      return { rowIndex: from + at, cells: [email], email };
    });
  }
}

const mediaTypeOf = (request: Request): string =>
  ((request.headers.get("content-type") ?? "").split(";")[0] ?? "").trim().toLowerCase();

const LIST_TYPE_MISSING: ReadonlySet<ErrorCode> = new Set([
  "Request body must be valid JSON",
  "Invalid query",
  "payload_too_large",
]);

/** A body without a stated type that is not JSON is probably a CSV list: adds how to send one. */
const withTypeHint = (error: unknown): unknown => {
  if (!(error instanceof AppError)) return error;
  const { code, details } = error;
  if (!LIST_TYPE_MISSING.has(code)) return error;
  const hint = "To send a CSV list, set Content-Type: text/csv.";
  return new AppError(code, {
    ...details,
    message: details.message === undefined ? hint : `${details.message} ${hint}`,
  });
};

const readJsonBody = async (request: Request) => {
  try {
    const { dry_run } = readQuery(request, jsonQuerySchema);
    return { order: await readJson(request, jsonListSchema, JSON_BYTES_MAX), isDryRun: dry_run === "true" };
  } catch (error) {
    throw JSON_TYPE.test(mediaTypeOf(request)) ? error : withTypeHint(error);
  }
};

const readJsonList = async (request: Request, context: SubmissionContext) => {
  const { order, isDryRun } = await readJsonBody(request);
  const { emails, name = null, source = null } = order;
  const webhookUrl = readWebhookUrl(order.webhook_url, context);
  const notifyEmail = readNotifyEmail(order.notify_email, context);
  const about = {
    name,
    source,
    webhookUrl,
    notifyEmail,
    format: JSON_LIST_FORMAT,
    reading: null,
    rowsMax: emails.length,
  };
  return {
    isDryRun,
    inspection: null,
    sheets: [],
    list: { ...about, batches: rowsOfEmails(emails) },
    hash: async () => sha256(JSON.stringify(["bulk", name, source, webhookUrl, notifyEmail, emails])),
  };
};

/** SHA-256 of everything a source gives. */
export const hashOf = async (source: ByteSource): Promise<string> => {
  const hash = createHash("sha256");
  for await (const chunk of source()) hash.update(chunk);
  return hash.digest("hex");
};

export interface SubmissionContext {
  /** Where a file is stored while it is received and read. */
  readonly folder: string;
  readonly clock: Clock;
  /** Who submits it. */
  readonly account: string;
  readonly urls: Pick<WebhookUrls, "parse">;
  /** Why an address cannot be mailed, as a sentence; null when it can. */
  readonly mailProblem: (address: string) => string | null;
  /** Called before a file of at most this size is received; throws 503 when the account uploads too much. */
  readonly reserveUpload: (bytes: number) => UploadReservation;
  /** Waits until a received list may be read, and holds the slot; throws 503 when too many lists wait. */
  readonly takeSlot: (isSmall: boolean) => Promise<Disposable>;
}

/** A list in a file, and what the file was called. */
export type StoredList = Pick<Upload, "path" | "fileName">;

const readWebhookUrl = (text: string | undefined, { urls }: Pick<SubmissionContext, "urls">): string | null => {
  if (text === undefined) return null;
  const url = urls.parse(text);
  if (url.ok) return url.value;
  throw new AppError("Invalid request body", { issues: [{ path: "webhook_url", message: url.error }] });
};

const readNotifyEmail = (
  address: string | undefined,
  { mailProblem }: Pick<SubmissionContext, "mailProblem">,
): string | null => {
  const problem = address === undefined ? null : mailProblem(address);
  if (problem === null) return address ?? null;
  throw new AppError("Invalid request body", { issues: [{ path: "notify_email", message: problem }] });
};

/** A parameter may be in the query and the form only with the same value. */
const refuseContradictions = (parameters: URLSearchParams, fields: Readonly<Record<string, string>>): void => {
  const both = Object.entries(fields).filter(([name, value]) => (parameters.get(name) ?? value) !== value);
  if (both.length === 0) return;
  const issues = both.map(([name]) => ({ path: name, message: "Conflicts with the query parameter" }));
  throw new AppError("Invalid request body", { issues });
};

/** Opens a list in a file, with the options of its submission. */
export const openStoredList = async (
  { path, fileName }: StoredList,
  {
    options,
    context,
  }: { readonly options: UploadOrder; readonly context: Pick<SubmissionContext, "urls" | "mailProblem"> },
): Promise<Submission> => {
  const { name, source = null, webhook_url, notify_email, dry_run, ...layout } = options;
  const webhookUrl = readWebhookUrl(webhook_url, context);
  const notifyEmail = readNotifyEmail(notify_email, context);
  const sheetPath = `${path}.${newId()}.sheet`;
  const file = await openListFile(path, { layout, sheetPath });
  const { inspection, reading, sheets } = file;
  const { shape } = inspection;
  const about = { name: name ?? fileName, source, webhookUrl, notifyEmail };
  return {
    inspection,
    sheets,
    isDryRun: dry_run === "true",
    list: { ...about, format: shape, reading, rowsMax: shape.rows, batches: readRows(file.source, shape) },
    hash: async () => sha256(JSON.stringify(["bulk file", about, layout, await hashOf(fileSource(path))])),
    [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
  };
};

/** The options of an uploaded file: in the query and in the form. */
const optionsOf = (request: Request, { fields }: Upload): UploadOrder => {
  refuseContradictions(parametersOf(request), fields);
  const given = { ...readQuery(request, uploadOptionsSchema.partial()), ...fields };
  return checked(uploadOptionsSchema, given, "Invalid request body");
};

/** Whether a file is read quickly. A workbook is compressed: a small one may need as much memory as a large list. */
export const isSmallFile = async ({ path, bytes }: Pick<Upload, "path" | "bytes">): Promise<boolean> =>
  bytes <= SMALL_BYTES_MAX && !(await isArchive(path));

/**
 * Receives and opens the list of a request (JSON, CSV, workbook or form), and holds a slot to read it. Throws 400 when the
 * body is not a list, 413, 415.
 */
export const receiveSubmission = async (request: Request, context: SubmissionContext): Promise<Submission> => {
  await using held = new AsyncDisposableStack();
  if (JSON_TYPES.test(mediaTypeOf(request))) {
    const submission = await readJsonList(request, context);
    held.use(await context.takeSlot(submission.list.rowsMax <= SMALL_ROWS_MAX));
    return { ...submission, ...releasing(held) };
  }
  // Invalid parameters are refused before the file is received.
  readQuery(request, uploadOptionsSchema.partial());
  const reservation = context.reserveUpload(uploadBytesMax(request));
  held.defer(() => reservation.release());
  const upload = await receiveUpload(request, context);
  held.defer(() => rm(upload.path, { force: true }));
  reservation.shrink(upload.bytes);
  held.use(await context.takeSlot(await isSmallFile(upload)));
  const submission = held.use(await openStoredList(upload, { options: optionsOf(request, upload), context }));
  return { ...submission, ...releasing(held) };
};

/** A list in a file. Disposed of when it has been read: what was converted is deleted. */
export interface ListFile extends AsyncDisposable {
  readonly source: ByteSource;
  readonly inspection: Inspection;
  readonly reading: DetectedFormat;
  /** The names of the visible sheets of a workbook; none for a CSV. */
  readonly sheets: readonly string[];
}

export interface ListFileOptions {
  readonly layout: Pick<InspectOptions, "column" | "header" | "encoding"> & Pick<WorkbookOptions, "sheet">;
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

const writeCsv = async (path: string, target: string, sheet: string | undefined): Promise<SheetChoice> => {
  try {
    return await writeWorkbookAsCsv(path, target, { bytesMax: LIST_BYTES_MAX, sheet });
  } catch (error) {
    throw error instanceof WorkbookRefused ? refuse(error.message) : error;
  }
};

/**
 * Detects the format of the list in a file, a CSV or a visible sheet of an Excel workbook (.xlsx). A workbook is converted
 * to CSV first. Throws 400 when the file is not a list.
 */
export const openListFile = async (
  path: string,
  { layout: { sheet: wanted, ...layout }, sheetPath }: ListFileOptions,
): Promise<ListFile> => {
  if (await isJsonList(path)) throw refuse(IS_JSON);
  await using held = new AsyncDisposableStack();
  if (!(await isArchive(path))) {
    if (wanted !== undefined) throw refuse("Only an Excel workbook has sheets. Leave out the sheet.");
    const source = fileSource(path);
    const inspection = await inspectOrRefuse(source, layout);
    const reading = detectedFormatOf("csv", inspection.shape);
    return { source, inspection, reading, sheets: [], ...releasing(held) };
  }
  if (layout.encoding !== undefined) throw refuse("An Excel workbook is always UTF-8. Leave out the encoding.");
  held.defer(() => rm(sheetPath, { force: true }));
  const { sheet, sheets } = await writeCsv(path, sheetPath, wanted);
  const source = fileSource(sheetPath);
  const inspection = await inspectOrRefuse(source, { ...layout, delimiter: "," });
  return { source, inspection, reading: detectedFormatOf("xlsx", inspection.shape, sheet), sheets, ...releasing(held) };
};

/** Passes what is held on to the object that this becomes a part of. */
const releasing = (held: AsyncDisposableStack): AsyncDisposable => {
  const kept = held.move();
  return { [Symbol.asyncDispose]: () => kept.disposeAsync() };
};

/** The first rows of a file that is not accepted as a list, and the sheets of a workbook. */
export interface RefusedFile extends Pick<ListFile, "sheets"> {
  /** Null when there are no rows that can be shown. */
  readonly sample: FileSample | null;
  /** The sheet that the rows are from. */
  readonly sheet: string | null;
}

const NO_SHEET = { sheet: null, sheets: [] };

const sheetsOf = async (path: string): Promise<readonly string[]> => {
  try {
    return await sheetNames(path);
  } catch (error) {
    if (error instanceof WorkbookRefused) return [];
    throw error;
  }
};

/** Reads what can be shown of a file that is not accepted as a list. */
export const sampleFile = async (
  path: string,
  {
    sheetPath,
    rowsMax,
    sheet,
  }: { readonly sheetPath: string; readonly rowsMax: number } & Pick<WorkbookOptions, "sheet">,
): Promise<RefusedFile> => {
  const isWorkbook = await isArchive(path);
  try {
    const choice = isWorkbook ? await writeCsv(path, sheetPath, sheet) : NO_SHEET;
    const source = fileSource(isWorkbook ? sheetPath : path);
    const sampled = await sampleRecords(source, isWorkbook ? { rowsMax, delimiter: "," } : { rowsMax });
    const sample = sampled.ok && sampled.value.records.length > 0 ? sampled.value : null;
    return { sample, ...choice };
  } catch (error) {
    if (error instanceof AppError) return { sample: null, sheet: null, sheets: isWorkbook ? await sheetsOf(path) : [] };
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
