import type { ForeignFile } from "../../../foundation/http/response.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import { readById, type ReadRows, walk } from "../../../foundation/base/walk.ts";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import type { Ingest, IngestItem } from "./ingest.ts";
import type { IngestedItem } from "./ingest-write.ts";
import type {
  IngestionFilters,
  IngestionOwner,
  IngestionRow,
  IngestionStore,
  IncomingReport,
} from "./ingestion-store.ts";
import { isUnsolicitedMail } from "./report-trust.ts";
import type { Cell } from "../../../foundation/http/csv.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import { suffixOf } from "../report/unpack.ts";
import { decidingFinding, type IngestionView, ingestionView } from "./ingestion-schemas.ts";

/** Ingestions made pending in one transaction when all are retried. */
const RETRIED_AT_ONCE = 500;
/** Ingestions in memory at a time while they are read immediately. */
const READ_AT_ONCE = 64;
const READ_BYTES_AT_ONCE = 8 * 1024 * 1024;

/** How an ingestion is retried. */
export interface RetryOptions {
  /** The owner accepts the mail, whoever sent it. Acceptance cannot be undone. */
  readonly isAccepted?: boolean;
}

/** The use cases of uploads and imports, and of the list of ingestions. */
export class Ingestions {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: IngestionStore;
      ingest: Pick<Ingest, "process">;
      /** Called when ingestions are pending again. */
      wake: () => void;
    },
  ) {}

  /**
   * Reads and stores files; durable when this resolves, with a row for each file in their order. Rejects when the database
   * cannot be written: what was stored by then stays, and is a duplicate the next time. Files that unpack to more than
   * `unpackedBytesMax` in all are `rejected` from there on, and can be retried.
   */
  async ingestFiles(files: readonly IncomingReport[], unpackedBytesMax?: number): Promise<IngestionRow[]> {
    const receivedAtMs = this.runtime.clock.nowMs();
    const items = files.map((file) => ({ ingestion: { ...file, id: newId(), receivedAtMs }, isNew: true }));
    const ingested = await this.deps.ingest.process(items, unpackedBytesMax);
    return ingested.flatMap((one) => (one === null ? [] : rowOf(one)));
  }

  /** Throws `not_found`. */
  find(owner: IngestionOwner, id: string): IngestionRow {
    const found = this.deps.store.find(owner, id);
    if (found === undefined) throw new AppError("not_found", { message: "No such ingestion." });
    return found;
  }

  /** The owner's ingestions that match, newest first. */
  list(owner: IngestionOwner, filters: IngestionFilters) {
    const { store } = this.deps;
    return readById<IngestionRow>(
      ({ before, from, limit }) =>
        store.list(owner, filters, { before, limit, ...(from === undefined ? {} : { from }) }),
      (before, places) => store.idBehind(owner, before, places),
    );
  }

  /** The original bytes; throws `not_found`, and `conflict` when they are no longer kept. */
  async raw(owner: IngestionOwner, id: string): Promise<Uint8Array> {
    const bytes = await this.deps.store.raw.find(this.find(owner, id).id);
    if (bytes === undefined) throw rawGone();
    return bytes;
  }

  /** Has an ingestion read again in the background, and returns its present state. */
  async retry(owner: IngestionOwner, id: string, options: RetryOptions = {}): Promise<IngestionRow> {
    await this.#makePending(owner, id, options);
    this.deps.wake();
    return this.find(owner, id);
  }

  /** Has everything read again that was rejected or quarantined and whose bytes are kept; returns how many. */
  async retryAll(owner: IngestionOwner): Promise<number> {
    let retried = 0;
    for await (const ids of this.#makeAllPending(owner)) retried += ids.length;
    if (retried > 0) this.deps.wake();
    return retried;
  }

  /**
   * Reads some ingestions again now, or all that `retryAll` means; returns how many. A server on the same database may
   * read some of them first. `onRead` is called for those that were read here.
   */
  async readAgain(
    owner: IngestionOwner,
    which: readonly string[] | "all",
    onRead: (id: string) => void = () => undefined,
    options: RetryOptions = {},
  ): Promise<number> {
    if (which !== "all") {
      for (const id of which) await this.#makePending(owner, id, options);
      await this.#readPending(which, onRead);
      return which.length;
    }
    let retried = 0;
    for await (const ids of this.#makeAllPending(owner)) {
      await this.#readPending(ids, onRead);
      retried += ids.length;
    }
    return retried;
  }

  async #makePending(owner: IngestionOwner, id: string, { isAccepted = false }: RetryOptions) {
    const row = this.find(owner, id);
    if (!row.hasRaw) throw rawGone();
    if (isAccepted && !isUnsolicitedMail(row)) throw notAMail();
    const { store } = this.deps;
    await this.runtime.db.commit((tx) => {
      if (isAccepted) store.accept(tx, row.id, this.runtime.clock.nowMs());
      store.setPending(tx, row.id);
    });
  }

  /** Makes everything pending that can be retried, page by page; yields the ids. */
  async *#makeAllPending(owner: IngestionOwner): AsyncGenerator<readonly string[]> {
    const { store } = this.deps;
    let after = "";
    for (;;) {
      const page = store.scan(owner, after, RETRIED_AT_ONCE);
      const last = page.at(-1);
      if (last === undefined) return;
      after = last.id;
      const retriable = page.filter(({ isRetriable }) => isRetriable === 1);
      yield await this.runtime.db.commit((tx) => retriable.flatMap(({ id }) => (store.setPending(tx, id) ? [id] : [])));
    }
  }

  /** Reads pending ingestions, a few in memory at a time. */
  async #readPending(ids: readonly string[], onRead: (id: string) => void) {
    const { store, ingest } = this.deps;
    let items: IngestItem[] = [];
    let size = 0;
    const read = async () => {
      for (const one of await ingest.process(items)) if (one !== null) onRead(one.ingestion.id);
      items = [];
      size = 0;
    };
    for (const id of ids) {
      const pending = store.findPending(id);
      if (pending === null) continue;
      items.push({ ingestion: { ...pending, bytes: (await store.raw.find(id)) ?? new Uint8Array() }, isNew: false });
      size += pending.size;
      if (items.length >= READ_AT_ONCE || size >= READ_BYTES_AT_ONCE) await read();
    }
    await read();
  }
}

