import { systemClock } from "../base/clock.ts";
import { egressesOf } from "../compose-engine.ts";
import type { Platform } from "../compose-platform.ts";
import type { Config } from "../config.ts";
import { isLocalAddress } from "../net/local-address.ts";
import { openSession } from "../net/smtp-client.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";

const portCheck = doctorFindings("port");

const CLOSED = "Most cloud providers block outgoing port 25 until you ask; without it no mailbox can be verified.";

/** The configured source addresses that are not addresses of this machine. */
export const foreignSourceAddresses = async ({
  sourceAddresses,
}: Pick<Config, "sourceAddresses">): Promise<readonly string[]> => {
  const local = await Promise.all(sourceAddresses.map(isLocalAddress));
  return sourceAddresses.filter((_, at) => local[at] === false);
};

type Egress = ReturnType<typeof egressesOf>[number];

interface MailHost {
  readonly host: string;
  readonly address: string;
}

const findMailHost = async ({ resolver }: Platform, domain: string, family: 4 | 6): Promise<MailHost | null> => {
  const mx = await resolver.resolve(domain, "MX");
  const host = mx.records.toSorted((a, b) => a.preference - b.preference)[0]?.exchange;
  if (host === undefined) return null;
  const address = (await resolver.resolve(host, family === 4 ? "A" : "AAAA")).records[0];
  return address === undefined ? null : { host, address };
};

const checkEgress = async (config: Config, exit: Egress, to: MailHost): Promise<DoctorCheck> => {
  const { smtpPort: port, heloName, connectTimeoutMs, replyTimeoutMs } = config;
  const { connector, localAddress } = exit;
  const where = { connector, clock: systemClock, address: to.address, port, localAddress, serverName: to.host };
  const session = await openSession({ ...where, heloName, connectTimeoutMs, replyTimeoutMs });
  const by = exit.name === "direct" ? "" : ` from ${exit.name}`;
  const target = `${to.host} [${to.address}]:${port}`;
  if (session.ok) {
    session.value.close();
    return portCheck.ok(`${target} is reachable${by}.`);
  }
  const { kind, stage, reply } = session.error;
  if (reply !== null)
    return portCheck.warn(`${target} is reachable${by}, but refuses the session: ${reply.code} ${reply.text}`);
  if (kind === "proxy_failed")
    return portCheck.fail(`The proxy ${exit.name} (POSTWARDEN_SOCKS_PROXIES) is not usable; no probe was sent.`);
  return portCheck.fail(`${target}: ${kind} at ${stage}${by}. ${CLOSED}`);
};

/**
 * Opens an SMTP session with a mail host of `domain` through every configured source address and proxy, as probes do;
 * directly when there are none.
 */
export const checkPort = async (
  config: Config,
  platform: Platform,
  domain: string,
): Promise<readonly DoctorCheck[]> => {
  const foreign = await foreignSourceAddresses(config);
  const exits = egressesOf(config, platform).filter(({ name }) => !foreign.includes(name));
  const [v4, v6] = await Promise.all([findMailHost(platform, domain, 4), findMailHost(platform, domain, 6)]);
  const checks = exits.map(async (exit) => {
    const isV6 = exit.localAddress?.includes(":") === true;
    const to = isV6 ? v6 : v4;
    if (to !== null) return checkEgress(config, exit, to);
    const kind = isV6 ? "mail host with an IPv6 address" : "mail host";
    return portCheck.warn(
      `No ${kind} of ${domain} was found, so outgoing port ${config.smtpPort} was not tested (egress: ${exit.name}).`,
    );
  });
  return [
    ...foreign.map((address) =>
      portCheck.fail(`${address} is not an address of this machine (POSTWARDEN_SOURCE_ADDRESSES); no probe was sent.`),
    ),
    ...(await Promise.all(checks)),
  ];
};
