import { createAddresses } from "./addresses.ts";
import { createBuilder } from "./builder.ts";
import { createChance } from "./chance.ts";
import type { FleetDns } from "./dns.ts";
import { eventfulDomains } from "./domains-eventful.ts";
import { attackedDomains } from "./domains-attacked.ts";
import { quietDomains } from "./domains-quiet.ts";
import { unalignedDomains } from "./domains-unaligned.ts";
import type { DomainPlan } from "./plan.ts";

/** All plans of a seed; only those whose name or theme fits. Publishes the DNS records that do not depend on the day. */
export const fleetOf = (seed: number, dns: FleetDns, { key, only }: { key: string; only: RegExp }): DomainPlan[] => {
  const addresses = createAddresses(dns, createChance(seed).named("addresses"));
  const builder = createBuilder(addresses, key);
  const makers = [quietDomains, unalignedDomains, attackedDomains, eventfulDomains];
  const plans = makers.flatMap((make) => make(builder));
  return plans.filter(({ name, theme }) => only.test(name) || only.test(theme));
};
