import { createAccountRoutes } from "../accounts/routes.ts";
import { createBlocklistRoutes } from "../blocklist/routes.ts";
import { createBulkRoutes } from "../bulk/routes.ts";
import { createDmarcRoutes } from "../dmarc/routes.ts";
import { LoadOnce } from "../foundation/base/load-once.ts";
import type { ErrorPage } from "../foundation/http/boundary.ts";
import { createUrlOfRequest, pathOf } from "../foundation/http/request-target.ts";
import type { Service, ServiceOptions } from "./compose.ts";
import { ANY_URL } from "./docs/docs-response.ts";
import type { CommandDoc } from "./docs/reference.ts";
import { EVENT_TYPES } from "./event-docs.ts";
import { createMetricsRenderer } from "./service-metrics.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import { createWindowRoutes } from "../notifications/windows/routes.ts";
import { createNotificationsRoutes } from "../notifications/settings/routes.ts";
import { createMcpRoutes } from "./mcp/routes.ts";
import type { Manual } from "./manual.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { createUsageRoutes } from "../accounts/usage/routes.ts";
import { createBounceRoutes } from "../verify/bounces/routes.ts";
import { createVerifyRoutes } from "../verify/routes.ts";
import { VERSION } from "./version.ts";
import { createWebhookRoutes } from "../notifications/webhooks/routes.ts";

const DESCRIPTION = "Verifies email addresses, monitors DNS blocklists and processes DMARC reports.";

/** A service that no command line started has no reference of one. */
const noCommands = async (): Promise<CommandDoc> => ({
  ...{ path: [], usage: "", description: DESCRIPTION, options: [], example: "", commands: [] },
});

const describeApi = async (): Promise<object> => {
  const { interfaceDocument } = await import("./interface-document.ts");
  return interfaceDocument({ version: VERSION, baseUrl: ANY_URL, description: DESCRIPTION });
};

/** Every route of the API. */
const routesOf = (service: Service, options: ServiceOptions, manual: LoadOnce<Manual> | null) => {
  const { metricsToken, baseUrl } = options.config;
  const { accounts, verification, notifications, blocklist, bulk, dmarc, usage, readiness } = service;
  const { clock } = service.runtime;
  const { guard } = usage;
  const { store, ledger } = accounts;
  const { webhooks, outbound } = notifications;
  const { rules } = outbound;
  return [
    createVerifyRoutes({ guard, ...verification, clock }),
    createBounceRoutes({ guard, bounces: service.bounces, clock }),
    createBulkRoutes({ guard, bulk: bulk.jobs, lists: bulk.run.lists, comparisons: bulk.comparisons }),
    createAccountRoutes(guard, { store, ledger }),
    createUsageRoutes(guard, { usage: usage.usage, clock, nameOf: accounts.callerName }),
    createBlocklistRoutes({ guard, rules, clock, blocklist, keyName: (id) => store.findKey(id)?.name ?? id }),
    ...createDmarcRoutes({ guard, rules, dmarc }),
    createWebhookRoutes({ guard, webhooks, rules, types: EVENT_TYPES }),
    createNotificationsRoutes({ guard, notifications: notifications.settings, rules }),
    createWindowRoutes({ guard, windows: outbound.windows }),
    createServiceRoutes({
      guard,
      describe: describeApi,
      urlOf: createUrlOfRequest(baseUrl, options.baseUrl),
      manual,
      readiness,
      metrics: { token: metricsToken, render: createMetricsRenderer(service) },
    }),
  ].flat();
};

/** The API as an application. */
export const openApi = (service: Service, options: ServiceOptions): HttpApplication => {
  const { log, clock } = service.runtime;
  const { config, commands = noCommands } = options;
  const deps = { describe: describeApi, commands, urlOf: createUrlOfRequest(config.baseUrl, options.baseUrl) };
  const manual = config.docs ? new LoadOnce(async () => new (await import("./manual.ts")).Manual(deps)) : null;
  // A path further below /docs has no route.
  const errorPage: ErrorPage = async (request, { status }) =>
    manual !== null && status === 404 && pathOf(request).startsWith("/docs/")
      ? (await manual.get()).respond(request, pathOf(request).slice("/docs/".length))
      : null;
  const agents = createMcpRoutes({
    ...{ guard: service.usage.guard, version: VERSION, baseUrl: config.baseUrl, describe: describeApi },
    serve: (request) => application.fetch(request),
  });
  const routes = [...routesOf(service, options, manual), ...agents];
  const application = createApplication({ log, clock, routes, errorPage });
  return application;
};
