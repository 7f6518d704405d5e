import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Clock } from "../../foundation/base/clock.ts";
import { AppError, type ErrorCode } from "../../foundation/base/errors.ts";
import { newId, sha256 } from "../../foundation/base/secrets.ts";
import { keptCell } from "../../foundation/mail/address-in-cell.ts";
import { checked, readJson, parametersOf, readQuery } from "../../foundation/http/body.ts";
import { LIST_BATCH_ROWS_MAX, type Inspection, type ListRow, readRows } from "../reading/csv.ts";
import { fileSource, type ByteSource } from "../reading/csv-records.ts";
import { type IncomingList, SMALL_BYTES_MAX, SMALL_ROWS_MAX, type UploadReservation } from "./intake.ts";
import { withListFile } from "./list-file.ts";
import { JSON_LIST_FORMAT } from "../results/results-csv.ts";
import { jsonListSchema, jsonQuerySchema, type UploadOrder, uploadOptionsSchema } from "../results/schemas.ts";
import { receiveUpload, type Upload, uploadBytesMax } from "./upload.ts";
import { isArchive } from "../reading/workbook.ts";
import type { WebhookUrls } from "../../notifications/webhooks/url-store.ts";

/** A received list. `hash` identifies the list and its options. */
export interface Submission {
  readonly list: IncomingList;
  /** Null for a JSON list. */
  readonly inspection: Inspection | null;
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

const readJsonList = async (request: Request, context: SubmissionContext): Promise<Submission> => {
  const { order, isDryRun } = await readJsonBody(request);
  const { emails, name = null, source = null } = order;
  const webhookUrl = readWebhookUrl(order.webhook_url, context);
  const about = { name, source, webhookUrl, format: JSON_LIST_FORMAT, reading: null, rowsMax: emails.length };
  return {
    isDryRun,
    inspection: null,
    list: { ...about, batches: rowsOfEmails(emails) },
    hash: async () => sha256(JSON.stringify(["bulk", name, source, webhookUrl, emails])),
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
  /** Called before a file of at most this size is received; throws 503 when the account uploads too much. */
  readonly reserveUpload: (bytes: number) => UploadReservation;
  /** Reads a received list when a slot is free; throws 503 when too many lists wait. */
  readonly runInSlot: <T>(isSmall: boolean, task: () => Promise<T>) => Promise<T>;
}

/** A list in a file, and what the file was called. */
export type StoredList = Pick<Upload, "path" | "fileName">;

const readWebhookUrl = (text: string | undefined, { urls }: Pick<SubmissionContext, "urls">): string | null => {
  if (text === undefined) return null;
  const url = urls.parse(text);
  if (url.ok) return url.value;
  throw new AppError("Invalid request body", { issues: [{ path: "webhook_url", message: url.error }] });
};

/** A parameter may be in the query and the form only with the same value. */
const refuseContradictions = (parameters: URLSearchParams, fields: Readonly<Record<string, string>>): void => {
  const both = Object.entries(fields).filter(([name, value]) => (parameters.get(name) ?? value) !== value);
  if (both.length === 0) return;
  const issues = both.map(([name]) => ({ path: name, message: "Conflicts with the query parameter" }));
  throw new AppError("Invalid request body", { issues });
};

/** Reads a list in a file, with the options of its submission. */
export const withStoredList = async <T>(
  { path, fileName }: StoredList,
  { options, context }: { readonly options: UploadOrder; readonly context: Pick<SubmissionContext, "urls"> },
  work: (submission: Submission) => Promise<T>,
): Promise<T> => {
  const { name, source = null, webhook_url, dry_run, ...layout } = options;
  const webhookUrl = readWebhookUrl(webhook_url, context);
  const sheetPath = `${path}.${newId()}.sheet`;
  return await withListFile(path, { layout, sheetPath }, ({ source: lines, inspection, reading }) => {
    const { shape } = inspection;
    const about = { name: name ?? fileName, source, webhookUrl };
    return work({
      inspection,
      isDryRun: dry_run === "true",
      list: { ...about, format: shape, reading, rowsMax: shape.rows, batches: readRows(lines, shape) },
      hash: async () => sha256(JSON.stringify(["bulk file", about, layout, await hashOf(fileSource(path))])),
    });
  });
};

/** Reads an uploaded file with the options of its request. */
const withFile = async <T>(
  upload: Upload,
  { request, context }: { readonly request: Request; readonly context: SubmissionContext },
  work: (submission: Submission) => Promise<T>,
): Promise<T> => {
  const parameters = parametersOf(request);
  refuseContradictions(parameters, upload.fields);
  const given = { ...readQuery(request, uploadOptionsSchema.partial()), ...upload.fields };
  const options = checked(uploadOptionsSchema, given, "Invalid request body");
  return await withStoredList(upload, { options, context }, work);
};

/** Whether a file is read quickly. A workbook is compressed: a small one may need as much memory as a large list. */
export const isSmallFile = async ({ path, bytes }: Pick<Upload, "path" | "bytes">): Promise<boolean> =>
  bytes <= SMALL_BYTES_MAX && !(await isArchive(path));

const withUpload = async <T>(
  request: Request,
  context: SubmissionContext,
  work: (submission: Submission) => Promise<T>,
): Promise<T> => {
  // Invalid parameters are refused before the file is received.
  readQuery(request, uploadOptionsSchema.partial());
  const reservation = context.reserveUpload(uploadBytesMax(request));
  try {
    const upload = await receiveUpload(request, context);
    try {
      reservation.shrink(upload.bytes);
      return await context.runInSlot(await isSmallFile(upload), () => withFile(upload, { request, context }, work));
    } finally {
      await rm(upload.path, { force: true });
    }
  } finally {
    reservation.release();
  }
};

/**
 * Reads the list of a request (JSON, CSV, workbook or form) and passes it to `work`; an uploaded file is deleted
 * afterwards. Throws 400 when the body is not a list, 413, 415.
 */
export const withSubmission = async <T>(
  request: Request,
  context: SubmissionContext,
  work: (submission: Submission) => Promise<T>,
): Promise<T> => {
  if (!JSON_TYPES.test(mediaTypeOf(request))) return withUpload(request, context, work);
  const submission = await readJsonList(request, context);
  return context.runInSlot(submission.list.rowsMax <= SMALL_ROWS_MAX, () => work(submission));
};
