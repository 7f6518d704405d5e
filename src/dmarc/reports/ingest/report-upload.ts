import { AppError } from "../../../foundation/base/errors.ts";
import { readBytes } from "../../../foundation/http/body.ts";
import { UNPACK_LIMITS } from "../report/unpack.ts";

/** Limits of one upload: its files together, their number, and the form data around them. */
export const UPLOAD_BYTES_MAX = 64 * 1024 * 1024;
export const UPLOAD_FILES_MAX = 1_000;
/** Of one file, packed or not: as much as an archive entry may unpack to. */
export const UPLOAD_FILE_BYTES_MAX = UNPACK_LIMITS.entryBytesMax;
const AROUND_BYTES_MAX = 1024 * 1024;
const NAME_CHARACTERS_MAX = 255;
/** Form fields that are not files; they are ignored. */
const FIELDS_MAX = 100;

/** A file of an upload. */
export interface UploadedFile {
  /** Null for the body of a request. */
  readonly name: string | null;
  readonly bytes: Uint8Array;
}

const refused = (message: string): AppError => new AppError("Invalid request body", { message });

/** The complete body of an upload. */
export interface UploadBody {
  /** The Content-Type of a form; null for a body that is one file. */
  readonly form: string | null;
  readonly bytes: Uint8Array;
}

/** Reads the body of an upload; `watch` as in `readBytes`. Throws an AppError: 413 above the limit, 415 when compressed. */
export const readUpload = async (
  request: Request,
  watch: NonNullable<Parameters<typeof readBytes>[2]>,
): Promise<UploadBody> => {
  const contentType = request.headers.get("content-type") ?? "";
  const isForm = /^multipart\/form-data\b/i.test(contentType);
  const bytes = await readBytes(request, isForm ? UPLOAD_BYTES_MAX + AROUND_BYTES_MAX : UPLOAD_FILE_BYTES_MAX, watch);
  return { form: isForm ? contentType : null, bytes };
};

/**
 * The files of an upload: of a multipart/form-data body (RFC 7578) the parts with a file name or another type than plain text,
 * otherwise the body itself. Throws an AppError: 400 for no file and for a truncated form, 413 for a file that is too large.
 */
export const filesIn = async (body: UploadBody): Promise<UploadedFile[]> => {
  const files = await allFilesIn(body);
  const large = files.find(({ bytes }) => bytes.byteLength > UPLOAD_FILE_BYTES_MAX);
  if (large === undefined) return files;
  const message = `A file must not exceed ${UPLOAD_FILE_BYTES_MAX.toLocaleString("en")} bytes.`;
  throw new AppError("payload_too_large", { message });
};

const allFilesIn = async ({ form, bytes }: UploadBody): Promise<UploadedFile[]> => {
  if (form === null) {
    if (bytes.byteLength === 0) throw refused("The body is empty. Send a report as a mail, XML, gzip, zip or JSON.");
    return [{ name: null, bytes }];
  }
  const files = await readForm(form, bytes);
  if (files.length === 0) throw refused("The form contains no file.");
  return files;
};

const readForm = async (contentType: string, body: Uint8Array): Promise<UploadedFile[]> => {
  const { Busboy } = await import("@fastify/busboy");
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const files: { name: string | null; chunks: Uint8Array[] }[] = [];
  const broken = () => reject(refused("The form is truncated or is not multipart/form-data."));
  try {
    const form = new Busboy({
      headers: { "content-type": contentType },
      isPartAFile: (_field, type, name) => name !== undefined || (type !== undefined && type !== "text/plain"),
      limits: { files: UPLOAD_FILES_MAX, fields: FIELDS_MAX, parts: UPLOAD_FILES_MAX + FIELDS_MAX },
    });
    form.on("file", (_part, stream, name) => {
      const file = { name: name ? name.slice(0, NAME_CHARACTERS_MAX) : null, chunks: [] as Uint8Array[] };
      files.push(file);
      stream.on("data", (bytes: Uint8Array) => void file.chunks.push(bytes));
      stream.on("error", broken);
    });
    const tooMany = () =>
      reject(refused(`The form must not have more than ${UPLOAD_FILES_MAX.toLocaleString("en")} files.`));
    form.on("filesLimit", tooMany);
    // Fields have to be consumed.
    form.on("field", () => undefined);
    form.on("partsLimit", tooMany);
    form.on("error", broken);
    form.on("finish", () => resolve());
    form.end(body);
  } catch {
    // At this point only the Content-Type can be invalid.
    throw refused("The Content-Type of the form has no boundary.");
  }
  await promise;
  // Browsers send an empty part for a field without a chosen file.
  const chosen = files.filter(({ name, chunks }) => name !== null || chunks.length > 0);
  return chosen.map(({ name, chunks }) => ({ name, bytes: Buffer.concat(chunks) }));
};
