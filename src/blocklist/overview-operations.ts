import { z } from "zod";
import { declareRoute } from "../foundation/http/route.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/webhook-urls.ts";
import {
  batchQuerySchema,
  batchResultSchema,
  discoveredSchema,
  discoverRequestSchema,
  targetBatchSchema,
} from "./batch-schemas.ts";
import { BATCH_EXAMPLE, OVERVIEW_EXAMPLE } from "./examples.ts";
import {
  ANNOTATE_LISTING,
  CHECK_TARGET,
  createTarget,
  DELETE_TARGET,
  GET_LISTS,
  GET_TARGET,
  LIST_CHECKS,
  LIST_MEMBERS,
  LIST_TARGETS,
  TAG,
  TARGETS_PATH,
  updateTarget,
} from "./operations.ts";
import { overviewQuerySchema, overviewSchema } from "./overview-schemas.ts";

export const GET_OVERVIEW = declareRoute({
  ...{ method: "GET", path: "/v1/blacklist/overview", operationId: "getBlacklistOverview", tag: TAG },
  summary: "Get an overview of listings",
  description: "Returns what is listed now, what changed since a time, and which lists cannot be used at present.",
  scope: "blacklist:read",
  query: overviewQuerySchema,
  responses: { 200: { description: "The overview.", schema: overviewSchema, example: OVERVIEW_EXAMPLE } },
});

/** `policy`: which webhook URLs are allowed. */
export const createTargets = (policy: UrlPolicy) => {
  const webhookUrl = webhookUrlSchema(policy);
  return declareRoute({
    ...{ method: "POST", path: `${TARGETS_PATH}/batch`, operationId: "createBlacklistTargets", tag: TAG },
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
        schema: z.string().meta({ description: "CSV with one target per row." }),
        example: "target,label\n192.0.2.1,outbound 1\n198.51.100.0/24,outbound\n",
      },
    },
    responses: { 200: { description: "One result per row.", schema: batchResultSchema, example: BATCH_EXAMPLE } },
  });
};

/** `policy`: which webhook URLs are allowed. */
export const discoverTargets = (policy: UrlPolicy) =>
  declareRoute({
    ...{ method: "POST", path: `${TARGETS_PATH}/discover`, operationId: "discoverBlacklistTargets", tag: TAG },
    summary: "Monitor a domain with its mail hosts, or the addresses of this service",
    description:
      "Adds the domain, the addresses of its MX hosts (of the domain itself if it has none), and the `ip4:` and `ip6:` addresses of its SPF record; `include:` is not followed. `unknown` lists what could not be found.",
    scope: "blacklist:write",
    body: {
      schema: discoverRequestSchema(webhookUrlSchema(policy)),
      example: { domain: "example.com", dry_run: true },
    },
    responses: {
      200: {
        description: "What was found, and the result for each target.",
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
  });

/** All routes of blocklist monitoring, for the OpenAPI document. */
export const blocklistRoutes = (policy: UrlPolicy) => [
  ...[createTarget(policy), LIST_TARGETS, GET_TARGET, updateTarget(policy), DELETE_TARGET],
  ...[CHECK_TARGET, LIST_CHECKS, GET_LISTS],
  ...[GET_OVERVIEW, createTargets(policy), discoverTargets(policy), LIST_MEMBERS, ANNOTATE_LISTING],
];
