import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db, Tx } from "../../db/open.ts";
import type { LookupQueue, LookupTimes } from "./address-store.ts";

/**
 * What came of the look-up of one address.
 *
 * - `found`: also that there is nothing. `validMs`: for how long it counts.
 * - `failed`: the DNS did not say. `partial` is what was found out all the same.
 * - `aborted`: nobody waited for the answer.
 * - `private`: the address is not public, so there is nothing to ask.
 */
export type LookupOutcome<F> =
  | { readonly kind: "found"; readonly fact: F; readonly validMs: number }
  | { readonly kind: "failed"; readonly partial: F | null }
  | { readonly kind: "aborted" }
  | { readonly kind: "private" };

/** Finds out one kind of fact. */
export interface AddressLookup<F> {
  /** What is looked up, for the log: `the reverse name of an address`. */
  readonly what: string;
  /**
   * After so many failures one after the other the rest waits for the next run: one service is asked about all addresses, and
   * it does not answer. Null where every address is asked of somebody else.
   */
  readonly failuresInARowMax: number | null;
  lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<F>>;
}

export interface AddressLookupJobDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
}

/** Ceilings of one run: addresses, look-ups at once, and the time after which no look-up begins. */
export const JOB_LIMITS = { addressesMax: 1_000, atOnceMax: 32, runMs: 45_000 } as const;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILURE_MS = HOUR_MS;
const FAILURE_MS_MAX = DAY_MS;
/** Addresses that the DNS of the world says nothing about. */
const NEVER_MS = 365 * DAY_MS;
/** Addresses whose failures are counted; beyond, all counts begin anew. */
const FAILURES_MAX = 10_000;
/** Answers written at one go. */
const BATCH = 128;

/** How far a run has come. */
interface Run<F> {
  readonly left: Iterator<string>;
  readonly endsAtMs: number;
  found: (readonly [ip: string, lookup: LookupOutcome<F>])[];
  failuresInARow: number;
}

/**
 * Looks up one kind of fact for the addresses that are due, some at once, off the path of ingestion. What the DNS does not say
 * changes nothing of what is known, and is asked again later, less and less often.
 */
export class AddressLookupJob<F> {
  readonly #inquiry: AddressLookup<F>;
  readonly #queue: LookupQueue<F>;
  readonly #deps: AddressLookupJobDeps;
  readonly #stopping = new AbortController();
  /** How often the look-up of an address failed in a row. Empty after a restart. */
  readonly #failures = new Map<string, number>();

  constructor(inquiry: AddressLookup<F>, queue: LookupQueue<F>, deps: AddressLookupJobDeps) {
    this.#inquiry = inquiry;
    this.#queue = queue;
    this.#deps = deps;
  }

  /** Looks up what is due. Never rejects because of what a name server does. */
  async run(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock } = this.#deps;
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

  /** Ends a run under way soon; none begins any more. What was not answered is asked again after the next start. */
  stop(): void {
    this.#stopping.abort();
  }

  async #work(run: Run<F>): Promise<void> {
    while (this.#mayGoOn(run)) {
      const { value: ip, done } = run.left.next();
      if (done === true) return;
      const lookup = await this.#lookUpIsolated(ip);
      run.failuresInARow = lookup.kind === "failed" ? run.failuresInARow + 1 : 0;
      run.found.push([ip, lookup]);
      if (run.found.length >= BATCH) await this.#write(run);
    }
  }

  #mayGoOn({ endsAtMs, failuresInARow }: Run<F>): boolean {
    if (this.#stopping.signal.aborted || this.#deps.clock.monotonicMs() >= endsAtMs) return false;
    const { failuresInARowMax } = this.#inquiry;
    return failuresInARowMax === null || failuresInARow < failuresInARowMax;
  }

  /** A bug about one address must not keep the others waiting: it is logged, and the address is looked up again later. */
  async #lookUpIsolated(ip: string): Promise<LookupOutcome<F>> {
    try {
      return await this.#inquiry.lookUp(ip, this.#stopping.signal);
    } catch (cause) {
      this.#deps.log.error(`${this.#inquiry.what} could not be looked up`, { ip, cause });
      return { kind: "failed", partial: null };
    }
  }

  async #write(run: Run<F>): Promise<void> {
    const { found } = run;
    run.found = [];
    if (found.length === 0) return;
    const askedAtMs = this.#deps.clock.nowMs();
    const due = found.map(([ip, lookup]) => ({ ip, lookup, afterMs: this.#afterMs(ip, lookup) }));
    await this.#deps.db.commit((tx) => {
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

  /** When to look again; null when nothing was found out, not even that the DNS fails. */
  #afterMs(ip: string, lookup: LookupOutcome<F>): number | null {
    if (lookup.kind === "aborted") return null;
    if (lookup.kind === "failed") return this.#nextTryMs(ip);
    this.#failures.delete(ip);
    return lookup.kind === "private" ? NEVER_MS : lookup.validMs;
  }

  /** An hour, and twice as long at each further failure, up to a day. */
  #nextTryMs(ip: string): number {
    const before = this.#failures.get(ip) ?? 0;
    if (this.#failures.size >= FAILURES_MAX) this.#failures.clear();
    this.#failures.set(ip, before + 1);
    return Math.min(FAILURE_MS * 2 ** before, FAILURE_MS_MAX);
  }
}
