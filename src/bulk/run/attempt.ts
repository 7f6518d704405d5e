import { isoTime, type Clock } from "../../foundation/base/clock.ts";
import type { ByMode, KeyMode } from "../../foundation/base/secrets.ts";
import type { Runtime } from "../../foundation/db/runtime.ts";
import { PoolClosed } from "../../verify/smtp/pool.ts";
import type { AttemptOrder, Attempts, MadeAttempt } from "../../verify/attempts.ts";
import type { VerificationEngine } from "../../verify/engine.ts";
import type { ServiceEngine } from "../../verify/open.ts";
import { INTERNAL_ERROR } from "../../verify/result.ts";
import { waitMsOf } from "../../verify/verdict.ts";
import type { ListStore, OpenAddress } from "../results/list-store.ts";
import { type ResultColumns, toColumns } from "../results/result-columns.ts";
import { type HostTrouble, troubleOf } from "../results/host-troubles.ts";

interface Attempted {
  /** The provider of the address's mail hosts; null when unknown. */
  readonly group: string | null;
  readonly evidence: PackedEvidence;
  /** The mail host that refused or delayed the probe; null when none did. */
  readonly trouble: HostTrouble | null;
}

/** The outcome of one attempt. */
export type AttemptOutcome = Attempted &
  (
    | { readonly kind: "done"; readonly columns: ResultColumns; readonly chargeable: boolean }
    | { readonly kind: "later"; readonly dueAtMs: number }
  );

/** As stored; null when it can be derived from the address: with a test key, or when the cell holds no address. */
type PackedEvidence = Uint8Array | null;

interface AttemptOptions {
  readonly engines: ByMode<VerificationEngine>;
  readonly attempts: ByMode<Attempts>;
  readonly lists: ListStore;
  /** The clock of retries: wall time without its steps. */
  readonly dueNowMs: () => number;
  /** Whether other accounts use this process, so that each gets only its share of it. */
  readonly isShared: boolean;
}

export interface AttemptJob {
  readonly number: number;
  readonly accountId: string;
  readonly mode: KeyMode;
}

export type AttemptAddress = (address: OpenAddress, job: AttemptJob) => Promise<AttemptOutcome>;

const NOTHING_KNOWN: Attempted = { group: null, evidence: null, trouble: null };

/** Wait after an attempt during an outage, which does not count as an attempt. */
export const OUTAGE_AGAIN_MS = 5_000;

/** The outcome of an address whose attempts repeatedly failed because of a bug. */
export const internalErrorOutcome = (atMs: number): AttemptOutcome => {
  const result = { ...INTERNAL_ERROR, email: "", normalized_email: "", verified_at: isoTime(atMs) };
  return { kind: "done", columns: toColumns(result), chargeable: false, ...NOTHING_KNOWN };
};

/**
 * Makes one attempt at an address of a list, with lower priority than single verifications. Rejects with `PoolClosed` when
 * the service stops first; a bug becomes `internal_error`.
 */
