import { ACCOUNT_ROUTES } from "../accounts/routes.ts";
import { blocklistRoutes } from "../blocklist/operations.ts";
import { BULK_ROUTES } from "../bulk/operations.ts";
import { DMARC_ROUTES } from "../dmarc/operations.ts";
import { type DocumentInfo, openApiDocument } from "../foundation/http/openapi.ts";
import { ADD_WINDOW, LIST_WINDOWS, REMOVE_WINDOW } from "../notifications/windows/routes.ts";
import { GET_NOTIFICATIONS, SET_MAIL, updateNotifications } from "../notifications/settings/routes.ts";
import { createUrlPolicy } from "../foundation/net/fetch-url.ts";
import { EVENT_DOCS, EVENT_TYPES } from "./event-docs.ts";
import { CALL_MCP } from "./mcp/routes.ts";
import { GET_DOCS, GET_DOCS_PAGE, GET_HEALTH, GET_METRICS, GET_OPENAPI, GET_READINESS } from "./service-operations.ts";
import { USAGE_ROUTES } from "../accounts/usage/routes.ts";
import { BOUNCE_ROUTES } from "../verify/bounces/operations.ts";
import { VERIFY_ROUTES } from "../verify/operations.ts";
import { webhookRoutes } from "../notifications/webhooks/operations.ts";

/** The document does not depend on the networks that the operator allows. */
const ANY_PUBLIC_URL = createUrlPolicy([]);

const TAGS = {
  "Email verification": "Verify single addresses and read the evidence of each verdict.",
  Bounces: "Report mail that came back, and compare it with what was promised.",
  "Bulk verification": "Verify lists of addresses.",
  "Blocklist monitoring": "Monitor IP addresses, ranges and domains on DNS blocklists.",
  "DMARC monitoring": "Enroll domains, check their DNS records, and get advice and alerts.",
  "DMARC reports": "Submit reports, and query what they say about senders.",
  "MTA-STS": "Serve the MTA-STS policies of domains.",
  Webhooks: "Deliveries, the event feed, test calls and signing secrets.",
  Notifications: "Default recipients and webhook of the account.",
  Account: "The account of the calling key, and its usage.",
  Service: "Health and description of the service. No API key needed.",
};

/**
 * The OpenAPI document of all routes and events. Loaded at its first request: most processes never need it.
 */
export const interfaceDocument = (info: Omit<DocumentInfo, "events" | "tags">) =>
  openApiDocument(
    [
      ...VERIFY_ROUTES,
      ...BOUNCE_ROUTES,
      ...BULK_ROUTES,
      ...blocklistRoutes(ANY_PUBLIC_URL),
      ...DMARC_ROUTES,
      ...webhookRoutes(ANY_PUBLIC_URL, EVENT_TYPES),
      GET_NOTIFICATIONS,
      updateNotifications(ANY_PUBLIC_URL),
      SET_MAIL,
      LIST_WINDOWS,
      ADD_WINDOW,
      REMOVE_WINDOW,
      ...ACCOUNT_ROUTES,
      ...USAGE_ROUTES,
      GET_HEALTH,
      GET_READINESS,
      GET_METRICS,
      GET_OPENAPI,
      GET_DOCS,
      GET_DOCS_PAGE,
      CALL_MCP,
    ],
    { ...info, tags: TAGS, events: EVENT_DOCS },
  );
