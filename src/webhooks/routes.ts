import { Elysia } from "elysia";
import type { z } from "zod";
import { isoTime } from "../base/clock.ts";
import { readWindows } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import { rowsById, sendPage } from "../http/list-page.ts";
import { pageParameters, readPage, writeCursor } from "../http/query.ts";
import type { UrlPolicy } from "../net/fetch-url.ts";
import type { BulkActionResult } from "./delivery-actions.ts";
import {
  cancelSchema,
  deliveryFiltersSchema,
  eventFiltersSchema,
  redeliverSchema,
  TEST_TYPE,
  testSchema,
} from "./schemas.ts";
import type { WebhookSecret } from "./secret-store.ts";
import { deliveryView, eventView, type Webhooks } from "./webhooks.ts";

export interface WebhookRouteDeps {
  readonly guard: Guard;
  readonly webhooks: Webhooks;
  readonly rules: UrlPolicy;
}

const PATH = "/v1/webhooks";

const knownId = (id: string): string => {
  if (isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such delivery." });
};

/** The secrets of an account and mode as the interface shows them. */
export const secretsView = (secrets: readonly WebhookSecret[]) => ({
  secrets: secrets.map(({ secret, createdAtMs, validUntilMs }) => ({
    secret,
    created_at: isoTime(createdAtMs),
    valid_until: validUntilMs === null ? null : isoTime(validUntilMs),
  })),
});

/** Filters and cursor of a call about many deliveries. */
const manyOf = (body: z.output<typeof redeliverSchema>) => {
  const { cursor, since, until, ...filters } = body;
  const after = cursor === undefined ? null : Buffer.from(cursor, "base64url").toString("utf8");
  if (after !== null && !isId(after)) throw new AppError("Invalid cursor");
  const msOf = (time: string | undefined) => (time === undefined ? undefined : Date.parse(time));
  return { filters: { ...filters, sinceMs: msOf(since), untilMs: msOf(until) }, after };
};

const manyView = ({ count, next }: BulkActionResult) => ({
  count,
  next_cursor: next === null ? null : writeCursor(next),
});

/** Deliveries, events, test calls and secrets (contract §8). */
export const createWebhookRoutes = ({ guard, webhooks, rules }: WebhookRouteDeps) => {
  const orderSchema = testSchema(rules);
  return new Elysia({ name: "webhooks" })
    .use(guard)
    .get(
      `${PATH}/deliveries`,
      async ({ request, caller }) => {
        const page = readPage(request, deliveryFiltersSchema, isId);
        const { since: sinceMs, until: untilMs, ...filters } = page.filters;
        const read = readWindows(webhooks.list(caller, { ...filters, sinceMs, untilMs }));
        return sendPage(request, { name: "deliveries", page }, rowsById(read, deliveryView));
      },
      { demand: { scope: "webhooks:read", query: pageParameters(deliveryFiltersSchema) } },
    )
    .get(
      `${PATH}/deliveries/:id`,
      async ({ params, caller }) => deliveryView(webhooks.actions.find(caller, knownId(params.id))),
      { demand: { scope: "webhooks:read" } },
    )
    .post(
      `${PATH}/deliveries/:id/redeliver`,
      async ({ params, caller, set }) => {
        set.status = 202;
        return deliveryView(await webhooks.actions.redeliver(caller, knownId(params.id)));
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .post(
      `${PATH}/deliveries/:id/cancel`,
      async ({ params, caller }) => deliveryView(await webhooks.actions.cancel(caller, knownId(params.id))),
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .post(
      `${PATH}/deliveries/redeliver`,
      async ({ request, caller, set }) => {
        const { filters, after } = manyOf(await readJson(request, redeliverSchema));
        set.status = 202;
        return manyView(await webhooks.actions.redeliverMany(caller, filters, after));
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .post(
      `${PATH}/deliveries/cancel`,
      async ({ request, caller }) => {
        const { filters, after } = manyOf(await readJson(request, cancelSchema));
        return manyView(await webhooks.actions.cancelMany(caller, filters, after));
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .get(
      "/v1/events",
      async ({ request, caller }) => {
        const page = readPage(request, eventFiltersSchema, isId);
        const { since: sinceMs, after, ...filters } = page.filters;
        const read = webhooks.feed(caller, { ...filters, sinceMs });
        const start = { limit: page.limit, after: page.after ?? after ?? null };
        return sendPage(request, { name: "events", page: start }, rowsById(read, eventView));
      },
      { demand: { scope: "webhooks:read", query: pageParameters(eventFiltersSchema) } },
    )
    .post(
      `${PATH}/test`,
      async ({ request, caller }) => {
        const { url, type = TEST_TYPE } = await readJson(request, orderSchema);
        const { id, delivered, httpStatus, problem, elapsedMs } = await webhooks.test(caller, url, type);
        return { id, url, type, delivered, http_status: httpStatus, problem, elapsed_ms: elapsedMs };
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .get(`${PATH}/secret`, async ({ caller }) => secretsView(webhooks.secrets.current(caller)), {
      demand: { scope: "webhooks:write" },
    })
    .post(`${PATH}/secret/rotate`, async ({ caller }) => secretsView(webhooks.secrets.rotate(caller)), {
      parse: "none",
      demand: { scope: "webhooks:write" },
    });
};