export const createAttempt = (
  { log }: Pick<Runtime, "log">,
  { engines, attempts, lists, dueNowMs, isShared }: AttemptOptions,
): AttemptAddress => {
  const orderOf = ({ email }: OpenAddress, { accountId }: AttemptJob): AttemptOrder => ({
    submitted: email.trim(),
    isCell: true,
    before: null,
    accountId,
    onBehalfOf: { account: isShared ? accountId : null, priority: "bulk" },
    duringOutage: "repeat",
  });

  const make = async (address: OpenAddress, job: AttemptJob): Promise<MadeAttempt> => {
    const { position, dueAtMs } = address;
    let order = orderOf(address, job);
    try {
      const stored = dueAtMs === 0 ? undefined : lists.findEvidence(job.number, position);
      if (stored !== undefined) order = { ...order, before: stored };
      return await attempts[job.mode].make(order);
    } catch (error) {
      if (error instanceof PoolClosed) throw error;
      log.error("verification of a list address failed", { job: job.number, position, error });
      return attempts[job.mode].fail(order);
    }
  };

  const outcomeOf = (made: MadeAttempt, { isSimulated }: VerificationEngine): AttemptOutcome => {
    if (made.kind === "repeat") return later(dueNowMs() + OUTAGE_AGAIN_MS);
    const isAddress = made.kind === "retry" || made.result.sub_status !== "invalid_syntax";
    const evidence = isAddress ? made.evidence : null;
    const known = { group: isSimulated ? null : made.provider, evidence, trouble: troubleOf(made.finding) };
    if (made.kind === "retry") return { ...later(dueNowMs() + waitMsOf(made.retry)), ...known };
    return { kind: "done", columns: toColumns(made.result), chargeable: made.chargeable, ...known };
  };

  return async (address, job) => {
    const engine = engines[job.mode];
    const mayWait = engine.isSimulated && address.dueAtMs === 0;
    const delayMs = mayWait ? engine.firstDelayMs(engine.beginCell(address.email.trim())) : 0;
    if (delayMs > 0) return later(dueNowMs() + delayMs);
    const made = await make(address, job);
    try {
      return outcomeOf(made, engine);
    } catch (error) {
      log.error("verification of a list address could not be concluded", {
        job: job.number,
        position: address.position,
        error,
      });
      return outcomeOf(attempts[job.mode].fail(orderOf(address, job)), engine);
    }
  };
};

const later = (dueAtMs: number): AttemptOutcome => ({ kind: "later", dueAtMs, ...NOTHING_KNOWN });

/** How often the delay of the event loop is measured, and the weight of each measurement in the average. */
const SAMPLE_MS = 5;
const SAMPLE_SHARE = 0.2;
/**
 * Tolerated delay of the event loop, as a share of the duration of a single check: a check takes about eight turns of the
 * loop and may take twice as long as without lists. Timers cannot resolve less than the minimum.
 */
const DELAY_SHARE = 1 / 40;
const DELAY_MS_MIN = 0.22;
/**
 * Tolerated delay by our own work while no single check runs. Callbacks that are ready in a turn of the loop run before
 * anything else: with servers that respond at once, a larger window only makes every round longer.
 */
const DELAY_MS_ALONE = 4;
/** Below this share of the tolerated delay the window grows. */
const GROW_BELOW_SHARE = 0.7;
const SHRINK = 0.8;
const GROW = 1.05;
const WINDOW_MIN = 4;
/** The least window while no single check runs: enough to use the processor when others delay the loop. */
const WINDOW_MIN_ALONE = 32;
/** The window that lists begin with. */
const WINDOW_FIRST = 100;
/**
 * The need of single checks is respected for this time after the last one, and the delay is measured for this time after the
 * last look at the window.
 */
const MEASURED_MS = 5_000;
/** A shortage of sockets halves the window, at most once in the first time; the window recovers within the second. */
const SHORTAGE_MS = 250;
const RECOVERY_MS = 60_000;

/** What else competes for the machine. */
export interface Load {
  /** Single checks under way. */
  readonly runningChecks: () => number;
  /** Average duration of a single check lately, in milliseconds. */
  readonly checkMs: () => number;
  /** Processor time of this process so far, in milliseconds. */
  readonly processorMs: () => number;
  /** When opening a socket last failed, on the monotonic clock. */
  readonly lastShortageMs: () => number;
  /** How late the thread that makes the attempts was at last, if it is another one; null when it was not measured lately. */
  readonly loopDelay: ServiceEngine["loopDelay"];
}

/**
 * Adaptive concurrency limit of lists. The window shrinks until the event loop is responsive, the more so while single checks
 * run; it also shrinks when the machine runs out of sockets. Slow network alone does not shrink it.
 */
