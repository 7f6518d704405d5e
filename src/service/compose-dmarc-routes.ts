import type { Dmarc } from "./compose-dmarc.ts";
import { createAdviceRoutes } from "../dmarc/insight/advice/advice-routes.ts";
import { createAlertRoutes } from "../dmarc/alerts/rules/alert-routes.ts";
import { DomainAlerts } from "../dmarc/alerts/rules/domain-alerts.ts";
import { AcceptedReporters } from "../dmarc/insight/queries/accepted-reporters.ts";
import { createReporterRoutes } from "../dmarc/insight/queries/reporter-routes.ts";
import { createDomainRoutes } from "../dmarc/records/domains/domain-routes.ts";
import { createHealthRoutes } from "../dmarc/insight/health/health-routes.ts";
import { IngestionReader } from "../dmarc/reports/ingest/ingestion-reader.ts";
import { createIngestionRoutes } from "../dmarc/reports/ingest/ingestion-routes.ts";
import { createFigureReader } from "../dmarc/insight/queries/domain-figures.ts";
import { createQueryRoutes } from "../dmarc/insight/queries/query-routes.ts";
import type { Guard } from "../foundation/http/guard.ts";
import { serveRoutes } from "../foundation/http/route.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";

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
