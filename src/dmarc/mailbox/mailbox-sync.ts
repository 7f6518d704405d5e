import type { Clock } from "../../base/clock.ts";
import { dayOfTime } from "../../base/days.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import { IMAP_MESSAGE_BYTES_MAX } from "../../net/imap-client.ts";
import type { ImapMessage, ImapSession } from "../../net/imap-session.ts";
import type { DiskReserve } from "../ingest/disk-reserve.ts";
import type { IngestionWorker } from "../ingest/ingestion-worker.ts";
import type { ReportIntake } from "../ingest/report-intake.ts";
import type { createMarkProcessed } from "./mark-processed.ts";
import type { MailboxState, MailboxStore } from "./mailbox-store.ts";
import { waitFor } from "../../base/wait.ts";

export interface MailboxSyncDeps {
  readonly db: Db;
  readonly store: MailboxStore;
  readonly intake: Pick<ReportIntake, "take">;
  readonly ingester: Pick<IngestionWorker, "idle">;
  readonly reserve: Pick<DiskReserve, "isLow">;
  readonly settle: ReturnType<typeof createMarkProcessed>;
  readonly clock: Clock;
  readonly log: Log;
  /** What the state is kept under. */
  readonly mailbox: string;
}

/** What a pass needs of a session. */
export type MailboxSession = Pick<ImapSession, "uidValidity" | "uidsAfter" | "sizes" | "read" | "mark">;

/** Whether all is fetched and marked, some is still to be marked, or nothing may be fetched for now. */
export type SyncResult = "done" | "open" | "paused";

/** What may be fetched on one day (UTC): a mailbox gets mail from anybody. */
export const MAILBOX_DAY_BYTES_MAX = 1024 * 1024 * 1024;
const UIDS_AT_ONCE = 100;
/** Messages in memory at a time. */
const GROUP_BYTES_MAX = 8 * 1024 * 1024;
/** Messages that wait to be read and marked, before no more are fetched. */
export const UNMARKED_MAX = 200;
const UNREAD_WAIT_MS = 5_000;
/** How often fetching a group or a message may end the session, before messages come one at a time or are passed over. */
const GROUP_TRIES_MAX = 2;
const MESSAGE_TRIES_MAX = 5;

const TROUBLES_MAX = 1_000;

