import { mkdir, open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { newId } from "../base/secrets.ts";
import { bodyChunks, uploadRefused, uploadTooLarge } from "./upload-body.ts";
import { type FormContents, readForm } from "./upload-form.ts";

/** Largest list, in bytes (contract §5). */
export const LIST_BYTES_MAX = 100 * 1024 * 1024;
/** What a form may have beside its file: fields, boundaries, headers of parts. */
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

/** A list that has arrived: a file that is on the disk for good (fsync), and what came with it. */
export interface Upload extends FormContents {
  readonly path: string;
  readonly bytes: number;
}

export interface UploadOptions {
  /** Where lists are kept; made if it is not there. */
  readonly folder: string;
  readonly clock: Clock;
  readonly bytesMax?: number;
}

/**
 * Takes a list from a request to a new file in `folder`, as it arrives: as the body itself (`text/csv` and its
 * kin), or as the part `file` of a form, whose other fields are `fields`.
 *
 * Throws an AppError and leaves no file: 413 as soon as the list is too long, 415 for other types and for compressed
 * bodies, 400 for what breaks off, stands still or is no proper form, 503 when the disk is full.
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
    throw isDiskFull(error) ? new AppError("unavailable", { message: "There is no space left for lists." }) : error;
  }
};

/** Removes what uploads left behind that a crash cut off; to be called before the first `receiveUpload`. */
export const removePartialUploads = async (folder: string): Promise<void> => {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const names = (await readdir(folder)).filter((name) => name.endsWith(PARTIAL));
  await Promise.all(names.map((name) => rm(join(folder, name), { force: true })));
};

/** The most bytes that a request's list can have on the disk. */
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
  const { clock, bytesMax = LIST_BYTES_MAX } = options;
  const aroundBytesMax = contentType === null ? 0 : FORM_BYTES_MAX;
  const chunks = bodyChunks(request, { listBytesMax: bytesMax, aroundBytesMax, clock });
  const file = await open(path, "wx", 0o600);
  let bytes = 0;
  const keep = async (chunk: Uint8Array): Promise<void> => {
    bytes += chunk.length;
    if (bytes > bytesMax) throw uploadTooLarge(bytesMax);
    await file.writeFile(chunk);
  };
  try {
    const contents =
      contentType === null
        ? await keepAll(chunks, keep)
        : await readForm({ contentType, chunks, clock, onFileBytes: keep });
    if (bytes === 0) throw uploadRefused("The list is empty.");
    await file.sync();
    return { ...contents, bytes };
  } finally {
    await file.close();
  }
};

const keepAll = async (
  chunks: AsyncIterable<Uint8Array>,
  keep: (chunk: Uint8Array) => Promise<void>,
): Promise<FormContents> => {
  for await (const chunk of chunks) await keep(chunk);
  return { fileName: null, fields: {} };
};

/** A new name survives a power cut only once its folder is on the disk, too. */
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
