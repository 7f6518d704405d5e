import { openDashboard } from "../dashboard/open.ts";
import type { ClientAddresses } from "../foundation/http/client-addresses.ts";
import type { Service, ServiceOptions } from "./compose.ts";
import { createApplication, type HttpApplication } from "./http-application.ts";
import { createFactsReader, retentionOf } from "./service-facts.ts";

/** The dashboard as an application. */
export const openPages = (service: Service, options: ServiceOptions, clients: ClientAddresses): HttpApplication => {
  const { log, clock } = service.runtime;
  const dashboard = openDashboard(service, {
    ...{ linkUrl: options.config.baseUrl, baseUrl: options.baseUrl, retention: retentionOf(options.config) },
    clientAddress: (request) => clients.of(request),
    readFacts: createFactsReader(service, options),
  });
  const errorPage = dashboard.errorPage.bind(dashboard);
  return createApplication({ log, clock, routes: [dashboard.routes()], errorPage });
};
