import { dayOfTime } from "../../../foundation/base/days.ts";
import type { DbClockLog, Runtime } from "../../../foundation/db/runtime.ts";
import { IMAP_MESSAGE_BYTES_MAX } from "../../../foundation/net/imap-client.ts";
import type { ImapMessage, ImapSession, ImapMark } from "../../../foundation/net/imap-session.ts";
import type { DiskReserve, ReportQueue } from "../ingest/ingestion-store.ts";
import type { IngestionWorker } from "../ingest/ingestion-worker.ts";
import { waitFor } from "../../../foundation/base/wait.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { ReportOutcome } from "../report/report.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";

/** What a sync uses beside the runtime. */
export interface MailboxSyncDeps {
  readonly store: MailboxStore;
  readonly queue: Pick<ReportQueue, "add">;
  readonly ingester: Pick<IngestionWorker, "idle">;
  readonly reserve: Pick<DiskReserve, "isLow">;
  readonly marker: MessageMarker;
  /** The key of its state. */
  readonly mailbox: string;
}

/** What a sync needs of an IMAP session. */
export type MailboxSession = Pick<ImapSession, "uidValidity" | "uidsAfter" | "sizes" | "read" | "mark">;

/** `done`: everything is fetched and marked. `open`: some messages are still to be fetched or marked. `paused`: nothing may be fetched now. */
export type SyncResult = "done" | "open" | "paused";

/** What may be fetched on one day (UTC): anybody can send mail to a mailbox. */
export const MAILBOX_DAY_BYTES_MAX = 1024 * 1024 * 1024;
const UIDS_AT_ONCE = 100;
/** Messages in memory at a time. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;
/** While this number of messages waits to be read and marked, no more are fetched. */
export const UNMARKED_MAX = 200;
const UNREAD_WAIT_MS = 5_000;
/** How often fetching a group may fail before its messages are fetched one at a time, and a message before it is skipped. */
const GROUP_TRIES_MAX = 2;
const MESSAGE_TRIES_MAX = 5;

/** Messages for which failures are kept in memory. */
const FAILURES_KEPT_MAX = 1_000;

/** The account that gets the reports, and whether the service ends. */
interface SyncRun {
  readonly session: MailboxSession;
  readonly accountId: string;
  readonly isStopping: () => boolean;
}

/** Fetches the new messages of a mailbox. */
export class MailboxSync {
  /** How often fetching failed, by the first message of a group. */
  readonly #failures = new Map<number, number>();
  /** Messages that are fetched one at a time, because fetching their group failed. */
  readonly #alone = new Set<number>();

  constructor(
    private readonly runtime: DbClockLog,
    private readonly deps: MailboxSyncDeps,
  ) {}

  /**
   * Stores new messages in the order of their UIDs, and marks those that were read: a message is never marked before it is
   * stored durably, and stored again only if the service ended meanwhile. Rejects with an `ImapFailure`, or when the database
   * cannot be written.
   */
  async run(session: MailboxSession, accountId: string, isStopping: () => boolean): Promise<SyncResult> {
    const { store, marker } = this.deps;
    for (;;) {
      const state = await this.#stateOf(session);
      if (isStopping() || this.#isPaused(state)) return "paused";
      await marker.mark(session);
      if (store.countMarks() >= UNMARKED_MAX) {
        await this.#untilRead();
        await marker.mark(session);
        if (store.countMarks() >= UNMARKED_MAX) return "open";
      }
      const fetched = await this.#fetchNext({ session, accountId, isStopping });
      if (fetched === "some") continue;
      await this.#untilRead();
      if (isStopping() || this.#isPaused(state)) return "paused";
      await marker.mark(session);
      return fetched === "none" && store.countMarks() === 0 ? "done" : "open";
    }
  }

  async #stateOf({ uidValidity }: MailboxSession): Promise<MailboxState> {
    const { store, mailbox } = this.deps;
    const known = store.find(mailbox);
    if (known?.uidValidity === uidValidity) return known;
    if (known !== null) {
      this.runtime.log.warn(
        "UIDVALIDITY of the folder changed; reading it from the beginning, known reports are duplicates",
      );
    }
    await this.runtime.db.commit((tx) => store.begin(tx, mailbox, uidValidity));
    return { usageDay: 0, usageBytes: 0, ...known, uidValidity, lastUid: 0 };
  }

  #isPaused({ usageDay, usageBytes }: MailboxState) {
    const today = dayOfTime(this.runtime.clock.nowMs());
    return this.deps.reserve.isLow() || (usageDay === today && usageBytes >= MAILBOX_DAY_BYTES_MAX);
  }

