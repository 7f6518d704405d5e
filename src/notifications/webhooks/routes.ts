import type { z } from "zod";
import { isoTime } from "../../foundation/base/clock.ts";
import { AppError } from "../../foundation/base/errors.ts";
import { isId } from "../../foundation/base/secrets.ts";
import type { Guard } from "../../foundation/http/guard.ts";
import { rowsById, sendPage } from "../../foundation/http/list-page.ts";
import { handle, serveRoutes } from "../../foundation/http/route.ts";
import { encodeCursor } from "../../foundation/http/route-input.ts";
import type { UrlPolicy } from "../../foundation/net/fetch-url.ts";
import { maskUrl } from "../channels/channels.ts";
import type { BulkActionResult } from "./delivery-actions.ts";
import {
  CANCEL_DELIVERY,
  cancelMany,
  GET_DELIVERY,
  GET_SECRETS,
  listDeliveries,
  listEvents,
  REDELIVER,
  redeliverMany,
  ROTATE_SECRET,
  testWebhook,
} from "./operations.ts";
import type { EventTypes, redeliverSchema } from "./schemas.ts";
import type { WebhookSecret } from "./secret-store.ts";
import { deliveryView, eventView, TEST_TYPE, type Webhooks } from "./webhooks.ts";

export interface WebhookRouteOptions {
  readonly guard: Guard;
  readonly webhooks: Webhooks;
  readonly rules: UrlPolicy;
  readonly types: EventTypes;
}

/** Secrets as the API shows them. */
export const secretsView = (secrets: readonly WebhookSecret[]) => ({
  secrets: secrets.map(({ secret, createdAtMs, validUntilMs }) => ({
    secret,
    created_at: isoTime(createdAtMs),
    valid_until: validUntilMs === null ? null : isoTime(validUntilMs),
  })),
});

/** Filters and cursor of a call that changes many deliveries. */
const manyOf = ({ cursor, since, until, ...filters }: z.output<ReturnType<typeof redeliverSchema>>) => {
  const after = cursor === undefined ? null : Buffer.from(cursor, "base64url").toString("utf8");
  if (after !== null && !isId(after)) throw new AppError("Invalid cursor");
  const msOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time));
  return { filters: { ...filters, sinceMs: msOf(since), untilMs: msOf(until) }, after };
};

const manyView = ({ count, next }: BulkActionResult) => ({
  count,
  next_cursor: next === null ? null : encodeCursor(next),
});

/** Serves deliveries, events, test calls and secrets (contract §8). */
export const createWebhookRoutes = ({ guard, ...options }: WebhookRouteOptions) =>
  serveRoutes(guard, [...deliveryRoutes(options), ...eventRoutes(options)]);

const deliveryRoutes = ({ webhooks, types }: Omit<WebhookRouteOptions, "guard">) => [
  handle(listDeliveries(types), ({ request, query, caller }) => {
    const { limit, cursor, since: sinceMs, until: untilMs, ...filters } = query;
    const read = webhooks.list(caller, { ...filters, sinceMs, untilMs });
    return sendPage(request, { name: "deliveries", page: { limit, cursor } }, rowsById(read, deliveryView));
  }),

  handle(GET_DELIVERY, ({ params, caller }) => deliveryView(webhooks.actions.find(caller, params.id))),

  handle(REDELIVER, async ({ params, caller, set }) => {
    set.status = 202;
    return deliveryView(await webhooks.actions.redeliver(caller, params.id));
  }),

  handle(CANCEL_DELIVERY, async ({ params, caller }) => deliveryView(await webhooks.actions.cancel(caller, params.id))),

  handle(redeliverMany(types), async ({ body, caller, set }) => {
    const { filters, after } = manyOf(body);
    set.status = 202;
    return manyView(await webhooks.actions.redeliverMany(caller, webhooks.resolve(caller, filters), after));
  }),

  handle(cancelMany(types), async ({ body, caller }) => {
    const { filters, after } = manyOf(body);
    return manyView(await webhooks.actions.cancelMany(caller, webhooks.resolve(caller, filters), after));
  }),
];

const eventRoutes = ({ webhooks, rules, types }: Omit<WebhookRouteOptions, "guard">) => [
  handle(listEvents(types), ({ request, query, caller }) => {
    const { limit, cursor, since: sinceMs, after = null, ...filters } = query;
    const read = webhooks.feed(caller, { ...filters, sinceMs });
    const page = { limit, cursor: cursor ?? after };
    return sendPage(request, { name: "events", page }, rowsById(read, eventView));
  }),

  handle(testWebhook(rules, types), async ({ body, caller }) => {
    const { url, type = TEST_TYPE } = body;
    const { id, delivered, httpStatus, problem, elapsedMs } = await webhooks.test(caller, url, type);
    return { id, url: maskUrl(url), type, delivered, http_status: httpStatus, problem, elapsed_ms: elapsedMs };
  }),

  handle(GET_SECRETS, ({ caller }) => secretsView(webhooks.secrets.current(caller))),
  handle(ROTATE_SECRET, ({ caller }) => secretsView(webhooks.secrets.rotate(caller))),
];
