import { SEVERITIES, TARGET_KINDS } from "../dnsbl/blocklist.ts";
import type { Operation } from "../http/openapi.ts";
import { BODY_ERRORS, PAGE_ERRORS } from "../http/operation-errors.ts";
import { PAGE, pathId, query } from "../http/parameters.ts";
import { createUrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import {
  checkedSchema,
  checksSchema,
  listsSchema,
  targetChangeSchema,
  newTargetSchema,
  targetSchema,
  targetsSchema,
} from "./schemas.ts";
import { TARGET_STATUSES } from "./store.ts";

const TAG = "Blocklist monitoring";
const PATH = "/v1/blacklist/targets";

export const TARGET_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  kind: "ipv4",
  value: "192.0.2.1",
  members: null,
  range_id: null,
  label: "outbound 1",
  status: "listed",
  severity: "critical",
  monitoring_enabled: true,
  listed_on: ["spamhaus-sbl"],
  listings: [
    {
      id: "spamhaus-sbl",
      list: "spamhaus-zen",
      name: "Spamhaus SBL",
      severity: "critical",
      category: "spam",
      meaning: "Put on the list by hand as a sender or supporter of spam.",
      address: null,
      since: "2025-12-31T18:00:02.310Z",
      last_seen_at: "2026-01-01T00:00:03.120Z",
      delist_url: "https://check.spamhaus.org/",
      acknowledged: null,
      delisting_requested: { at: "2025-12-31T19:12:40.000Z", by: "ops" },
      note: null,
    },
  ],
  listings_count: 1,
  seen_at: "2026-01-01T00:00:03.120Z",
  muted_lists: [],
  last_checked_at: "2026-01-01T00:00:03.120Z",
  next_check_at: "2026-01-01T01:01:12.480Z",
  webhook_configured: true,
  recipients: [],
  alert_severity_min: null,
  created_at: "2025-12-31T23:59:41.005Z",
};

const CHECK = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a53",
  trigger: "manual",
  started_at: "2026-01-01T00:00:01.000Z",
  finished_at: "2026-01-01T00:00:03.120Z",
  status: "listed",
  listed_on: ["spamhaus-sbl"],
  added: ["spamhaus-sbl"],
  removed: [],
  counts: { listed: 1, not_listed: 20, unproven: 0, refused: 0, failed: 1, skipped: 9 },
  results: [
    {
      list: "spamhaus-zen",
      outcome: "listed",
      listings: ["spamhaus-sbl"],
      codes: ["127.0.0.2"],
      text: "https://www.spamhaus.org/sbl/query/SBL000000",
      reason: null,
      remedy: null,
      zone: "zen.spamhaus.org",
      delist_url: "https://check.spamhaus.org/",
    },
  ],
};

const RUNNING = {
  ...CHECK,
  finished_at: null,
  status: "running",
  listed_on: [],
  added: [],
  counts: { listed: 0, not_listed: 0, unproven: 0, refused: 0, failed: 0, skipped: 0 },
  results: [],
};

const CATALOGUE = {
  version: "2026-01-01",
  lists: [
    {
      id: "spamhaus-zen",
      name: "Spamhaus ZEN",
      operator: "The Spamhaus Project",
      kinds: ["ipv4"],
      zone: "zen.spamhaus.org",
      enabled: true,
      severity: "critical",
      confidence: "A",
      usage: { terms: "Open to everybody.", volume: null, cost: "Free", registration: null, url: null },
      listings: [
        {
          id: "spamhaus-sbl",
          name: "Spamhaus SBL",
          meanings: ["Put on the list by hand as a sender or supporter of spam."],
          category: "spam",
          severity: "critical",
        },
      ],
      delist_url: "https://check.spamhaus.org/",
      lookup_url: null,
      notes: null,
      health: [{ kind: "ipv4", state: "healthy", reason: null, remedy: null, tested_at: "2026-01-01T00:00:00.500Z" }],
    },
  ],
};

const ID = pathId("Identifier of the target.");

const webhookUrl = webhookUrlSchema(createUrlPolicy([]));

