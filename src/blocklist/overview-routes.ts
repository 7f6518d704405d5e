import { Elysia } from "elysia";
import type { z } from "zod";
import { AppError } from "../base/errors.ts";
import { DAY_MS } from "../base/days.ts";
import { isId, type KeyMode } from "../base/secrets.ts";
import type { Clock } from "../base/clock.ts";
import { sendJson } from "../http/response.ts";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import { rowsById, sendPage } from "../http/list-page.ts";
import { namesOf, pageParameters, parametersOf, readPage, readParameters } from "../http/query.ts";
import type { UrlPolicy } from "../net/fetch-url.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import type { Catalogue } from "../dnsbl/blocklist.ts";
import { BATCH_PARAMETERS, batchView, ordersOf, readBatch } from "./batch.ts";
import { discoverRequestSchema } from "./batch-schemas.ts";
import type { Discovered, TargetDiscovery } from "./discovery.ts";
import type { ListingNotesEditor } from "./listing-notes.ts";
import type { Overview } from "./overview.ts";
import { listingNotesSchema, memberFiltersSchema, overviewQuerySchema } from "./schemas.ts";
import { readTargetFilters } from "./target-filters.ts";
import { parseTarget } from "./parse-target.ts";
import type { NewTarget, Targets } from "./targets.ts";
import { listsByMode } from "./test-list.ts";

export interface OverviewRouteDeps {
  readonly guard: Guard;
  readonly targets: Targets;
  readonly notes: ListingNotesEditor;
  readonly overview: Overview;
  readonly discovery: TargetDiscovery;
  readonly catalogue: Catalogue;
  readonly rules: UrlPolicy;
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

/** A domain in its normal form. */
const readDomain = (text: string, mode: KeyMode): string => {
  const parsed = parseTarget(text, mode);
  const message = parsed.ok ? "A domain is needed, not an address" : parsed.error;
  if (parsed.ok && parsed.value.kind === "domain") return parsed.value.value;
  throw new AppError("Invalid request body", { issues: [{ path: "domain", message }] });
};

const orderOf =
  ({ label, webhook_url, alert_severity_min }: z.output<ReturnType<typeof discoverRequestSchema>>) =>
  ({ target }: Discovered): NewTarget => ({
    target,
    label: label ?? null,
    monitoringEnabled: true,
    webhookUrl: webhook_url ?? null,
    recipients: [],
    alertSeverityMin: alert_severity_min ?? null,
  });

/** Blocklist monitoring of many targets: the overview, batches, the addresses of ranges, notes about listings. */
export const createOverviewRoutes = (deps: OverviewRouteDeps) => {
  const { guard, targets, notes, overview, discovery, catalogue, rules, clock, keyName } = deps;
  const webhookUrl = webhookUrlSchema(rules);
  const discoverSchema = discoverRequestSchema(webhookUrl);
  const write = { parse: "none", demand: { scope: "blacklist:write" } } as const;

  return new Elysia({ name: "blocklist-overview" })
    .use(guard)
    .get(
      "/v1/blacklist/overview",
      async ({ request, caller }) => {
        const { since } = readParameters(parametersOf(request), overviewQuerySchema);
        return sendJson(request, await overview.read(caller, since ?? clock.nowMs() - DAY_MS));
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
    .post(
      `${PATH}/discover`,
      async ({ request, caller }) => {
        const order = await readJson(request, discoverSchema);
        const domain = order.domain === undefined ? null : readDomain(order.domain, caller.mode);
        const { found, unknown } = await discovery.discover({
          domain,
          egress: order.egress === true,
          mode: caller.mode,
        });
        const outcomes = order.dry_run === true ? [] : await targets.addMany(caller, found.map(orderOf(order)));
        const results = found.map(({ target, source }, at) => {
          const outcome = outcomes[at];
          if (outcome === undefined) return { target, source, status: "found", id: null, problem: null };
          const { status } = outcome;
          return outcome.status === "invalid"
            ? { target, source, status, id: null, problem: outcome.problem }
            : { target, source, status, id: outcome.target.id, problem: null };
        });
        return sendJson(request, { found: results, unknown });
      },
      write,
    )
    .get(
      `${PATH}/:id/members`,
      async ({ request, params, caller }) => {
        const range = targets.find(caller, knownId(params.id));
        if (range.members === null) throw new AppError("not_found", { message: "The target is no range." });
        const page = readPage(request, memberFiltersSchema, isId);
        const filters = readTargetFilters(page.filters, listsByMode(catalogue.lists)[caller.mode]);
        const read = targets.list(caller, { ...filters, rangeId: range.id });
        return sendPage(
          request,
          { name: "members", page },
          rowsById(read, (row) => targets.view(row)),
        );
      },
      { demand: { scope: "blacklist:read", query: pageParameters(memberFiltersSchema) } },
    )
    .patch(
      `${PATH}/:id/listings/:listing`,
      async ({ request, params, caller }) => {
        const target = targets.find(caller, knownId(params.id));
        const wanted = await readJson(request, listingNotesSchema);
        const listing = params.listing.slice(0, LISTING_CHARACTERS_MAX);
        return targets.view(await notes.change(target, listing, { by: keyName(caller.keyId), change: wanted }));
      },
      write,
    );
};
