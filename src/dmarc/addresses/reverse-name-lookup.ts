import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { type DnsResolver, isDefinite } from "../../net/dns.ts";
import { createAddressPolicy } from "../../net/public-address.ts";
import { reverseQueryName } from "../../net/dns-name.ts";
import type { ReverseName } from "./address-store.ts";
import type { AddressLookup, LookupOutcome } from "./address-lookup-job.ts";

/** Names of an address that are asked for their addresses, and the patience with each query. */
export const REVERSE_LIMITS = { namesMax: 10, timeoutMs: 5_000 } as const;

const DAY_MS = 86_400_000;
const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;
const PRIVATE_MS = 365 * DAY_MS;

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})+$/;

const FAILED: LookupOutcome<ReverseName> = { kind: "failed", partial: null };

/** Finds the reverse name of an address, and whether it leads back (RFC 8601 §3, `iprev`). */
export const createReverseNameLookup = (resolver: DnsResolver): AddressLookup<ReverseName> => {
  const { isAllowed } = createAddressPolicy([]);

  const leadsTo = async (name: string, ip: string, signal: AbortSignal): Promise<boolean | null> => {
    const patience = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal };
    const { outcome, records } = await resolver.resolve(name, isIP(ip) === 4 ? "A" : "AAAA", patience);
    if (!isDefinite(outcome)) return null;
    return records.some((address) => ipaddr.process(address).toString() === ip);
  };

  return {
    what: "the reverse name of an address",
    failuresInARowMax: null,
    async lookUp(ip, signal) {
      if (isIP(ip) === 0) return { kind: "private" };
      // Public DNS names no private address: that is known without a query, and nothing waits for it.
      if (!isAllowed(ip)) return { kind: "found", fact: { name: null, isConfirmed: false }, validMs: PRIVATE_MS };
      const patience = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal };
      const { outcome, records } = await resolver.resolve(reverseQueryName(ip), "PTR", patience);
      if (signal.aborted) return { kind: "aborted" };
      if (!isDefinite(outcome)) return FAILED;
      const names = records.filter((name) => HOST_NAME.test(name)).slice(0, REVERSE_LIMITS.namesMax);
      const answers = await Promise.all(names.map((name) => leadsTo(name, ip, signal)));
      if (signal.aborted) return { kind: "aborted" };
      const confirmed = names[answers.indexOf(true)];
      if (confirmed !== undefined)
        return { kind: "found", fact: { name: confirmed, isConfirmed: true }, validMs: FOUND_MS };
      if (answers.includes(null)) return FAILED;
      return { kind: "found", fact: { name: names[0] ?? null, isConfirmed: false }, validMs: NONE_MS };
    },
  };
};
