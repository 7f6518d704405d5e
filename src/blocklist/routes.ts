import { Elysia } from "elysia";
import type { z } from "zod";
import type { Clock } from "../base/clock.ts";
import { AppError } from "../base/errors.ts";
import { isId } from "../base/secrets.ts";
import type { Catalogue } from "../dnsbl/blocklist.ts";
import type { DnsblHealth } from "../dnsbl/health.ts";
import { readJson } from "../http/body.ts";
import type { Guard } from "../http/guard.ts";
import { readPlainly, rowsById, sendPage } from "../http/list-page.ts";
import { pageParameters, readPage, readTimeoutS } from "../http/query.ts";
import type { UrlPolicy } from "../net/fetch-url.ts";
import { checkView, runningView } from "./check-body.ts";
import { catalogueView, testListView } from "./list-view.ts";
import type { FinishedCheck, BlocklistMonitor } from "./monitor.ts";
import type { RangeChecks } from "./range-check.ts";
import { checkFiltersSchema, targetChangeSchema, targetFiltersSchema, newTargetSchema } from "./schemas.ts";
import { isTargetCursor, readTargetFilters, refuseOtherCursor } from "./target-filters.ts";
import type { BlocklistStore, TargetRow } from "./store.ts";
import { severityCursor } from "./severity.ts";
import type { Targets } from "./targets.ts";
import { listsByMode } from "./test-list.ts";
import { webhookUrlSchema } from "../webhooks/webhook-urls.ts";
import { waitFor } from "../base/wait.ts";

export interface BlocklistRouteDeps {
  readonly guard: Guard;
  readonly targets: Targets;
  readonly monitor: BlocklistMonitor;
  readonly rangeChecks: RangeChecks;
  readonly store: BlocklistStore;
  readonly catalogue: Catalogue;
  readonly health: DnsblHealth;
  readonly rules: UrlPolicy;
  readonly clock: Clock;
}

const PATH = "/v1/blacklist/targets";
const CHECK_TIMEOUT_S = 30;

const knownId = (id: string): string => {
  if (isId(id)) return id;
  throw new AppError("not_found", { message: "There is no such target." });
};

/** The endpoints of blocklist monitoring (specification, contract §7). */
export const createBlocklistRoutes = (deps: BlocklistRouteDeps) => {
  const { guard, targets, monitor, rangeChecks, store, catalogue, health, rules, clock } = deps;
  const webhookUrl = webhookUrlSchema(rules);
  const orderSchema = newTargetSchema(webhookUrl);
  const changeSchema = targetChangeSchema(webhookUrl);
  const read = { demand: { scope: "blacklist:read" } } as const;
  const listing = (filters: z.ZodObject) =>
    ({ demand: { scope: "blacklist:read", query: pageParameters(filters) } }) as const;
  const write = { parse: "none", demand: { scope: "blacklist:write" } } as const;

  return new Elysia({ name: "blocklist" })
    .use(guard)
    .post(
      PATH,
      async ({ request, caller, set }) => {
        const order = await readJson(request, orderSchema);
        const { target: text, label, monitoring_enabled, webhook_url, recipients, alert_severity_min } = order;
        const { target, isNew } = await targets.add(caller, {
          target: text,
          label: label ?? null,
          monitoringEnabled: monitoring_enabled ?? true,
          webhookUrl: webhook_url ?? null,
          recipients: recipients ?? [],
          alertSeverityMin: alert_severity_min ?? null,
        });
        if (isNew) {
          set.status = 201;
          set.headers.location = `${PATH}/${target.id}`;
        }
        return targets.view(target);
      },
      write,
    )
    .get(
      PATH,
      async ({ request, caller }) => {
        const page = readPage(request, targetFiltersSchema, isTargetCursor);
        const { sort = "created" } = page.filters;
        refuseOtherCursor(page.after, sort);
        const filters = readTargetFilters(page.filters, listsByMode(catalogue.lists)[caller.mode]);
        if (sort === "created") {
          return sendPage(
            request,
            { name: "targets", page },
            rowsById(targets.list(caller, filters), (row) => targets.view(row)),
          );
        }
        return sendPage<TargetRow>(
          request,
          { name: "targets", page },
          {
            read: targets.listWorst(caller, filters),
            keyOf: severityCursor,
            json: (row) => JSON.stringify(targets.view(row)),
          },
        );
      },
      listing(targetFiltersSchema),
    )
    .get(`${PATH}/:id`, async ({ params, caller }) => targets.view(targets.find(caller, knownId(params.id))), read)
    .patch(
      `${PATH}/:id`,
      async ({ request, params, caller }) => {
        const id = targets.find(caller, knownId(params.id)).id;
        const wanted = await readJson(request, changeSchema);
        const { label, monitoring_enabled, webhook_url, muted_lists, recipients, alert_severity_min } = wanted;
        const changed = await targets.change(caller, id, {
          ...(label === undefined ? {} : { label }),
          ...(monitoring_enabled === undefined ? {} : { monitoringEnabled: monitoring_enabled }),
          ...(webhook_url === undefined ? {} : { webhookUrl: webhook_url }),
          ...(muted_lists === undefined ? {} : { mutedLists: muted_lists }),
          ...(recipients === undefined ? {} : { recipients }),
          ...(alert_severity_min === undefined ? {} : { alertSeverityMin: alert_severity_min }),
        });
        return targets.view(changed);
      },
      write,
    )
    .delete(
      `${PATH}/:id`,
      async ({ params, caller, set }) => {
        await targets.remove(caller, knownId(params.id));
        set.status = 204;
      },
      write,
    )
    .post(
      `${PATH}/:id/check`,
      async ({ request, params, caller, set }) => {
        const timeoutS = readTimeoutS(request, CHECK_TIMEOUT_S);
        const target = targets.find(caller, knownId(params.id));
        const running = target.members === null ? monitor.checkOnDemand(target) : rangeChecks.check(target);
        const limits = { timeoutMs: timeoutS * 1000, signal: request.signal };
        const waited = await waitFor<FinishedCheck | null>(clock, running.done, limits);
        const finished = waited.ok ? waited.value : undefined;
        if (finished) return { target: targets.view(finished.target), check: checkView(finished.check) };
        const current = targets.find(caller, target.id);
        if (finished === null) throw new AppError("unavailable", { headers: { "retry-after": "5" } });
        set.status = 202;
        set.headers.location = `${PATH}/${target.id}/checks`;
        return { target: targets.view(current), check: runningView(running) };
      },
      { parse: "none", demand: { scope: "blacklist:write", query: ["timeout"] } },
    )
    .get(
      `${PATH}/:id/checks`,
      async ({ request, params, caller }) => {
        const { id } = targets.find(caller, knownId(params.id));
        const page = readPage(request, checkFiltersSchema, isId);
        const read = readPlainly((window) => store.listChecks(id, window));
        return sendPage(request, { name: "checks", page }, rowsById(read, checkView));
      },
      listing(checkFiltersSchema),
    )
    .get(
      "/v1/blacklist/lists",
      async ({ caller }) => {
        const view = catalogueView(catalogue, health);
        return caller.mode === "test" ? { ...view, lists: [testListView(), ...view.lists] } : view;
      },
      read,
    );
};
