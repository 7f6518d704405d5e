import type { Tx } from "../db/open.ts";
import type { Runtime } from "../db/runtime.ts";
import type { ImapMark, ImapSession } from "../net/imap-session.ts";
import type { MailboxStore } from "./mailbox-store.ts";

/**
 * `done`: the message is marked as the operator wants it. `doubtful`: so, but never deleted. `left`: it stays as it is, for a
 * person to see.
 */
export type MessageFate = "done" | "doubtful" | "left";

/** A message that was read. */
export interface ProcessedMessage {
  readonly uid: number;
  /** As `addMark` got it. */
  readonly item: string;
  readonly fate: MessageFate;
}

/** What is known of the messages of a mailbox. */
export interface ProcessedMessages {
  /** Messages that were read and are still to be marked, in the order of their UIDs, up to the last UID that is stored. */
  processed(limit: number): readonly ProcessedMessage[];
  /** A message is marked. */
  conclude(tx: Tx, message: ProcessedMessage): void;
  /** Some messages were concluded: for what would take too long in their transaction. */
  readonly afterwards?: (messages: readonly ProcessedMessage[]) => Promise<void>;
}

const MARKED_AT_ONCE = 200;
const SEEN: ImapMark = { kind: "seen" };

const VERBS: Readonly<Record<ImapMark["kind"], string>> = {
  seen: "flag",
  move: "move",
  delete: "delete",
  keep: "keep",
};

/**
 * Marks messages that were read, in the mailbox. Only what counts is ever deleted from the mailbox: what is doubtful is
 * flagged instead. A message is marked again when the service ends meanwhile, which changes nothing.
 */
export class MessageMarker {
  constructor(
    private readonly runtime: Pick<Runtime, "db" | "log">,
    private readonly deps: {
      store: Pick<MailboxStore, "removeMark">;
      messages: ProcessedMessages;
      /** What happens to messages that count. */
      after: ImapMark;
      /** Called with why the server refuses to mark messages; null when it does not. */
      onRefusal: (refusal: string | null) => void;
    },
  ) {}

  async mark(session: Pick<ImapSession, "mark">): Promise<void> {
    const { store, messages } = this.deps;
    for (;;) {
      const some = messages.processed(MARKED_AT_ONCE);
      if (some.length === 0) return;
      await this.#markAll(session, some);
      await this.runtime.db.commit((tx) => {
        for (const message of some) {
          store.removeMark(tx, message.uid, message.item);
          messages.conclude(tx, message);
        }
      });
      await messages.afterwards?.(some);
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

/** Null for a message that stays as it is. */
const markOf = ({ fate }: ProcessedMessage, after: ImapMark): ImapMark | null => {
  if (fate === "left" || after.kind === "keep") return null;
  return fate === "doubtful" && after.kind === "delete" ? SEEN : after;
};
