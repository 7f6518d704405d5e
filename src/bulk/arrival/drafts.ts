import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { rm, stat, writeFile } from "node:fs/promises";
import { AppError } from "../../foundation/base/errors.ts";
import { type KeyMode, newId } from "../../foundation/base/secrets.ts";
import type { CreditHolds } from "../../accounts/billing/store.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import {
  sampleFile,
  isSmallFile,
  type RefusedFile,
  type Submission,
  type SubmissionContext,
  openStoredList,
} from "./submission.ts";
import { type Preview, previewSubmission } from "./preview.ts";
import type { UploadOrder } from "../results/schemas.ts";
import { receiveUpload, type Upload, uploadBytesMax } from "./upload.ts";
import { UploadBudget, type UploadReservation } from "./intake.ts";
import { nextTurn } from "../../foundation/base/clock.ts";
import { written } from "../../foundation/http/csv.ts";
import { looksLikeAddress } from "../reading/columns-address.ts";

/** Whose a draft is: users of the account see it in both modes, and the mode in which it is started decides. */
interface DraftOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

/** An uploaded list that is not started yet. */
export interface Draft {
  readonly id: string;
  /** Null for a text that was pasted. */
  readonly fileName: string | null;
  readonly bytes: number;
  readonly expiresAtMs: number;
  /** The job that was made of it; null before. */
  readonly jobId: string | null;
  /** The credits that its latest preview asks for; null before the first. */
  readonly required: number | null;
}

/** How the file is read; as for the query of an upload. */
export type DraftLayout = Pick<UploadOrder, "column" | "header" | "encoding" | "sheet">;

/** What a draft would be as a list, or why it cannot be read and what its first rows hold. */
export type DraftPreview =
  | { readonly kind: "list"; readonly preview: Preview }
  | ({
      readonly kind: "refused";
      readonly message: string;
      readonly issues: ReadonlyArray<{ readonly path: string; readonly message: string }>;
    } & RefusedFile);

/** How long a file waits to be started. */
export const DRAFT_MS_MAX = 60 * 60_000;
/** More drafts of an account replace its oldest. */
export const DRAFTS_PER_ACCOUNT_MAX = 5;
const MIB = 1024 * 1024;
/** Disk space of drafts: a part of that of all uploads, so that lists can be submitted by the API. Twice the files, for those that are received or still read. */
const LIMITS = {
  filesPerAccountMax: 2 * DRAFTS_PER_ACCOUNT_MAX,
  bytesPerAccountMax: 512 * MIB,
  bytesMax: 2 * 1024 * MIB,
};
/** Readings of one draft that are kept. */
const PREVIEWS_MAX = 10;
const SAMPLE_ROWS = 6;

const notFound = (): AppError =>
  new AppError("not_found", { message: "This upload has expired. Upload the file again." });

interface Stored {
  readonly draft: Omit<Draft, "jobId" | "required">;
  readonly accountId: string;
  readonly upload: Upload;
  readonly previews: Map<string, Promise<DraftPreview>>;
  /** The start, once requested: it happens once. */
  start: Promise<string> | null;
  jobId: string | null;
  required: number | null;
  /** Readings under way: the file is deleted after the last. */
  readers: number;
  isDropped: boolean;
  readonly cancelExpiry: () => void;
  readonly reservations: readonly UploadReservation[];
}

const shown = ({ draft, jobId, required }: Stored): Draft => ({ ...draft, jobId, required });

/**
 * Lists that users upload and look at before they start them. A file is received once and waits in the uploads folder; a
 * restart or an hour discards it.
 */
export class ListDrafts {
  readonly #drafts = new Map<string, Stored>();
  readonly #held = new UploadBudget(LIMITS);

  constructor(
    private readonly runtime: Runtime,
    private readonly deps: {
      readonly contextOf: (owner: Pick<DraftOwner, "accountId">) => SubmissionContext;
      readonly credits: CreditHolds;
    },
  ) {}

