import { DAY_MS, dayOfTime } from "../../../foundation/base/days.ts";
import { forEachIsolated } from "../../../foundation/base/for-each-isolated.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { Advisor } from "../../insight/advice/advisor.ts";
import type { DomainStore } from "../../records/domains/domain-store.ts";
import { DomainSources } from "../../insight/sources/domain-sources.ts";
import type { RollupStore } from "../../insight/sources/rollup-store.ts";
import { computeOverview } from "./compute-overview.ts";
import type { DomainOverviewStore } from "./domain-overview-store.ts";

type OverviewRuntime = Pick<Runtime, "db" | "clock" | "log">;

export interface OverviewJobOptions {
  readonly store: DomainOverviewStore;
  readonly rollups: RollupStore;
  readonly domains: Pick<DomainStore, "findByNumber">;
  readonly advise: Advisor;
}

const DOMAINS_AT_ONCE = 100;
/** A domain about which reports keep arriving is summed up no more often than this. */
const SETTLED_MS = 10 * 60_000;

/** The scheduled job that sums up domains for lists: new and changed ones, and once a day every one. */
export class OverviewJob {
  readonly #runtime: OverviewRuntime;
  readonly #options: OverviewJobOptions;
  readonly #stopping = new AbortController();

  constructor(runtime: OverviewRuntime, options: OverviewJobOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  /** Sums up every domain that is due, once. A failure of one does not stop the others. */
  async run(): Promise<void> {
    const { clock, log } = this.#runtime;
    const nowMs = clock.nowMs();
    const times = { dayMs: dayOfTime(nowMs) * DAY_MS, changedBeforeMs: nowMs - SETTLED_MS };
    for (let after = 0; !this.#stopping.signal.aborted;) {
      const numbers = this.#options.store.due(after, times, DOMAINS_AT_ONCE);
      const last = numbers.at(-1);
      if (last === undefined) return;
      await forEachIsolated(numbers, (number) => this.#refresh(number), {
        isStopping: () => this.#stopping.signal.aborted,
        onFailure: (number, error) =>
          log.error("a domain could not be summed up, will be retried in the next run", { number, error }),
      });
      after = last;
    }
  }

  /** Ends a run after the domain that is being summed up. */
  stop(): void {
    this.#stopping.abort();
  }

  async #refresh(number: number): Promise<void> {
    const { store, rollups, domains, advise } = this.#options;
    const { db, clock } = this.#runtime;
    const domain = domains.findByNumber(number);
    if (domain === undefined) return;
    // What changes while this is computed makes the domain due again.
    const nowMs = clock.nowMs();
    const { next } = await advise(domain);
    const sources = new DomainSources(rollups, domain);
    await sources.identifyAll();
    const overview = db.snapshot(() => computeOverview(rollups, domain, { sources, next, nowMs }));
    await db.commit((tx) => store.save(tx, number, overview));
  }
}
