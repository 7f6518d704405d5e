import { z } from "zod";
import type { EventDoc } from "../http/openapi.ts";
import { jobSchema } from "./schemas.ts";

const ENDED = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  name: "Newsletter, spring",
  source: null,
  status: "completed",
  created_at: "2026-01-01T00:00:00.000Z",
  started_at: "2026-01-01T00:00:00.100Z",
  completed_at: "2026-01-01T00:01:00.000Z",
  format: null,
  rows: { total: 4, finished: 4, empty: 0 },
  addresses: { total: 3, finished: 3 },
  verdicts: { deliverable: 3, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 3, mailbox_not_found: 1 },
  credits: { held: 0, charged: 3, released: 0 },
  estimated_seconds_left: null,
  poll_after_ms: null,
  paused_reason: null,
  webhook_configured: true,
  mode: "live",
};

const STOPPED = {
  ...ENDED,
  rows: { total: 4, finished: 3, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 2, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 2, mailbox_not_found: 1 },
  credits: { held: 0, charged: 2, released: 1 },
};

const jobEventSchema = jobSchema
  .extend({ mode: z.enum(["live", "test"]).meta({ description: "Of the key that ordered the job." }) })
  .meta({ title: "BulkJobEvent" });

const eventOf = (status: string, summary: string, example: unknown): EventDoc => ({
  type: `bulk.${status}`,
  tag: "Bulk verification",
  summary,
  data: jobEventSchema,
  example,
});

/** The events of bulk verification, as the OpenAPI document describes them: the job as it ended. */
export const BULK_EVENTS: readonly EventDoc[] = [
  eventOf("completed", "Every address of a job is finished", ENDED),
  eventOf("cancelled", "A job was cancelled", { ...STOPPED, status: "cancelled" }),
  eventOf("failed", "A job could not go on", { ...STOPPED, status: "failed" }),
];
