import { createLog } from "../foundation/base/log.ts";
import { REPORT_MAILBOX_TABLES, ReportMessages } from "../dmarc/reports/mailbox/report-mailbox.ts";
import { MailboxStore } from "../foundation/mailbox/mailbox-store.ts";
import { type MailboxSession, MailboxSync } from "../foundation/mailbox/mailbox-sync.ts";
import { MessageMarker } from "../foundation/mailbox/message-marker.ts";
import { ImapFailure } from "../foundation/net/imap-client.ts";
import type { ImapMark } from "../foundation/net/imap-session.ts";
import { INGEST_OWNER, type IngestHarness } from "./ingest-harness.ts";

/** An IMAP folder without a network. */
export class FakeFolder implements MailboxSession {
  uidValidity = "7";
  deliveredAtMs: number | null = null;
  readonly messages = new Map<number, Uint8Array>();
  /** The operations in their order: `read 1`, `seen 1`. */
  readonly log: string[] = [];
  /** UIDs that end the session when they are read. */
  readonly poison = new Set<number>();
  onMark: () => boolean = () => true;

  deliver(uid: number, bytes: Uint8Array | string): this {
    this.messages.set(uid, typeof bytes === "string" ? new TextEncoder().encode(bytes) : bytes);
    return this;
  }

  async uidsAfter(uid: number, limit: number): Promise<number[]> {
    return [...this.messages.keys()]
      .filter((one) => one > uid)
      .toSorted((a, b) => a - b)
      .slice(0, limit);
  }

  async sizes(uids: readonly number[]): Promise<Map<number, number>> {
    return new Map(uids.map((uid) => [uid, this.messages.get(uid)?.byteLength ?? 0]));
  }

  async *read(uids: readonly number[]) {
    for (const uid of uids) {
      if (this.poison.has(uid)) throw new ImapFailure("broken", "The connection broke.");
      const bytes = this.messages.get(uid);
      if (bytes === undefined) continue;
      this.log.push(`read ${uid}`);
      yield { uid, bytes, deliveredAtMs: this.deliveredAtMs };
    }
  }

  async mark(uids: readonly number[], mark: ImapMark): Promise<boolean> {
    const isDone = this.onMark();
    if (isDone) this.log.push(`${mark.kind} ${uids.join(",")}`);
    return isDone;
  }
}

/** A mailbox sync into the database of an ingest harness. */
export const createMailboxHarness = (
  harness: IngestHarness,
  after: ImapMark = { kind: "seen" },
  isLow = () => false,
) => {
  const { db, clock, queue, ingester } = harness;
  const store = new MailboxStore(db, REPORT_MAILBOX_TABLES);
  const messages = new ReportMessages(db, { queue, ingester });
  const refusals: (string | null)[] = [];
  const logged: string[] = [];
  const log = createLog("warn", clock, (line) => logged.push(line));
  const runtime = { db, clock, log };
  const marker = new MessageMarker(runtime, {
    store,
    messages,
    after,
    onRefusal: (refusal) => void refusals.push(refusal),
  });
  const sync = new MailboxSync(runtime, {
    ...{ store, mail: messages, marker, reserve: { isLow }, mailbox: "mailbox" },
  });
  return {
    store,
    refusals,
    logged,
    pass: (folder: MailboxSession, isStopping = () => false) => sync.run(folder, INGEST_OWNER.accountId, isStopping),
    state: () => store.find("mailbox"),
  };
};