  /** Receives a form with a file. 400, 413, 415; 503 when too many files wait or the disk is full. */
  async receive(owner: DraftOwner, request: Request): Promise<Draft> {
    await this.#makeRoom(owner);
    const context = this.deps.contextOf(owner);
    const bytesMax = uploadBytesMax(request);
    const reservations: UploadReservation[] = [];
    let upload: Upload | null = null;
    try {
      reservations.push(this.#held.reserve(owner.accountId, bytesMax));
      reservations.push(context.reserveUpload(bytesMax));
      upload = await receiveUpload(request, context);
      const { bytes } = upload;
      for (const reservation of reservations) reservation.shrink(bytes);
      if (upload.fileName === null) await rewritePasted(upload.path);
      return this.#keep(owner, upload, reservations);
    } catch (error) {
      if (upload !== null) await rm(upload.path, { force: true });
      for (const reservation of reservations) reservation.release();
      throw error;
    }
  }

  /** 404 when it has expired or is another account's. */
  get(owner: DraftOwner, id: string): Draft {
    return shown(this.#find(owner, id));
  }

  /** The drafts of an account that wait to be started, oldest first. */
  waiting({ accountId }: Pick<DraftOwner, "accountId">): Draft[] {
    return this.#ofAccount(accountId)
      .filter(({ jobId }) => jobId === null)
      .map(shown);
  }

  /** How a draft is read and what it would cost. Reads it to its end, at most once for each layout. 404, 503. */
  async preview(owner: DraftOwner, id: string, layout: DraftLayout): Promise<DraftPreview> {
    const stored = this.#find(owner, id);
    if (stored.isDropped) throw notFound();
    const key =
      owner.mode +
      JSON.stringify([layout.column, layout.header, layout.encoding, layout.sheet].map((one) => one ?? null));
    const earlier = stored.previews.get(key);
    const reading = earlier ?? this.#read(stored, owner, layout);
    if (earlier === undefined) {
      stored.previews.set(key, reading);
      reading.catch(() => stored.previews.delete(key));
    }
    const read = await reading;
    if (owner.mode === "live") stored.required = read.kind === "refused" ? null : read.preview.credits.required;
    if (read.kind === "refused") return read;
    // Granted or spent meanwhile.
    const { available } = this.deps.credits.balance(owner.accountId);
    return { kind: "list", preview: { ...read.preview, credits: { ...read.preview.credits, available } } };
  }

  /**
   * Makes a job of a draft by `create` and deletes the file. A draft is started once: repeated and concurrent calls return
   * the id of the same job. 404, and what `create` throws; the draft stays then.
   */
  async start(
    owner: DraftOwner,
    id: string,
    {
      options,
      create,
    }: { readonly options: UploadOrder; readonly create: (submission: Submission) => Promise<string> },
  ): Promise<string> {
    const stored = this.#find(owner, id);
    stored.start ??= this.#submit(stored, options, create).catch((error: unknown) => {
      stored.start = null;
      throw error;
    });
    return await stored.start;
  }

  /** Deletes a draft. 404. */
  discard(owner: DraftOwner, id: string): Promise<void> {
    return this.#drop(this.#find(owner, id));
  }

