import { z } from "zod";
import { ACCOUNT_OPERATIONS } from "./accounts/operations.ts";
import { BLOCKLIST_EVENTS } from "./blocklist/event-docs.ts";
import { BLOCKLIST_OPERATIONS } from "./blocklist/operations.ts";
import { BLOCKLIST_OVERVIEW_OPERATIONS } from "./blocklist/overview-operations.ts";
import { BULK_EVENTS } from "./bulk/event-docs.ts";
import { BULK_OPERATIONS } from "./bulk/operations.ts";
import { DMARC_EVENTS } from "./dmarc/alerts/event-docs.ts";
import { DMARC_OPERATIONS } from "./dmarc/operations.ts";
import { type DocumentInfo, type EventDoc, type Operation, openApiDocument } from "./http/openapi.ts";
import { NOTIFICATIONS_OPERATIONS } from "./notifications/operations.ts";
import { VERIFY_ROUTES } from "./verify/operations.ts";
import { WEBHOOK_EVENTS, WEBHOOK_OPERATIONS } from "./webhooks/operations.ts";

const okSchema = z.object({ status: z.literal("ok") }).meta({ title: "Ok" });

const readySchema = z
  .object({
    status: z.enum(["ok", "degraded"]),
    findings: z.array(z.string()).meta({ description: "A sentence for each problem and its remedy." }),
  })
  .meta({ title: "Ready" });

const SERVICE_OPERATIONS: readonly Operation[] = [
  {
    method: "GET",
    path: "/healthz",
    tag: "Service",
    summary: "Is the process alive",
    open: true,
    responses: { 200: { description: "It is.", schema: okSchema, example: { status: "ok" } } },
  },
  {
    method: "GET",
    path: "/readyz",
    tag: "Service",
    summary: "Can it verify addresses: the database takes writes, DNS and outgoing SMTP answer",
    open: true,
    responses: {
      200: {
        description: "It can. `degraded`: it can, but `findings` names what the operator has to look at.",
        schema: readySchema,
        example: { status: "ok", findings: [] },
      },
    },
    errors: ["unavailable"],
  },
  {
    method: "GET",
    path: "/openapi.json",
    tag: "Service",
    summary: "This document",
    open: true,
    errors: ["unavailable"],
    responses: {
      200: {
        description: "OpenAPI 3.1.",
        schema: z.looseObject({ openapi: z.literal("3.1.0") }),
        example: { openapi: "3.1.0" },
      },
    },
  },
];

/** Every event that webhooks get. */
export const EVENT_DOCS: readonly EventDoc[] = [
  ...BULK_EVENTS,
  ...BLOCKLIST_EVENTS,
  ...DMARC_EVENTS,
  ...WEBHOOK_EVENTS,
];

/**
 * The OpenAPI document of the whole interface. It and all that it describes are loaded when somebody asks for it: most
 * processes are never asked, and the schemas of answers are of no other use.
 */
export const interfaceDocument = (info: Omit<DocumentInfo, "events">) =>
  openApiDocument(
    [
      ...VERIFY_ROUTES,
      ...BULK_OPERATIONS,
      ...BLOCKLIST_OPERATIONS,
      ...BLOCKLIST_OVERVIEW_OPERATIONS,
      ...DMARC_OPERATIONS,
      ...WEBHOOK_OPERATIONS,
      ...NOTIFICATIONS_OPERATIONS,
      ...ACCOUNT_OPERATIONS,
      ...SERVICE_OPERATIONS,
    ],
    { ...info, events: EVENT_DOCS },
  );
