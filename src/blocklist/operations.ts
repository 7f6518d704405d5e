import { z } from "zod";
import { textField, okResponse } from "../foundation/http/schema-fields.ts";
import { isId } from "../foundation/base/secrets.ts";
import { declareRoute } from "../foundation/http/route.ts";
import { idParameter, pageQuery, timeoutParameter } from "../foundation/http/route-input.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import {
  checkedSchema,
  checksSchema,
  listingNotesSchema,
  membersSchema,
  newTargetSchema,
  TARGET_FILTERS,
  targetChangeSchema,
  targetSchema,
  targetsSchema,
  isTargetCursor,
  MEMBER_EXAMPLE,
  TARGET_EXAMPLE,
} from "./schemas.ts";
import {
  batchQuerySchema,
  batchResultSchema,
  discoveredSchema,
  discoverRequestSchema,
  targetBatchSchema,
  BATCH_EXAMPLE,
} from "./batch.ts";
import { overviewQuerySchema, overviewSchema, OVERVIEW_EXAMPLE } from "./overview.ts";
import { CATALOGUE_EXAMPLE, listsSchema } from "./list-status.ts";
import { CHECK_EXAMPLE, RUNNING_EXAMPLE } from "./check-result.ts";

export const TAG = "Blocklist monitoring";
export const TARGETS_PATH = "/v1/blacklist/targets";
const PATH = TARGETS_PATH;
const CHECK_TIMEOUT_S = 30;

const params = z.object({ id: idParameter("target") });
const targetResponse = { 200: okResponse("The target.", targetSchema, TARGET_EXAMPLE) };

/** `policy`: which webhook URLs are allowed. */
export const createTarget = (policy: UrlPolicy) =>
  declareRoute({
    method: "POST",
    path: PATH,
    operationId: "createBlacklistTarget",
    tag: TAG,
    subjectField: "target",
    summary: "Monitor a domain, an IP address or a range of IPv4 addresses",
    description:
      "The first check runs within a minute. With `webhook_url`, every listing and delisting is sent there as `blacklist.listed` or `blacklist.delisted`, signed (see Webhooks). A range of up to 1,024 IPv4 addresses is one target: it has the worst status of its addresses; its events name the address in `target` and the range in `range`.",
    scope: "blacklist:write",
    body: {
      schema: newTargetSchema(webhookUrlSchema(policy)),
      example: { target: "mail.example.com", label: "outbound 1", webhook_url: "https://example.com/hook" },
    },
    responses: {
      201: {
        description: "The target was added.",
        schema: targetSchema,
        example: TARGET_EXAMPLE,
        headers: { Location: "The URL of the target." },
      },
      200: okResponse("The target existed; it is returned unchanged.", targetSchema, TARGET_EXAMPLE),
    },
    errors: ["conflict"],
  });

export const LIST_TARGETS = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listBlacklistTargets",
  tag: TAG,
  summary: "List targets",
  description:
    "Returns the targets of the account and mode, newest or most severe first. `?status=listed` returns what is currently listed.",
  scope: "blacklist:read",
  query: pageQuery(isTargetCursor, TARGET_FILTERS),
  responses: {
    200: okResponse("A page of targets.", targetsSchema, { targets: [TARGET_EXAMPLE], next_cursor: null }),
  },
});

export const GET_TARGET = declareRoute({
  method: "GET",
  path: `${PATH}/:id`,
  operationId: "getBlacklistTarget",
  tag: TAG,
  summary: "Get a target",
  description: "Returns a target with its current listings.",
  scope: "blacklist:read",
  params,
  responses: targetResponse,
});

/** `policy`: which webhook URLs are allowed. */
export const updateTarget = (policy: UrlPolicy) =>
  declareRoute({
    method: "PATCH",
    path: `${PATH}/:id`,
    operationId: "updateBlacklistTarget",
    tag: TAG,
    summary: "Change, pause or mute a target",
    description:
      "Changes only the fields that are given. Muting a list or listing removes its listings immediately. Events that wait for the old `webhook_url` are sent to the new one. Addresses of a range are changed with their range (409).",
    scope: "blacklist:write",
    params,
    body: { schema: targetChangeSchema(webhookUrlSchema(policy)), example: { monitoring_enabled: false } },
    responses: targetResponse,
    errors: ["conflict"],
  });

export const DELETE_TARGET = declareRoute({
  method: "DELETE",
  path: `${PATH}/:id`,
  operationId: "deleteBlacklistTarget",
  tag: TAG,
  summary: "Remove a target and its history",
  description: "A range is removed with all its addresses; a single address of a range cannot be removed (409).",
  scope: "blacklist:write",
  params,
  responses: { 204: { description: "The target is removed." } },
  errors: ["conflict"],
});

export const CHECK_TARGET = declareRoute({
  method: "POST",
  path: `${PATH}/:id/check`,
  operationId: "checkBlacklistTarget",
  tag: TAG,
  summary: "Check a target now",
  description:
    "Joins a check of the target that is already running. After three checks within 30 seconds, returns the last one. A range is checked address by address, a few at a time.",
  scope: "blacklist:write",
  params,
  query: z.strictObject({ timeout: timeoutParameter(CHECK_TIMEOUT_S) }),
  responses: {
    200: okResponse("The check is finished.", checkedSchema, { target: TARGET_EXAMPLE, check: CHECK_EXAMPLE }),
    202: {
      description: "The check is still running. Its result will be in the history.",
      schema: checkedSchema,
      example: { target: TARGET_EXAMPLE, check: RUNNING_EXAMPLE },
      headers: { Location: "The URL of the history." },
    },
  },
});

