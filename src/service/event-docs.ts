import { BLOCKLIST_EVENTS } from "../blocklist/event-docs.ts";
import { BULK_EVENTS } from "../bulk/operations.ts";
import { DMARC_EVENTS } from "../dmarc/alerts/rules/alert-rules.ts";
import type { EventDoc } from "../foundation/http/openapi.ts";
import { SUMMARY_EVENT } from "../notifications/channels/summary.ts";
import { WEBHOOK_EVENTS } from "../notifications/webhooks/operations.ts";

const STORED: readonly EventDoc[] = [...BULK_EVENTS, ...BLOCKLIST_EVENTS, ...DMARC_EVENTS, SUMMARY_EVENT];

/** Every event that webhooks get. */
export const EVENT_DOCS = [...STORED, ...WEBHOOK_EVENTS];

/** The types of events, without that of a test call, of which nothing is stored. */
export const EVENT_TYPES = STORED.map(({ type }) => type);