  async #untilRead() {
    await waitFor(this.runtime.clock, this.deps.ingester.idle(), { timeoutMs: UNREAD_WAIT_MS });
  }

  /**
   * Fetches the next messages. `none`: there are none, or no more may be fetched now. `absent`: all of them are gone, marked
   * or too large; a server can name such messages without end.
   */
  async #fetchNext(run: SyncRun) {
    const { db, clock } = this.runtime;
    const { store, mailbox, reserve } = this.deps;
    const { lastUid } = await this.#stateOf(run.session);
    const uids = await run.session.uidsAfter(lastUid, UIDS_AT_ONCE);
    const last = uids.at(-1);
    if (last === undefined) return "none";
    const groups = this.#groupsOf(uids, await run.session.sizes(uids));
    let total = 0;
    for (const [at, group] of groups.entries()) {
      if (run.isStopping() || reserve.isLow(GROUP_BYTES_MAX)) return "none";
      const bytes = await this.#fetchGroup(run, group);
      total += bytes;
      const next = groups[at + 1]?.[0];
      await db.commit((tx) => {
        store.advance(tx, mailbox, next === undefined ? last : next - 1);
        store.addUsage(tx, mailbox, { day: dayOfTime(clock.nowMs()), bytes });
      });
    }
    if (groups.length === 0) await db.commit((tx) => store.advance(tx, mailbox, last));
    // Otherwise the heap keeps growing while a full mailbox is fetched.
    Bun.gc(false);
    return total === 0 ? "absent" : "some";
  }

  /** Groups messages that fit into memory together. Those that are too large are skipped and logged. */
  #groupsOf(uids: readonly number[], sizes: ReadonlyMap<number, number>): number[][] {
    const groups: number[][] = [];
    let space = 0;
    for (const uid of uids) {
      const size = sizes.get(uid);
      if (size === undefined || this.deps.store.isMarked(uid)) continue;
      if (size > IMAP_MESSAGE_BYTES_MAX) {
        this.#logSkipped(uid, `its size is ${size} bytes, the limit is ${IMAP_MESSAGE_BYTES_MAX}`);
        continue;
      }
      const isAlone = this.#alone.has(uid);
      const last = groups.at(-1);
      if (last === undefined || size > space || isAlone) {
        groups.push([uid]);
        space = isAlone ? 0 : GROUP_BYTES_MAX - size;
      } else {
        last.push(uid);
        space -= size;
      }
    }
    return groups;
  }

  /** Stores a group of messages durably, without those that are gone; returns their size. */
  async #fetchGroup({ session, accountId }: SyncRun, group: readonly number[]): Promise<number> {
    const [first = 0] = group;
    const tries = this.#failures.get(first) ?? 0;
    if (group.length === 1 && tries >= MESSAGE_TRIES_MAX) {
      this.#logSkipped(first, `fetching it failed ${tries} times`);
      return 0;
    }
    this.#countTry(group, tries + 1);
    let bytes = 0;
    const storing: Promise<string>[] = [];
    try {
      for await (const message of session.read(group)) {
        bytes += message.bytes.byteLength;
        const stored = this.#store(accountId, message);
        stored.catch(() => undefined);
        storing.push(stored);
      }
    } finally {
      await Promise.all(storing);
    }
    this.#failures.delete(first);
    return bytes;
  }

  /** Counted before the attempt, which may end the session. */
  #countTry(group: readonly number[], tries: number) {
    const [first = 0] = group;
    if (this.#failures.size >= FAILURES_KEPT_MAX) this.#failures.clear();
    if (this.#alone.size >= FAILURES_KEPT_MAX) this.#alone.clear();
    this.#failures.set(first, tries);
    if (tries >= GROUP_TRIES_MAX) for (const uid of group) this.#alone.add(uid);
  }

  #store(accountId: string, { uid, bytes, deliveredAtMs: atMs }: ImapMessage): Promise<string> {
    // In the future, expired signatures would be valid.
    const deliveredAtMs = atMs === null ? null : Math.min(atMs, this.runtime.clock.nowMs());
    return this.deps.queue.add(
      {
        accountId,
        mode: "live",
        domain: null,
        via: "imap",
        name: null,
        bytes,
        deliveredAtMs,
        client: null,
        helo: null,
        mailFrom: null,
      },
      (tx, id) => this.deps.store.addMark(tx, uid, id),
    );
  }

  #logSkipped(uid: number, reason: string) {
    this.runtime.log.warn(`skipping a message of the mailbox: ${reason}`, { uid });
  }
}

