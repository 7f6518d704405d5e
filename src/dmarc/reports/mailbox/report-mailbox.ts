import { RawStore } from "../ingest/raw-store.ts";
import type { Result } from "../../../foundation/base/errors.ts";
import type { Db, Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { rows, sqlStatements } from "../../../foundation/db/statements.ts";
import { type MailboxFetcher, openMailbox, type MailboxSettings } from "../../../foundation/mailbox/mailbox-fetcher.ts";
import type { MailboxTables } from "../../../foundation/mailbox/mailbox-store.ts";
import type { FetchedMessage, MailTaker, SpaceReserve } from "../../../foundation/mailbox/mailbox-sync.ts";
import type { MessageFate, ProcessedMessage, ProcessedMessages } from "../../../foundation/mailbox/message-marker.ts";
import type { ReportQueue } from "../ingest/ingestion-store.ts";
import type { IngestionWorker } from "../ingest/ingestion-worker.ts";
import type { ReportOutcome } from "../report/report.ts";

/** The mailbox from which report mail is fetched. */
export interface ReportMailboxSettings extends MailboxSettings {
  /** The address that reports are sent to; null when it is not known. */
  readonly address: string | null;
}

/** Where the progress of the mailbox is stored. The item of a mark is its ingestion. */
export const REPORT_MAILBOX_TABLES: MailboxTables = {
  state: "dmarc_mailboxes",
  marks: "dmarc_mailbox_marks",
  item: "ingestion",
};

export interface ReportMailboxDeps {
  readonly queue: Pick<ReportQueue, "add">;
  readonly ingester: Pick<IngestionWorker, "idle">;
  readonly reserve: SpaceReserve;
  readonly accountOf: (name: string | null) => Result<string, string>;
}

/** What fetches report mail from a mailbox; null when none is configured. */
export const openReportMailbox = (
  runtime: Runtime,
  settings: ReportMailboxSettings | null,
  { queue, ingester, ...deps }: ReportMailboxDeps,
): MailboxFetcher | null =>
  openMailbox(runtime, settings, {
    ...deps,
    words: { mail: "report mail", contents: "Reports" },
    tables: REPORT_MAILBOX_TABLES,
    mail: new ReportMessages(runtime.db, { queue, ingester }),
  });

/** A stored message and the outcome of its ingestion; both null when that is gone. */
interface IngestedMessage {
  readonly uid: number;
  readonly item: string;
  readonly outcome: ReportOutcome | null;
  readonly reason: string | null;
}

const STATEMENTS = {
  processed: rows<IngestedMessage, [number]>(
    `SELECT m.uid, m.ingestion AS item, i.outcome, i.reason FROM dmarc_mailbox_marks m
      LEFT JOIN dmarc_ingestions i ON i.id = m.ingestion
      WHERE m.uid <= (SELECT last_uid FROM dmarc_mailboxes) AND (i.id IS NULL OR i.status = 'done') ORDER BY m.uid LIMIT ?`,
  ),
  // Mail without any report.
  removeIngestion: `DELETE FROM dmarc_ingestions
    WHERE id = ? AND status = 'done' AND outcome = 'rejected' AND reason IN ('no_report', 'not_a_report')`,
};

/**
 * The messages of the mailbox, each an ingestion. Messages that could not be read stay as they are, and the ingestions of
 * messages without a report are removed.
 */
export class ReportMessages implements MailTaker, ProcessedMessages {
  readonly #raw: RawStore;
  readonly #sql;

  constructor(
    db: Db,
    private readonly deps: Pick<ReportMailboxDeps, "queue" | "ingester">,
  ) {
    this.#raw = new RawStore(db);
    this.#sql = sqlStatements(db, STATEMENTS);
  }

  take({ accountId, bytes, deliveredAtMs }: FetchedMessage, note: (tx: Tx, item: string) => void): Promise<string> {
    const fetched = { accountId, mode: "live", domain: null, via: "imap", name: null, bytes, deliveredAtMs } as const;
    return this.deps.queue.add({ ...fetched, client: null, helo: null, mailFrom: null }, note);
  }

  idle(): Promise<void> {
    return this.deps.ingester.idle();
  }

  processed(limit: number): readonly ProcessedMessage[] {
    return this.#sql.processed.all(limit).map((message) => ({ ...message, fate: fateOf(message) }));
  }

  conclude(tx: Tx, { item }: ProcessedMessage): void {
    if (this.#sql.removeIngestion.run(item).changes > 0) this.#raw.remove(tx, item);
  }

  afterwards(messages: readonly ProcessedMessage[]): Promise<void> {
    return this.#raw.removeStray({ from: messages.map(({ item }) => item).toSorted()[0] });
  }
}

const fateOf = ({ outcome }: IngestedMessage): MessageFate => {
  if (outcome === null || outcome === "rejected") return "left";
  return outcome === "quarantined" ? "doubtful" : "done";
};
