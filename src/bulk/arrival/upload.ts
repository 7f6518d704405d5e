import { mkdir, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../foundation/base/clock.ts";
import { AppError, errorCode } from "../../foundation/base/errors.ts";
import { newId } from "../../foundation/base/secrets.ts";
import { Busboy } from "@fastify/busboy";
import { backgroundTurn } from "../../foundation/base/fair-queue.ts";
import { waitFor } from "../../foundation/base/wait.ts";

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

const isDiskFull = (error: unknown): boolean => ["ENOSPC", "EDQUOT"].includes(errorCode(error));

const unsupported = (mediaType: string): AppError =>
  new AppError("unsupported_media_type", {
    message: `Send the list as text/csv or as the part "file" of multipart/form-data${mediaType === "" ? "" : `, not ${mediaType}`}.`,
  });

/** Limits of the form fields other than the file. */
export const FIELDS_MAX = 20;
export const FIELD_BYTES_MAX = 8 * 1024;
const FIELD_NAME_BYTES_MAX = 100;
const FILE_PART = "file";

/** The contents of a form except the bytes of its file. */
interface FormContents {
  readonly fileName: string | null;
  readonly fields: Readonly<Record<string, string>>;
}

interface FormDeps {
  readonly contentType: string;
  readonly chunks: AsyncIterable<Uint8Array>;
  readonly clock: Clock;
  /** Called with the bytes of the file in order, one call at a time. */
  readonly onFileBytes: (bytes: Uint8Array) => Promise<void>;
}

/**
 * Reads a multipart/form-data body (RFC 7578) with exactly one file, in the part `file`, and up to `FIELDS_MAX` fields.
 * The file is passed on as it arrives. Throws 400 for a truncated form, for no file or more than one, for a repeated
 * field, and beyond the limits.
 */
export const readForm = async ({ contentType, chunks, clock, onFileBytes }: FormDeps): Promise<FormContents> => {
  const form = openForm(contentType);
  const passOn = async (): Promise<void> => {
    for (const bytes of form.pending.splice(0)) await onFileBytes(bytes);
  };
  try {
    for await (const chunk of chunks) {
      await within(clock, STALL_MS_MAX, Promise.race([form.failed, form.write(chunk)]));
      await passOn();
    }
    await within(clock, STALL_MS_MAX, Promise.race([form.failed, form.end()]));
    await passOn();
  } finally {
    form.stop();
  }
  if (form.contents.fileName === undefined) throw uploadRefused('The form has no part "file".');
  return { fileName: form.contents.fileName, fields: Object.fromEntries(form.contents.fields) };
};

const openForm = (contentType: string) => {
  const pending: Uint8Array[] = [];
  const contents: { fileName: string | null | undefined; fields: Map<string, string> } = {
    fileName: undefined,
    fields: new Map(),
  };
  const failure = Promise.withResolvers<never>();
  // The failure may be awaited later, or never.
  failure.promise.catch(() => undefined);
  const fail = (message: string): void => failure.reject(uploadRefused(message));

  const busboy = createBusboy(contentType);
  const fileEnd = Promise.withResolvers<void>();
  busboy.on("file", (name, stream, fileName) => {
    if (name !== FILE_PART) fail('Send the list in the part "file" of the form.');
    contents.fileName = fileName === undefined || fileName === "" ? null : fileName.slice(0, 255);
    stream.on("data", (bytes: Uint8Array) => void pending.push(bytes));
    stream.on("error", () => fail(BROKE_OFF));
    stream.on("end", () => fileEnd.resolve());
  });
  busboy.on("field", (name, value, nameCut, valueCut) => {
    if (nameCut || valueCut) fail(`The form field ${JSON.stringify(name)} is too long.`);
    if (contents.fields.has(name)) fail(`The form field ${JSON.stringify(name)} must not be repeated.`);
    contents.fields.set(name, value);
  });
  busboy.on("filesLimit", () => fail("The form must not have more than one file."));
  busboy.on("fieldsLimit", () => fail(`The form may have at most ${FIELDS_MAX} fields.`));
  busboy.on("partsLimit", () => fail(`The form may have at most ${FIELDS_MAX} fields.`));
  busboy.on("error", () => fail(BROKE_OFF));
  const finished = new Promise<void>((resolve) => {
    busboy.on("finish", () => resolve());
  });

  return {
    pending,
    contents,
    failed: failure.promise,
    write: (chunk: Uint8Array): Promise<void> =>
      new Promise((resolve) => {
        busboy.write(chunk, () => resolve());
      }),
    async end(): Promise<void> {
      busboy.end();
      await finished;
      if (contents.fileName !== undefined) await fileEnd.promise;
    },
    stop: (): void => void busboy.destroy(),
  };
};

const BROKE_OFF = "The form is truncated or is not multipart/form-data.";

const createBusboy = (contentType: string) => {
  try {
    return new Busboy({
      headers: { "content-type": contentType },
      isPartAFile: (name, _type, fileName) => name === FILE_PART || fileName !== undefined,
      limits: {
        files: 1,
        fields: FIELDS_MAX,
        parts: FIELDS_MAX + 1,
        fieldSize: FIELD_BYTES_MAX,
        fieldNameSize: FIELD_NAME_BYTES_MAX,
      },
    });
  } catch {
    // Busboy refuses nothing else at this point.
    throw uploadRefused("The Content-Type has no boundary parameter.");
  }
};

/** How long an upload may pause, and how long it may take in total. */
export const STALL_MS_MAX = 30_000;
const UPLOAD_MS_MAX = 30 * 60_000;

const uploadTooLarge = (bytesMax: number): AppError =>
  new AppError("payload_too_large", { message: `The list may have at most ${bytesMax.toLocaleString("en")} bytes.` });

const uploadRefused = (message: string): AppError => new AppError("Invalid request body", { message });

interface BodyLimits {
  readonly listBytesMax: number;
  /** Bytes of the other parts of a form. */
  readonly aroundBytesMax: number;
  readonly clock: Clock;
  /** Whose upload it is. */
  readonly account: string;
}

/**
 * The bytes of a request body as they arrive. Throws 413 as soon as they exceed the limits (immediately if the
 * Content-Length does), 415 when compressed, 400 when the client disconnects or stalls, or when the body is shorter than
 * its Content-Length. Stopping early releases the body.
 */
async function* bodyChunks(request: Request, limits: BodyLimits): AsyncGenerator<Uint8Array, void> {
  const { account, clock, listBytesMax } = limits;
  const bytesMax = listBytesMax + limits.aroundBytesMax;
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.toLowerCase() !== "identity") {
    throw new AppError("unsupported_media_type", { message: "Send the list without a Content-Encoding." });
  }
  const declared = request.headers.get("content-length");
  if (declared !== null && Number(declared) > bytesMax) throw uploadTooLarge(listBytesMax);
  const reader = request.body?.getReader();
  if (reader === undefined) return;
  const endsAtMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  let bytes = 0;
  try {
    for (;;) {
      const leftMs = Math.min(STALL_MS_MAX, endsAtMs - clock.monotonicMs());
      const { done, value } = await within(clock, leftMs, readOrRefuse(reader));
      if (done) break;
      bytes += value.length;
      if (bytes > bytesMax) throw uploadTooLarge(listBytesMax);
      yield value;
      // Unread bytes wait with the sender: many uploads at once would hold the event loop.
      await backgroundTurn(account);
    }
    if (declared !== null && bytes !== Number(declared)) throw uploadRefused("The upload ended prematurely.");
  } finally {
    reader.cancel().catch(ignoreLateFailure);
  }
}