const MARKED_AT_ONCE = 200;
/** Reasons of mail without any report. */
const NO_REPORT = new Set(["no_report", "not_a_report"]);
const SEEN: ImapMark = { kind: "seen" };

const VERBS: Readonly<Record<ImapMark["kind"], string>> = {
  seen: "flag",
  move: "move",
  delete: "delete",
  keep: "keep",
};

/**
 * Marks messages that were read, in the mailbox. Messages that could not be read stay as they are, and the ingestions of
 * messages without a report are removed here. Only what counts is ever deleted from the mailbox: what is quarantined is
 * flagged instead. A message is marked again when the service ends meanwhile, which changes nothing.
 */
export class MessageMarker {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "log">,
    private readonly deps: {
      store: MailboxStore;
      /** What happens to messages with reports. */
      after: ImapMark;
      /** Called with why the server refuses to mark messages; null when it does not. */
      onRefusal: (refusal: string | null) => void;
    },
  ) {}

  async mark(session: Pick<ImapSession, "mark">): Promise<void> {
    const { store } = this.deps;
    for (;;) {
      const messages = store.processed(MARKED_AT_ONCE);
      if (messages.length === 0) return;
      await this.#markAll(session, messages);
      await this.runtime.db.commit((tx) => {
        for (const message of messages) {
          store.removeMark(tx, message);
          if (hasNoReport(message)) store.removeIngestion(tx, message.ingestion);
        }
      });
    }
  }

  async #markAll(session: Pick<ImapSession, "mark">, messages: readonly ProcessedMessage[]) {
    for (const [mark, some] of Map.groupBy(messages, (message) => markOf(message, this.deps.after))) {
      if (mark === null) continue;
      const uids = some.map(({ uid }) => uid);
      const isDone = await session.mark(uids, mark);
      if (!isDone)
        this.runtime.log.warn("the IMAP server refused to mark messages; they are unchanged", { ...mark, uids });
      this.deps.onRefusal(isDone ? null : `The IMAP server refuses to ${VERBS[mark.kind]} messages that were stored.`);
    }
  }
}

const hasNoReport = ({ outcome, reason }: ProcessedMessage) =>
  outcome === "rejected" && reason !== null && NO_REPORT.has(reason);

/** Null for a message that stays as it is. */
const markOf = ({ outcome }: ProcessedMessage, after: ImapMark): ImapMark | null => {
  if (outcome === null || outcome === "rejected" || after.kind === "keep") return null;
  return outcome === "quarantined" && after.kind === "delete" ? SEEN : after;
};

/** The UID up to which a mailbox was read, and how much was fetched on `usageDay`. */
export interface MailboxState {
  readonly uidValidity: string;
  readonly lastUid: number;
  readonly usageDay: number;
  readonly usageBytes: number;
}

/** A stored message and the outcome of its ingestion; both null when that is gone. */
export interface ProcessedMessage {
  readonly uid: number;
  readonly ingestion: string;
  readonly outcome: ReportOutcome | null;
  readonly reason: string | null;
}

