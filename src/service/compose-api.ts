import { createAccountRoutes } from "../accounts/routes.ts";
import { createOverviewRoutes } from "../blocklist/overview-routes.ts";
import { createBlocklistRoutes } from "../blocklist/routes.ts";
import { createBulkRoutes } from "../bulk/routes.ts";
import { composeDmarcRoutes } from "./compose-dmarc-routes.ts";
import { createMetricsRenderer } from "./compose-metrics.ts";
import type { ServiceOptions, UseCases } from "./compose.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import { createNotificationsRoutes } from "../notifications/settings/routes.ts";
import { createServiceRoutes } from "./service-routes.ts";
import { createUsageRoutes } from "../accounts/usage/routes.ts";
import { createVerifyRoutes } from "../verify/routes.ts";
import { VERSION } from "./version.ts";
import { createWebhookRoutes } from "../notifications/webhooks/routes.ts";

const DESCRIPTION = "Verifies email addresses, monitors DNS blocklists and processes DMARC reports.";

/** Every route of the API. */
const composeRoutes = (useCases: UseCases, { config, baseUrl }: ServiceOptions) => {
  const { runtime, administration, verification, webhooks, blocklist, bulk, guard, dmarc } = useCases;
  const { store, ledger } = administration;
  const { rules } = webhooks;
  const { clock } = runtime;
  return [
    createVerifyRoutes({ guard, ...verification, clock }),
    createBulkRoutes({ guard, bulk: bulk.jobs, lists: bulk.lists }),
    createAccountRoutes(guard, { store, ledger }),
    createUsageRoutes(guard, { usage: useCases.usage.usage, clock, nameOf: administration.callerName }),
    createBlocklistRoutes({ guard, rules, clock, ...blocklist, keyName: (id) => store.findKey(id)?.name ?? id }),
    createOverviewRoutes({ guard, rules, clock, ...blocklist }),
    ...composeDmarcRoutes({ guard, rules, dmarc }),
    createWebhookRoutes({ guard, webhooks: webhooks.webhooks, rules }),
    createNotificationsRoutes({ guard, notifications: webhooks.notifications, rules }),
    createServiceRoutes({
      guard,
      describe: async () => {
        const { interfaceDocument } = await import("./interface-document.ts");
        return interfaceDocument({ version: VERSION, baseUrl, description: DESCRIPTION });
      },
      readiness: useCases.readiness,
      metrics: { token: config.metricsToken, render: createMetricsRenderer(useCases) },
    }),
  ];
};

/** The API as an application. */
export const composeApi = (useCases: UseCases, options: ServiceOptions): HttpApplication => {
  const { log, clock } = useCases.runtime;
  return createApplication({ log, clock, routes: composeRoutes(useCases, options) });
};
