import type { Platform } from "./compose-engine.ts";
import type { Log } from "./base/log.ts";
import type { Db } from "./db/open.ts";
import { createHealthCheck } from "./dmarc/health/health.ts";
import { createHealthPasses } from "./dmarc/health/health-passes.ts";
import { createHealthRoutes, type HealthRouteDeps } from "./dmarc/health/health-routes.ts";
import { HealthRuns } from "./dmarc/health/health-runs.ts";
import { createHealthStore } from "./dmarc/health/health-store.ts";
import type { DnsResolver } from "./net/dns.ts";
import { createGetter } from "./net/fetch.ts";
import type { UrlPolicy } from "./net/fetch-url.ts";

export interface HealthParts extends Omit<HealthRouteDeps, "runs"> {
  readonly db: Db;
  readonly log: Log;
  readonly platform: Platform;
  /** A resolver that keeps nothing: a record that was just published is to be seen. */
  readonly freshResolver: DnsResolver;
  readonly rules: UrlPolicy;
}

/** The health of domains without a service, for the command line. */
export const composeHealthCheck = ({ clock, resolver }: Pick<Platform, "clock" | "resolver">, rules: UrlPolicy) =>
  createHealthCheck({ resolver, clock, get: createGetter({ resolver, rules, clock }) });

/** The health of enrolled domains: on request, and daily. */
export const composeHealth = ({ db, log, platform, freshResolver, rules, guard, findDomain }: HealthParts) => {
  const { clock } = platform;
  const store = createHealthStore(db);
  const check = composeHealthCheck(platform, rules);
  const runs = new HealthRuns({ db, store, check, resolver: freshResolver, clock });
  const passes = createHealthPasses({ db, store, runs, clock, log });
  return {
    routes: createHealthRoutes({ guard, runs, findDomain }),
    /** The last stored health of a domain, by its number, without any DNS query; null before its first check. */
    readHealth: store.readHealth,
    checkDomainHealth: passes.run,
    stop: (): Promise<void> => runs.stop(),
  };
};
