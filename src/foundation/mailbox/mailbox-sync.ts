import { dayOfTime } from "../base/days.ts";
import type { DbClockLog } from "../db/runtime.ts";
import { IMAP_MESSAGE_BYTES_MAX } from "../net/imap-client.ts";
import type { ImapMessage, ImapSession } from "../net/imap-session.ts";
import { waitFor } from "../base/wait.ts";
import type { Tx } from "../db/open.ts";
import type { MailboxState, MailboxStore } from "./mailbox-store.ts";
import type { MessageMarker } from "./message-marker.ts";

/** A message of a mailbox, and the account that gets what is in it. */
export interface FetchedMessage extends ImapMessage {
  readonly accountId: string;
}

/** What becomes of the messages of a mailbox. */
export interface MailTaker {
  /**
   * Stores durably what is in a message, and in the same transaction calls `note` with what the message became. Rejects when it
   * cannot be stored now.
   */
  take(message: FetchedMessage, note: (tx: Tx, item: string) => void): Promise<unknown>;
  /** Resolves when what was taken is read. */
  idle(): Promise<void>;
}

/** The free space of the disk that belongs to other data. */
export interface SpaceReserve {
  /** Whether nothing may be stored now; with `bytes`, whether they would be too many. */
  isLow(bytes?: number): boolean;
}

/** What a sync uses beside the runtime. */
export interface MailboxSyncDeps {
  readonly store: MailboxStore;
  readonly mail: MailTaker;
  readonly reserve: SpaceReserve;
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

/** The account that gets what is in the messages, and whether the service ends. */
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
        "UIDVALIDITY of the folder changed; reading it from the beginning, what is known counts once",
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
    await waitFor(this.runtime.clock, this.deps.mail.idle(), { timeoutMs: UNREAD_WAIT_MS });
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
    const storing: Promise<unknown>[] = [];
    try {
      for await (const message of session.read(group)) {
        bytes += message.bytes.byteLength;
        const stored = this.#store(accountId, message);
        stored.catch(() => undefined);
        storing.push(stored);
      }
    } finally {
      await Promise.all(storing).catch((error: unknown) => {
        // The message is not to blame, and must not be skipped.
        this.#failures.delete(first);
        throw error;
      });
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

  #store(accountId: string, message: ImapMessage): Promise<unknown> {
    const { store, mail } = this.deps;
    const { uid, deliveredAtMs: atMs } = message;
    // In the future, expired signatures would be valid.
    const deliveredAtMs = atMs === null ? null : Math.min(atMs, this.runtime.clock.nowMs());
    return mail.take({ ...message, accountId, deliveredAtMs }, (tx, item) => store.addMark(tx, uid, item));
  }

  #logSkipped(uid: number, reason: string) {
    this.runtime.log.warn(`skipping a message of the mailbox: ${reason}`, { uid });
  }
}
