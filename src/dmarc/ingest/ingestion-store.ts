import { and, desc, eq, gte, lt, or, type SQL, sql } from "drizzle-orm";
import type { KeyMode } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { dmarcIngestions } from "../../db/schema-dmarc.ts";
import type { IngestionConclusion, IngestionFinding } from "./ingestion-finding.ts";
import type { IncomingReport } from "./report-intake.ts";
import type { ReportOutcome } from "../report/outcome.ts";

/** A mail or file that came in, as it is stored. `findings` is the JSON text of `IngestionFinding[]`. */
export type IngestionRow = Readonly<typeof dmarcIngestions.$inferSelect>;

/** What came in, with the id it got. */
export interface NewIngestion extends IncomingReport {
  readonly id: string;
  readonly receivedAtMs: number;
  /** When the owner accepted it although it is not authenticated; absent and null for one that nobody vouched for. */
  readonly acceptedAtMs?: number | null;
}

/** What was found, and when. */
export interface IngestionResult extends IngestionConclusion {
  readonly findings: readonly IngestionFinding[];
  readonly finishedAtMs: number;
}

export interface IngestionOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface IngestionFilters {
  readonly status?: "pending" | "done" | undefined;
  readonly outcome?: ReportOutcome | undefined;
  readonly reason?: string | undefined;
  readonly via?: IncomingReport["via"] | undefined;
  /** The domain whose address it came to, or that a finding counts for. */
  readonly domain?: { readonly number: number; readonly id: string } | undefined;
  readonly receivedFromMs?: number | undefined;
  readonly receivedBeforeMs?: number | undefined;
}

export interface IngestionPage {
  readonly before: string | null;
  readonly from?: string;
  readonly limit: number;
}

/** What waits to be read, without its bytes. */
export interface PendingIngestion extends Omit<NewIngestion, "bytes"> {
  readonly size: number;
  readonly attempts: number;
}

const AFTER_ALL_IDS = "~";

/** A mail as it came, from whom, and since when its signatures have to hold. */
export type KeptMail = Pick<NewIngestion, "bytes" | "client" | "helo" | "mailFrom" | "receivedAtMs">;

const INSERT = `INSERT INTO dmarc_ingestions (id, account_id, mode, domain, via, received_at_ms, name, bytes, client, helo, mail_from,
  delivered_at_ms, status, outcome, reason, findings, finished_at_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`;

const PENDING = `SELECT id, account_id AS accountId, mode, domain, via, received_at_ms AS receivedAtMs, name, bytes AS size, client, helo,
  mail_from AS mailFrom, delivered_at_ms AS deliveredAtMs, attempts, accepted_at_ms AS acceptedAtMs FROM dmarc_ingestions WHERE status = 'pending'`;

/** When mails are judged again whose authenticity was not known: once they are so old, within a day. */
const JUDGED_AGAIN_AFTER_MS = [10 * 60_000, 2 * 3_600_000, 12 * 3_600_000];
const JUDGED_AGAIN_WITHIN_MS = 24 * 3_600_000;

/** Whether a mail that is not decided now will be judged again. */
export const isJudgedAgain = (receivedAtMs: number, nowMs: number): boolean =>
  JUDGED_AGAIN_AFTER_MS.some((ms) => nowMs < receivedAtMs + ms);

const UNDECIDED = `SELECT id FROM dmarc_ingestions WHERE received_at_ms > $now - ${JUDGED_AGAIN_WITHIN_MS} AND via IN ('smtp', 'imap')
  AND status = 'done' AND outcome IN ('rejected', 'quarantined') AND has_raw = 1 AND instr(findings, '"again":true') > 0 AND (${JUDGED_AGAIN_AFTER_MS.map(
    (ms) => `(finished_at_ms < received_at_ms + ${ms} AND received_at_ms + ${ms} <= $now)`,
  ).join(" OR ")}) ORDER BY received_at_ms LIMIT $limit`;

