import { mapConcurrently } from "../../../foundation/base/wait.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { Domains } from "./domains.ts";
import { spreadOf } from "./domain-status.ts";
import type { DomainRow, DomainStore } from "./domain-store.ts";

/** Rows read at a time. */
const DUE_AT_ONCE_MAX = 200;
/** Domains checked at a time; each has two queries in flight. */
const DOMAINS_AT_ONCE = 8;
/** This many checks that are this late mean that the service was down: they are spread, to spare the name servers. */
const LATE_MS = 10 * 60_000;
const BACKLOG_MIN = 100;
const SPREAD_MS = 60 * 60_000;
const RETRY_MS = 30 * 60_000;
const ROWS_AT_ONCE = 1_000;

/** Checks the DNS of domains when they are due. */
export class ScheduledChecks {
  readonly #runtime: Pick<Runtime, "db" | "clock" | "log">;
  readonly #store: DomainStore;
  readonly #domains: Pick<Domains, "checkScheduled" | "canCheck">;

  constructor(
    runtime: Pick<Runtime, "db" | "clock" | "log">,
    store: DomainStore,
    domains: Pick<Domains, "checkScheduled" | "canCheck">,
  ) {
    this.#runtime = runtime;
    this.#store = store;
    this.#domains = domains;
  }

  /** Checks every due domain until there is none. */
  async run(): Promise<void> {
    while (this.#domains.canCheck()) {
      const due = this.#store.due(this.#runtime.clock.nowMs(), DUE_AT_ONCE_MAX);
      if (due.length === 0) return;
      await mapConcurrently(due, DOMAINS_AT_ONCE, async (row) => {
        if (this.#domains.canCheck()) await this.#check(row);
      });
    }
  }

  /** At the start: when many checks are long overdue, spreads them over the next hour. */
  async spreadBacklog(): Promise<void> {
    const { clock, log } = this.#runtime;
    const late = this.#store.countDue(clock.nowMs() - LATE_MS);
    if (late < BACKLOG_MIN) return;
    log.info("many DNS checks of domains are overdue; spreading them over the next hour", { late });
    let spread = ROWS_AT_ONCE;
    while (spread === ROWS_AT_ONCE) spread = await this.#spreadSome();
  }

  async #check(row: DomainRow): Promise<void> {
    const { db, clock, log } = this.#runtime;
    try {
      await this.#domains.checkScheduled(row);
    } catch (error) {
      log.error("DNS check of a domain failed; retrying in 30 minutes", { domain: row.id, error });
      const nextCheckAtMs = clock.nowMs() + RETRY_MS;
      await db.commit((tx) => this.#store.update(tx, row.number, { nextCheckAtMs }));
    }
  }

  #spreadSome(): Promise<number> {
    return this.#runtime.db.commit((tx) => {
      const nowMs = this.#runtime.clock.nowMs();
      const late = this.#store.due(nowMs - LATE_MS, ROWS_AT_ONCE);
      for (const { id, number } of late) {
        this.#store.update(tx, number, { nextCheckAtMs: Math.round(nowMs + SPREAD_MS * spreadOf(id)) });
      }
      return late.length;
    });
  }
}