/**
 * Reads a body to its end and keeps nothing of it: a browser shows the response to an upload only after it has sent all of
 * it. Gives up when the client stalls or is gone.
 */
export const discardBody = async (request: Request, clock: Clock): Promise<void> => {
  const reader = request.bodyUsed ? undefined : request.body?.getReader();
  if (reader === undefined) return;
  const endsAtMs = clock.monotonicMs() + UPLOAD_MS_MAX;
  try {
    while (!(await within(clock, Math.min(STALL_MS_MAX, endsAtMs - clock.monotonicMs()), readOrRefuse(reader))).done);
  } catch (error) {
    if (!(error instanceof AppError)) throw error;
  } finally {
    reader.cancel().catch(ignoreLateFailure);
  }
};

/** Settles with `task`, or throws 400 after `delayMs`. */
const within = async <T>(clock: Clock, delayMs: number, task: Promise<T>): Promise<T> => {
  const waited = await waitFor(clock, task, { timeoutMs: delayMs });
  if (waited.ok) return waited.value;
  const reason = delayMs < STALL_MS_MAX ? "it took too long" : `no data for ${STALL_MS_MAX / 1000} s`;
  throw uploadRefused(`Upload timed out: ${reason}.`);
};

const readOrRefuse = async <T>(reader: { read(): Promise<T> }): Promise<T> => {
  try {
    return await reader.read();
  } catch {
    // The list is incomplete for any cause.
    throw uploadRefused("The upload ended prematurely.");
  }
};

/** The body is no longer needed, so an error of its connection is irrelevant. */
const ignoreLateFailure = (): undefined => undefined;
