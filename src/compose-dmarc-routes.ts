import type { Dmarc } from "./compose-dmarc.ts";
import { createAdviceRoutes } from "./dmarc/advice/advice-routes.ts";
import { createAlertRoutes } from "./dmarc/alerts/alert-routes.ts";
import { DomainAlerts } from "./dmarc/alerts/domain-alerts.ts";
import { AcceptedReporters } from "./dmarc/queries/accepted-reporters.ts";
import { createReporterRoutes } from "./dmarc/queries/reporter-routes.ts";
import { createDomainRoutes } from "./dmarc/domains/domain-routes.ts";
import { createHealthRoutes } from "./dmarc/health/health-routes.ts";
import { IngestionReader } from "./dmarc/ingest/ingestion-reader.ts";
import { createIngestionRoutes } from "./dmarc/ingest/ingestion-routes.ts";
import { createFigureReader } from "./dmarc/queries/domain-figures.ts";
import { createQueryRoutes } from "./dmarc/queries/query-routes.ts";
import type { Guard } from "./http/guard.ts";
import { serveRoutes } from "./http/route.ts";
import type { UrlPolicy } from "./net/fetch-url.ts";

export interface DmarcRouteParts {
  readonly guard: Guard;
  readonly rules: UrlPolicy;
  readonly dmarc: Dmarc;
}

/** The routes of DMARC monitoring. */
export const composeDmarcRoutes = ({ guard, rules, dmarc }: DmarcRouteParts) => {
  const { domains, rollups, advise, pages, context, stores } = dmarc;
  const { findDomain, clock } = context;
  return [
    serveRoutes(guard, [
      ...createIngestionRoutes({ ...pages, reader: new IngestionReader(pages.ingestions, stores.domains) }),
      ...createDomainRoutes(domains, createFigureReader(rollups, clock), rules),
      ...createReporterRoutes(new AcceptedReporters(context, stores.reporters)),
      ...createQueryRoutes(context, stores.failures),
      ...createAdviceRoutes({ findDomain, advise }),
    ]),
    createAlertRoutes({ guard, alerts: new DomainAlerts(dmarc.alertStore, findDomain) }),
    createHealthRoutes({ guard, runs: pages.health, findDomain }),
  ];
};