export class ConcurrencyLimiter {
  /** The window by the delay of the event loop. */
  #responsiveWindow: number;
  /** The window by the sockets of the machine. */
  #socketWindow: number;
  #socketWindowAtMs = 0;
  #shortageMs = Number.NEGATIVE_INFINITY;
  #delayMs = 0;
  #lastCheckMs = Number.NEGATIVE_INFINITY;
  #lastLookMs = Number.NEGATIVE_INFINITY;
  #cancelSample: (() => void) | null = null;

  constructor(
    private readonly clock: Clock,
    private readonly windowMax: number,
    private readonly load: Load,
  ) {
    this.#responsiveWindow = Math.min(windowMax, WINDOW_FIRST);
    this.#socketWindow = windowMax;
  }

  /** The number of addresses that may be under way, given how many are. Call it often. */
  window(underWay: number): number {
    this.#lastLookMs = this.clock.monotonicMs();
    if (this.load.runningChecks() > 0) this.#lastCheckMs = this.#lastLookMs;
    if (this.#cancelSample === null) this.#measureDelay();
    this.#adjustToSockets(underWay);
    return Math.max(1, Math.floor(Math.min(this.windowMax, this.#responsiveWindow, this.#socketWindow)));
  }

  /** Whether the window may grow by itself. */
  get isReduced(): boolean {
    return Math.min(this.#responsiveWindow, this.#socketWindow) < this.windowMax;
  }

  stop(): void {
    this.#cancelSample?.();
    this.#cancelSample = null;
  }

  #measureDelay(): void {
    const dueMs = this.clock.monotonicMs() + SAMPLE_MS;
    const beforeMs = this.load.processorMs();
    this.#cancelSample = this.clock.after(SAMPLE_MS, () => {
      const nowMs = this.clock.monotonicMs();
      const isAlone = nowMs - this.#lastCheckMs >= MEASURED_MS;
      // Other processes delay the loop, too: then fewer addresses under way would only be slower.
      const ownMs = isAlone ? this.load.processorMs() - beforeMs - SAMPLE_MS : Number.POSITIVE_INFINITY;
      const other = this.load.loopDelay();
      const otherMs = isAlone ? other?.ownMs : other?.lateMs;
      this.#adjustToDelay(Math.max(0, Math.min(nowMs - dueMs, ownMs), otherMs ?? 0), isAlone);
    });
  }

  #adjustToDelay(delayMs: number, isAlone: boolean): void {
    this.#delayMs += (delayMs - this.#delayMs) * SAMPLE_SHARE;
    const delayMsMax = isAlone ? DELAY_MS_ALONE : Math.max(DELAY_MS_MIN, this.load.checkMs() * DELAY_SHARE);
    const windowMin = isAlone ? WINDOW_MIN_ALONE : WINDOW_MIN;
    const window = this.#responsiveWindow;
    if (this.#delayMs > delayMsMax) this.#responsiveWindow = Math.max(windowMin, window * SHRINK);
    else if (this.#delayMs < delayMsMax * GROW_BELOW_SHARE)
      this.#responsiveWindow = Math.min(this.windowMax, window * GROW + 1);
    this.#cancelSample = null;
    if (this.clock.monotonicMs() - this.#lastLookMs < MEASURED_MS) this.#measureDelay();
  }

  #adjustToSockets(underWay: number): void {
    const nowMs = this.clock.monotonicMs();
    const isShort = this.load.lastShortageMs() > this.#shortageMs;
    if (isShort && nowMs - this.#shortageMs >= SHORTAGE_MS) {
      this.#shortageMs = nowMs;
      this.#socketWindow = Math.max(1, Math.floor(Math.min(this.#socketWindow, Math.max(underWay, 1)) / 2));
    } else if (!isShort) {
      const recovered = (this.windowMax * (nowMs - this.#socketWindowAtMs)) / RECOVERY_MS;
      this.#socketWindow = Math.min(this.windowMax, this.#socketWindow + recovered);
    }
    this.#socketWindowAtMs = nowMs;
  }
}