const rawGone = () =>
  new AppError("conflict", { message: "The bytes of this ingestion are no longer kept, so it cannot be retried." });

const notAMail = () =>
  new AppError("conflict", { message: "Only mail can be accepted; what you uploaded is trusted already." });

const rowOf = ({ ingestion, result }: IngestedItem): IngestionRow => {
  const { bytes, acceptedAtMs = null, deliveredAtMs = null, ...row } = ingestion;
  const { outcome, reason, findings, finishedAtMs } = result;
  return {
    ...row,
    acceptedAtMs,
    deliveredAtMs,
    bytes: bytes.byteLength,
    status: "done",
    attempts: 0,
    hasRaw: true,
    outcome,
    reason,
    findings: JSON.stringify(findings),
    finishedAtMs,
  };
};

/** Which ingestions to list; `domainId` is the id of a domain, perhaps of another owner's. */
export interface IngestionQuery extends Omit<IngestionFilters, "domain"> {
  readonly domainId?: string | undefined;
}

const EXPORTED_AT_ONCE = 500;

/** The columns of the CSV export that are fields of an ingestion. */
const FIELDS = [
  "id",
  "received_at",
  "via",
  "name",
  "mail_from",
  "client",
  "bytes",
  "status",
  "outcome",
  "reason",
] as const;

/** The columns of the CSV export of ingestions. */
export const INGESTION_COLUMNS = [...FIELDS, "message", "domain", "reporter", "report_id"] as const;

/** Rows looked at between two yields where few pass a filter: some milliseconds. */
const STEP = 5_000;
const ROWS_AT_ONCE = 250;

/** Reads what arrived for an owner, with what was found in it. */
export class IngestionReader {
  constructor(
    private readonly ingestions: Pick<Ingestions, "list" | "find" | "raw">,
    private readonly domains: Pick<DomainStore, "findById" | "findByNumber">,
  ) {}

  /** What matches, newest first; nothing for the domain of another owner. */
  list(owner: IngestionOwner, { domainId, ...filters }: IngestionQuery): ReadRows<IngestionRow, string | null> {
    if (domainId === undefined) return this.ingestions.list(owner, filters);
    const domain = this.domains.findById(domainId);
    const isOwn = domain?.accountId === owner.accountId && domain.mode === owner.mode;
    return isOwn ? this.ingestions.list(owner, { ...filters, domain }) : () => ({ rows: [], next: null });
  }

  /** One page of the list; `next` continues it. A filter that few rows pass may end a page early. */
  async page(
    owner: IngestionOwner,
    query: IngestionQuery,
    { before, limit }: { before: string | null; limit: number },
  ): Promise<{ readonly ingestions: readonly IngestionView[]; readonly next: string | null }> {
    const { rows, next } = await walk<IngestionRow, string | null>(
      { read: this.list(owner, query), keyOf: ({ id }) => id, step: STEP, rowsAtOnce: ROWS_AT_ONCE },
      { before, limit, account: owner.accountId },
    );
    return { ingestions: rows.map((row) => this.view(row)), next };
  }

  /** All that match, as rows of CSV, newest first. */
  async *rows(owner: IngestionOwner, query: IngestionQuery): AsyncGenerator<Cell[][], void> {
    for (let before: string | null = null; ;) {
      const { ingestions, next } = await this.page(owner, query, { before, limit: EXPORTED_AT_ONCE });
      yield ingestions.map(cellsOf);
      if (next === null) return;
      before = next;
    }
  }

  /** Throws `not_found`. */
  find(owner: IngestionOwner, id: string): IngestionView {
    return this.view(this.ingestions.find(owner, id));
  }

  /** The original bytes with a content type and a file name; throws `not_found`, and `conflict` when they are no longer kept. */
  async raw(owner: IngestionOwner, id: string): Promise<ForeignFile> {
    const bytes = await this.ingestions.raw(owner, id);
    const suffix = suffixOf(bytes);
    return {
      bytes,
      contentType: suffix === ".eml" ? "message/rfc822" : "application/octet-stream",
      fileName: `${id}${suffix}`,
    };
  }

  view(row: IngestionRow): IngestionView {
    return ingestionView(row, (number) => this.domains.findByNumber(number)?.id ?? null);
  }
}

/** With what decided the outcome. */
const cellsOf = (ingestion: IngestionView): Cell[] => {
  const finding = decidingFinding(ingestion);
  return [
    ...FIELDS.map((field) => ingestion[field]),
    finding?.message ?? null,
    finding?.domain ?? null,
    finding?.org_name ?? null,
    finding?.external_report_id ?? null,
  ];
};
