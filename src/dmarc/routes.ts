import type { Guard } from "../foundation/http/guard.ts";
import { serveRoutes } from "../foundation/http/route.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { createAlertRoutes, DomainAlerts, createAdviceRoutes, createHealthRoutes } from "./finding-routes.ts";
import { AcceptedReporters, createReporterRoutes } from "./insight/queries/accepted-reporters.ts";
import { createMtaStsRoutes } from "./insight/sts/hosting-routes.ts";
import { createFigureReader } from "./insight/queries/summary.ts";
import { createRecordHistoryRoutes } from "./insight/queries/record-history-routes.ts";
import { createQueryRoutes } from "./insight/queries/query-routes.ts";
import type { DmarcSlice } from "./open.ts";
import { createDomainRoutes } from "./domain-routes.ts";
import { createShareRoutes } from "./share-routes.ts";
import { createTagRoutes } from "./tag-routes.ts";
import { IngestionReader } from "./reports/ingest/ingestions.ts";
import { createIngestionRoutes } from "./reports/ingest/ingestion-routes.ts";

/** The routes of DMARC monitoring. */
export const createDmarcRoutes = ({
  guard,
  rules,
  dmarc,
}: {
  readonly guard: Guard;
  readonly rules: UrlPolicy;
  readonly dmarc: DmarcSlice;
}) => {
  const { context, stores, reports, domains, rollups, advise } = dmarc;
  const { ingestions, uploads } = reports;
  const { findDomain, clock } = context;
  return [
    serveRoutes(guard, [
      ...createIngestionRoutes({ ingestions, uploads, reader: new IngestionReader(ingestions, stores.domains) }),
      ...createDomainRoutes(domains, createFigureReader(rollups, clock), rules),
      ...createReporterRoutes(new AcceptedReporters(context, stores.reporters)),
      ...createQueryRoutes(context, stores.failures),
      ...createAdviceRoutes({ findDomain, advise }),
      ...createRecordHistoryRoutes(dmarc.recordHistory),
      ...createMtaStsRoutes(dmarc.domainHosting),
      ...createShareRoutes({ shares: dmarc.shares, findDomain }),
      ...createTagRoutes(dmarc.tags),
    ]),
    createAlertRoutes({ guard, alerts: new DomainAlerts(dmarc.raised, findDomain) }),
    createHealthRoutes({ guard, runs: dmarc.health, findDomain }),
  ];
};
