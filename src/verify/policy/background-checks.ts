import { POLICY_KEY_ID } from "../../accounts/open.ts";
import { BoundedMap } from "../../foundation/base/bounded-map.ts";
import { DAY_MS, dayOfTime } from "../../foundation/base/days.ts";
import { AppError, errorText } from "../../foundation/base/errors.ts";
import { FairQueue } from "../../foundation/base/fair-queue.ts";
import type { OnBehalfOf } from "../../foundation/base/on-behalf-of.ts";
import { drain } from "../../foundation/base/wait.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import type { Caller } from "../../foundation/http/guard.ts";
import type { Checks } from "../checks.ts";
import type { RecipientStore } from "./recipient-store.ts";

/** What became of a recipient that nothing certain is known about. */
export const BACKGROUND_OUTCOMES = ["queued", "known", "queue_full", "day_full", "verified", "failed"] as const;
type BackgroundOutcome = (typeof BACKGROUND_OUTCOMES)[number];

export interface BackgroundDeps {
  readonly checks: Pick<Checks, "request">;
  readonly store: Pick<RecipientStore, "countSince">;
  /** Verifications per day (UTC); 0: none. */
  readonly perDay: number;
  readonly count: (outcome: BackgroundOutcome) => void;
}

/** A recipient to verify. */
interface Wanted {
  readonly accountId: string;
  readonly email: string;
  readonly normalizedEmail: string;
}

const SOURCE = "policy";

const WAITING_MAX = 10_000;
/** One mail server leaves room for others. */
const WAITING_PER_SOURCE_MAX = 5_000;
/** Few, so that checks that somebody waits for come first. */
const RUNNING_MAX = 4;
/** How long a verification keeps its place; afterwards it goes on by itself, with the retries of all verifications. */
const PLACE_MS = 30_000;
const RECENT_MAX = 20_000;
/** No address is verified twice within this time, whatever its result. */
const RECENT_MS = 60 * 60_000;
/** Without credits, and after a failure; the next unknown recipient after it resumes. */
const PAUSE_MS = 5 * 60_000;
const DRAIN_MS_MAX = 1_000;

/**
 * Verifies recipients of outgoing mail for later, the mail servers in turn. The queue is in memory only: after a restart the next
 * mail to a recipient queues it again.
 */
export class BackgroundChecks {
  readonly #queue = new FairQueue<Wanted>();
  /** The addresses that wait or run, with their mail server. */
  readonly #waiting = new Map<string, string>();
  readonly #perSource = new Map<string, number>();
  readonly #recent = new BoundedMap<string, number>(RECENT_MAX);
  readonly #running = new Set<Promise<void>>();
  readonly #stop = new AbortController();
  #day = -1;
  #begunToday = 0;
  #pausedUntilMs = Number.NEGATIVE_INFINITY;

  constructor(
    private readonly runtime: Pick<Runtime, "clock" | "log">,
    private readonly deps: BackgroundDeps,
  ) {}

  get waiting(): number {
    return this.#waiting.size;
  }

  /** Queues a recipient, unless it waits, was verified within the hour, or there is no room. `source` is the mail server. */
  add(wanted: Wanted, source: string): void {
    if (this.deps.perDay === 0 || this.#stop.signal.aborted) return;
    this.deps.count(this.#add(wanted, source));
    this.#begin();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await drain(this.runtime.clock, DRAIN_MS_MAX, this.#running);
  }

  #add(wanted: Wanted, source: string): BackgroundOutcome {
    const key = keyOf(wanted);
    const recentMs = this.#recent.get(key);
    const isRecent = recentMs !== undefined && this.runtime.clock.monotonicMs() - recentMs < RECENT_MS;
    if (isRecent || this.#waiting.has(key)) return "known";
    if (this.#isDayFull(wanted.accountId)) return "day_full";
    const ofSource = this.#perSource.get(source) ?? 0;
    if (this.#waiting.size >= WAITING_MAX || ofSource >= WAITING_PER_SOURCE_MAX) return "queue_full";
    this.#waiting.set(key, source);
    this.#perSource.set(source, ofSource + 1);
    this.#queue.add(onBehalfOf(source), wanted);
    return "queued";
  }

  /** Whether the verifications of today, with those that wait, are as many as there may be. */
  #isDayFull(accountId: string): boolean {
    const nowMs = this.runtime.clock.nowMs();
    const day = dayOfTime(nowMs);
    if (day !== this.#day) {
      this.#day = day;
      this.#begunToday = this.deps.store.countSince(POLICY_KEY_ID, accountId, day * DAY_MS);
    }
    return this.#begunToday + this.#waiting.size - this.#running.size >= this.deps.perDay;
  }

  #begin(): void {
    if (this.runtime.clock.monotonicMs() < this.#pausedUntilMs) return;
    while (this.#running.size < RUNNING_MAX && !this.#stop.signal.aborted) {
      const next = this.#queue.take();
      if (next === undefined) return;
      this.#begunToday++;
      const done = this.#verify(next.item).then(() => {
        this.#running.delete(done);
        this.#release(keyOf(next.item));
        this.#begin();
      });
      this.#running.add(done);
    }
  }

  #release(key: string): void {
    const source = this.#waiting.get(key) ?? "";
    this.#waiting.delete(key);
    const left = (this.#perSource.get(source) ?? 0) - 1;
    if (left > 0) this.#perSource.set(source, left);
    else this.#perSource.delete(source);
  }

  /** Never rejects. */
  async #verify(wanted: Wanted): Promise<void> {
    const { checks, count } = this.deps;
    const { clock, log } = this.runtime;
    this.#recent.set(keyOf(wanted), clock.monotonicMs());
    const requested = { email: wanted.email, source: SOURCE, idempotencyKey: null };
    try {
      await checks.request(callerOf(wanted), requested, PLACE_MS, this.#stop.signal);
      count("verified");
    } catch (error) {
      count("failed");
      this.#begunToday--;
      this.#recent.delete(keyOf(wanted));
      const isPaused = clock.monotonicMs() < this.#pausedUntilMs;
      if (isPaused || this.#stop.signal.aborted) return;
      this.#pausedUntilMs = clock.monotonicMs() + PAUSE_MS;
      const reason = error instanceof AppError ? error.message : errorText(error);
      log.warn("recipients of outgoing mail are not verified", { reason, retry_after_s: PAUSE_MS / 1_000 });
    }
  }
}

const keyOf = ({ accountId, normalizedEmail }: Wanted): string => `${accountId} ${normalizedEmail}`;

const onBehalfOf = (source: string): OnBehalfOf => ({ account: source, priority: "bulk" });

const callerOf = ({ accountId }: Wanted): Caller => {
  const rate = { perSecond: 1, burst: 1 };
  return { keyId: POLICY_KEY_ID, accountId, mode: "live", scopes: [], rate };
};
