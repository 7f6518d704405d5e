import { readFileSync } from "node:fs";
import { systemClock } from "../foundation/base/clock.ts";
import { err, errorCode } from "../foundation/base/errors.ts";
import { systemRandom } from "../foundation/base/secrets.ts";
import type { Config } from "./config.ts";
import { isAllowedRecipient } from "../foundation/mail/recipients.ts";
import { createDirectConnector } from "../foundation/net/connector.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import type { DnsTimeouts } from "../foundation/net/dns-querier.ts";
import { createDnsResolver } from "../foundation/net/dns-resolver.ts";
import { createMailer, type Mailer } from "../foundation/net/mailer.ts";
import { createAddressPolicy } from "../foundation/net/public-address.ts";
import { parseResolvConf } from "../foundation/net/resolv-conf.ts";
import type { Platform } from "../foundation/net/platform.ts";

const RESOLV_CONF = "/etc/resolv.conf";
const systemDnsServers = () => {
  try {
    return parseResolvConf(readFileSync(RESOLV_CONF, "utf8"));
  } catch (error) {
    if (errorCode(error) === "ENOENT") return parseResolvConf("");
    throw error;
  }
};

/** The name servers of the settings, else those of the system. */
export const dnsServersOf = (config: Config) => config.dnsServers ?? systemDnsServers();

/** The platform of the service: the system's clock and randomness, the configured DNS servers, TCP. */
export const systemPlatform = (config: Config, timeouts: Partial<DnsTimeouts> = {}): Platform & { close(): void } => {
  const resolver = createDnsResolver({ servers: dnsServersOf(config), clock: systemClock, timeouts });
  const policy = createAddressPolicy(config.probeAllowNetworks);
  const connector = createDirectConnector({ clock: systemClock, mayConnect: policy.isAllowed });
  return { clock: systemClock, random: systemRandom, resolver, connector, close: () => resolver.close() };
};

/**
 * A resolver without a cache, for blocklists and DMARC records: a confirming query must reach the server, and the responses of
 * a pass over blocklists would evict everything else. Queries to lists that time out do not delay other queries either.
 */
export const freshResolverOf = (config: Config): DnsResolver & { close(): void } =>
  createDnsResolver({ servers: dnsServersOf(config), clock: systemClock, cacheEntriesMax: 0 });

/**
 * Sends the service's own mail; null when no relay is set. Refuses recipients outside `POSTWARDEN_NOTIFY_DOMAINS`, also those
 * that were set before the setting.
 */
export const mailerOf = ({ notifyRelay: relay, notifyFrom: from, notifyDomains }: Config): Mailer | null => {
  if (relay === null || from === null) return null;
  const mailer = createMailer(relay, from);
  return async (mail) =>
    isAllowedRecipient(mail.to, notifyDomains)
      ? await mailer(mail)
      : err({ isFinal: true, problem: "The domain of the recipient is not in POSTWARDEN_NOTIFY_DOMAINS." });
};
