import { AppError } from "../../base/errors.ts";
import { readBytes } from "../../http/body.ts";

/** Ceilings of one upload: of its files together, of their number, and of what stands around them in a form. */
export const UPLOAD_BYTES_MAX = 64 * 1024 * 1024;
export const UPLOAD_FILES_MAX = 1_000;
const AROUND_BYTES_MAX = 1024 * 1024;
const NAME_CHARACTERS_MAX = 255;
/** Uploads held in memory at a time, and those that wait for that. */
const UPLOADS_AT_ONCE = 2;
const UPLOADS_WAITING_MAX = 32;
const RETRY_AFTER_S = 5;

/** A file of an upload. */
export interface UploadedFile {
  /** Null where it has none, as the body of a request. */
  readonly name: string | null;
  readonly bytes: Uint8Array;
}

const refused = (message: string): AppError => new AppError("Invalid request body", { message });

/**
 * The files of an upload: those of a multipart/form-data body (RFC 7578), in whatever parts they are, else the body itself.
 * Throws an AppError: 413 beyond the ceilings, 415 when compressed, 400 for nothing at all and for a form that breaks off.
 */
export const readUpload = async (request: Request): Promise<UploadedFile[]> => {
  const contentType = request.headers.get("content-type") ?? "";
  if (!/^multipart\/form-data\b/i.test(contentType)) {
    const bytes = await readBytes(request, UPLOAD_BYTES_MAX);
    if (bytes.byteLength === 0) throw refused("The body is empty. It is a report: a mail, XML, gzip, zip or JSON.");
    return [{ name: null, bytes }];
  }
  const files = await readForm(contentType, await readBytes(request, UPLOAD_BYTES_MAX + AROUND_BYTES_MAX));
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
      isPartAFile: () => true,
      limits: { files: UPLOAD_FILES_MAX, parts: UPLOAD_FILES_MAX },
    });
    form.on("file", (_part, stream, name) => {
      const file = { name: name ? name.slice(0, NAME_CHARACTERS_MAX) : null, chunks: [] as Uint8Array[] };
      files.push(file);
      stream.on("data", (bytes: Uint8Array) => void file.chunks.push(bytes));
      stream.on("error", broken);
    });
    const tooMany = () => reject(refused(`The form may have ${UPLOAD_FILES_MAX.toLocaleString("en")} files at most.`));
    form.on("filesLimit", tooMany);
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

/** Lets few uploads in at a time, the others in the order in which they came; throws 503 when too many wait. */
export const createUploadGate = () => {
  let open = UPLOADS_AT_ONCE;
  const waiting: (() => void)[] = [];
  return async <T>(work: () => Promise<T>): Promise<T> => {
    if (open === 0) {
      if (waiting.length >= UPLOADS_WAITING_MAX) {
        const headers = { "retry-after": String(RETRY_AFTER_S) };
        throw new AppError("unavailable", { message: "Too many uploads at a time.", headers });
      }
      await new Promise<void>((resolve) => void waiting.push(resolve));
    } else open -= 1;
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next === undefined) open += 1;
      else next();
    }
  };
};
