import type { Clock } from "../../base/clock.ts";
import { type KeyMode, newId } from "../../base/secrets.ts";
import type { Db, Tx } from "../../db/open.ts";
import { dayOfTime } from "../../base/days.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { IngestionStore } from "./ingestion-store.ts";

/** A mail or file that came in, with whom it belongs to. */
export interface IncomingReport {
  readonly accountId: string;
  readonly mode: KeyMode;
  /** `number` of the domain whose reporting address it came to; null for files. */
  readonly domain: number | null;
  readonly via: "smtp" | "http" | "import" | "imap";
  /** The name of the file; null for mails. */
  readonly name: string | null;
  /** As they came; not to be changed afterwards. */
  readonly bytes: Uint8Array;
  /** The address of who handed a mail in, what it called itself, and its sender; null for files. */
  readonly client: string | null;
  readonly helo: string | null;
  readonly mailFrom: string | null;
  /** When the mailbox got a mail that was fetched from one; as when it came in unless told. */
  readonly deliveredAtMs?: number | null;
}

export interface ReportIntakeDeps {
  readonly db: Db;
  readonly store: IngestionStore;
  readonly domains: Pick<DomainStore, "addUsage">;
  readonly clock: Clock;
  /** Called when something new waits to be read. */
  readonly kick: () => void;
}

/** Takes mail in to be read later. */
export const createReportIntake = ({ db, store, domains, clock, kick }: ReportIntakeDeps) => ({
  /**
   * Puts what came in on the list of what is to be read. It is durable when this resolves, with the id of the ingestion.
   * Rejects, with nothing kept, when the database takes no write (disk full, busy for seconds). `also` is written with it.
   */
  async take(incoming: IncomingReport, also: (tx: Tx, id: string) => void = () => undefined): Promise<string> {
    const id = newId();
    const receivedAtMs = clock.nowMs();
    await db.commit((tx) => {
      store.insertPending(tx, { ...incoming, id, receivedAtMs });
      const usage = { day: dayOfTime(receivedAtMs), bytes: incoming.bytes.byteLength };
      if (incoming.domain !== null) domains.addUsage(tx, incoming.domain, usage);
      also(tx, id);
    });
    kick();
    return id;
  },
});

export type ReportIntake = ReturnType<typeof createReportIntake>;
