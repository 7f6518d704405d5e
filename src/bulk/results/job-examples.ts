import { z } from "zod";
import type { EventDoc } from "../../foundation/http/openapi.ts";
import { jobSchema } from "./schemas.ts";

/** A running job, as the OpenAPI document shows it. */
export const RUNNING = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  name: "Newsletter, spring",
  source: null,
  status: "running",
  created_at: "2026-01-01T00:00:00.000Z",
  started_at: "2026-01-01T00:00:00.100Z",
  completed_at: null,
  format: {
    type: "csv",
    encoding: "utf-8",
    encoding_assumed: false,
    delimiter: ",",
    header: true,
    title_rows: 0,
    column: { index: 1, name: "email", reason: "only_addresses", message: "It is the only column with addresses." },
  },
  rows: { total: 4, finished: 3, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 2, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 2, mailbox_not_found: 1 },
  credits: { held: 1, charged: 2, released: 0 },
  estimated_seconds_left: 61,
  poll_after_ms: 12_200,
  paused_reason: null,
  webhook_configured: false,
};

export const QUEUED = {
  ...RUNNING,
  status: "queued",
  started_at: null,
  rows: { total: 4, finished: 0, empty: 0 },
  addresses: { total: 3, finished: 0 },
  verdicts: { deliverable: 0, risky: 0, undeliverable: 0 },
  sub_statuses: {},
  credits: { held: 3, charged: 0, released: 0 },
  estimated_seconds_left: null,
  poll_after_ms: 1_000,
};

/** A job to retry: two rows of one address ended `dns_error`, free of charge. */
export const RETRIED = {
  ...QUEUED,
  rows: { total: 4, finished: 2, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 1, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 1, mailbox_not_found: 1 },
  credits: { held: 1, charged: 2, released: 1 },
};

const ENDED = { completed_at: "2026-01-01T00:01:00.000Z", estimated_seconds_left: null, poll_after_ms: null };

export const CANCELLED = { ...RUNNING, ...ENDED, status: "cancelled", credits: { held: 0, charged: 2, released: 1 } };

const COMPLETED = {
  ...{ ...RUNNING, ...ENDED, status: "completed" },
  rows: { total: 4, finished: 4, empty: 0 },
  addresses: { total: 3, finished: 3 },
  verdicts: { deliverable: 3, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 3, mailbox_not_found: 1 },
  credits: { held: 0, charged: 3, released: 0 },
};

const jobEventSchema = jobSchema
  .extend({ mode: z.enum(["live", "test"]).meta({ description: "The mode of the key that created the job." }) })
  .meta({ title: "BulkJobEvent" });

const eventOf = (status: string, summary: string, job: object): EventDoc => ({
  type: `bulk.${status}`,
  tag: "Bulk verification",
  summary,
  data: jobEventSchema,
  example: { ...job, webhook_configured: true, mode: "live" },
});

/** The events of bulk verification. Their `data` is the job. */
export const BULK_EVENTS: readonly EventDoc[] = [
  eventOf("completed", "Every address of a job is verified", COMPLETED),
  eventOf("cancelled", "A job was cancelled", CANCELLED),
  eventOf("failed", "A job could not continue", { ...CANCELLED, status: "failed" }),
];
