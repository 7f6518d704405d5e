import { Elysia } from "elysia";
import { isoTime } from "../base/clock.ts";
import { readWindows } from "../base/walk.ts";
import { AppError } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import { rowsById, sendPage } from "../http/list-page.ts";
import { pageParameters, readPage } from "../http/query.ts";
import type { OutgoingRules } from "../net/fetch-url.ts";
import { deliveryFiltersSchema, testSchema } from "./schemas.ts";
import type { WebhookSecret } from "./store.ts";
import { deliveryView, type Webhooks } from "./webhooks.ts";

export interface WebhookRouteDeps {
  readonly guard: Guard;
  readonly webhooks: Webhooks;
  readonly rules: OutgoingRules;
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

/** Deliveries, test calls and secrets (contract §8). */
export const createWebhookRoutes = ({ guard, webhooks, rules }: WebhookRouteDeps) => {
  const orderSchema = testSchema(rules);
  return new Elysia({ name: "webhooks" })
    .use(guard)
    .get(
      `${PATH}/deliveries`,
      async ({ request, caller }) => {
        const page = readPage(request, deliveryFiltersSchema, isId);
        const read = readWindows(webhooks.list(caller, page.filters));
        return sendPage(request, { name: "deliveries", page }, rowsById(read, deliveryView));
      },
      { demand: { scope: "webhooks:read", query: pageParameters(deliveryFiltersSchema) } },
    )
    .get(
      `${PATH}/deliveries/:id`,
      async ({ params, caller }) => deliveryView(webhooks.find(caller, knownId(params.id))),
      { demand: { scope: "webhooks:read" } },
    )
    .post(
      `${PATH}/deliveries/:id/redeliver`,
      async ({ params, caller, set }) => {
        set.status = 202;
        return deliveryView(await webhooks.redeliver(caller, knownId(params.id)));
      },
      { parse: "none", demand: { scope: "webhooks:write" } },
    )
    .post(
      `${PATH}/test`,
      async ({ request, caller }) => {
        const { url } = await readJson(request, orderSchema);
        const { id, taken, httpStatus, problem, elapsedMs } = await webhooks.test(caller, url);
        return { id, url, delivered: taken, http_status: httpStatus, problem, elapsed_ms: elapsedMs };
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
