import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { newId } from "../../foundation/base/secrets.ts";
import { bodyChunks, uploadRefused, uploadTooLarge } from "./upload-body.ts";
import { type FormContents, readForm } from "./upload-form.ts";

/** Maximum size of a list (contract §5). */
export const LIST_BYTES_MAX = 100 * 1024 * 1024;
/** Bytes of a form except its file: fields, boundaries, part headers. */
const FORM_BYTES_MAX = 256 * 1024;

const PARTIAL = ".part";
const LIST_TYPES: ReadonlySet<string> = new Set([
  "text/csv",
  "application/csv",
  "text/tab-separated-values",
  "text/plain",
  "application/octet-stream",
  "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
]);

/** A received list: a file that is synced to disk, and the form fields. */
export interface Upload extends FormContents {
  readonly path: string;
  readonly bytes: number;
}

export interface UploadOptions {
  /** Created if it does not exist. */
  readonly folder: string;
  readonly clock: Clock;
  /** Whose upload it is. */
  readonly account: string;
  readonly bytesMax?: number;
}

/**
 * Receives a list into a new file in `folder`: the body itself (`text/csv` and similar), or the part `file` of a form.
 *
 * Throws 413 as soon as the list is too long, 415 for other types and compressed bodies, 400 for truncated, stalled and
 * invalid uploads, 503 when the disk is full; leaves no file then.
 */
export const receiveUpload = async (request: Request, options: UploadOptions): Promise<Upload> => {
  const contentType = request.headers.get("content-type") ?? "";
  const mediaType = (contentType.split(";")[0] ?? "").trim().toLowerCase();
  const isForm = mediaType === "multipart/form-data";
  if (!isForm && !LIST_TYPES.has(mediaType)) throw unsupported(mediaType);
  await mkdir(options.folder, { recursive: true, mode: 0o700 });
  const path = join(options.folder, `${newId()}.csv`);
  try {
    const received = await receiveTo(path + PARTIAL, { request, contentType: isForm ? contentType : null, options });
    await rename(path + PARTIAL, path);
    await syncFolder(options.folder);
    return { path, ...received };
  } catch (error) {
    await rm(path + PARTIAL, { force: true });
    await rm(path, { force: true });
    throw isDiskFull(error) ? new AppError("unavailable", { message: "The disk of the service is full." }) : error;
  }
};

/** The maximum size of the list of a request. */
export const uploadBytesMax = (request: Request): number => {
  const declared = Number(request.headers.get("content-length") ?? Number.NaN);
  return declared >= 0 && declared < LIST_BYTES_MAX ? declared : LIST_BYTES_MAX;
};

interface Receiving {
  readonly request: Request;
  /** Null when the body is the list itself. */
  readonly contentType: string | null;
  readonly options: UploadOptions;
}

const receiveTo = async (path: string, { request, contentType, options }: Receiving) => {
  const { account, clock, bytesMax = LIST_BYTES_MAX } = options;
  const aroundBytesMax = contentType === null ? 0 : FORM_BYTES_MAX;
  const chunks = bodyChunks(request, { listBytesMax: bytesMax, aroundBytesMax, clock, account });
  const file = await open(path, "wx", 0o600);
  let bytes = 0;
  const write = async (chunk: Uint8Array): Promise<void> => {
    bytes += chunk.length;
    if (bytes > bytesMax) throw uploadTooLarge(bytesMax);
    await file.writeFile(chunk);
  };
  try {
    const contents =
      contentType === null
        ? await writeAll(chunks, write)
        : await readForm({ contentType, chunks, clock, onFileBytes: write });
    if (bytes === 0) throw uploadRefused("The list is empty.");
    await file.sync();
    return { ...contents, bytes };
  } finally {
    await file.close();
  }
};

const writeAll = async (
  chunks: AsyncIterable<Uint8Array>,
  write: (chunk: Uint8Array) => Promise<void>,
): Promise<FormContents> => {
  for await (const chunk of chunks) await write(chunk);
  return { fileName: null, fields: {} };
};

/** A new name survives a power failure only when its folder is synced, too. */
const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
};

const isDiskFull = (error: unknown): boolean =>
  error instanceof Error && "code" in error && (error.code === "ENOSPC" || error.code === "EDQUOT");

const unsupported = (mediaType: string): AppError =>
  new AppError("unsupported_media_type", {
    message: `Send the list as text/csv or as the part "file" of multipart/form-data${mediaType === "" ? "" : `, not ${mediaType}`}.`,
  });
