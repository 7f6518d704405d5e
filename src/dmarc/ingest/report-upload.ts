import { AppError } from "../../base/errors.ts";
import { readBytes } from "../../http/body.ts";
import { UNPACK_LIMITS } from "../report/unpack.ts";

/** Ceilings of one upload: of its files together, of their number, and of what stands around them in a form. */
export const UPLOAD_BYTES_MAX = 64 * 1024 * 1024;
export const UPLOAD_FILES_MAX = 1_000;
/** Of one file, packed or not: as much as one may unpack to. */
export const UPLOAD_FILE_BYTES_MAX = UNPACK_LIMITS.entryBytesMax;
const AROUND_BYTES_MAX = 1024 * 1024;
const NAME_CHARACTERS_MAX = 255;
/** Parts of a form that are no files; they are passed over. */
const FIELDS_MAX = 100;

/** A file of an upload. */
export interface UploadedFile {
  /** Null where it has none, as the body of a request. */
  readonly name: string | null;
  readonly bytes: Uint8Array;
}

const refused = (message: string): AppError => new AppError("Invalid request body", { message });

/** The body of an upload, complete. */
export interface UploadBody {
  /** Null for a body that is a file by itself. */
  readonly form: string | null;
  readonly bytes: Uint8Array;
}

/** Reads the body of an upload; `watch` as in `readBytes`. Throws an AppError: 413 beyond the ceiling, 415 when compressed. */
export const readUpload = async (
  request: Request,
  watch: NonNullable<Parameters<typeof readBytes>[2]>,
): Promise<UploadBody> => {
  const contentType = request.headers.get("content-type") ?? "";
  const isForm = /^multipart\/form-data\b/i.test(contentType);
  const bytes = await readBytes(request, isForm ? UPLOAD_BYTES_MAX + AROUND_BYTES_MAX : UPLOAD_BYTES_MAX, watch);
  return { form: isForm ? contentType : null, bytes };
};

/**
 * The files of an upload: of a multipart/form-data body (RFC 7578) the parts that have a file name or another type than
 * plain text, else the body itself. Throws an AppError: 400 for nothing at all and for a form that breaks off, 413 for a
 * file that is too large.
 */
export const filesIn = async (body: UploadBody): Promise<UploadedFile[]> => {
  const files = await allFilesIn(body);
  const large = files.find(({ bytes }) => bytes.byteLength > UPLOAD_FILE_BYTES_MAX);
  if (large === undefined) return files;
  const message = `A file may have ${UPLOAD_FILE_BYTES_MAX.toLocaleString("en")} bytes at most.`;
  throw new AppError("payload_too_large", { message });
};

const allFilesIn = async ({ form, bytes }: UploadBody): Promise<UploadedFile[]> => {
  if (form === null) {
    if (bytes.byteLength === 0) throw refused("The body is empty. It is a report: a mail, XML, gzip, zip or JSON.");
    return [{ name: null, bytes }];
  }
  const files = await readForm(form, bytes);
  if (files.length === 0) throw refused("The form has no file.");
  return files;
};

const readForm = async (contentType: string, body: Uint8Array): Promise<UploadedFile[]> => {
  const { Busboy } = await import("@fastify/busboy");
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const files: { name: string | null; chunks: Uint8Array[] }[] = [];
  const broken = () => reject(refused("The form breaks off, or is no multipart/form-data."));
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
    const tooMany = () => reject(refused(`The form may have ${UPLOAD_FILES_MAX.toLocaleString("en")} files at most.`));
    form.on("filesLimit", tooMany);
    // Somebody has to take them; what they say is of no use here.
    form.on("field", () => undefined);
    form.on("partsLimit", tooMany);
    form.on("error", broken);
    form.on("finish", () => resolve());
    form.end(body);
  } catch {
    // The only thing it refuses at this point is the Content-Type.
    throw refused("The Content-Type names no boundary of the form.");
  }
  await promise;
  // What a browser sends for a field in which nobody chose a file.
  const chosen = files.filter(({ name, chunks }) => name !== null || chunks.length > 0);
  return chosen.map(({ name, chunks }) => ({ name, bytes: Buffer.concat(chunks) }));
};
