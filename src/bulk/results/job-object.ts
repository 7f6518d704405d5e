import { isoTime, type Clock } from "../../foundation/base/clock.ts";
import type { PausedReason } from "../../verify/smtp/outages.ts";
import { type SubStatus, VERDICT_OF } from "../../verify/result.ts";
import { detectedFormatSchema } from "../reading/csv.ts";
import type { JobRow, SubStatusCount } from "./job-store.ts";

const timeOrNull = (ms: number | null): string | null => (ms === null ? null : isoTime(ms));

const isSubStatus = (text: string): text is SubStatus => Object.hasOwn(VERDICT_OF, text);

/** Whether the job has not ended. */
export const isUnfinished = ({ status }: Pick<JobRow, "status">): boolean =>
  status === "queued" || status === "running";

/** Whether the job has ended or is gone. `postwarden erase` may finish its last address in another process. */
export const hasEnded = (job: Pick<JobRow, "status"> | undefined): boolean => job === undefined || !isUnfinished(job);

/** The job object of the API (contract §5). `verdicts` and `sub_statuses` count rows with an address. */
export const jobView = (
  job: JobRow,
  counts: readonly SubStatusCount[],
  forecast: JobForecast = NOTHING_LEFT,
  pausedReason: PausedReason | null = null,
) => {
  const verdicts = { deliverable: 0, risky: 0, undeliverable: 0 };
  for (const { subStatus, rows } of counts) if (isSubStatus(subStatus)) verdicts[VERDICT_OF[subStatus]] += rows;
  const held = job.mode === "live" && isUnfinished(job) ? job.addressesTotal - job.addressesFinished : 0;
  return {
    id: job.id,
    name: job.name,
    source: job.source,
    status: job.status,
    created_at: isoTime(job.createdAtMs),
    started_at: timeOrNull(job.startedAtMs),
    completed_at: timeOrNull(job.completedAtMs),
    format: job.reading === null ? null : detectedFormatSchema.parse(JSON.parse(job.reading)),
    rows: { total: job.rowsTotal, finished: job.rowsFinished, empty: job.rowsEmpty },
    addresses: { total: job.addressesTotal, finished: job.addressesFinished },
    verdicts,
    sub_statuses: Object.fromEntries(counts.map(({ subStatus, rows }) => [subStatus, rows])),
    credits: { held, charged: job.creditsCharged, released: job.creditsReleased },
    estimated_seconds_left: forecast.secondsLeft,
    poll_after_ms: forecast.pollAfterMs,
    paused_reason: pausedReason,
    webhook_configured: job.webhookUrl !== null,
    mail_configured: job.notifyEmail !== null,
  };
};

/** How long a running job will take; null once it has ended. */
export interface JobForecast {
  readonly secondsLeft: number | null;
  readonly pollAfterMs: number | null;
}

const WINDOW_S = 60;
/** The first seconds are not representative: addresses that need no mail server finish first. */
const KNOWN_AFTER_S = 5;
/** Assumed duration of an attempt until the throughput is known. */
export const ASSUMED_ATTEMPT_S = 1.5;
const POLL_AFTER_MS_MIN = 1_000;
const POLL_AFTER_MS_MAX = 30_000;
/** A client that follows `poll_after_ms` polls about this often until the end. */
const POLLS = 5;

export const NOTHING_LEFT: JobForecast = { secondsLeft: null, pollAfterMs: null };
/** A paused job may resume at any moment. */
export const PAUSED: JobForecast = { secondsLeft: null, pollAfterMs: 5_000 };

/** Counts the addresses that a job finished in each of the last sixty seconds. */
export class Throughput {
  readonly #startedS: number;
  readonly #counts = new Float64Array(WINDOW_S);
  readonly #seconds = new Float64Array(WINDOW_S).fill(-1);

  constructor(private readonly clock: Clock) {
    this.#startedS = this.#nowS();
  }

  add(finished: number): void {
    const second = this.#nowS();
    const slot = second % WINDOW_S;
    if (this.#seconds[slot] !== second) this.#counts[slot] = 0;
    this.#seconds[slot] = second;
    this.#counts[slot] = (this.#counts[slot] ?? 0) + finished;
  }

  /** Addresses per second over the last minute or since the start; null in the first five seconds and while none finish. */
  get perSecond(): number | null {
    const now = this.#nowS();
    if (now - this.#startedS < KNOWN_AFTER_S) return null;
    const recent = this.#counts.filter((_, slot) => (this.#seconds[slot] ?? -1) > now - WINDOW_S);
    const sum = recent.reduce((all, count) => all + count, 0);
    return sum === 0 ? null : sum / Math.min(WINDOW_S, now - this.#startedS + 1);
  }

  #nowS(): number {
    return Math.floor(this.clock.monotonicMs() / 1000);
  }
}

interface ForecastInput {
  /** Addresses that do not wait for a retry. */
  readonly fresh: number;
  /** Null until the throughput is known. */
  readonly perSecond: number | null;
  /** Used instead until then, for `pollAfterMs` only. */
  readonly assumedPerSecond: number;
  /** Time until the latest planned retry; null when none is planned. */
  readonly latestRetryMs: number | null;
}

/**
 * Estimates the remaining time: the fresh addresses at the throughput of the last minute, but not before the latest
 * planned retry. `secondsLeft` is null while there are fresh addresses and no throughput.
 */
export const forecast = ({ fresh, perSecond, assumedPerSecond, latestRetryMs }: ForecastInput): JobForecast => {
  const workS = fresh === 0 ? 0 : fresh / (perSecond ?? assumedPerSecond);
  const retriesS = latestRetryMs === null ? 0 : Math.max(0, latestRetryMs) / 1000 + ASSUMED_ATTEMPT_S;
  const secondsLeft = Math.max(1, Math.ceil(Math.max(workS, retriesS)));
  const pollAfterMs = Math.round((secondsLeft * 1000) / POLLS);
  return {
    secondsLeft: fresh === 0 || perSecond !== null ? secondsLeft : null,
    pollAfterMs: Math.min(POLL_AFTER_MS_MAX, Math.max(POLL_AFTER_MS_MIN, pollAfterMs)),
  };
};
