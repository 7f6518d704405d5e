import { z } from "zod";
import { nullableText, textField } from "../foundation/http/schema-fields.ts";
import { declareRoute } from "../foundation/http/route.ts";
import { LIVENESS_PATH, READINESS_PATH } from "./version.ts";

const okSchema = z
  .object({
    status: z.literal("ok").meta({ description: "Always `ok`." }),
    version: textField("The version of this service."),
    commit: nullableText("The commit it was built from; `null` when it is unknown."),
  })
  .meta({ title: "Ok" });

const readySchema = z
  .object({
    status: z.enum(["ok", "degraded"]).meta({ description: "`degraded`: it works, but see `findings`." }),
    findings: z.array(z.string()).meta({ description: "One sentence per problem, with its remedy." }),
  })
  .meta({ title: "Ready" });

const TAG = "Service";

export const GET_HEALTH = declareRoute({
  method: "GET",
  path: LIVENESS_PATH,
  operationId: "getHealth",
  tag: TAG,
  scope: "open",
  summary: "Check that the process is alive",
  description: "Returns 200 while the process is running. For restarts by a supervisor.",
  responses: {
    200: {
      description: "The process is alive.",
      schema: okSchema,
      example: { status: "ok", version: "0.2.0", commit: "6fbac06c1a52" },
    },
  },
});

export const GET_READINESS = declareRoute({
  method: "GET",
  path: READINESS_PATH,
  operationId: "getReadiness",
  tag: TAG,
  scope: "open",
  summary: "Check that the service can verify addresses",
  description:
    "Returns 200 if the database is writable and DNS and outgoing SMTP work, otherwise 503 with the reasons. For load balancers and monitoring.",
  responses: {
    200: {
      description: "The service can verify addresses. `degraded`: `findings` needs the operator's attention.",
      schema: readySchema,
      example: { status: "ok", findings: [] },
    },
  },
  errors: ["unavailable"],
});

const HTML_PAGE = {
  description: "The page.",
  contentType: "text/html",
  schema: z.string(),
  example: "<!doctype html>…",
} as const;

export const GET_DOCS = declareRoute({
  method: "GET",
  path: "/docs",
  operationId: "getDocs",
  tag: TAG,
  scope: "open",
  summary: "Read the manual",
  description: "The guides and the reference, with a curl example for every operation. 404 with `POSTWARDEN_DOCS=off`.",
  responses: { 200: HTML_PAGE },
  errors: ["not_found", "unavailable"],
});

export const GET_DOCS_PAGE = declareRoute({
  method: "GET",
  path: "/docs/:page",
  operationId: "getDocsPage",
  tag: TAG,
  scope: "open",
  summary: "Read a page of the manual",
  description: "A guide, such as `lists`, or a page of the reference, such as `reference-settings`.",
  params: z.object({ page: textField("The name of the page.") }),
  responses: { 200: HTML_PAGE },
  errors: ["not_found", "unavailable"],
});

export const GET_METRICS = declareRoute({
  method: "GET",
  path: "/metrics",
  operationId: "getMetrics",
  tag: TAG,
  scope: "open",
  summary: "Get metrics for Prometheus",
  description:
    "Counters, histograms and gauges in the text format of Prometheus. 404 unless the operator has set POSTWARDEN_METRICS_TOKEN, which is sent as `Authorization: Bearer <METRICS_TOKEN>` instead of an API key.",
  responses: {
    200: {
      description: "The metrics. Counters start at zero with the process.",
      contentType: "text/plain",
      schema: z.string(),
      example:
        "# HELP postwarden_ready 1 while /readyz responds with 200.\n# TYPE postwarden_ready gauge\npostwarden_ready 1\n",
    },
  },
  errors: ["unauthorized", "not_found", "unavailable"],
});

export const GET_OPENAPI = declareRoute({
  method: "GET",
  path: "/openapi.json",
  operationId: "getOpenApiDocument",
  tag: TAG,
  scope: "open",
  summary: "Get this document",
  description: "The OpenAPI 3.1 description of all routes and webhook events.",
  responses: {
    200: {
      description: "The OpenAPI document.",
      schema: z.looseObject({ openapi: z.literal("3.1.0").meta({ description: "The version of OpenAPI." }) }),
      example: { openapi: "3.1.0" },
    },
  },
  errors: ["unavailable"],
});
