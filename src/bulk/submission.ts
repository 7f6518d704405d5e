import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { AppError, type ErrorCode, type Result } from "../base/errors.ts";
import { sha256 } from "../base/secrets.ts";
import { keptCell } from "../mail/address-in-cell.ts";
import { checked, readJson } from "../http/body.ts";
import { parametersOf, readParameters } from "../http/query.ts";
import { LIST_BATCH_ROWS_MAX, type Inspection, type ListRow, readRows } from "./csv.ts";
import { fileSource, type ByteSource } from "./byte-source.ts";
import type { IncomingList } from "./intake.ts";
import { withListFile } from "./list-file.ts";
import { JSON_LIST_FORMAT } from "./results-csv.ts";
import { jsonListSchema, jsonQuerySchema, uploadOptionsSchema } from "./schemas.ts";
import { receiveUpload, type Upload, uploadBytesMax } from "./upload.ts";
import { SMALL_BYTES_MAX, SMALL_ROWS_MAX } from "./intake-slots.ts";
import { isArchive } from "./workbook.ts";
import type { UploadReservation } from "./upload-budget.ts";

/** A list that has arrived, and a hash that is the same for the same list with the same options. */
export interface Submission {
  readonly list: IncomingList;
  /** What a file looks like; null for a list that was given as JSON. */
  readonly inspection: Inspection | null;
  /** Only a preview is wanted. */
  readonly isDryRun: boolean;
  hash(): Promise<string>;
}

/** 100,000 addresses of 80 characters. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;
const JSON_TYPE = /^application\/(.+\+)?json$/;
/** What a client sends that was told no type; curl names a form's. */
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

/** A body of no stated type that cannot be read as JSON is most likely a list: the refusal says how to send one. */
const withTypeNamed = (error: unknown): unknown => {
  if (!(error instanceof AppError)) return error;
  const { code, details } = error;
  if (!LIST_TYPE_MISSING.has(code)) return error;
  const told = details.message === undefined ? "" : `${details.message} `;
  return new AppError(code, {
    ...details,
    message: `${told}To send a list as CSV, send it with Content-Type: text/csv.`,
  });
};

const readJsonBody = async (request: Request) => {
  try {
    const { dry_run } = readParameters(parametersOf(request), jsonQuerySchema);
    return { order: await readJson(request, jsonListSchema, JSON_BYTES_MAX), isDryRun: dry_run === "true" };
  } catch (error) {
    throw JSON_TYPE.test(mediaTypeOf(request)) ? error : withTypeNamed(error);
  }
};

const readJsonOrder = async (request: Request, context: SubmissionContext): Promise<Submission> => {
  const { order, isDryRun } = await readJsonBody(request);
  const { emails, name = null, source = null } = order;
  const webhookUrl = readWebhookUrl(order.webhook_url, context);
  const about = { name, source, webhookUrl, format: JSON_LIST_FORMAT, reading: null, rowsMax: emails.length };
  return {
    ...{ isDryRun, inspection: null },
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
  /** Where a file lies while it is taken in. */
  readonly folder: string;
  readonly clock: Clock;
  /** Reads a URL that events may be sent to. */
  readonly readUrl: (text: string) => Result<{ readonly href: string }, { readonly problem: string }>;
  /** Called before a file of at most so many bytes is received; throws 503 when the account uploads too much. */
  readonly beginUpload: (bytes: number) => UploadReservation;
  /** Has a list that has arrived wait for its turn; throws 503 when too many wait. */
  readonly inTurn: <T>(isSmall: boolean, task: () => Promise<T>) => Promise<T>;
}

const readWebhookUrl = (text: string | undefined, { readUrl }: SubmissionContext): string | null => {
  if (text === undefined) return null;
  const url = readUrl(text.trim());
  if (url.ok) return url.value.href;
  throw new AppError("Invalid request body", { issues: [{ path: "webhook_url", message: url.error.problem }] });
};

/** What the query and the form both say must be the same: neither is more likely to be meant. */
const refuseContradictions = (parameters: URLSearchParams, fields: Readonly<Record<string, string>>): void => {
  const both = Object.entries(fields).filter(([name, value]) => (parameters.get(name) ?? value) !== value);
  if (both.length === 0) return;
  const issues = both.map(([name]) => ({ path: name, message: "The query says otherwise" }));
  throw new AppError("Invalid request body", { issues });
};

/** Reads a file that was uploaded. */
const withFile = async <T>(
  { path, fileName, fields }: Upload,
  { request, context }: { readonly request: Request; readonly context: SubmissionContext },
  work: (order: Submission) => Promise<T>,
): Promise<T> => {
  const parameters = parametersOf(request);
  refuseContradictions(parameters, fields);
  const given = { ...readParameters(parameters, uploadOptionsSchema.partial()), ...fields };
  const order = checked(uploadOptionsSchema, given, "Invalid request body");
  const { name, source = null, webhook_url, dry_run, ...wish } = order;
  const webhookUrl = readWebhookUrl(webhook_url, context);
  return await withListFile(path, { wish, sheetPath: `${path}.sheet` }, ({ source: lines, inspection, reading }) => {
    const { shape } = inspection;
    const about = { name: name ?? fileName, source, webhookUrl };
    return work({
      ...{ inspection, isDryRun: dry_run === "true" },
      list: { ...about, format: shape, reading, rowsMax: shape.rows, batches: readRows(lines, shape) },
      hash: async () => sha256(JSON.stringify(["bulk file", about, wish, await hashOf(fileSource(path))])),
    });
  });
};

const withUpload = async <T>(
  request: Request,
  context: SubmissionContext,
  work: (order: Submission) => Promise<T>,
): Promise<T> => {
  // A wrong parameter is refused before the file is received.
  readParameters(parametersOf(request), uploadOptionsSchema.partial());
  const pass = context.beginUpload(uploadBytesMax(request));
  try {
    const upload = await receiveUpload(request, context);
    try {
      pass.shrink(upload.bytes);
      // A workbook is packed: of a small one the texts may take as much memory as a large list does.
      const isSmall = upload.bytes <= SMALL_BYTES_MAX && !(await isArchive(upload.path));
      return await context.inTurn(isSmall, () => withFile(upload, { request, context }, work));
    } finally {
      await rm(upload.path, { force: true });
    }
  } finally {
    pass.leave();
  }
};

/**
 * Reads the list that a request brings, as JSON, as CSV or as a form, and hands it to `work`; a file that was uploaded
 * is gone afterwards. 400 for what is no list, 413, 415.
 */
export const withSubmission = async <T>(
  request: Request,
  context: SubmissionContext,
  work: (order: Submission) => Promise<T>,
): Promise<T> => {
  if (!JSON_TYPES.test(mediaTypeOf(request))) return withUpload(request, context, work);
  const order = await readJsonOrder(request, context);
  return context.inTurn(order.list.rowsMax <= SMALL_ROWS_MAX, () => work(order));
};
