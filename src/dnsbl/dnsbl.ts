import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/secrets.ts";
import type { DnsResolver } from "../net/dns.ts";
import { createAliveProver } from "./alive.ts";
import { createListAsker } from "./ask-list.ts";
import type { DnsblPacing } from "./budget.ts";
import { createDnsblPacing } from "./budget.ts";
import { createConfirmer } from "./confirm.ts";
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
  const asker = createListAsker({ resolver, pacing });
  const freshness = createFreshness(clock);
  const prover = createAliveProver({ ...deps, asker, freshness });
  const health = createDnsblHealth({ ...deps, asker, prover });
  const confirmer = createConfirmer({ ...deps, asker, health, prover });
  return { health, lookup: createDnsblLookup({ ...deps, asker, health, confirmer }) };
};