/** The list of what came in, and the bytes of it. */
export const createIngestionStore = (db: Db) => {
  const { sqlite, orm } = db;
  const table = dmarcIngestions;
  const insert = sqlite.prepare(INSERT);
  const findings = sqlite.prepare<{ findings: string }, [string]>(
    "SELECT findings FROM dmarc_ingestions WHERE id = ? AND status = 'done' AND findings IS NOT NULL",
  );
  const conclude = sqlite.prepare("UPDATE dmarc_ingestions SET outcome = ?, reason = ?, findings = ? WHERE id = ?");
  const mail = sqlite.prepare<KeptMail, [string]>(
    `SELECT i.client, i.helo, i.mail_from AS mailFrom, coalesce(i.delivered_at_ms, i.received_at_ms) AS receivedAtMs, r.bytes FROM dmarc_ingestions i
      JOIN dmarc_raw r ON r.ingestion = i.id WHERE i.id = ?`,
  );
  const insertRaw = sqlite.prepare("INSERT INTO dmarc_raw (ingestion, bytes) VALUES (?, ?)");
  const findRaw = sqlite.prepare<{ bytes: Uint8Array }, [string]>("SELECT bytes FROM dmarc_raw WHERE ingestion = ?");
  const pending = sqlite.prepare<PendingIngestion, [number]>(`${PENDING} ORDER BY id LIMIT ?`);
  const elsewhere = sqlite.prepare<PendingIngestion, [string, number]>(
    `${PENDING} AND coalesce(domain, -1) NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`,
  );
  const undecided = sqlite.prepare<{ id: string }, { now: number; limit: number }>(UNDECIDED);
  const findPending = sqlite.prepare<PendingIngestion, [string]>(`${PENDING} AND id = ?`);
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
  const accept = sqlite.prepare(
    "UPDATE dmarc_ingestions SET accepted_at_ms = ? WHERE id = ? AND accepted_at_ms IS NULL",
  );
  const behind = sqlite.prepare<{ id: string }, [string, string, string, number]>(
    "SELECT id FROM dmarc_ingestions WHERE account_id = ? AND mode = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
  );
  const scan = sqlite.prepare<{ id: string; isRetriable: number }, [string, string, string, number]>(
    `SELECT id, status = 'done' AND has_raw = 1 AND outcome IN ('rejected', 'quarantined') AS isRetriable
      FROM dmarc_ingestions WHERE account_id = ? AND mode = ? AND id > ? ORDER BY id LIMIT ?`,
  );

  const write = (row: NewIngestion, ending: IngestionResult | null): void => {
    const { id, accountId, mode, domain, via, receivedAtMs, name, bytes, client, helo, mailFrom } = row;
    const sender = [client, helo, mailFrom, row.deliveredAtMs ?? null];
    const came = [id, accountId, mode, domain, via, receivedAtMs, name, bytes.byteLength, ...sender];
    const state = ending === null ? ["pending", null, null, null, null] : ["done", ...endingOf(ending)];
    insert.run(...came, ...state);
    insertRaw.run(id, bytes);
  };

  return {
    /** Stores something to be read later. */
    insertPending: (_tx: Tx, row: NewIngestion): void => write(row, null),
    /** Stores something with what was found in it. */
    insertDone: (_tx: Tx, row: NewIngestion, ending: IngestionResult): void => write(row, ending),
    /** What waits to be read, the oldest first. */
    pending: (limit: number): PendingIngestion[] => pending.all(limit),
    /** What waits but for some domains, the oldest first; -1 stands for what came to no domain. */
    pendingElsewhere: (domains: readonly number[], limit: number): PendingIngestion[] =>
      elsewhere.all(JSON.stringify(domains), limit),
    /** Mails that a domain did not take because nobody knew whether they are authentic, and that are to be judged again. */
    undecided: (now: number, limit: number): string[] => undecided.all({ now, limit }).map(({ id }) => id),
    /** One that waits to be read; null when it does not, or not any more. */
    findPending: (id: string): PendingIngestion | null => findPending.get(id),
    isPending: (id: string): boolean => isPending.get(id) !== null,
    /** The bytes as they came; undefined when they are no longer kept. */
    findRaw: (id: string): Uint8Array | undefined => findRaw.get(id)?.bytes,
    /** A mail as it came; null when its bytes are no longer kept. */
    findMail: (id: string): KeptMail | null => mail.get(id),
    /** What was found in one that was read; undefined while it waits, and when it is gone. */
    findingsOf(id: string): IngestionFinding[] | undefined {
      const found = findings.get(id);
      return found === null ? undefined : (JSON.parse(found.findings) as IngestionFinding[]);
    },
    /** Notes that the owner vouches for a mail, unless that is noted already. */
    accept: (_tx: Tx, id: string, atMs: number): void => void accept.run(atMs, id),
    /** Changes what was found in one that was read. */
    conclude: (
      _tx: Tx,
      id: string,
      { outcome, reason, findings: changed }: Omit<IngestionResult, "finishedAtMs">,
    ): void => void conclude.run(outcome, reason, JSON.stringify(changed), id),
    /** Counts (or, with -1, takes back) one try to read it. */
    countAttempt: (_tx: Tx, id: string, by: 1 | -1): void => void countAttempt.run(by, id),
    finish: (_tx: Tx, id: string, ending: IngestionResult): void => void finish.run(...endingOf(ending), id),
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
    /** The id of an owner's ingestion so many places behind the newest older than `before`; null when there are no so many. */
    idBehind: ({ accountId, mode }: IngestionOwner, before: string | null, places: number): string | null =>
      behind.get(accountId, mode, before ?? AFTER_ALL_IDS, places)?.id ?? null,
    /** Newest first, older than the id `before`, and not older than `from`. */
    list({ accountId, mode }: IngestionOwner, filters: IngestionFilters, page: IngestionPage): IngestionRow[] {
      const { status, outcome, reason, via, domain, receivedFromMs, receivedBeforeMs } = filters;
      const conditions: (SQL | undefined)[] = [
        eq(table.accountId, accountId),
        eq(table.mode, mode),
        page.before === null ? undefined : lt(table.id, page.before),
        page.from === undefined ? undefined : gte(table.id, page.from),
        status === undefined ? undefined : eq(table.status, status),
        outcome === undefined ? undefined : eq(table.outcome, outcome),
        reason === undefined ? undefined : eq(table.reason, reason),
        via === undefined ? undefined : eq(table.via, via),
        domain === undefined ? undefined : or(eq(table.domain, domain.number), isNamed(domain.id)),
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

/** Whether a finding counts for a domain. */
const isNamed = (domainId: string): SQL => sql`instr(findings, ${`"domain_id":"${domainId}"`}) > 0`;

const endingOf = ({ outcome, reason, findings, finishedAtMs }: IngestionResult) => [
  outcome,
  reason,
  JSON.stringify(findings),
  finishedAtMs,
];

export type IngestionStore = ReturnType<typeof createIngestionStore>;
