import { Elysia } from "elysia";
import { AppError } from "../base/errors.ts";
import { DAY_MS } from "../base/days.ts";
import { isId } from "../base/secrets.ts";
import type { Clock } from "../base/clock.ts";
import { sendJson } from "../http/answer.ts";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import { rowsById, sendPage } from "../http/list-page.ts";
import { namesOf, pageParameters, parametersOf, readPage, readParameters } from "../http/query.ts";
import type { OutgoingRules } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/schemas.ts";
import type { Catalogue } from "../dnsbl/blocklist.ts";
import { BATCH_PARAMETERS, batchView, ordersOf, readBatch } from "./batch.ts";
import type { ListingNotesUse } from "./listing-notes.ts";
import type { Overview } from "./overview.ts";
import { listingNotesSchema, memberFiltersSchema, overviewQuerySchema } from "./schemas.ts";
import { readTargetFilters } from "./target-filters.ts";
import type { Targets } from "./targets.ts";

export interface OverviewRouteDeps {
  readonly guard: Guard;
  readonly targets: Targets;
  readonly notes: ListingNotesUse;
  readonly overview: Overview;
  readonly catalogue: Catalogue;
  readonly rules: OutgoingRules;
  readonly clock: Clock;
  /** Name of a key. */
  readonly keyName: (keyId: string) => string;
}

const PATH = "/v1/blacklist/targets";
const LISTING_CHARACTERS_MAX = 100;

const knownId = (id: string): string => {
  if (isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such target." });
};

/** Blocklist monitoring of many targets: the overview, batches, the addresses of ranges, notes about listings. */
export const createOverviewRoutes = (deps: OverviewRouteDeps) => {
  const { guard, targets, notes, overview, catalogue, rules, clock, keyName } = deps;
  const webhookUrl = webhookUrlSchema(rules);

  return new Elysia({ name: "blocklist-overview" })
    .use(guard)
    .get(
      "/v1/blacklist/overview",
      async ({ request, caller }) => {
        const { since } = readParameters(parametersOf(request), overviewQuerySchema);
        return sendJson(request, await overview(caller, since ?? clock.nowMs() - DAY_MS));
      },
      { demand: { scope: "blacklist:read", query: namesOf(overviewQuerySchema) } },
    )
    .post(
      `${PATH}/batch`,
      async ({ request, caller }) => {
        const rows = await readBatch(request, webhookUrl);
        const outcomes = await targets.addMany(caller, ordersOf(rows));
        return sendJson(request, batchView(rows, outcomes));
      },
      { parse: "none", demand: { scope: "blacklist:write", query: BATCH_PARAMETERS } },
    )
    .get(
      `${PATH}/:id/members`,
      async ({ request, params, caller }) => {
        const range = targets.find(caller, knownId(params.id));
        if (range.members === null) throw new AppError("not_found", { message: "The target is no range." });
        const page = readPage(request, memberFiltersSchema, isId);
        const filters = readTargetFilters(page.filters, catalogue.lists, caller.mode);
        const read = targets.list(caller, { ...filters, rangeId: range.id });
        return sendPage(request, { name: "members", page }, rowsById(read, targets.view));
      },
      { demand: { scope: "blacklist:read", query: pageParameters(memberFiltersSchema) } },
    )
    .patch(
      `${PATH}/:id/listings/:listing`,
      async ({ request, params, caller }) => {
        const target = targets.find(caller, knownId(params.id));
        const wanted = await readJson(request, listingNotesSchema);
        const listing = params.listing.slice(0, LISTING_CHARACTERS_MAX);
        return targets.view(await notes.change(target, listing, { by: keyName(caller.keyId), wanted }));
      },
      { parse: "none", demand: { scope: "blacklist:write" } },
    );
};
