import { and, desc, eq, gte, lt, type SQL } from "drizzle-orm";
import type { KeyMode } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { dmarcIngestions } from "../../db/schema-dmarc.ts";
import type { Conclusion, Finding } from "./ingest-finding.ts";
import type { Incoming } from "./intake.ts";
import type { Outcome } from "../report/outcome.ts";

/** A mail or file that came in, as it is stored. `findings` is the JSON text of `Finding[]`. */
export type IngestionRow = Readonly<typeof dmarcIngestions.$inferSelect>;

/** What came in, with the id it got. */
export interface NewIngestion extends Incoming {
  readonly id: string;
  readonly receivedAtMs: number;
}

/** What was found, and when. */
export interface Ending extends Conclusion {
  readonly findings: readonly Finding[];
  readonly finishedAtMs: number;
}

export interface IngestionOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface IngestionFilters {
  readonly status?: "pending" | "done" | undefined;
  readonly outcome?: Outcome | undefined;
  readonly reason?: string | undefined;
  readonly via?: Incoming["via"] | undefined;
  /** `number` of the domain whose address it came to. */
  readonly domain?: number | undefined;
  readonly receivedFromMs?: number | undefined;
  readonly receivedBeforeMs?: number | undefined;
}

/** What waits to be read, without its bytes. */
export interface PendingIngestion extends Omit<NewIngestion, "bytes"> {
  readonly size: number;
  readonly attempts: number;
}

const INSERT = `INSERT INTO dmarc_ingestions (id, account_id, mode, domain, via, received_at_ms, name, bytes, client, helo, mail_from,
  status, outcome, reason, findings, finished_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const PENDING = `SELECT id, account_id AS accountId, mode, domain, via, received_at_ms AS receivedAtMs, name, bytes AS size, client, helo,
  mail_from AS mailFrom, attempts FROM dmarc_ingestions WHERE status = 'pending' ORDER BY id LIMIT ?`;

/** The list of what came in, and the bytes of it. */
export const createIngestionStore = (db: Db) => {
  const { sqlite, orm } = db;
  const table = dmarcIngestions;
  const insert = sqlite.prepare(INSERT);
  const insertRaw = sqlite.prepare("INSERT INTO dmarc_raw (ingestion, bytes) VALUES (?, ?)");
  const findRaw = sqlite.prepare<{ bytes: Uint8Array }, [string]>("SELECT bytes FROM dmarc_raw WHERE ingestion = ?");
  const pending = sqlite.prepare<PendingIngestion, [number]>(PENDING);
  const isPending = sqlite.prepare<unknown, [string]>(
    "SELECT 1 FROM dmarc_ingestions WHERE id = ? AND status = 'pending'",
  );
  const countAttempt = sqlite.prepare("UPDATE dmarc_ingestions SET attempts = attempts + ? WHERE id = ?");
  const finish = sqlite.prepare(
    "UPDATE dmarc_ingestions SET status = 'done', outcome = ?, reason = ?, findings = ?, finished_at_ms = ? WHERE id = ?",
  );
  const setPending =
    sqlite.prepare(`UPDATE dmarc_ingestions SET status = 'pending', attempts = 0, outcome = NULL, reason = NULL,
    findings = NULL, finished_at_ms = NULL WHERE id = ? AND status = 'done' AND has_raw = 1`);
  const scan = sqlite.prepare<{ id: string; isRetriable: number }, [string, string, string, number]>(
    `SELECT id, status = 'done' AND has_raw = 1 AND outcome IN ('rejected', 'quarantined') AS isRetriable
      FROM dmarc_ingestions WHERE account_id = ? AND mode = ? AND id > ? ORDER BY id LIMIT ?`,
  );

  const write = (row: NewIngestion, ending: Ending | null): void => {
    const { id, accountId, mode, domain, via, receivedAtMs, name, bytes, client, helo, mailFrom } = row;
    const came = [id, accountId, mode, domain, via, receivedAtMs, name, bytes.byteLength, client, helo, mailFrom];
    const state = ending === null ? ["pending", null, null, null, null] : ["done", ...endingOf(ending)];
    insert.run(...came, ...state);
    insertRaw.run(id, bytes);
  };

  return {
    /** Stores something to be read later. */
    insertPending: (_tx: Tx, row: NewIngestion): void => write(row, null),
    /** Stores something with what was found in it. */
    insertDone: (_tx: Tx, row: NewIngestion, ending: Ending): void => write(row, ending),
    /** What waits to be read, the oldest first. */
    pending: (limit: number): PendingIngestion[] => pending.all(limit),
    isPending: (id: string): boolean => isPending.get(id) !== null,
    /** The bytes as they came; undefined when they are no longer kept. */
    findRaw: (id: string): Uint8Array | undefined => findRaw.get(id)?.bytes,
    /** Counts (or, with -1, takes back) one try to read it. */
    countAttempt: (_tx: Tx, id: string, by: 1 | -1): void => void countAttempt.run(by, id),
    finish: (_tx: Tx, id: string, ending: Ending): void => void finish.run(...endingOf(ending), id),
    /** Puts one back among what is to be read; false when it is there, or its bytes are gone. */
    setPending: (_tx: Tx, id: string): boolean => setPending.run(id).changes > 0,
    /** Some of an owner's ingestions after the id `after`, the oldest first, and whether reading can be tried again. */
    scan: (owner: IngestionOwner, after: string, limit: number) => scan.all(owner.accountId, owner.mode, after, limit),

    find: ({ accountId, mode }: IngestionOwner, id: string): IngestionRow | undefined =>
      orm
        .select()
        .from(table)
        .where(and(eq(table.id, id), eq(table.accountId, accountId), eq(table.mode, mode)))
        .get(),
    /** Newest first, older than the id `before`. */
    list(
      { accountId, mode }: IngestionOwner,
      filters: IngestionFilters,
      page: { readonly before: string | null; readonly limit: number },
    ): IngestionRow[] {
      const { status, outcome, reason, via, domain, receivedFromMs, receivedBeforeMs } = filters;
      const conditions: (SQL | undefined)[] = [
        eq(table.accountId, accountId),
        eq(table.mode, mode),
        page.before === null ? undefined : lt(table.id, page.before),
        status === undefined ? undefined : eq(table.status, status),
        outcome === undefined ? undefined : eq(table.outcome, outcome),
        reason === undefined ? undefined : eq(table.reason, reason),
        via === undefined ? undefined : eq(table.via, via),
        domain === undefined ? undefined : eq(table.domain, domain),
        receivedFromMs === undefined ? undefined : gte(table.receivedAtMs, receivedFromMs),
        receivedBeforeMs === undefined ? undefined : lt(table.receivedAtMs, receivedBeforeMs),
      ];
      return orm
        .select()
        .from(table)
        .where(and(...conditions))
        .orderBy(desc(table.id))
        .limit(page.limit)
        .all();
    },
  };
};

const endingOf = ({ outcome, reason, findings, finishedAtMs }: Ending) => [
  outcome,
  reason,
  JSON.stringify(findings),
  finishedAtMs,
];

export type IngestionStore = ReturnType<typeof createIngestionStore>;
