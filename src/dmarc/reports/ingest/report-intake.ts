import { dayOfTime } from "../../../foundation/base/days.ts";
import { newId } from "../../../foundation/base/secrets.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import type { IngestionStore, IncomingReport } from "./ingestion-store.ts";

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
