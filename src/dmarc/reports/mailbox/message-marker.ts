import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { ImapMark, ImapSession } from "../../../foundation/net/imap-session.ts";
import type { MailboxStore, ProcessedMessage } from "./mailbox-store.ts";

/** What the marker uses beside the runtime. */
export interface MessageMarkerParts {
  readonly store: MailboxStore;
  /** What happens to messages with reports. */
  readonly after: ImapMark;
  /** Called with why the server refuses to mark messages; null when it does not. */
  readonly onRefusal: (refusal: string | null) => void;
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
  readonly #runtime: Pick<Runtime, "db" | "log">;
  readonly #parts: MessageMarkerParts;

  constructor(runtime: Pick<Runtime, "db" | "log">, parts: MessageMarkerParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  async mark(session: Pick<ImapSession, "mark">): Promise<void> {
    const { store } = this.#parts;
    for (;;) {
      const messages = store.processed(MARKED_AT_ONCE);
      if (messages.length === 0) return;
      await this.#markAll(session, messages);
      await this.#runtime.db.commit((tx) => {
        for (const message of messages) {
          store.removeMark(tx, message);
          if (hasNoReport(message)) store.removeIngestion(tx, message.ingestion);
        }
      });
    }
  }

  async #markAll(session: Pick<ImapSession, "mark">, messages: readonly ProcessedMessage[]): Promise<void> {
    for (const [mark, some] of Map.groupBy(messages, (message) => markOf(message, this.#parts.after))) {
      if (mark === null) continue;
      const uids = some.map(({ uid }) => uid);
      const isDone = await session.mark(uids, mark);
      if (!isDone)
        this.#runtime.log.warn("the IMAP server refused to mark messages; they are unchanged", { ...mark, uids });
      this.#parts.onRefusal(
        isDone ? null : `The IMAP server refuses to ${VERBS[mark.kind]} messages that were stored.`,
      );
    }
  }
}

const hasNoReport = ({ outcome, reason }: ProcessedMessage): boolean =>
  outcome === "rejected" && reason !== null && NO_REPORT.has(reason);

/** Null for a message that stays as it is. */
const markOf = ({ outcome }: ProcessedMessage, after: ImapMark): ImapMark | null => {
  if (outcome === null || outcome === "rejected" || after.kind === "keep") return null;
  return outcome === "quarantined" && after.kind === "delete" ? SEEN : after;
};