  /** Cancels the timers. The files are deleted at the next start. */
  stop(): void {
    for (const { cancelExpiry } of this.#drafts.values()) cancelExpiry();
    this.#drafts.clear();
  }

  async #submit(stored: Stored, options: UploadOrder, create: (submission: Submission) => Promise<string>) {
    stored.jobId = await this.#using(stored, async (context) => {
      await using submission = await openStoredList(stored.upload, { options, context });
      return await create(submission);
    });
    await this.#drop(stored, { isKnown: true });
    return stored.jobId;
  }

  async #read(stored: Stored, { accountId, mode }: DraftOwner, layout: DraftLayout): Promise<DraftPreview> {
    const { available } = this.deps.credits.balance(accountId);
    const credits = { available, isHeld: mode === "live" };
    try {
      return await this.#using(stored, async (context) => {
        await using submission = await openStoredList(stored.upload, { options: layout, context });
        const preview = await previewSubmission(submission, { credits, random: this.runtime.random });
        return { kind: "list", preview };
      });
    } catch (error) {
      if (!(error instanceof AppError) || error.code !== "Invalid request body") throw error;
      return {
        kind: "refused",
        message: error.message,
        issues: error.details.issues ?? [],
        ...(await this.#sample(stored, layout)),
      };
    }
  }

  #sample(stored: Stored, { sheet }: DraftLayout): Promise<RefusedFile> {
    const { path } = stored.upload;
    const sheetPath = `${path}.${newId()}.sheet`;
    return this.#using(stored, () => sampleFile(path, { sheetPath, rowsMax: SAMPLE_ROWS, sheet }));
  }

  /** Reads the file when a slot is free; it is not deleted meanwhile. */
  async #using<T>(stored: Stored, work: (context: SubmissionContext) => Promise<T>): Promise<T> {
    const context = this.deps.contextOf(stored);
    stored.readers++;
    try {
      using _slot = await context.takeSlot(await isSmallFile(stored.upload));
      return await work(context);
    } finally {
      stored.readers--;
      if (stored.isDropped) await this.#deleteFile(stored);
    }
  }

  #keep(owner: DraftOwner, upload: Upload, reservations: readonly UploadReservation[]): Draft {
    const { clock } = this.runtime;
    const { fileName, bytes } = upload;
    const draft = { id: newId(), fileName, bytes, expiresAtMs: clock.nowMs() + DRAFT_MS_MAX };
    const cancelExpiry = clock.after(DRAFT_MS_MAX, () => this.#dropLater(stored));
    const stored: Stored = {
      draft,
      accountId: owner.accountId,
      upload,
      reservations,
      cancelExpiry,
      previews: new BoundedMap(PREVIEWS_MAX),
      jobId: null,
      required: null,
      start: null,
      readers: 0,
      isDropped: false,
    };
    this.#drafts.set(draft.id, stored);
    return shown(stored);
  }

  /** Drops the draft of an account that is needed least when it has as many as it may: a started one, else the oldest. */
  async #makeRoom({ accountId }: DraftOwner): Promise<void> {
    const own = this.#ofAccount(accountId);
    const [least] = own.toSorted((a, b) => Number(a.jobId === null) - Number(b.jobId === null));
    if (own.length >= DRAFTS_PER_ACCOUNT_MAX && least !== undefined) await this.#drop(least);
  }

  #dropLater(stored: Stored): void {
    this.#drop(stored).catch((error: unknown) => this.runtime.log.error("could not delete an upload", { error }));
  }

  /** Forgets a draft and deletes its file; `isKnown`: only its file. */
  async #drop(stored: Stored, { isKnown = false }: { readonly isKnown?: boolean } = {}): Promise<void> {
    if (!isKnown) {
      stored.cancelExpiry();
      this.#drafts.delete(stored.draft.id);
    }
    if (stored.isDropped) return;
    stored.isDropped = true;
    if (stored.readers === 0) await this.#deleteFile(stored);
  }

  async #deleteFile({ upload, reservations, readers }: Stored): Promise<void> {
    if (readers > 0) return;
    await rm(upload.path, { force: true });
    for (const reservation of reservations) reservation.release();
  }

  #ofAccount(accountId: string): Stored[] {
    return [...this.#drafts.values()].filter((stored) => stored.accountId === accountId);
  }

  #find({ accountId }: DraftOwner, id: string): Stored {
    const stored = this.#drafts.get(id);
    if (stored === undefined || stored.accountId !== accountId) throw notFound();
    return stored;
  }
}

/** Longer texts are read as a CSV, as they are. */
const PASTED_BYTES_MAX = 4 * 1024 * 1024;
/** Lines examined in one turn of the event loop. */
const LINES_AT_ONCE = 2_000;

/** What stands between commas and semicolons, outside of quotes and angle brackets. */
const ENTRY = /(?:"[^"]*"|<[^<>]*>|[^,;"<]|["<])+/g;

/** The entries of a line: `Ada <ada@a.example>, bob@b.example` has two. White space separates only addresses. */
const entriesOf = (line: string): string[] => {
  const entries = (line.match(ENTRY) ?? []).map((entry) => entry.trim()).filter((entry) => entry !== "");
  return entries.flatMap((entry) => {
    const words = entry.split(/\s+/);
    return words.length > 1 && words.every(looksLikeAddress) ? words : [entry];
  });
};

const hasSeveral = (entries: readonly string[]): boolean => entries.filter((entry) => entry.includes("@")).length > 1;

/**
 * Splits a text that was pasted into a form into its entries when a line holds several addresses, as the recipients of a
 * mail do. Null when it is a table or has one address a line: then it can be read as a CSV. A table has tabs, or a first
 * line without an address.
 */
export const splitPasted = async (text: string): Promise<string[] | null> => {
  const lines = text.split(/\r\n|\n|\r/).filter((line) => line.trim() !== "");
  if (text.includes("\t") || lines[0]?.includes("@") !== true) return null;
  const all: string[] = [];
  let isList: boolean = false;
  for (const [at, line] of lines.entries()) {
    if (at % LINES_AT_ONCE === 0) await nextTurn();
    const entries = entriesOf(line);
    isList ||= hasSeveral(entries);
    all.push(...entries);
  }
  return isList ? all : null;
};

/** Rewrites a file with a pasted text, one entry a line, if it is not one already. */
export const rewritePasted = async (path: string): Promise<void> => {
  if ((await stat(path)).size > PASTED_BYTES_MAX) return;
  const entries = await splitPasted(await Bun.file(path).text());
  if (entries !== null) await writeFile(path, entries.map((entry) => `${written(entry)}\n`).join(""));
};