/** Fetches what is new in a mailbox, once. */
export const createMailboxSync = (deps: MailboxSyncDeps) => {
  const { db, store, intake, ingester, reserve, settle, clock, log, mailbox } = deps;
  /** How often fetching failed, by the first message of a group, and the messages that come alone because of that. */
  const failures = new Map<number, number>();
  const alone = new Set<number>();

  const stateOf = async (session: MailboxSession): Promise<MailboxState> => {
    const known = store.find(mailbox);
    const { uidValidity } = session;
    if (known?.uidValidity === uidValidity) return known;
    if (known !== null)
      log.warn("the folder has new UIDs; it is read from the beginning, and what is known is a duplicate");
    await db.commit((tx) => store.begin(tx, mailbox, uidValidity));
    return { usageDay: 0, usageBytes: 0, ...known, uidValidity, lastUid: 0 };
  };

  const isPaused = ({ usageDay, usageBytes }: MailboxState): boolean =>
    reserve.isLow() || (usageDay === dayOfTime(clock.nowMs()) && usageBytes >= MAILBOX_DAY_BYTES_MAX);

  const untilRead = async (): Promise<void> => {
    await waitFor(clock, ingester.idle(), { timeoutMs: UNREAD_WAIT_MS });
  };

  const passOver = (uid: number, why: string): void =>
    log.warn(`a message of the mailbox is passed over: ${why}`, { uid });

  const takeIn = (accountId: string, { uid, bytes, deliveredAtMs: at }: ImapMessage): Promise<string> =>
    intake.take(
      {
        ...{ accountId, mode: "live", domain: null, via: "imap", name: null, bytes },
        ...{ client: null, helo: null, mailFrom: null },
        // A time to come would keep signatures from being judged by their end.
        deliveredAtMs: at === null ? null : Math.min(at, clock.nowMs()),
      },
      (tx, id) => store.addMark(tx, uid, id),
    );

  /** Counts a try before it is made; what ends it is not known to come back here. */
  const noteTrouble = (group: readonly number[], tries: number): void => {
    const [first = 0] = group;
    if (failures.size >= TROUBLES_MAX) failures.clear();
    if (alone.size >= TROUBLES_MAX) alone.clear();
    failures.set(first, tries);
    if (tries >= GROUP_TRIES_MAX) for (const uid of group) alone.add(uid);
  };

  /** Stores a group of messages; durable when this resolves, those that are gone left out. */
  const fetchGroup = async (session: MailboxSession, accountId: string, group: readonly number[]): Promise<number> => {
    const [first = 0] = group;
    const tries = failures.get(first) ?? 0;
    if (group.length === 1 && tries >= MESSAGE_TRIES_MAX) {
      passOver(first, `fetching it failed ${tries} times`);
      return 0;
    }
    noteTrouble(group, tries + 1);
    let bytes = 0;
    const taking: Promise<string>[] = [];
    try {
      for await (const message of session.read(group)) {
        bytes += message.bytes.byteLength;
        const taken = takeIn(accountId, message);
        taken.catch(() => undefined);
        taking.push(taken);
      }
    } finally {
      await Promise.all(taking);
    }
    failures.delete(first);
    return bytes;
  };

  /** Puts messages together that fit into memory at a time; those that are too large are left out, and said so. */
  const groupsOf = (uids: readonly number[], sizes: ReadonlyMap<number, number>): number[][] => {
    const groups: number[][] = [];
    let space = 0;
    for (const uid of uids) {
      const size = sizes.get(uid);
      if (size === undefined || store.isMarked(uid)) continue;
      if (size > IMAP_MESSAGE_BYTES_MAX) {
        passOver(uid, `it has ${size} bytes, more than ${IMAP_MESSAGE_BYTES_MAX}`);
        continue;
      }
      const isAlone = alone.has(uid);
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
  };

  /** Fetches the next messages; false when there are none, or no more are to be fetched now. */
  const fetchNext = async (session: MailboxSession, accountId: string, isStopping: () => boolean): Promise<boolean> => {
    const { lastUid } = await stateOf(session);
    const uids = await session.uidsAfter(lastUid, UIDS_AT_ONCE);
    const last = uids.at(-1);
    if (last === undefined) return false;
    const groups = groupsOf(uids, await session.sizes(uids));
    for (const [at, group] of groups.entries()) {
      if (isStopping() || reserve.isLow(GROUP_BYTES_MAX)) return false;
      const bytes = await fetchGroup(session, accountId, group);
      const next = groups[at + 1]?.[0];
      const through = next === undefined ? last : next - 1;
      await db.commit((tx) => {
        store.advance(tx, mailbox, through);
        store.addUsage(tx, mailbox, { day: dayOfTime(clock.nowMs()), bytes });
      });
    }
    if (groups.length === 0) await db.commit((tx) => store.advance(tx, mailbox, last));
    // What was read is garbage; left to itself the heap grows on while a full mailbox is fetched.
    Bun.gc(false);
    return true;
  };

  /**
   * Stores what is new, in the order of the UIDs, and then marks what was read: a message is never marked before it is durable
   * here, and never stored again unless the service ended while it was. Rejects with an `ImapFailure`, or when the database
   * cannot be written.
   */
  return async (session: MailboxSession, accountId: string, isStopping: () => boolean): Promise<SyncResult> => {
    for (;;) {
      const state = await stateOf(session);
      if (isStopping() || isPaused(state)) return "paused";
      await settle(session);
      if (store.countMarks() >= UNMARKED_MAX) {
        await untilRead();
        await settle(session);
        if (store.countMarks() >= UNMARKED_MAX) return "open";
      }
      if (await fetchNext(session, accountId, isStopping)) continue;
      await untilRead();
      if (isStopping() || isPaused(state)) return "paused";
      await settle(session);
      return store.countMarks() === 0 ? "done" : "open";
    }
  };
};

export type MailboxSync = ReturnType<typeof createMailboxSync>;