export const LIST_CHECKS = declareRoute({
  method: "GET",
  path: `${PATH}/:id/checks`,
  operationId: "listBlacklistChecks",
  tag: TAG,
  summary: "List the checks of a target",
  description:
    "Returns the history of a target, newest first. Checks are kept for 90 days (or as the operator set), checks that added or removed a listing for at least 400 days.",
  scope: "blacklist:read",
  params,
  query: pageQuery(isId, {}),
  responses: {
    200: okResponse("A page of checks.", checksSchema, { checks: [CHECK_EXAMPLE], next_cursor: null }),
  },
});

export const LIST_MEMBERS = declareRoute({
  method: "GET",
  path: `${PATH}/:id/members`,
  operationId: "listBlacklistMembers",
  tag: TAG,
  summary: "List the addresses of a range",
  description:
    "Returns the addresses, newest first. Each is a target with its own history and checks; it is changed and removed with its range.",
  scope: "blacklist:read",
  params: z.object({ id: idParameter("target") }),
  query: pageQuery(isId, {
    status: TARGET_FILTERS.status,
    severity: TARGET_FILTERS.severity,
    list: TARGET_FILTERS.list,
  }),
  responses: {
    200: okResponse("A page of addresses.", membersSchema, { members: [MEMBER_EXAMPLE], next_cursor: null }),
  },
});

export const ANNOTATE_LISTING = declareRoute({
  method: "PATCH",
  path: `${PATH}/:id/listings/:listing`,
  operationId: "annotateBlacklistListing",
  tag: TAG,
  summary: "Acknowledge a listing, or record a delisting request",
  description:
    "Marks and notes are stored with the name of the key and the time, and are removed with the listing. Acknowledged listings come last in the overview and are only counted in digests. On a range, they apply to that listing of every address.",
  scope: "blacklist:write",
  params: params.extend({ listing: textField("The id of the listing, as in `listed_on`.") }),
  body: { schema: listingNotesSchema, example: { delisting_requested: true, note: "ticket 4711" } },
  responses: targetResponse,
});

export const GET_LISTS = declareRoute({
  method: "GET",
  path: "/v1/blacklist/lists",
  operationId: "getBlacklists",
  tag: TAG,
  summary: "Get the blocklists",
  description: "Returns the catalogue of blocklists, and whether each works through the resolver of this service.",
  scope: "blacklist:read",
  responses: { 200: okResponse("The catalogue.", listsSchema, CATALOGUE_EXAMPLE) },
});

export const GET_OVERVIEW = declareRoute({
  method: "GET",
  path: "/v1/blacklist/overview",
  operationId: "getBlacklistOverview",
  tag: TAG,
  summary: "Get an overview of listings",
  description: "Returns what is listed now, what changed since a time, and which lists cannot be used at present.",
  scope: "blacklist:read",
  query: overviewQuerySchema,
  responses: { 200: okResponse("The overview.", overviewSchema, OVERVIEW_EXAMPLE) },
});

/** `policy`: which webhook URLs are allowed. */
export const createTargets = (policy: UrlPolicy) => {
  const webhookUrl = webhookUrlSchema(policy);
  return declareRoute({
    method: "POST",
    path: `${TARGETS_PATH}/batch`,
    operationId: "createBlacklistTargets",
    tag: TAG,
    summary: "Monitor up to 10,000 targets",
    description:
      "Every row has its own result; an invalid row affects no other. CSV has the columns `target`, `label`, `webhook_url` and `alert_severity_min`, with a header that contains `target`; without a header, the columns are target and label. The query parameters are for CSV. JSON may have 4 MiB, CSV 1 MiB.",
    scope: "blacklist:write",
    query: batchQuerySchema(webhookUrl),
    uploads: {
      "application/json": {
        schema: targetBatchSchema(webhookUrl),
        example: { targets: ["192.0.2.1", { target: "198.51.100.0/24", label: "outbound" }] },
      },
      "text/csv": {
        schema: textField("CSV with one target per row."),
        example: "target,label\n192.0.2.1,outbound 1\n198.51.100.0/24,outbound\n",
      },
    },
    responses: { 200: okResponse("One result per row.", batchResultSchema, BATCH_EXAMPLE) },
  });
};

/** `policy`: which webhook URLs are allowed. */
export const discoverTargets = (policy: UrlPolicy) =>
  declareRoute({
    method: "POST",
    path: `${TARGETS_PATH}/discover`,
    operationId: "discoverBlacklistTargets",
    tag: TAG,
    summary: "Monitor a domain with its mail hosts, or the addresses of this service",
    description:
      "Adds the domain, the addresses of its MX hosts (of the domain itself if it has none), and the `ip4:` and `ip6:` addresses of its SPF record; `include:` is not followed. `unknown` lists what could not be found.",
    scope: "blacklist:write",
    body: {
      schema: discoverRequestSchema(webhookUrlSchema(policy)),
      example: { domain: "example.com", dry_run: true },
    },
    responses: {
      200: okResponse("What was found, and the result for each target.", discoveredSchema, {
        found: [
          { target: "example.com", source: "domain", status: "found", id: null, problem: null },
          { target: "192.0.2.1", source: "MX mx1.example.com", status: "found", id: null, problem: null },
        ],
        unknown: ["Not followed in the SPF record: include:_spf.example.net."],
      }),
    },
  });

/** All routes of blocklist monitoring, for the OpenAPI document. */
export const blocklistRoutes = (policy: UrlPolicy) => [
  createTarget(policy),
  LIST_TARGETS,
  GET_TARGET,
  updateTarget(policy),
  DELETE_TARGET,
  CHECK_TARGET,
  LIST_CHECKS,
  GET_LISTS,
  GET_OVERVIEW,
  createTargets(policy),
  discoverTargets(policy),
  LIST_MEMBERS,
  ANNOTATE_LISTING,
];
