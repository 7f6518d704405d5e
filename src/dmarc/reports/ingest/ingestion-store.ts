import { and, desc, eq, gte, lt, or, type SQL, sql } from "drizzle-orm";
import { type KeyMode, newId } from "../../../foundation/base/secrets.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import { dmarcIngestions } from "../../../foundation/db/schema-dmarc.ts";
import { type IngestionConclusion, parseFindings, type StoredFinding } from "./ingestion-finding.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import { dayOfTime } from "../../../foundation/base/days.ts";
import type { DbClock } from "../../../foundation/db/runtime.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import type { Clock } from "../../../foundation/base/clock.ts";
import { RawStore } from "./raw-store.ts";
import type { Log } from "../../../foundation/base/log.ts";

/** A stored mail or file. `findings` is JSON: see `parseFindings`. */
export type IngestionRow = Readonly<typeof dmarcIngestions.$inferSelect>;

/** A mail or file with the id that it got. */
export interface NewIngestion extends IncomingReport {
  readonly id: string;
  readonly receivedAtMs: number;
  /** When the owner accepted it although it is not authenticated; absent or null otherwise. */
  readonly acceptedAtMs?: number | null;
}

/** What was found, and when. */
export interface IngestionResult extends IngestionConclusion {
  readonly findings: readonly StoredFinding[];
  readonly finishedAtMs: number;
}

export interface IngestionOwner {
  readonly accountId: string;
  readonly mode: KeyMode;
}

export interface IngestionFilters {
  readonly status?: IngestionRow["status"] | undefined;
  readonly outcome?: StoredFinding["outcome"] | undefined;
  readonly reason?: string | undefined;
  readonly via?: IncomingReport["via"] | undefined;
  /** The domain whose address received the mail, or that a finding counts for. */
  readonly domain?: { readonly number: number; readonly id: string } | undefined;
  readonly receivedFromMs?: number | undefined;
  readonly receivedBeforeMs?: number | undefined;
}

/** An ingestion that waits to be read, without its bytes. */
export interface PendingIngestion extends Omit<NewIngestion, "bytes"> {
  readonly size: number;
  readonly attempts: number;
}

/** Greater than every id. */
const AFTER_ALL_IDS = "~";

/** The ages at which a mail whose authentication had a temporary error is checked again, all within a day. */
const AUTHENTICATED_AGAIN_AFTER_MS = [10 * 60_000, 2 * 3_600_000, 12 * 3_600_000];
const AUTHENTICATED_AGAIN_WITHIN_MS = 24 * 3_600_000;

/** Whether a mail whose authentication has a temporary error now will be checked again. */
export const isAuthenticatedAgain = (receivedAtMs: number, nowMs: number): boolean =>
  AUTHENTICATED_AGAIN_AFTER_MS.some((ms) => nowMs < receivedAtMs + ms);

const INSERT = `INSERT INTO dmarc_ingestions (id, account_id, mode, domain, via, received_at_ms, name, bytes, client, helo, mail_from,
  delivered_at_ms, status, outcome, reason, findings, finished_at_ms) VALUES ($id, $accountId, $mode, $domain, $via, $receivedAtMs, $name, $size, $client,
  $helo, $mailFrom, $deliveredAtMs, $status, $outcome, $reason, $findings, $finishedAtMs)`;

const PENDING = `SELECT id, account_id AS accountId, mode, domain, via, received_at_ms AS receivedAtMs, name, bytes AS size, client, helo,
  mail_from AS mailFrom, delivered_at_ms AS deliveredAtMs, attempts, accepted_at_ms AS acceptedAtMs FROM dmarc_ingestions WHERE status = 'pending'`;

const UNDECIDED = `SELECT id FROM dmarc_ingestions WHERE received_at_ms > $now - ${AUTHENTICATED_AGAIN_WITHIN_MS} AND via IN ('smtp', 'imap')
  AND status = 'done' AND outcome IN ('rejected', 'quarantined') AND has_raw = 1 AND instr(findings, '"again":true') > 0 AND (${AUTHENTICATED_AGAIN_AFTER_MS.map(
    (ms) => `(finished_at_ms < received_at_ms + ${ms} AND received_at_ms + ${ms} <= $now)`,
  ).join(" OR ")}) ORDER BY received_at_ms LIMIT $limit`;

