import type { Clock } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { DiskReserve, IngestionOwner, IngestionRow, IncomingReport } from "./ingestion-store.ts";
import type { Ingestions } from "./ingestions.ts";
import { readBytes } from "../../../foundation/http/body.ts";
import { UNPACK_LIMITS } from "../report/unpack.ts";
import { Gate, waitFor } from "../../../foundation/base/wait.ts";

const LOW_DISK_RETRY_AFTER_S = 300;

/** What the files of one upload may unpack to in all. */
export const UPLOAD_UNPACKED_BYTES_MAX = 512 * 1024 * 1024;

/** Uploads of reports, limited together whether they come from the API or a page. */
export class ReportUploads {
  readonly #admit: ReturnType<typeof createUploadGate>;

  constructor(
    clock: Clock,
    private readonly deps: {
      ingestions: Pick<Ingestions, "ingestFiles">;
      reserve: Pick<DiskReserve, "isLow">;
    },
  ) {
    this.#admit = createUploadGate(clock);
  }

  /**
   * Reads and stores the files in the body of a request; durable when this resolves, with a row for each file in their order, all
   * with the same `receivedAtMs`. Throws what `createUploadGate` throws, and `unavailable` when the disk is nearly full.
   */
  upload(request: Request, owner: IngestionOwner): Promise<IngestionRow[]> {
    return this.#admit(request, owner.accountId, (files) => {
      this.#throwIfLow(files);
      const incoming = files.map((file) => incomingFile(owner, file));
      return this.deps.ingestions.ingestFiles(incoming, UPLOAD_UNPACKED_BYTES_MAX);
    });
  }

  /** Before anything is stored. */
  #throwIfLow(files: readonly UploadedFile[]) {
    if (!this.deps.reserve.isLow(files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0))) return;
    const message = "Report ingestion is paused: low disk space. Try again later.";
    throw new AppError("unavailable", { message, headers: { "retry-after": String(LOW_DISK_RETRY_AFTER_S) } });
  }
}

const incomingFile = ({ accountId, mode }: IngestionOwner, { name, bytes }: UploadedFile): IncomingReport => ({
  accountId,
  mode,
  domain: null,
  via: "http",
  name,
  bytes,
  client: null,
  helo: null,
  mailFrom: null,
});

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

const refused = (message: string) => new AppError("Invalid request body", { message });

/** The complete body of an upload. */
interface UploadBody {
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

/** Bytes of all uploads together, from the first byte until their reports are stored. */
const HELD_BYTES_MAX = 256 * 1024 * 1024;
const UPLOADS_PER_ACCOUNT_MAX = 4;
/** Uploads processed at a time, and those that wait. */
const UPLOADS_AT_ONCE = 2;
const UPLOADS_WAITING_MAX = 32;
const BUSY_RETRY_AFTER_S = 5;
/** The timeout without data, and in all. */
const STILL_MS_MAX = 60_000;
const BODY_MS_MAX = 300_000;

const busy = (message: string) =>
  new AppError("unavailable", { message, headers: { "retry-after": String(BUSY_RETRY_AFTER_S) } });
const late = () =>
  new AppError("Invalid request body", {
    message: `Upload timed out: no data for ${STILL_MS_MAX / 1000} seconds, or ${BODY_MS_MAX / 60_000} minutes in all.`,
  });

/**
 * Limits uploads. Bodies are received concurrently, so that a slow one delays no other; complete uploads are processed a few at
 * a time, in order. Throws what `readUpload` throws, 400 when an upload times out, 503 with `Retry-After` beyond the limits.
 */
export const createUploadGate = (
  clock: Clock,
  {
    heldBytesMax,
  }: {
    heldBytesMax: number;
  } = { heldBytesMax: HELD_BYTES_MAX },
) => {
  const gate = new Gate(UPLOADS_AT_ONCE);
  const byAccount = new Map<string, number>();
  let heldBytes = 0;

  const enter = (accountId: string) => {
    const there = byAccount.get(accountId) ?? 0;
    if (there >= UPLOADS_PER_ACCOUNT_MAX) throw busy("This account has too many uploads in progress.");
    byAccount.set(accountId, there + 1);
  };

  const leave = (accountId: string, bytes: number) => {
    heldBytes -= bytes;
    const left = (byAccount.get(accountId) ?? 1) - 1;
    if (left > 0) byAccount.set(accountId, left);
    else byAccount.delete(accountId);
  };

  return async <T>(request: Request, accountId: string, work: (files: UploadedFile[]) => Promise<T>): Promise<T> => {
    enter(accountId);
    let bytes = 0;
    /** Called for every chunk of the body. */
    const hold = (more: number) => {
      if (heldBytes + more > heldBytesMax) throw busy("Too much data is being uploaded.");
      heldBytes += more;
      bytes += more;
    };
    try {
      const upload = await readUpload(request, (body) => inTime(body, clock, hold));
      if (gate.waiting >= UPLOADS_WAITING_MAX) throw busy("Too many uploads in progress.");
      return await gate.run(async () => work(await filesIn(upload)));
    } finally {
      leave(accountId, bytes);
    }
  };
};

/** The chunks of a body as they arrive. Throws when it times out, and what `hold` throws. */
async function* inTime(
  body: ReadableStream<Uint8Array>,
  clock: Clock,
  hold: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  const endsAtMs = clock.monotonicMs() + BODY_MS_MAX;
  try {
    for (;;) {
      const leftMs = endsAtMs - clock.monotonicMs();
      const read = await waitFor(clock, reader.read(), { timeoutMs: Math.min(STILL_MS_MAX, leftMs) });
      if (!read.ok) throw late();
      const { done, value } = read.value;
      if (done) return;
      hold(value.byteLength);
      yield value;
    }
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
