import type { BlocklistSlice } from "./open.ts";
import { camelKeys } from "../foundation/base/key-case.ts";
import type { Clock } from "../foundation/base/clock.ts";
import { AppError } from "../foundation/base/errors.ts";
import { waitFor } from "../foundation/base/wait.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { readById } from "../foundation/base/walk.ts";
import { rowsById, sendPage } from "../foundation/http/list-page.ts";
import { handle, serveRoutes } from "../foundation/http/route.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { checkView, runningView } from "./check-result.ts";
import { catalogueView, testListView } from "./list-status.ts";
import type { FinishedCheck } from "./monitor.ts";
import {
  ANNOTATE_LISTING,
  CHECK_TARGET,
  createTarget,
  DELETE_TARGET,
  GET_LISTS,
  GET_TARGET,
  LIST_CHECKS,
  LIST_MEMBERS,
  LIST_TARGETS,
  TARGETS_PATH,
  updateTarget,
  createTargets,
  discoverTargets,
  GET_OVERVIEW,
} from "./operations.ts";
import type { TargetRow } from "./store.ts";
import { readTargetFilters, refuseOtherCursor, severityCursor } from "./schemas.ts";
import { listsByMode } from "./target-lookup.ts";
import { DAY_MS } from "../foundation/base/days.ts";
import { sendJson } from "../foundation/http/response.ts";
import { webhookUrlSchema } from "../notifications/webhooks/url-store.ts";
import { batchView, newTargetsOf, readBatch } from "./batch.ts";
import { insufficientScope } from "../foundation/http/guard.ts";
import { allows } from "../foundation/http/scopes.ts";
import { discoverAndAdd } from "./discovery.ts";

interface BlocklistRouteDeps {
  readonly guard: Guard;
  readonly blocklist: BlocklistSlice;
  readonly rules: UrlPolicy;
  readonly clock: Clock;
  /** The name of a key. */
  readonly keyName: (keyId: string) => string;
}

const LISTING_CHARACTERS_MAX = 100;

/** Serves the targets of blocklist monitoring, their checks and listings, and the overview (contract §7). */
export const createBlocklistRoutes = (deps: BlocklistRouteDeps) =>
  serveRoutes(deps.guard, [
    ...targetRoutes(deps),
    ...targetListRoutes(deps),
    ...checkRoutes(deps),
    ...overviewRoutes(deps),
  ]);

const targetRoutes = ({ blocklist: { targets, notes }, rules, keyName }: BlocklistRouteDeps) => [
  handle(createTarget(rules), async ({ body, caller, set }) => {
    const { target, isNew } = await targets.add(caller, {
      target: body.target,
      label: body.label ?? null,
      monitoringEnabled: body.monitoring_enabled ?? true,
      webhookUrl: body.webhook_url ?? null,
      recipients: body.recipients ?? [],
      alertSeverityMin: body.alert_severity_min ?? null,
    });
    if (isNew) {
      set.status = 201;
      set.headers.location = `${TARGETS_PATH}/${target.id}`;
    }
    return targets.view(target);
  }),

  handle(GET_TARGET, ({ params, caller }) => targets.view(targets.find(caller, params.id))),

  handle(updateTarget(rules), async ({ params, body, caller }) => {
    return targets.view(await targets.change(caller, params.id, camelKeys(body)));
  }),

  handle(DELETE_TARGET, async ({ params, caller, set }) => {
    await targets.remove(caller, params.id);
    set.status = 204;
  }),

  handle(ANNOTATE_LISTING, async ({ params, body, caller }) => {
    const target = targets.find(caller, params.id);
    const listing = params.listing.slice(0, LISTING_CHARACTERS_MAX);
    return targets.view(await notes.change(target, listing, { by: keyName(caller.keyId), change: body }));
  }),
];

const targetListRoutes = ({ blocklist: { targets, catalogue, health } }: BlocklistRouteDeps) => {
  const lists = listsByMode(catalogue.lists);
  return [
    handle(LIST_TARGETS, ({ query, caller, request }) => {
      const { limit, cursor, sort, ...rest } = query;
      refuseOtherCursor(cursor, sort);
      const filters = readTargetFilters(rest, lists[caller.mode]);
      const page = { name: "targets", page: { limit, cursor } };
      if (sort === "created")
        return sendPage(
          request,
          page,
          rowsById(targets.list(caller, filters), (row) => targets.view(row)),
        );
      return sendPage<TargetRow>(request, page, {
        read: targets.listWorst(caller, filters),
        keyOf: severityCursor,
        json: (row) => JSON.stringify(targets.view(row)),
      });
    }),

    handle(LIST_MEMBERS, ({ params, query, caller, request }) => {
      const range = targets.find(caller, params.id);
      if (range.members === null) throw new AppError("not_found", { message: "The target is not a range." });
      const { limit, cursor, ...rest } = query;
      const filters = { ...readTargetFilters(rest, lists[caller.mode]), rangeId: range.id };
      const rows = rowsById(targets.list(caller, filters), (row) => targets.view(row));
      return sendPage(request, { name: "members", page: { limit, cursor } }, rows);
    }),

    handle(GET_LISTS, ({ caller }) => {
      const view = catalogueView(catalogue, health);
      return caller.mode === "test" ? { ...view, lists: [testListView(), ...view.lists] } : view;
    }),
  ];
};

const checkRoutes = ({ blocklist: { targets, monitor, rangeChecks, store }, clock }: BlocklistRouteDeps) => [
  handle(CHECK_TARGET, async ({ params, query, caller, request, set }) => {
    const target = targets.find(caller, params.id);
    const running = target.members === null ? monitor.checkOnDemand(target) : rangeChecks.check(target);
    const limits = { timeoutMs: query.timeout * 1000, signal: request.signal };
    const waited = await waitFor<FinishedCheck | null>(clock, running.done, limits);
    if (waited.ok && waited.value !== null)
      return { target: targets.view(waited.value.target), check: checkView(waited.value.check) };
    const current = targets.find(caller, target.id);
    if (waited.ok) throw new AppError("unavailable", { headers: { "retry-after": "5" } });
    set.status = 202;
    set.headers.location = `${TARGETS_PATH}/${target.id}/checks`;
    return { target: targets.view(current), check: runningView(running) };
  }),

  handle(LIST_CHECKS, ({ params, query, caller, request }) => {
    const { id } = targets.find(caller, params.id);
    const rows = rowsById(
      readById((window) => store.listChecks(id, window)),
      checkView,
    );
    return sendPage(request, { name: "checks", page: query }, rows);
  }),
];

/** What concerns many targets: the overview, batches, discovery. */
const overviewRoutes = ({ blocklist: { targets, overview, discovery }, rules, clock }: BlocklistRouteDeps) => [
  handle(GET_OVERVIEW, async ({ query, caller, request }) =>
    sendJson(request, await overview.read(caller, query.since ?? clock.nowMs() - DAY_MS)),
  ),

  handle(createTargets(rules), async ({ query, caller, request }) => {
    const rows = await readBatch(request, query, webhookUrlSchema(rules));
    const outcomes = await targets.addMany(caller, newTargetsOf(rows));
    return sendJson(request, batchView(rows, outcomes));
  }),

  handle(discoverTargets(rules), async ({ body, caller, request }) => {
    if (body.dmarc_domain !== undefined && !allows(caller.scopes, "dmarc:read")) throw insufficientScope("dmarc:read");
    return sendJson(request, await discoverAndAdd({ discovery, targets }, caller, body));
  }),
];
