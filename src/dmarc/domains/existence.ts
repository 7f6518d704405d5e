import { type DnsResolver, isDefinite } from "../../net/dns.ts";
import type { PolicyDiscovery } from "../record/discovery.ts";

/**
 * Puts right what a domain inherits when its name does not exist in the DNS: then the `np` of the record above applies to it, not
 * the `sp` (RFC 9989 §4.7). That must be known before a record is advised, which makes the name exist. Asks only where the two
 * differ; a DNS that does not answer leaves the policy unknown. Never rejects.
 */
export const applyNonexistentPolicy = async (
  resolver: DnsResolver,
  domain: string,
  discovery: PolicyDiscovery,
): Promise<PolicyDiscovery> => {
  if (discovery.kind !== "inherited" || discovery.policy.p === discovery.policy.np) return discovery;
  const { outcome, cnames } = await resolver.resolve(domain, "A");
  if (!isDefinite(outcome)) {
    const { published, asked } = discovery;
    return { kind: "indefinite", host: domain, outcome, published, asked };
  }
  // An alias exists, even where its target does not.
  if (outcome !== "nxdomain" || cnames.length > 0) return discovery;
  return { ...discovery, policy: { ...discovery.policy, p: discovery.policy.np } };
};
