const ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52";

/** A running job, as the OpenAPI document shows it. */
export const RUNNING = {
  id: ID,
  name: "Newsletter, spring",
  source: null,
  status: "running",
  created_at: "2026-01-01T00:00:00.000Z",
  started_at: "2026-01-01T00:00:00.100Z",
  completed_at: null,
  format: {
    type: "csv",
    encoding: "utf-8",
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

/** One that waits. */
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
const ENDED = { estimated_seconds_left: null, poll_after_ms: null };
/** One that is checked again: two rows of one address ended `dns_error`, free of charge. */
export const RETRIED = {
  ...QUEUED,
  rows: { total: 4, finished: 2, empty: 0 },
  addresses: { total: 3, finished: 2 },
  verdicts: { deliverable: 1, risky: 0, undeliverable: 1 },
  sub_statuses: { mailbox_exists: 1, mailbox_not_found: 1 },
  credits: { held: 1, charged: 2, released: 1 },
};
/** One that was cancelled. */
export const CANCELLED = {
  ...RUNNING,
  ...ENDED,
  status: "cancelled",
  completed_at: "2026-01-01T00:01:00.000Z",
  credits: { held: 0, charged: 2, released: 1 },
};
