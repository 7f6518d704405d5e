import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { ImapMark, ImapSession } from "../../net/imap-session.ts";
import type { MailboxStore, ProcessedMessage } from "./mailbox-store.ts";

export interface MarkProcessedDeps {
  readonly db: Db;
  readonly store: MailboxStore;
  readonly log: Log;
  /** What becomes of messages with reports. */
  readonly after: ImapMark;
  /** Hears whether the server takes the marks. */
  readonly noteRefusal: (refusal: string | null) => void;
}

const SETTLED_AT_ONCE = 200;
/** Reasons of mail that holds no report at all. */
const NO_REPORT = new Set(["no_report", "not_a_report"]);
const SEEN: ImapMark = { kind: "seen" };

/**
 * Marks messages that were read, in the mailbox: those with reports as the operator wants it. What could not be read stays as
 * it is, and mail without a report is removed from here too. Only what was understood and counted is ever deleted; what is
 * quarantined is flagged instead. A message is marked again when the service ends in between, which changes nothing.
 */
export const createMarkProcessed = ({ db, store, log, after, noteRefusal }: MarkProcessedDeps) => {
  const mark = async (session: Pick<ImapSession, "mark">, messages: readonly ProcessedMessage[]): Promise<void> => {
    const groups = Map.groupBy(messages, (message) => markOf(message, after));
    for (const [how, some] of groups) {
      if (how === null) continue;
      const uids = some.map(({ uid }) => uid);
      const isDone = await session.mark(uids, how);
      if (!isDone) log.warn("the IMAP server refused to mark messages; they stay as they are", { ...how, uids });
      noteRefusal(isDone ? null : `The IMAP server refuses to ${WORDS[how.kind]} messages that were stored.`);
    }
  };

  return async (session: Pick<ImapSession, "mark">): Promise<void> => {
    for (;;) {
      const messages = store.settled(SETTLED_AT_ONCE);
      if (messages.length === 0) return;
      await mark(session, messages);
      await db.commit((tx) => {
        for (const message of messages) {
          store.removeMark(tx, message);
          if (holdsNoReport(message)) store.removeIngestion(tx, message.ingestion);
        }
      });
    }
  };
};

const WORDS: Readonly<Record<ImapMark["kind"], string>> = {
  seen: "flag",
  move: "move",
  delete: "delete",
  keep: "keep",
};

const holdsNoReport = ({ outcome, reason }: ProcessedMessage): boolean =>
  outcome === "rejected" && reason !== null && NO_REPORT.has(reason);

/** Null for what is to stay as it is. */
const markOf = ({ outcome }: ProcessedMessage, after: ImapMark): ImapMark | null => {
  if (outcome === null || outcome === "rejected" || after.kind === "keep") return null;
  return outcome === "quarantined" && after.kind === "delete" ? SEEN : after;
};
