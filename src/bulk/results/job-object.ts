import { isoTime } from "../../foundation/base/clock.ts";
import type { PausedReason } from "../../verify/smtp/outages.ts";
import { type SubStatus, VERDICT_OF } from "../../verify/result.ts";
import { type JobForecast, NOTHING_LEFT } from "./forecast.ts";
import { detectedFormatSchema } from "../reading/detected-format.ts";
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
  };
};
