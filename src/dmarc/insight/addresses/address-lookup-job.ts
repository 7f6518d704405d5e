import type { Tx } from "../../../foundation/db/open.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { LookupQueue, LookupTimes } from "./address-store.ts";

/**
 * The outcome of the lookup of one address.
 *
 * - `found`: also when there is nothing. It is valid for `validMs`.
 * - `failed`: no definite answer. `partial` is what was found nevertheless.
 * - `aborted`: the run ended before the response.
 * - `private`: the address is not public, so it is not looked up.
 */
export type LookupOutcome<F> =
  | { readonly kind: "found"; readonly fact: F; readonly validMs: number }
  | { readonly kind: "failed"; readonly partial: F | null }
  | { readonly kind: "aborted" }
  | { readonly kind: "private" };

/** Looks up one kind of fact. */
export interface AddressLookup<F> {
  /** What is looked up, for the log: `reverse name`. */
  readonly what: string;
  /**
   * After this many consecutive failures the rest waits for the next run, because all queries go to one service. Null where each
   * address has its own name server.
   */
  readonly failuresInARowMax: number | null;
  lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<F>>;
}

/** Limits of one run: addresses, concurrent lookups, and the time after which no lookup begins. */
export const JOB_LIMITS = { addressesMax: 1_000, atOnceMax: 32, runMs: 45_000 } as const;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILURE_MS = HOUR_MS;
const FAILURE_MS_MAX = DAY_MS;
/** Addresses that are not in the public DNS. */
const NEVER_MS = 365 * DAY_MS;
/** Addresses whose failures are counted; at more, all counts are reset. */
const FAILURES_MAX = 10_000;
/** Outcomes written in one transaction. */
const BATCH = 128;

/** The state of a run. */
interface Run<F> {
  readonly left: Iterator<string>;
  readonly endsAtMs: number;
  found: (readonly [ip: string, lookup: LookupOutcome<F>])[];
  failuresInARow: number;
}

/**
 * Looks up one kind of fact for the addresses that are due, several at a time, outside ingestion. A failed lookup changes nothing
 * that is stored and is repeated later, less and less often.
 */
export class AddressLookupJob<F> {
  readonly #lookup: AddressLookup<F>;
  readonly #queue: LookupQueue<F>;
  readonly #runtime: Pick<Runtime, "db" | "clock" | "log">;
  readonly #stopping = new AbortController();
  /** Consecutive failures by address. Empty after a restart. */
  readonly #failures = new Map<string, number>();

  constructor(runtime: Pick<Runtime, "db" | "clock" | "log">, lookup: AddressLookup<F>, queue: LookupQueue<F>) {
    this.#lookup = lookup;
    this.#queue = queue;
    this.#runtime = runtime;
  }

  /** Looks up what is due. Never rejects because of the DNS. */
  async run(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock } = this.#runtime;
    const ips = this.#queue.due(clock.nowMs(), JOB_LIMITS.addressesMax);
    const run: Run<F> = {
      left: ips.values(),
      endsAtMs: clock.monotonicMs() + JOB_LIMITS.runMs,
      found: [],
      failuresInARow: 0,
    };
    await Promise.all(Array.from({ length: JOB_LIMITS.atOnceMax }, () => this.#work(run)));
    await this.#write(run);
  }

  /** Ends a run soon; no other begins. What was not looked up stays due. */
  stop(): void {
    this.#stopping.abort();
  }

  async #work(run: Run<F>): Promise<void> {
    while (this.#mayContinue(run)) {
      const { value: ip, done } = run.left.next();
      if (done === true) return;
      const lookup = await this.#lookUpIsolated(ip);
      run.failuresInARow = lookup.kind === "failed" ? run.failuresInARow + 1 : 0;
      run.found.push([ip, lookup]);
      if (run.found.length >= BATCH) await this.#write(run);
    }
  }

  #mayContinue({ endsAtMs, failuresInARow }: Run<F>): boolean {
    if (this.#stopping.signal.aborted || this.#runtime.clock.monotonicMs() >= endsAtMs) return false;
    const { failuresInARowMax } = this.#lookup;
    return failuresInARowMax === null || failuresInARow < failuresInARowMax;
  }

  /** A bug in the lookup of one address must not stop the others: it is logged, and the lookup is repeated later. */
  async #lookUpIsolated(ip: string): Promise<LookupOutcome<F>> {
    try {
      return await this.#lookup.lookUp(ip, this.#stopping.signal);
    } catch (error) {
      this.#runtime.log.error(`address lookup failed: ${this.#lookup.what}`, { ip, error });
      return { kind: "failed", partial: null };
    }
  }

  async #write(run: Run<F>): Promise<void> {
    const { found } = run;
    run.found = [];
    if (found.length === 0) return;
    const askedAtMs = this.#runtime.clock.nowMs();
    const due = found.map(([ip, lookup]) => ({ ip, lookup, afterMs: this.#afterMs(ip, lookup) }));
    await this.#runtime.db.commit((tx) => {
      for (const { ip, lookup, afterMs } of due) {
        if (afterMs !== null) this.#save(tx, ip, lookup, { askedAtMs, dueAtMs: askedAtMs + afterMs });
      }
    });
  }

  #save(tx: Tx, ip: string, lookup: LookupOutcome<F>, times: LookupTimes): void {
    if (lookup.kind === "found") this.#queue.save(tx, ip, lookup.fact, times);
    else if (lookup.kind === "failed" && lookup.partial !== null)
      this.#queue.savePartial(tx, ip, lookup.partial, times);
    else this.#queue.postpone(tx, ip, times.dueAtMs);
  }

  /** When the lookup is due again; null when it was aborted. */
  #afterMs(ip: string, lookup: LookupOutcome<F>): number | null {
    if (lookup.kind === "aborted") return null;
    if (lookup.kind === "failed") return this.#retryMs(ip);
    this.#failures.delete(ip);
    return lookup.kind === "private" ? NEVER_MS : lookup.validMs;
  }

  /** An hour, doubled at each further failure, up to a day. */
  #retryMs(ip: string): number {
    const before = this.#failures.get(ip) ?? 0;
    if (this.#failures.size >= FAILURES_MAX) this.#failures.clear();
    this.#failures.set(ip, before + 1);
    return Math.min(FAILURE_MS * 2 ** before, FAILURE_MS_MAX);
  }
}
