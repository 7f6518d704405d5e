import { LoadOnce } from "../foundation/base/load-once.ts";
import { composeUseCases, type ServiceOptions } from "./compose.ts";
import { correctPlannedTimes } from "../foundation/db/planned-times.ts";
import { ClientAddresses } from "../foundation/http/client-addresses.ts";

const API_PATH = /^\/(v1|metrics|healthz|readyz|openapi\.json|docs)(\/|$)/;

/**
 * The whole service; `clients` names those that the server hears from. The API and the dashboard are two applications, each loaded by its first request:
 * most of the code is theirs, and a service that only monitors needs neither.
 */
export const composeService = (
  options: ServiceOptions,
  clients = new ClientAddresses(options.config.trustedProxies, options.log),
) => {
  const useCases = composeUseCases(options);
  const { metrics, administration, verification, probing, webhooks, blocklist, bulk, purge, dmarc, backups } = useCases;
  const { activity } = useCases;
  const { pool, outages } = probing;
  const { dispatcher } = webhooks;
  const { db, clock } = useCases.runtime;
  const api = new LoadOnce(async () => (await import("./compose-api.ts")).composeApi(useCases, options));
  const pages = new LoadOnce(async () => (await import("./compose-pages.ts")).composePages(useCases, options, clients));
  /** The application that a path belongs to. */
  const applicationOf = (path: string) => (API_PATH.test(path) ? api : pages).get();
  return {
    ...useCases.usage,
    ...{ applicationOf, metrics, purge, pool, outages, dispatcher, blocklist, dmarc, backups, activity },
    ...{ doctor: useCases.doctor, webhooks: webhooks.webhooks, bulk: bulk.jobs, lists: bulk.lists },
    ...{ notifications: webhooks.notifications, subscriptions: webhooks.subscriptions },
    /** Makes work due that was planned while the system's clock was wrong. */
    correctPlannedTimes: () => db.commit((tx) => correctPlannedTimes(db, tx, clock.nowMs())),
    ...verification,
    ...administration,
  };
};

export type Service = ReturnType<typeof composeService>;
