import type { Platform } from "./compose-platform.ts";
import type { Runtime } from "../foundation/db/runtime.ts";
import { HealthJob } from "../dmarc/insight/health/health-job.ts";
import { HealthRuns } from "../dmarc/insight/health/health-runs.ts";
import { HealthStore } from "../dmarc/insight/health/health-store.ts";
import { createHealthCheck } from "../dmarc/insight/health/health.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import type { UrlPolicy } from "../foundation/net/fetch-url.ts";
import { createGetter } from "../foundation/net/fetch.ts";

export interface HealthOptions {
  readonly resolver: DnsResolver;
  /** A resolver without a cache: a record that was just published must be found. */
  readonly freshResolver: DnsResolver;
  readonly rules: UrlPolicy;
}

/** The health of domains without a service, for the command line. */
export const composeHealthCheck = ({ clock, resolver }: Pick<Platform, "clock" | "resolver">, rules: UrlPolicy) =>
  createHealthCheck({ resolver, clock, get: createGetter({ resolver, rules, clock }) });

/** The health of enrolled domains: on request, and daily. */
export const composeHealth = (
  runtime: Pick<Runtime, "db" | "clock" | "log">,
  { resolver, freshResolver, rules }: HealthOptions,
) => {
  const store = new HealthStore(runtime.db);
  const check = composeHealthCheck({ clock: runtime.clock, resolver }, rules);
  const runs = new HealthRuns(runtime, { store, check, resolver: freshResolver });
  const job = new HealthJob(runtime, { store, runs });
  return {
    runs,
    checkDomainHealth: () => job.run(),
    stop: (): Promise<void> => runs.stop(),
  };
};