/** The routes of blocklist monitoring, as the OpenAPI document describes them. */
export const BLOCKLIST_OPERATIONS: readonly Operation[] = [
  {
    method: "POST",
    path: PATH,
    tag: TAG,
    summary: "Watch a domain, an IP address or a range of IPv4 addresses",
    description:
      "The first check runs on the next scheduled pass, within a minute. With `webhook_url`, every listing and delisting is sent there as `blacklist.listed` or `blacklist.delisted`, signed (see Webhooks). A range of up to 1,024 IPv4 addresses is one target: its status is the worst of its addresses, its events name the address in `target` and the range in `range`.",
    body: {
      schema: newTargetSchema(webhookUrl),
      example: { target: "192.0.2.1", label: "outbound 1", webhook_url: "https://example.com/hook" },
    },
    responses: {
      201: {
        description: "It is watched.",
        schema: targetSchema,
        example: TARGET_EXAMPLE,
        headers: { Location: "The target." },
      },
      200: {
        description: "It was watched already: the existing target, unchanged.",
        schema: targetSchema,
        example: TARGET_EXAMPLE,
      },
    },
    errors: ["insufficient_scope", ...BODY_ERRORS, "conflict"],
  },
  {
    method: "GET",
    path: PATH,
    tag: TAG,
    summary: "Targets, newest or worst first",
    parameters: [
      ...PAGE,
      query("status", "Only those; `listed` also returns what is `unknown` at present and was listed before.", {
        type: "string",
        enum: [...TARGET_STATUSES],
      }),
      query("severity", "Only those with a listing at least this severe.", { type: "string", enum: [...SEVERITIES] }),
      query("list", "Only those on this listing, or on any of this list.", { type: "string" }),
      query("label", "Only those with exactly this label.", { type: "string" }),
      query("sort", "`severity`: the worst first. A cursor belongs to one order.", {
        type: "string",
        enum: ["created", "severity"],
        default: "created",
      }),
      query("kind", "Only those.", { type: "string", enum: [...TARGET_KINDS] }),
      query("target", "Only this domain or address, in any spelling.", { type: "string" }),
      query("monitoring_enabled", "Only those that are, or are not, paused.", { type: "boolean" }),
    ],
    responses: {
      200: { description: "A page.", schema: targetsSchema, example: { targets: [TARGET_EXAMPLE], next_cursor: null } },
    },
    errors: ["insufficient_scope", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "One target",
    parameters: [ID],
    responses: { 200: { description: "The target.", schema: targetSchema, example: TARGET_EXAMPLE } },
    errors: ["insufficient_scope", "not_found"],
  },
  {
    method: "PATCH",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "Change a target: label, webhook, muted lists, threshold, pause",
    description: "A change of a range holds for all of its addresses; an address of a range cannot be changed (409).",
    parameters: [ID],
    body: { schema: targetChangeSchema(webhookUrl), example: { monitoring_enabled: false } },
    responses: { 200: { description: "The target.", schema: targetSchema, example: TARGET_EXAMPLE } },
    errors: ["insufficient_scope", "not_found", "conflict", ...BODY_ERRORS],
  },
  {
    method: "DELETE",
    path: `${PATH}/:id`,
    tag: TAG,
    summary: "Remove a target and its history",
    parameters: [ID],
    responses: { 204: { description: "It is gone." } },
    errors: ["insufficient_scope", "not_found", "conflict"],
  },
  {
    method: "POST",
    path: `${PATH}/:id/check`,
    tag: TAG,
    summary: "Check a target right now",
    description:
      "When a check of the target runs already, this waits for that one. A range is checked address by address, a few at a time.",
    parameters: [
      ID,
      query("timeout", "Seconds to hold the request open; above 90 is treated as 90. It never stops the check.", {
        type: "integer",
        minimum: 1,
        default: 30,
      }),
    ],
    responses: {
      200: {
        description: "The check is finished.",
        schema: checkedSchema,
        example: { target: TARGET_EXAMPLE, check: CHECK },
      },
      202: {
        description: "It goes on; the history will have it.",
        schema: checkedSchema,
        example: { target: TARGET_EXAMPLE, check: RUNNING },
        headers: { Location: "The target's history." },
      },
    },
    errors: ["insufficient_scope", "not_found", "Invalid timeout"],
  },
  {
    method: "GET",
    path: `${PATH}/:id/checks`,
    tag: TAG,
    summary: "The history of a target, newest first",
    description:
      "Kept for 90 days unless the service is set up otherwise; checks in which a listing came or went for at least 400.",
    parameters: [ID, ...PAGE],
    responses: {
      200: { description: "A page.", schema: checksSchema, example: { checks: [CHECK], next_cursor: null } },
    },
    errors: ["insufficient_scope", "not_found", ...PAGE_ERRORS],
  },
  {
    method: "GET",
    path: "/v1/blacklist/lists",
    tag: TAG,
    summary: "The blocklists, and whether they can be believed through this resolver",
    responses: { 200: { description: "The catalogue.", schema: listsSchema, example: CATALOGUE } },
    errors: ["insufficient_scope"],
  },
];
