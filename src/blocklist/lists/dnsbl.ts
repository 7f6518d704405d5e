import type { Clock } from "../../foundation/base/clock.ts";
import type { Random } from "../../foundation/base/secrets.ts";
import type { DnsResolver } from "../../foundation/net/dns.ts";
import type { DnsblPacing } from "./budget.ts";
import { createDnsblPacing } from "./budget.ts";
import { ChangeConfirmer } from "./change-confirmer.ts";
import { DnsblHealth } from "./health.ts";
import { ListClient } from "./list-client.ts";
import { LivenessProber } from "./liveness.ts";
import { DnsblLookup } from "./lookup.ts";
import type { RegistrableDomain } from "./query-name.ts";

export interface Dnsbl {
  readonly lookup: DnsblLookup;
  readonly health: DnsblHealth;
}

/** Lookups and health over one resolver. They share budgets and what is known about the lists: create one per process. */
export const createDnsbl = (deps: {
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  readonly random: Random;
  readonly registrableDomain: RegistrableDomain;
  /** Default: the published budgets. `noPacing` is for measurements and for your own lists. */
  readonly pacing?: DnsblPacing;
}): Dnsbl => {
  const { resolver, clock, random, pacing = createDnsblPacing({ clock }) } = deps;
  const client = new ListClient(resolver, pacing);
  const prober = new LivenessProber(client, deps);
  const health = new DnsblHealth(clock, { client, random, prober });
  const confirmer = new ChangeConfirmer(deps, { client, health, prober });
  return { health, lookup: new DnsblLookup(deps, { client, health, confirmer }) };
};
