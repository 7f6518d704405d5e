import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { DnsResolver } from "../net/dns.ts";
import { createLivenessProber } from "./liveness.ts";
import { createListClient } from "./list-client.ts";
import type { DnsblPacing } from "./budget.ts";
import { createDnsblPacing } from "./budget.ts";
import { createChangeConfirmer } from "./change-confirmer.ts";
import { createFreshness } from "./freshness.ts";
import type { DnsblHealth } from "./health.ts";
import { createDnsblHealth } from "./health.ts";
import type { DnsblLookup } from "./lookup.ts";
import { createDnsblLookup } from "./lookup.ts";
import type { RegistrableDomain } from "./query-name.ts";

export interface Dnsbl {
  readonly lookup: DnsblLookup;
  readonly health: DnsblHealth;
}

/** Lookups and health over one resolver, which share what they know and the budgets of the lists. One per process. */
export const createDnsbl = (deps: {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  readonly random: Random;
  readonly registrableDomain: RegistrableDomain;
  /** `noPacing` for measurements and one's own lists; by default the published budgets. */
  readonly pacing?: DnsblPacing;
}): Dnsbl => {
  const { resolver, clock, pacing = createDnsblPacing({ clock }) } = deps;
  const client = createListClient({ resolver, pacing });
  const freshness = createFreshness(clock);
  const prober = createLivenessProber({ ...deps, client, freshness });
  const health = createDnsblHealth({ ...deps, client, prober });
  const confirmer = createChangeConfirmer({ ...deps, client, health, prober });
  return { health, lookup: createDnsblLookup({ ...deps, client, health, confirmer }) };
};
