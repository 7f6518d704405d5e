import type { Clock } from "../../base/clock.ts";
import type { IdSource } from "../../base/walk.ts";
import { AppError } from "../../base/errors.ts";
import { newId } from "../../base/secrets.ts";
import type { Db } from "../../db/open.ts";
import type { Ingest, IngestItem } from "./ingest.ts";
import type { IngestionConclusion } from "./ingestion-finding.ts";
import { isUnsolicitedMail, type Written } from "./ingest-work.ts";
import type { IngestionFilters, IngestionOwner, IngestionRow, IngestionStore } from "./ingestion-store.ts";
import type { IncomingReport } from "./report-intake.ts";

export interface IngestionsDeps {
  readonly db: Db;
  readonly store: IngestionStore;
  readonly ingest: Ingest;
  readonly clock: Clock;
  /** Called when something waits to be read again. */
  readonly kick: () => void;
}

/** Ingestions looked at in one transaction when all are to be tried again. */
const SCANNED_AT_ONCE = 500;
/** What is held in memory when some are read again at once. */
const READ_AT_ONCE = 64;
const READ_BYTES_AT_ONCE = 8 * 1024 * 1024;

const notFound = () => new AppError("not_found", { message: "There is no such ingestion." });
const rawGone = () =>
  new AppError("conflict", {
    message: "The bytes of this ingestion are no longer kept, so they cannot be read again.",
  });

const notAMail = () =>
  new AppError("conflict", {
    message: "Only what came by mail can be accepted: what you uploaded is trusted already.",
  });

/** How something is read again. */
export interface RetryOptions {
  /** The owner vouches for the mail, whoever sent it. It stays so. */
  readonly isAccepted?: boolean;
}

/** The use cases of what comes in as files, and of what came in. */
export const createIngestions = ({ db, store, ingest, clock, kick }: IngestionsDeps) => {
  const find = (owner: IngestionOwner, id: string): IngestionRow => {
    const found = store.find(owner, id);
    if (found === undefined) throw notFound();
    return found;
  };

  const putBack = async (
    owner: IngestionOwner,
    id: string,
    { isAccepted = false }: RetryOptions = {},
  ): Promise<void> => {
    const row = find(owner, id);
    if (!row.hasRaw) throw rawGone();
    if (isAccepted && !isUnsolicitedMail(row)) throw notAMail();
    await db.commit((tx) => {
      if (isAccepted) store.accept(tx, row.id, clock.nowMs());
      store.setPending(tx, row.id);
    });
  };

  /** Puts back all that can be tried again, page by page, and says of each page what that was. */
  async function* putBackAll(owner: IngestionOwner): AsyncGenerator<readonly string[]> {
    let after = "";
    for (;;) {
      const some = store.scan(owner, after, SCANNED_AT_ONCE);
      const last = some.at(-1);
      if (last === undefined) return;
      after = last.id;
      const wanted = some.filter(({ isRetriable }) => isRetriable === 1);
      yield await db.commit((tx) => wanted.flatMap(({ id }) => (store.setPending(tx, id) ? [id] : [])));
    }
  }

  /** Reads some of what waits, bounded in memory. */
  const readPending = async (
    ids: readonly string[],
    told: (id: string, ending: IngestionConclusion) => void,
  ): Promise<void> => {
    const read = async (some: readonly IngestItem[]): Promise<void> => {
      for (const one of await ingest.process(some)) if (one !== null) told(one.ingestion.id, one.ending);
    };
    let items: IngestItem[] = [];
    let size = 0;
    for (const id of ids) {
      const pending = store.findPending(id);
      if (pending === null) continue;
      items.push({ ingestion: { ...pending, bytes: store.findRaw(id) ?? new Uint8Array() }, isNew: false });
      size += pending.size;
      if (items.length < READ_AT_ONCE && size < READ_BYTES_AT_ONCE) continue;
      await read(items);
      items = [];
      size = 0;
    }
    await read(items);
  };

  return {
    /**
     * Reads and stores files at once; durable when this resolves, with a row for each file in their order. Rejects when
     * the database cannot be written: what was stored by then stays, and is found as a duplicate the next time. Files
     * that unpack to more than `unpackedBytesMax` in all are `rejected` from there on: each by itself may be read again.
     */
    async ingestFiles(files: readonly IncomingReport[], unpackedBytesMax?: number): Promise<IngestionRow[]> {
      const items = files.map((file) => ({
        ingestion: { ...file, id: newId(), receivedAtMs: clock.nowMs() },
        isNew: true,
      }));
      return (await ingest.process(items, unpackedBytesMax)).flatMap((written) =>
        written === null ? [] : rowOf(written),
      );
    },
    /** One of the owner's ingestions; throws `not_found`. */
    find,
    /** Those that fit, newest first. */
    list: (owner: IngestionOwner, filters: IngestionFilters): IdSource<IngestionRow> => ({
      idBehind: (before, places) => store.idBehind(owner, before, places),
      list: ({ before, from, limit }) =>
        store.list(owner, filters, { before, limit, ...(from === undefined ? {} : { from }) }),
    }),
    /** The bytes as they came; throws `not_found`, and `conflict` when they are no longer kept. */
    raw(owner: IngestionOwner, id: string): Uint8Array {
      const bytes = store.findRaw(find(owner, id).id);
      if (bytes === undefined) throw rawGone();
      return bytes;
    },
    /** Has one read again, in the background, and answers it as it is then; one that waits already is left alone. */
    async retry(owner: IngestionOwner, id: string, options: RetryOptions = {}): Promise<IngestionRow> {
      await putBack(owner, id, options);
      kick();
      return find(owner, id);
    },
    /** Has all read again that were rejected or quarantined and whose bytes are kept; answers how many. */
    async retryAll(owner: IngestionOwner): Promise<number> {
      let retried = 0;
      for await (const ids of putBackAll(owner)) retried += ids.length;
      if (retried > 0) kick();
      return retried;
    },
    /**
     * Reads some again at once, or all that `retryAll` means, and nothing else that waits; answers how many. What a server
     * beside it takes up first is left to it, and what a crash leaves is read by the next server. `told` hears what became
     * of each that was not.
     */
    async readAgain(
      owner: IngestionOwner,
      which: readonly string[] | "all",
      told: (id: string, ending: IngestionConclusion) => void = () => undefined,
      options: RetryOptions = {},
    ): Promise<number> {
      if (which !== "all") {
        for (const id of which) await putBack(owner, id, options);
        await readPending(which, told);
        return which.length;
      }
      let retried = 0;
      for await (const ids of putBackAll(owner)) {
        await readPending(ids, told);
        retried += ids.length;
      }
      return retried;
    },
  };
};

const rowOf = ({ ingestion, ending }: Written): IngestionRow => {
  const { bytes, acceptedAtMs = null, ...row } = ingestion;
  return {
    ...row,
    acceptedAtMs,
    deliveredAtMs: row.deliveredAtMs ?? null,
    bytes: bytes.byteLength,
    status: "done",
    attempts: 0,
    outcome: ending.outcome,
    reason: ending.reason,
    findings: JSON.stringify(ending.findings),
    hasRaw: true,
    finishedAtMs: ending.finishedAtMs,
  };
};

export type Ingestions = ReturnType<typeof createIngestions>;
