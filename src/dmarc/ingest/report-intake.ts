import { dayOfTime } from "../../base/days.ts";
import { type KeyMode, newId } from "../../base/secrets.ts";
import type { Tx } from "../../db/open.ts";
import type { Runtime } from "../../db/runtime.ts";
import type { DomainStore } from "../domains/domain-store.ts";
import type { IngestionStore } from "./ingestion-store.ts";

/** A mail or file that was received, and its owner. */
export interface IncomingReport {
  readonly accountId: string;
  readonly mode: KeyMode;
  /** `number` of the domain whose reporting address received it; null for files. */
  readonly domain: number | null;
  readonly via: "smtp" | "http" | "import" | "imap";
  /** The name of the file; null for mails. */
  readonly name: string | null;
  /** As they came; not to be changed afterwards. */
  readonly bytes: Uint8Array;
  /** The address of the SMTP client, its HELO name and the envelope sender; null for files. */
  readonly client: string | null;
  readonly helo: string | null;
  readonly mailFrom: string | null;
  /** When a mailbox received a mail that was fetched from it; absent or null otherwise. */
  readonly deliveredAtMs?: number | null;
}

/** What the intake uses beside the runtime. */
export interface ReportIntakeParts {
  readonly store: IngestionStore;
  readonly domains: Pick<DomainStore, "addUsage">;
  /** Called when an ingestion is pending. */
  readonly kick: () => void;
}

/** Stores mail that is to be read later. */
export class ReportIntake {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #parts: ReportIntakeParts;

  constructor(runtime: Pick<Runtime, "db" | "clock">, parts: ReportIntakeParts) {
    this.#runtime = runtime;
    this.#parts = parts;
  }

  /**
   * Stores what came in as a pending ingestion and returns its id; durable when this resolves. `also` is written in the
   * same transaction. Rejects, with nothing stored, when the database cannot be written (disk full, locked for seconds).
   */
  async take(incoming: IncomingReport, also: (tx: Tx, id: string) => void = () => undefined): Promise<string> {
    const { db, clock } = this.#runtime;
    const { store, domains, kick } = this.#parts;
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
  }
}