const STATEMENTS = {
  find: rows<MailboxState, [string]>(
    `SELECT uid_validity AS uidValidity, last_uid AS lastUid, usage_day AS usageDay, usage_bytes AS usageBytes
      FROM dmarc_mailboxes WHERE mailbox = ?`,
  ),
  clear: "DELETE FROM dmarc_mailboxes",
  clearMarks: "DELETE FROM dmarc_mailbox_marks",
  insert: `INSERT INTO dmarc_mailboxes (mailbox, uid_validity, last_uid, usage_day, usage_bytes) VALUES (?, ?, 0, ?, ?)`,
  advance: "UPDATE dmarc_mailboxes SET last_uid = ? WHERE mailbox = ?",
  addUsage: `UPDATE dmarc_mailboxes SET usage_bytes = CASE usage_day WHEN $day THEN usage_bytes ELSE 0 END + $bytes, usage_day = $day
      WHERE mailbox = $mailbox`,
  addMark: "INSERT OR REPLACE INTO dmarc_mailbox_marks (uid, ingestion) VALUES (?, ?)",
  countMarks: rows<{ count: number }, []>("SELECT count(*) AS count FROM dmarc_mailbox_marks"),
  isMarked: rows<unknown, [number]>("SELECT 1 FROM dmarc_mailbox_marks WHERE uid = ?"),
  processed: rows<ProcessedMessage, [number]>(
    `SELECT m.uid, m.ingestion, i.outcome, i.reason FROM dmarc_mailbox_marks m LEFT JOIN dmarc_ingestions i ON i.id = m.ingestion
      WHERE m.uid <= (SELECT last_uid FROM dmarc_mailboxes) AND (i.id IS NULL OR i.status = 'done') ORDER BY m.uid LIMIT ?`,
  ),
  removeMark: "DELETE FROM dmarc_mailbox_marks WHERE uid = ? AND ingestion = ?",
  removeIngestion: "DELETE FROM dmarc_ingestions WHERE id = ? AND status = 'done'",
  removeRaw: "DELETE FROM dmarc_raw WHERE ingestion = ?",
};

/** The UID up to which the mailbox was read, and its messages that are still to be marked on the server. */
export class MailboxStore {
  readonly #sql;

  constructor(db: Db) {
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  /** Null for a mailbox that was not read yet. */
  find(mailbox: string): MailboxState | null {
    return this.#sql.find.get(mailbox);
  }

  /** Begins to read a mailbox from its first message. The state of any other mailbox is removed. */
  begin(_tx: Tx, mailbox: string, uidValidity: string): void {
    const known = this.find(mailbox);
    this.#sql.clear.run();
    this.#sql.clearMarks.run();
    this.#sql.insert.run(mailbox, uidValidity, known?.usageDay ?? 0, known?.usageBytes ?? 0);
  }

  /** Notes that all messages up to a UID are stored or skipped. */
  advance(_tx: Tx, mailbox: string, lastUid: number): void {
    this.#sql.advance.run(lastUid, mailbox);
  }

  addUsage(_tx: Tx, mailbox: string, { day, bytes }: { day: number; bytes: number }): void {
    this.#sql.addUsage.run({ $day: day, $bytes: bytes, $mailbox: mailbox });
  }

  /** Notes that a message is stored and has to be marked once it was read. */
  addMark(_tx: Tx, uid: number, ingestion: string): void {
    this.#sql.addMark.run(uid, ingestion);
  }

  isMarked(uid: number): boolean {
    return this.#sql.isMarked.get(uid) !== null;
  }

  /** How many messages are still to be marked. */
  countMarks(): number {
    return this.#sql.countMarks.get()?.count ?? 0;
  }

  /** Messages that were read and are still to be marked, in the order of their UIDs, up to the last UID that is stored. */
  processed(limit: number): ProcessedMessage[] {
    return this.#sql.processed.all(limit);
  }

  removeMark(_tx: Tx, { uid, ingestion }: ProcessedMessage): void {
    this.#sql.removeMark.run(uid, ingestion);
  }

  /** Removes the ingestion of a message without a report. */
  removeIngestion(_tx: Tx, id: string): void {
    if (this.#sql.removeIngestion.run(id).changes > 0) this.#sql.removeRaw.run(id);
  }
}