const STATEMENTS = {
  insert: INSERT,
  findings: rows<{ findings: string }, [string]>(
    "SELECT findings FROM dmarc_ingestions WHERE id = ? AND status = 'done' AND findings IS NOT NULL",
  ),
  conclude: "UPDATE dmarc_ingestions SET outcome = ?, reason = ?, findings = ? WHERE id = ?",
  pending: rows<PendingIngestion, [number]>(`${PENDING} ORDER BY id LIMIT ?`),
  pendingElsewhere: rows<PendingIngestion, [string, number]>(
    `${PENDING} AND coalesce(domain, -1) NOT IN (SELECT value FROM json_each(?)) ORDER BY id LIMIT ?`,
  ),
  undecided: rows<{ id: string }, { now: number; limit: number }>(UNDECIDED),
  findPending: rows<PendingIngestion, [string]>(`${PENDING} AND id = ?`),
  isPending: rows<unknown, [string]>("SELECT 1 FROM dmarc_ingestions WHERE id = ? AND status = 'pending'"),
  countAttempt: "UPDATE dmarc_ingestions SET attempts = attempts + 1 WHERE id = ?",
  finish:
    "UPDATE dmarc_ingestions SET status = 'done', outcome = ?, reason = ?, findings = ?, finished_at_ms = ? WHERE id = ?",
  setPending: `UPDATE dmarc_ingestions SET status = 'pending', attempts = 0, outcome = NULL, reason = NULL, findings = NULL,
      finished_at_ms = NULL WHERE id = ? AND status = 'done' AND has_raw = 1`,
  accept: "UPDATE dmarc_ingestions SET accepted_at_ms = ? WHERE id = ? AND accepted_at_ms IS NULL",
  idAfter: rows<{ id: string }, [string, string, string, number]>(
    "SELECT id FROM dmarc_ingestions WHERE account_id = ? AND mode = ? AND id < ? ORDER BY id DESC LIMIT 1 OFFSET ?",
  ),
  scan: rows<{ id: string; isRetriable: number }, [string, string, string, number]>(
    `SELECT id, status = 'done' AND has_raw = 1 AND outcome IN ('rejected', 'quarantined') AS isRetriable
      FROM dmarc_ingestions WHERE account_id = ? AND mode = ? AND id > ? ORDER BY id LIMIT ?`,
  ),
};

/** Every received mail and file, and its bytes. */
export class IngestionStore {
  readonly raw: RawStore;
  readonly #orm: Db["orm"];
  readonly #sql;

  constructor(db: Db) {
    this.raw = new RawStore(db);
    this.#orm = db.orm;
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  /** Stores an ingestion that is to be read later. */
  insertPending(tx: Tx, row: NewIngestion): void {
    this.#insert(tx, row, { status: "pending", outcome: null, reason: null, findings: null, finishedAtMs: null });
  }

  /** Stores an ingestion with what was found in it. */
  insertDone(tx: Tx, row: NewIngestion, result: IngestionResult): void {
    this.#insert(tx, row, { status: "done", ...result, findings: JSON.stringify(result.findings) });
  }

  #insert(
    tx: Tx,
    { bytes, deliveredAtMs = null, ...row }: NewIngestion,
    state: Pick<IngestionRow, "status" | "outcome" | "reason" | "findings" | "finishedAtMs">,
  ) {
    this.#sql.insert.run({ ...row, ...state, deliveredAtMs, size: bytes.byteLength });
    this.raw.add(tx, { id: row.id, bytes });
  }

  /** Pending ingestions, oldest first. */
  pending(limit: number): PendingIngestion[] {
    return this.#sql.pending.all(limit);
  }

  /** Pending ingestions of all but some domains, oldest first; -1 stands for files, which came to no domain. */
  pendingElsewhere(domains: readonly number[], limit: number): PendingIngestion[] {
    return this.#sql.pendingElsewhere.all(JSON.stringify(domains), limit);
  }

  /** Quarantined mails whose authentication had a temporary error and is due again. */
  undecided(now: number, limit: number): string[] {
    return this.#sql.undecided.all({ now, limit }).map(({ id }) => id);
  }

  /** Null for one that is not pending (any more). */
  findPending(id: string): PendingIngestion | null {
    return this.#sql.findPending.get(id);
  }

  isPending(id: string): boolean {
    return this.#sql.isPending.get(id) !== null;
  }

