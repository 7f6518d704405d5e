import { createHash } from "node:crypto";
import { rm } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { AppError, type Result } from "../base/errors.ts";
import { sha256 } from "../base/secrets.ts";
import { checked, readJson } from "../http/body.ts";
import { parametersOf, readParameters } from "../http/query.ts";
import { z } from "zod";
import { BATCH_ROWS_MAX, inspectList, listRefused, type ListRow, readRows } from "./csv.ts";
import { fileSource, type ListSource } from "./csv-source.ts";
import type { IncomingList } from "./intake.ts";
import { JSON_LIST_FORMAT } from "./results-csv.ts";
import { jsonOrderSchema, type UploadOrder, uploadOrderSchema } from "./schemas.ts";
import { receiveUpload } from "./upload.ts";

/** A list that has arrived, and a hash that is the same for the same list with the same options. */
export interface Order {
  readonly list: IncomingList;
  hash(): Promise<string>;
}

/** 100,000 addresses of 80 characters. */
const JSON_BYTES_MAX = 8 * 1024 * 1024;
const JSON_TYPES = /^$|^application\/(.+\+)?json$|^application\/x-www-form-urlencoded$/;

async function* rowsOfEmails(emails: readonly string[]): AsyncGenerator<readonly ListRow[], void> {
  for (let from = 0; from < emails.length; from += BATCH_ROWS_MAX) {
    const batch = emails.slice(from, from + BATCH_ROWS_MAX);
    yield batch.map((email, at) => ({ rowIndex: from + at, cells: [email], email }));
  }
}

const readJsonOrder = async (request: Request, context: OrderContext): Promise<Order> => {
  readParameters(parametersOf(request), z.strictObject({}));
  const order = await readJson(request, jsonOrderSchema, JSON_BYTES_MAX);
  const { emails, name = null, source = null } = order;
  const webhookUrl = readWebhookUrl(order.webhook_url, context);
  const about = { name, source, webhookUrl, format: JSON_LIST_FORMAT, rowsMax: emails.length };
  return {
    list: { ...about, batches: rowsOfEmails(emails) },
    hash: async () => sha256(JSON.stringify(["bulk", name, source, webhookUrl, emails])),
  };
};

/** SHA-256 of everything a source gives. */
export const hashOf = async (source: ListSource): Promise<string> => {
  const hash = createHash("sha256");
  for await (const chunk of source()) hash.update(chunk);
  return hash.digest("hex");
};

/** Finds out how a list is written; 400 with the reason and the rows at fault when it cannot be taken. */
export const inspectOrRefuse = async (source: ListSource, options: Pick<UploadOrder, "column" | "header">) => {
  const shape = await inspectList(source, options);
  if (!shape.ok) throw listRefused(shape.error);
  return shape.value;
};

export interface OrderContext {
  /** Where a file lies while it is taken in. */
  readonly folder: string;
  readonly clock: Clock;
  /** Reads a URL that events may be sent to. */
  readonly readUrl: (text: string) => Result<{ readonly href: string }, { readonly problem: string }>;
}

const readWebhookUrl = (text: string | undefined, { readUrl }: OrderContext): string | null => {
  if (text === undefined) return null;
  const url = readUrl(text.trim());
  if (url.ok) return url.value.href;
  throw new AppError("Invalid request body", { issues: [{ path: "webhook_url", message: url.error.problem }] });
};

const withUpload = async <T>(
  request: Request,
  context: OrderContext,
  work: (order: Order) => Promise<T>,
): Promise<T> => {
  const fromQuery = readParameters(parametersOf(request), uploadOrderSchema.partial());
  const { path, fileName, fields } = await receiveUpload(request, context);
  try {
    const given = { ...fromQuery, ...fields };
    const order = checked(uploadOrderSchema, given, "Invalid request body");
    const { name, source = null, webhook_url, ...wish } = order;
    const webhookUrl = readWebhookUrl(webhook_url, context);
    const lines = fileSource(path);
    const format = await inspectOrRefuse(lines, wish);
    const about = { name: name ?? fileName, source, webhookUrl };
    return await work({
      list: { ...about, format, rowsMax: format.rows, batches: readRows(lines, format) },
      hash: async () => sha256(JSON.stringify(["bulk file", about, wish, await hashOf(lines)])),
    });
  } finally {
    await rm(path, { force: true });
  }
};

/**
 * Reads the list that a request brings, as JSON, as CSV or as a form, and hands it to `work`; a file that was uploaded
 * is gone afterwards. 400 for what is no list, 413, 415.
 */
export const withOrder = async <T>(
  request: Request,
  context: OrderContext,
  work: (order: Order) => Promise<T>,
): Promise<T> => {
  const mediaType = ((request.headers.get("content-type") ?? "").split(";")[0] ?? "").trim().toLowerCase();
  return JSON_TYPES.test(mediaType) ? work(await readJsonOrder(request, context)) : withUpload(request, context, work);
};
