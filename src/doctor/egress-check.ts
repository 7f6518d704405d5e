import { systemClock } from "../foundation/base/clock.ts";
import type { Egress } from "../verify/smtp/open.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { isLocalAddress, createAddressPolicy } from "../foundation/net/public-address.ts";
import { openSession } from "../foundation/net/smtp-client.ts";
import type { SmtpFailure } from "../foundation/net/smtp-failure.ts";
import { describeSocksProblem, type SocksProblem } from "../foundation/net/socks-connector.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";
import { checkReverseName, seenAddress } from "./egress-address-check.ts";

const portCheck = doctorFindings("port", "Outgoing port 25", "sender-reputation#outgoing-port-25");
const addressCheck = doctorFindings("egress_address", "Public address", "sender-reputation#egress-ips");

const CLOSED = "Most cloud providers block outgoing port 25 until you ask; without it no mailbox can be verified.";
/** Shorter than the settings of the service, so that a silent host does not hold up the command. */
const CONNECT_TIMEOUT_MS = 6_000;
const SESSION_MS_MAX = 10_000;

/** The configured source addresses that are not addresses of this machine. */
export const foreignSourceAddresses = async (
  { sourceAddresses }: Pick<DoctorSettings, "sourceAddresses">,
  isLocal = isLocalAddress,
): Promise<readonly string[]> => {
  const local = await Promise.all(sourceAddresses.map(isLocal));
  return sourceAddresses.filter((_, at) => local[at] === false);
};

interface MailHost {
  readonly host: string;
  readonly address: string;
}

/** What a session of one egress with a mail host showed. */
interface TriedEgress {
  readonly findings: readonly DoctorCheck[];
  /** The public address of the egress; null when it is not known. */
  readonly publicAddress: string | null;
}

export interface EgressCheckOptions {
  readonly config: DoctorSettings;
  readonly resolver: DnsResolver;
  /** How probes connect; what a proxy does wrong is noted. */
  readonly egresses: (noteProblem: (egress: string, problem: SocksProblem) => void) => readonly Egress[];
  /** The domain whose mail host the check connects to. */
  readonly domain: string;
  /** The blocklists that an address is on. */
  readonly checkListings: (address: string) => Promise<DoctorCheck>;
  /** Whether this machine may connect from an address; by default it is tried. */
  readonly isLocal?: (address: string) => Promise<boolean>;
}

const findMailHost = async (resolver: DnsResolver, domain: string, family: 4 | 6): Promise<MailHost | null> => {
  const mx = await resolver.resolve(domain, "MX");
  const host = mx.records.toSorted((a, b) => a.preference - b.preference)[0]?.exchange;
  if (host === undefined) return null;
  const address = (await resolver.resolve(host, family === 4 ? "A" : "AAAA")).records[0];
  return address === undefined ? null : { host, address };
};

const { isAllowed: isPublic } = createAddressPolicy([]);

/**
 * Opens an SMTP session with a mail host of `domain` through every source address and proxy, as probes do; directly when
 * there are none. Where the mail host says which address it sees, or the source address is public, reverse name and
 * blocklists of that address are checked, too.
 */
export const checkEgresses = async (options: EgressCheckOptions): Promise<readonly DoctorCheck[]> => {
  const { config, resolver, domain, checkListings } = options;
  const foreign = await foreignSourceAddresses(config, options.isLocal);
  const problems = new Map<string, SocksProblem>();
  const egresses = options.egresses((name, problem) => problems.set(name, problem));
  const [v4, v6] = await Promise.all([findMailHost(resolver, domain, 4), findMailHost(resolver, domain, 6)]);
  const tried = await Promise.all(
    egresses
      .filter(({ name }) => !foreign.includes(name))
      .map((egress) => {
        const to = isIpv6(egress) ? v6 : v4;
        return to === null ? notTried(options, egress) : tryEgress(options, { egress, to, problems });
      }),
  );
  const known = [...new Set(tried.flatMap(({ publicAddress }) => publicAddress ?? []))];
  const aboutAddresses = await Promise.all(
    known.flatMap((address) => [
      checkReverseName({ address, heloName: config.heloName, resolver }),
      checkListings(address),
    ]),
  );
  return [...foreign.map(notOurs), ...tried.flatMap(({ findings }) => findings), ...aboutAddresses];
};