  /** What was found in one that was read; undefined while it is pending, and when it was deleted. */
  findingsOf(id: string): StoredFinding[] | undefined {
    const found = this.#sql.findings.get(id);
    return found === null ? undefined : parseFindings(found);
  }

  /** Notes that the owner accepted a mail, unless that is noted already. */
  accept(_tx: Tx, id: string, atMs: number): void {
    this.#sql.accept.run(atMs, id);
  }

  /** Changes what was found in one that was read. */
  conclude(_tx: Tx, id: string, { outcome, reason, findings }: Omit<IngestionResult, "finishedAtMs">): void {
    this.#sql.conclude.run(outcome, reason, JSON.stringify(findings), id);
  }

  /** Counts an attempt to read it. */
  countAttempt(_tx: Tx, id: string): void {
    this.#sql.countAttempt.run(id);
  }

  finish(_tx: Tx, id: string, result: IngestionResult): void {
    this.#sql.finish.run(...resultColumns(result), id);
  }

  /** Makes an ingestion pending again; false when it is pending already, or its bytes were purged. */
  setPending(_tx: Tx, id: string): boolean {
    return this.#sql.setPending.run(id).changes > 0;
  }

  /** An owner's ingestions after the id `after`, oldest first, and whether they can be retried. */
  scan({ accountId, mode }: IngestionOwner, after: string, limit: number): { id: string; isRetriable: number }[] {
    return this.#sql.scan.all(accountId, mode, after, limit);
  }

  find({ accountId, mode }: IngestionOwner, id: string): IngestionRow | undefined {
    const { id: column, accountId: account, mode: kind } = dmarcIngestions;
    const condition = and(eq(column, id), eq(account, accountId), eq(kind, mode));
    return this.#orm.select().from(dmarcIngestions).where(condition).get();
  }

  /** The id `places` after the newest that is older than `before`; null when there are fewer. */
  idBehind({ accountId, mode }: IngestionOwner, before: string | null, places: number): string | null {
    return this.#sql.idAfter.get(accountId, mode, before ?? AFTER_ALL_IDS, places)?.id ?? null;
  }

  /** Newest first, older than the id `before`, and not older than `from`. */
  list(
    { accountId, mode }: IngestionOwner,
    filters: IngestionFilters,
    page: {
      before: string | null;
      from?: string;
      limit: number;
    },
  ): IngestionRow[] {
    const table = dmarcIngestions;
    const { status, outcome, reason, via, domain, receivedFromMs, receivedBeforeMs } = filters;
    const when = <T>(value: T | null | undefined, condition: (value: T) => SQL | undefined) =>
      value === undefined || value === null ? undefined : condition(value);
    const conditions = [
      eq(table.accountId, accountId),
      eq(table.mode, mode),
      when(page.before, (id) => lt(table.id, id)),
      when(page.from, (id) => gte(table.id, id)),
      when(status, (value) => eq(table.status, value)),
      when(outcome, (value) => eq(table.outcome, value)),
      when(reason, (value) => eq(table.reason, value)),
      when(via, (value) => eq(table.via, value)),
      when(domain, ({ number, id }) => or(eq(table.domain, number), namesDomain(id))),
      when(receivedFromMs, (ms) => gte(table.receivedAtMs, ms)),
      when(receivedBeforeMs, (ms) => lt(table.receivedAtMs, ms)),
    ];
    const query = this.#orm.select().from(table);
    return query
      .where(and(...conditions))
      .orderBy(desc(table.id))
      .limit(page.limit)
      .all();
  }
}

/** Whether a finding counts for a domain. */
const namesDomain = (domainId: string) => sql`instr(findings, ${`"domain_id":"${domainId}"`}) > 0`;

const resultColumns = ({ outcome, reason, findings, finishedAtMs }: IngestionResult) =>
  [outcome, reason, JSON.stringify(findings), finishedAtMs] as const;

/**
 * A mail or file that was received, and its owner. `domain` is the `number` of the domain whose reporting address received it,
 * and `deliveredAtMs` the time at which a mailbox received a mail that was fetched from it.
 */
export interface IncomingReport
  extends
    Pick<IngestionRow, "accountId" | "mode" | "domain" | "via" | "name" | "client" | "helo" | "mailFrom">,
    Partial<Pick<IngestionRow, "deliveredAtMs">> {
  /** As they came; not to be changed afterwards. */
  readonly bytes: Uint8Array;
}

