import type { Clock } from "../foundation/base/clock.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { sendJson } from "../foundation/http/response.ts";
import { handle, serveRoutes } from "../foundation/http/route.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { webhookUrlSchema } from "../notifications/webhooks/webhook-urls.ts";
import { batchView, newTargetsOf, readBatch } from "./batch.ts";
import { discoverAndAdd } from "./discover-targets.ts";
import type { TargetDiscovery } from "./discovery.ts";
import { createTargets, discoverTargets, GET_OVERVIEW } from "./overview-operations.ts";
import type { Overview } from "./overview.ts";
import type { Targets } from "./targets.ts";

export interface OverviewRouteDeps {
  readonly guard: Guard;
  readonly targets: Targets;
  readonly overview: Overview;
  readonly discovery: TargetDiscovery;
  readonly rules: UrlPolicy;
  readonly clock: Clock;
}

/** Serves what concerns many targets: the overview, batches, discovery. */
export const createOverviewRoutes = ({ guard, targets, overview, discovery, rules, clock }: OverviewRouteDeps) => {
  const webhookUrl = webhookUrlSchema(rules);
  return serveRoutes(guard, [
    handle(GET_OVERVIEW, async ({ query, caller, request }) =>
      sendJson(request, await overview.read(caller, query.since ?? clock.nowMs() - DAY_MS)),
    ),

    handle(createTargets(rules), async ({ query, caller, request }) => {
      const rows = await readBatch(request, query, webhookUrl);
      const outcomes = await targets.addMany(caller, newTargetsOf(rows));
      return sendJson(request, batchView(rows, outcomes));
    }),

    handle(discoverTargets(rules), async ({ body, caller, request }) => {
      return sendJson(request, await discoverAndAdd({ discovery, targets }, caller, body));
    }),
  ]);
};
