import type { Clock } from "../../base/clock.ts";
import { AppError } from "../../base/errors.ts";
import { newId } from "../../base/secrets.ts";
import type { Db } from "../../db/open.ts";
import type { Ingest } from "./ingest.ts";
import type { Written } from "./ingest-work.ts";
import type { IngestionOwner, IngestionRow, IngestionStore } from "./ingestion-store.ts";
import type { Incoming } from "./intake.ts";

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

const notFound = () => new AppError("not_found", { message: "There is no such ingestion." });
const rawGone = () =>
  new AppError("conflict", {
    message: "The bytes of this ingestion are no longer kept, so they cannot be read again.",
  });

/** The use cases of what comes in as files, and of what came in. */
export const createIngestions = ({ db, store, ingest, clock, kick }: IngestionsDeps) => {
  const find = (owner: IngestionOwner, id: string): IngestionRow => {
    const found = store.find(owner, id);
    if (found === undefined) throw notFound();
    return found;
  };

  return {
    /**
     * Reads and stores files at once; durable when this resolves, with a row for each file in their order. Rejects when
     * the database cannot be written: what was stored by then stays, and is found as a duplicate the next time.
     */
    async ingestFiles(files: readonly Incoming[]): Promise<IngestionRow[]> {
      const items = files.map((file) => ({
        ingestion: { ...file, id: newId(), receivedAtMs: clock.nowMs() },
        isNew: true,
      }));
      return (await ingest.process(items)).flatMap((written) => (written === null ? [] : rowOf(written)));
    },
    /** One of the owner's ingestions; throws `not_found`. */
    find,
    /** The bytes as they came; throws `not_found`, and `conflict` when they are no longer kept. */
    raw(owner: IngestionOwner, id: string): Uint8Array {
      const bytes = store.findRaw(find(owner, id).id);
      if (bytes === undefined) throw rawGone();
      return bytes;
    },
    /** Has one read again, in the background, and answers it as it is then; one that waits already is left alone. */
    async retry(owner: IngestionOwner, id: string): Promise<IngestionRow> {
      const row = find(owner, id);
      if (!row.hasRaw) throw rawGone();
      await db.commit((tx) => store.setPending(tx, row.id));
      kick();
      return find(owner, id);
    },
    /** Has all read again that were rejected or quarantined and whose bytes are kept; answers how many. */
    async retryAll(owner: IngestionOwner): Promise<number> {
      let retried = 0;
      let after = "";
      for (;;) {
        const some = store.scan(owner, after, SCANNED_AT_ONCE);
        const last = some.at(-1);
        if (last === undefined) break;
        after = last.id;
        const wanted = some.filter(({ isRetriable }) => isRetriable === 1);
        retried += await db.commit((tx) => wanted.filter(({ id }) => store.setPending(tx, id)).length);
      }
      if (retried > 0) kick();
      return retried;
    },
  };
};

const rowOf = ({ ingestion, ending }: Written): IngestionRow => {
  const { bytes, ...row } = ingestion;
  return {
    ...row,
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