/** Stores mail that is to be read later. */
export class ReportQueue {
  constructor(
    private readonly runtime: DbClock,
    private readonly deps: {
      store: IngestionStore;
      domains: Pick<DomainStore, "addUsage">;
      /** Called when an ingestion is pending. */
      wake: () => void;
    },
  ) {}

  /**
   * Stores a received mail or file as a pending ingestion and returns its id; durable when this resolves. `also` is written in the
   * same transaction. Rejects, with nothing stored, when the database cannot be written (disk full, locked for seconds).
   */
  async add(incoming: IncomingReport, also: (tx: Tx, id: string) => void = () => undefined): Promise<string> {
    const { db, clock } = this.runtime;
    const { store, domains, wake } = this.deps;
    const id = newId();
    const receivedAtMs = clock.nowMs();
    const insert = () =>
      db.commit((tx) => {
        store.insertPending(tx, { ...incoming, id, receivedAtMs });
        const usage = { day: dayOfTime(receivedAtMs), bytes: incoming.bytes.byteLength };
        if (incoming.domain !== null) domains.addUsage(tx, incoming.domain, usage);
        also(tx, id);
      });
    await store.raw.adding([{ id, bytes: incoming.bytes }], insert);
    wake();
    return id;
  }
}

const MIB = 1024 * 1024;
/** What report mail leaves free: a twentieth of the disk within these limits; on small disks less than a third. */
const RESERVE_SHARE = 0.05;
const RESERVE_BYTES_MIN = 256 * MIB;
const RESERVE_BYTES_MAX = 1024 * MIB;
const SMALL_DISK_SHARE = 0.3;
/** Ingestion resumes when so much more than the reserve is free, so that it does not change with every mail. */
const RESUME_FACTOR = 1.1;
const CHECK_EVERY_MS = 1_000;
/** A mail is written to the WAL of the database, and from there into it. */
const WRITES_PER_BYTE = 2;

/** The bytes that are kept free on a disk of that size. */
export const reserveOf = (totalBytes: number): number =>
  Math.min(
    Math.max(totalBytes * RESERVE_SHARE, RESERVE_BYTES_MIN),
    RESERVE_BYTES_MAX,
    Math.floor(totalBytes * SMALL_DISK_SHARE),
  );

const mib = (bytes: number) => `${Math.floor(bytes / MIB)} MiB`;

/**
 * Reserves a part of the disk for everything but report mail, because anyone can send report mail. Logs
 * when report ingestion is paused and resumed.
 */
export class DiskReserve {
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #isPaused: boolean = false;
  #freeBytes = Number.POSITIVE_INFINITY;
  #reserveBytes = 0;

  constructor(private readonly runtime: { db: Pick<Db, "diskSpace">; clock: Clock; log: Log }) {}

  /** Whether nothing may be accepted now; with `bytes`, whether they would be too many. */
  isLow(bytes = 0): boolean {
    this.#check();
    return this.#isPaused || this.#freeBytes - bytes * WRITES_PER_BYTE < this.#reserveBytes;
  }

  /** Why ingestion is paused, for the operator; null while it is not. */
  finding(): string | null {
    this.#check();
    return this.#isPaused ? `Report ingestion is paused: ${this.#explanation()}` : null;
  }

  #check() {
    const { db, clock, log } = this.runtime;
    if (clock.monotonicMs() - this.#checkedAtMs < CHECK_EVERY_MS) return;
    this.#checkedAtMs = clock.monotonicMs();
    const space = db.diskSpace();
    if (space === null) return;
    this.#freeBytes = space.freeBytes;
    this.#reserveBytes = reserveOf(space.totalBytes);
    const wasPaused = this.#isPaused;
    this.#isPaused = this.#freeBytes < this.#reserveBytes * (wasPaused ? RESUME_FACTOR : 1);
    if (this.#isPaused && !wasPaused) log.error(`report ingestion paused: ${this.#explanation()}`);
    if (!this.#isPaused && wasPaused) log.info("report ingestion resumed: the disk has free space again");
  }

  #explanation() {
    return `the disk of the database has ${mib(this.#freeBytes)} free, and ${mib(this.#reserveBytes)} are reserved for other data.`;
  }
}
