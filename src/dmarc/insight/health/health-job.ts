import { DAY_MS } from "../../../foundation/base/days.ts";
import { AppError } from "../../../foundation/base/errors.ts";
import { mapConcurrently } from "../../../foundation/base/wait.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { spreadOf } from "../../records/domains/domain-status.ts";
import type { HealthRuns } from "./health-runs.ts";
import type { DueHealth, HealthStore } from "./health-store.ts";

type HealthRuntime = Pick<Runtime, "db" | "clock" | "log">;

export interface HealthJobOptions {
  readonly store: HealthStore;
  readonly runs: Pick<HealthRuns, "healthOf" | "isStopping">;
}

const LISTED_AT_ONCE = 1_000;
/** Fewer new domains than this are checked at once; more (after an update, or an import) are spread over a day. */
const BACKLOG_MIN = 20;

const RETRY_MS = 30 * 60_000;
/** Domains of one run. */
const DUE_MAX = 200;
const CONCURRENCY_MAX = 3;

/** The scheduled job for health: checks every live domain that is monitored once a day, spread over the day. */
export class HealthJob {
  readonly #runtime: HealthRuntime;
  readonly #options: HealthJobOptions;
  /** Domains up to this number have a check planned. */
  #plannedTo = 0;

  constructor(runtime: HealthRuntime, options: HealthJobOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  /** Checks the domains that are due, 200 at most. */
  async run(): Promise<void> {
    const { store, runs } = this.#options;
    if (runs.isStopping()) return;
    await this.#planNewDomains();
    await mapConcurrently(store.due(this.#runtime.clock.nowMs(), DUE_MAX), CONCURRENCY_MAX, async (domain) => {
      if (!runs.isStopping()) await this.#check(domain);
    });
  }

  async #planNewDomains(): Promise<void> {
    const { store } = this.#options;
    const { db, clock } = this.#runtime;
    for (;;) {
      const listed = store.domainsAfter(this.#plannedTo, LISTED_AT_ONCE);
      const added = listed.filter(({ isPlanned }) => !isPlanned);
      const spreadMs = added.length < BACKLOG_MIN ? 0 : DAY_MS;
      const nowMs = clock.nowMs();
      if (added.length > 0) {
        await db.commit((tx) => {
          for (const { number, id } of added) store.plan(tx, number, Math.round(nowMs + spreadMs * spreadOf(id)));
        });
      }
      this.#plannedTo = listed.at(-1)?.number ?? this.#plannedTo;
      if (listed.length < LISTED_AT_ONCE) return;
    }
  }

  async #check(domain: DueHealth): Promise<void> {
    if (!domain.isActive) return this.#postpone(domain, DAY_MS);
    try {
      await this.#options.runs.healthOf(domain, { refresh: true, selectors: [], priority: "bulk" });
    } catch (error) {
      // An AppError: callers use all concurrent checks.
      if (!(error instanceof AppError)) {
        this.#runtime.log.error("health check of a domain failed", { domain: domain.id, error });
      }
      await this.#postpone(domain, RETRY_MS);
    }
  }

  #postpone({ number }: DueHealth, afterMs: number): Promise<void> {
    const { db, clock } = this.#runtime;
    return db.commit((tx) => this.#options.store.postpone(tx, number, clock.nowMs() + afterMs));
  }
}
