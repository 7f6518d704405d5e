import type { Clock } from "../../../foundation/base/clock.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import type { DiskReserve } from "./disk-reserve.ts";
import type { IngestionOwner, IngestionRow, IncomingReport } from "./ingestion-store.ts";
import type { Ingestions } from "./ingestions.ts";
import type { UploadedFile } from "./report-upload.ts";
import { createUploadGate } from "./upload-gate.ts";

/** What uploads use beside the clock. */
export interface ReportUploadsParts {
  readonly ingestions: Pick<Ingestions, "ingestFiles">;
  readonly reserve: Pick<DiskReserve, "isLow">;
}

const RETRY_AFTER_S = 300;

/** What the files of one upload may unpack to in all. */
export const UPLOAD_UNPACKED_BYTES_MAX = 512 * 1024 * 1024;

/** Uploads of reports, limited together whether they come from the API or a page. */
export class ReportUploads {
  readonly #parts: ReportUploadsParts;
  readonly #admit: ReturnType<typeof createUploadGate>;

  constructor(clock: Clock, parts: ReportUploadsParts) {
    this.#parts = parts;
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
      return this.#parts.ingestions.ingestFiles(incoming, UPLOAD_UNPACKED_BYTES_MAX);
    });
  }

  /** Before anything is stored. */
  #throwIfLow(files: readonly UploadedFile[]): void {
    if (!this.#parts.reserve.isLow(files.reduce((sum, { bytes }) => sum + bytes.byteLength, 0))) return;
    const message = "Report ingestion is paused: low disk space. Try again later.";
    throw new AppError("unavailable", { message, headers: { "retry-after": String(RETRY_AFTER_S) } });
  }
}

const incomingFile = ({ accountId, mode }: IngestionOwner, { name, bytes }: UploadedFile): IncomingReport => ({
  ...{ accountId, mode, domain: null, via: "http", name, bytes },
  ...{ client: null, helo: null, mailFrom: null },
});