const notOurs = (address: string): DoctorCheck =>
  portCheck.fail(
    `${address} is not an address of this machine (POSTWARDEN_SOURCE_ADDRESSES); no probe was sent. Remove it, or run: ip address add ${address} dev eth0`,
  );

const isIpv6 = ({ localAddress }: Egress): boolean => localAddress?.includes(":") === true;

const ownPublicAddress = ({ localAddress }: Egress): string | null =>
  localAddress !== null && isPublic(localAddress) ? localAddress : null;

const notTried = ({ config, domain }: EgressCheckOptions, egress: Egress): TriedEgress => {
  const kind = isIpv6(egress) ? "mail host with an IPv6 address" : "mail host";
  const message = `No ${kind} of ${domain} was found, so outgoing port ${config.smtpPort} was not tested (egress: ${egress.name}). Check the DNS servers, or name another domain with --domain.`;
  return { findings: [portCheck.warn(message)], publicAddress: ownPublicAddress(egress) };
};

interface EgressTrial {
  readonly egress: Egress;
  readonly to: MailHost;
  readonly problems: ReadonlyMap<string, SocksProblem>;
}

const tryEgress = async ({ config }: EgressCheckOptions, trial: EgressTrial): Promise<TriedEgress> => {
  const { smtpPort: port, heloName } = config;
  const { egress, to } = trial;
  const { connector, localAddress, name } = egress;
  const session = await openSession({
    ...{ connector, clock: systemClock, address: to.address, port, localAddress, serverName: to.host, heloName },
    connectTimeoutMs: Math.min(CONNECT_TIMEOUT_MS, config.connectTimeoutMs),
    replyTimeoutMs: Math.min(SESSION_MS_MAX, config.replyTimeoutMs),
    sessionDeadlineMs: SESSION_MS_MAX,
  });
  const where = `${to.host} [${to.address}]:${port}`;
  const by = name === "direct" ? "" : ` from ${name}`;
  const { transcript } = session.ok ? session.value : session.error;
  const seen = seenAddress(transcript, to.address);
  const publicAddress = seen ?? ownPublicAddress(egress);
  if (!session.ok) return { findings: [describeFailure(session.error, { trial, where, by })], publicAddress };
  session.value.close();
  if (publicAddress === null)
    return { findings: [portCheck.ok(`${where} is reachable${by}.`), unknownAddress(name, to.host)], publicAddress };
  const as = seen === null || seen === localAddress ? "" : ` and sees the address ${seen}`;
  return { findings: [portCheck.ok(`${where} is reachable${by}${as}.`)], publicAddress };
};

const unknownAddress = (egress: string, host: string): DoctorCheck =>
  addressCheck.warn(
    `${host} does not say which address it sees (egress: ${egress}), so its reverse name and blocklists were not checked. Name a domain whose mail host says it: --domain gmail.com.`,
  );

const describeFailure = (
  { kind, stage, reply }: SmtpFailure,
  { trial, where, by }: { readonly trial: EgressTrial; readonly where: string; readonly by: string },
): DoctorCheck => {
  const { name } = trial.egress;
  if (reply !== null)
    return portCheck.warn(`${where} is reachable${by}, but refuses the session: ${reply.code} ${reply.text}`);
  if (kind === "proxy_failed") {
    const problem = describeSocksProblem(trial.problems.get(name) ?? null);
    return portCheck.fail(`The proxy ${name} (POSTWARDEN_SOCKS_PROXIES) ${problem} No probe was sent.`);
  }
  return portCheck.fail(`${where}: ${kind} at ${stage}${by}. ${CLOSED}`);
};
