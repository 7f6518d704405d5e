import { SEVERITIES } from "../dnsbl/blocklist.ts";
import type { Operation } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { PAGE, pathId, query } from "../http/parameters.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import { targetBatchSchema, batchResultSchema, discoveredSchema, discoverRequestSchema } from "./batch-schemas.ts";
import { TARGET_EXAMPLE } from "./operations.ts";
import { overviewSchema } from "./overview-schemas.ts";
import { listingNotesSchema, membersSchema, targetSchema } from "./schemas.ts";
import { TARGET_STATUSES } from "./store.ts";

const TAG = "Blocklist monitoring";
const PATH = "/v1/blacklist/targets";
const RANGE_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60";

const { id, kind, value, label, status, severity, listings, listings_count } = TARGET_EXAMPLE;

const OVERVIEW = {
  generated_at: "2026-01-01T06:00:00.000Z",
  since: "2025-12-31T06:00:00.000Z",
  targets: {
    ...{ total: 60, addresses_in_ranges: 0, ranges: 0, listed: 1, paused: 0 },
    by_status: { pending: 0, clean: 58, listed: 1, unknown: 1 },
    by_kind: { ipv4: 40, ipv6: 0, domain: 20 },
  },
  listings: { total: 1, acknowledged: 0, by_severity: { critical: 1, high: 0, medium: 0, low: 0, info: 0 } },
  worst: [{ id, kind, value, label, status, severity, listings, listings_count }],
  changes: {
    ...{ listed: 1, delisted: 0, is_complete: true },
    recent: [
      {
        event_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a54",
        at: "2025-12-31T18:00:02.310Z",
        change: "listed",
        ...{ target_id: id, target: value, label, listing: "spamhaus-sbl", listing_name: "Spamhaus SBL" },
        ...{ severity: "critical", category: "spam", reason: null },
      },
    ],
    feed: "/v1/events?since=2025-12-31T06%3A00%3A00.000Z",
  },
  lists_in_trouble: [
    {
      ...{ list: "uribl", name: "URIBL", kind: "domain", state: "refused" },
      reason: "Asked through a public resolver.",
      remedy: "Use a resolver of your own.",
      tested_at: "2026-01-01T05:50:00.500Z",
    },
  ],
};

const BATCH = {
  ...{ created: 1, exists: 0, invalid: 1 },
  results: [
    { row: 1, given: "192.0.2.1", status: "created", id, value: "192.0.2.1", problem: null },
    {
      ...{ row: 2, given: "10.0.0.1", status: "invalid", id: null, value: null },
      problem: "10.0.0.1 is not a public address; no list has entries for it.",
    },
  ],
};

const severityFilter = query("severity", "Only those with a listing at least this severe.", {
  type: "string",
  enum: [...SEVERITIES],
});

/** The overview, batches, the addresses of ranges and notes, as the OpenAPI document describes them. */
export const BLOCKLIST_OVERVIEW_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/v1/blacklist/overview",
    tag: TAG,
    summary: "What is listed, what changed, which lists cannot be believed",
    parameters: [
      query("since", "Changes since then; default: the last 24 hours. Events are kept for 30 days.", {
        type: "string",
        format: "date-time",
      }),
    ],
    responses: { 200: { description: "The overview.", schema: overviewSchema, example: OVERVIEW } },
    errors: ["insufficient_scope", "Invalid query"],
  },
  {
    method: "POST",
    path: `${PATH}/batch`,
    tag: TAG,
    summary: "Watch up to 10,000 targets",
    description:
      "Every row has its own result, and one that does not fit stops no other. As `text/csv` with the columns `target`, `label`, `webhook_url`, `alert_severity_min` (a header with `target`; without one, target and label), what all rows share is in the query. JSON may have 4 MiB, CSV 1 MiB.",
    parameters: [
      query("label", "CSV: of rows without one.", { type: "string" }),
      query("webhook_url", "CSV: of rows without one.", { type: "string" }),
      query("alert_severity_min", "CSV: of rows without one.", { type: "string", enum: [...SEVERITIES] }),
    ],
    body: {
      schema: targetBatchSchema(webhookUrlSchema(createUrlPolicy([]))),
      example: { targets: ["192.0.2.1", { target: "198.51.100.0/24", label: "outbound" }] },
    },
    responses: { 200: { description: "A result for each row.", schema: batchResultSchema, example: BATCH } },
    errors: ["insufficient_scope", "Invalid query", ...BODY_ERRORS],
  },
  {
    method: "POST",
    path: `${PATH}/discover`,
    tag: TAG,
    summary: "Watch a domain with its mail hosts, or the addresses of this service",
    description:
      "Adds the domain, the addresses of its MX hosts (without MX those of the domain), and what `ip4:` and `ip6:` of its SPF record name; what the record includes is not followed. `unknown` says what could not be found out.",
    body: {
      schema: discoverRequestSchema(webhookUrlSchema(createUrlPolicy([]))),
      example: { domain: "example.com", dry_run: true },
    },
    responses: {
      200: {
        description: "What was found, and what became of it.",
        schema: discoveredSchema,
        example: {
          found: [
            { target: "example.com", source: "domain", status: "found", id: null, problem: null },
            { target: "192.0.2.1", source: "MX mx1.example.com", status: "found", id: null, problem: null },
          ],
          unknown: ["Not followed in the SPF record: include:_spf.example.net."],
        },
      },
    },
    errors: ["insufficient_scope", ...BODY_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:id/members`,
    tag: TAG,
    summary: "The addresses of a range, newest first",
    description: "Each is a target of its own with history and checks; it is changed and removed with its range.",
    parameters: [
      pathId("Identifier of the range."),
      ...PAGE,
      query("status", "Only those.", { type: "string", enum: [...TARGET_STATUSES] }),
      severityFilter,
      query("list", "Only those on this listing, or on any of this list.", { type: "string" }),
    ],
    responses: {
      200: {
        description: "A page.",
        schema: membersSchema,
        example: { members: [{ ...TARGET_EXAMPLE, range_id: RANGE_ID }], next_cursor: null },
      },
    },
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
  {
    method: "PATCH",
    path: `${PATH}/:id/listings/:listing`,
    tag: TAG,
    summary: "Note that a listing is acknowledged, or its delisting requested",
    description:
      "Notes name the key and the time, and end with the listing. An acknowledged listing no longer stands in front in the overview and in digests. On a range they are about that listing of every address.",
    parameters: [
      pathId("Identifier of the target."),
      { name: "listing", in: "path", description: "Id of the listing, as in `listed_on`.", schema: { type: "string" } },
    ],
    body: { schema: listingNotesSchema, example: { delisting_requested: true, note: "ticket 4711" } },
    responses: { 200: { description: "The target.", schema: targetSchema, example: TARGET_EXAMPLE } },
    errors: ["insufficient_scope", "not_found", ...BODY_ERRORS],
  },
];
