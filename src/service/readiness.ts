import type { Runtime } from "../foundation/db/runtime.ts";

/** Why this instance cannot verify addresses (empty: it can), and problems that need attention while it works. */
export interface ReadinessReport {
  readonly reasons: readonly string[];
  readonly findings: readonly string[];
}

export interface ReadinessSources {
  /** Why this instance cannot verify addresses, apart from the database. */
  readonly blockers: () => readonly string[];
  readonly findings: () => readonly string[];
}

/** The check writes to the database, and anybody may request it: its result is cached this long. */
const WRITE_CHECK_CACHE_MS = 1_000;

/** Whether the service can do its work, for `/readyz` and the metrics. */
export class Readiness {
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #sources: ReadinessSources;
  #checkedAtMs = Number.NEGATIVE_INFINITY;
  #isWritable: boolean = false;

  constructor(runtime: Pick<Runtime, "db" | "clock">, sources: ReadinessSources) {
    this.#runtime = runtime;
    this.#sources = sources;
  }

  check(): ReadinessReport {
    const { blockers, findings } = this.#sources;
    const unwritable = this.#canWrite() ? [] : ["The database is not writable."];
    return { reasons: [...unwritable, ...blockers()], findings: findings() };
  }

  #canWrite(): boolean {
    const { db, clock } = this.#runtime;
    const atMs = clock.monotonicMs();
    if (atMs - this.#checkedAtMs >= WRITE_CHECK_CACHE_MS) {
      this.#isWritable = db.isWritable();
      this.#checkedAtMs = atMs;
    }
    return this.#isWritable;
  }
}
