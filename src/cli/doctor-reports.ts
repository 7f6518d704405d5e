import type { Clock } from "../base/clock.ts";
import { newId } from "../base/secrets.ts";
import { type Config, mailHostOf } from "../config.ts";
import { checkAuthorisation, serviceRecords } from "../dmarc/record/authorisation.ts";
import { createDirectConnector } from "../net/connector.ts";
import { type DnsResolver, formatServer, isDefinite } from "../net/dns.ts";
import { openSession } from "../net/smtp-client.ts";
import { check, type DoctorCheck } from "./doctor-check.ts";

/** What the checks ask: the DNS, and a clock for the patience with a listener. */
export interface ReportChecksDeps {
  readonly config: Config;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
}

const SMTP_PORT = 25;
const TIMEOUT_MS = 5_000;
const HOSTS_MAX = 5;

/**
 * Looks at each step by which a DMARC report gets here: the setting, the MX of the report host, the record that authorises
 * it for other people's domains, the listener, and the way to it from outside. Never rejects.
 */
export const checkReports = async (deps: ReportChecksDeps): Promise<readonly DoctorCheck[]> => {
  const { reportHost, reportListen } = deps.config;
  if (reportHost === null) {
    return [
      check(
        "report_host",
        "warn",
        "POSTWARDEN_REPORT_HOST is not set, so no domain can be put under DMARC monitoring. The README shows its set-up.",
      ),
    ];
  }
  const [mx, authorisation, listener] = await Promise.all([
    checkMx(deps, reportHost),
    checkWildcard(deps, reportHost),
    checkListener(deps),
  ]);
  return [...mx, authorisation, ...(reportListen === null ? [] : [listener])];
};

/** What to do about a record that is not there. */
const wanted = (config: Config, reportHost: string, type: "MX" | "TXT"): string => {
  const mailHost = mailHostOf(config);
  const record = serviceRecords(reportHost, mailHost).find((candidate) => candidate.type === type);
  if (record === undefined) return "";
  return type === "MX" && mailHost === null
    ? `Set POSTWARDEN_HELO_NAME to this machine's public name, and publish an MX of ${record.host} that leads to it.`
    : `Publish: ${record.host} ${type} ${JSON.stringify(record.value)}.`;
};

const checkMx = async (
  { config, resolver, clock }: ReportChecksDeps,
  reportHost: string,
): Promise<readonly DoctorCheck[]> => {
  const mx = await resolver.resolve(reportHost, "MX");
  const hosts = mx.records.toSorted((a, b) => a.preference - b.preference).map(({ exchange }) => exchange);
  if (hosts.length === 0) {
    return isDefinite(mx.outcome)
      ? [check("report_mx", "fail", `${reportHost} has no MX (${mx.outcome}). ${wanted(config, reportHost, "MX")}`)]
      : [check("report_mx", "warn", `The DNS could not say which MX ${reportHost} has (${mx.outcome}).`)];
  }
  const found = await Promise.all(
    hosts.slice(0, HOSTS_MAX).map(async (host) => {
      const replies = await Promise.all([resolver.resolve(host, "A"), resolver.resolve(host, "AAAA")]);
      const failed = replies.find(({ outcome }) => !isDefinite(outcome))?.outcome ?? null;
      return { failed, addresses: replies.flatMap(({ records }) => records.map((address) => ({ host, address }))) };
    }),
  );
  const addresses = found.flatMap((one) => one.addresses);
  if (addresses.length === 0) {
    const failed = found.find((one) => one.failed !== null)?.failed;
    const whose = `the MX of ${reportHost}, ${hosts.join(", ")}`;
    return [
      failed === undefined
        ? check("report_mx", "fail", `T${whose.slice(1)}, has no address.`)
        : check("report_mx", "warn", `The DNS could not say which address ${whose}, has (${failed}).`),
    ];
  }
  const where = addresses.map(({ host, address }) => `${host} [${address}]`).join(", ");
  return [
    check("report_mx", "ok", `Mail for ${reportHost} goes to ${where}.`),
    await checkWayIn({ addresses, clock, heloName: config.heloName }),
  ];
};

interface WayIn {
  readonly addresses: ReadonlyArray<{ readonly host: string; readonly address: string }>;
  readonly clock: Clock;
  readonly heloName: string;
}

/** From this machine the way may differ from that of the world: what does not answer is a warning. */
const checkWayIn = async ({ addresses, clock, heloName }: WayIn): Promise<DoctorCheck> => {
  for (const { host, address } of addresses) {
    const greeting = await greet({ address, port: SMTP_PORT, serverName: host, heloName, clock });
    if (greeting === null) return check("report_port", "ok", `${host} [${address}]:${SMTP_PORT} answers.`);
  }
  return check(
    "report_port",
    "warn",
    `None of the mail hosts answers on port ${SMTP_PORT} as seen from here. Is the port open in the firewall, and does a server listen? (Some networks keep a machine from its own public address.)`,
  );
};

/** Asked about a domain that nobody has enrolled, the wildcard answers. */
const checkWildcard = async ({ config, resolver }: ReportChecksDeps, reportHost: string): Promise<DoctorCheck> => {
  const domain = `${newId().slice(-12)}.postwarden-check.net`;
  const found = await checkAuthorisation(resolver, { domain, reportHost });
  if (!found.ok) return check("report_authorisation", "fail", `${reportHost} is too long a name for report addresses.`);
  const { status, outcome, message } = found.value;
  if (status === "authorised") return check("report_authorisation", "ok", message);
  if (status === "indefinite") return check("report_authorisation", "warn", message);
  // A name that does not exist has the record to publish in its sentence already.
  const advice = outcome === "nxdomain" ? "" : ` ${wanted(config, reportHost, "TXT")}`;
  return check("report_authorisation", "fail", `${message}${advice}`);
};

const checkListener = async ({ config: { reportListen, heloName }, clock }: ReportChecksDeps): Promise<DoctorCheck> => {
  if (reportListen === null) return check("report_listener", "ok", "No listener is set.");
  const { address, port } = reportListen;
  const local = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  const problem = await greet({ address: local, port, serverName: "localhost", heloName, clock });
  if (problem === null) return check("report_listener", "ok", `The receiver answers on ${formatServer(reportListen)}.`);
  return check(
    "report_listener",
    "warn",
    `Nothing answers on ${formatServer(reportListen)} (${problem}). Is \`serve\` running? A port below 1024 needs the right to it: setcap cap_net_bind_service=+ep on the binary, or AmbientCapabilities=CAP_NET_BIND_SERVICE in its unit.`,
  );
};

interface Greeting {
  readonly address: string;
  readonly port: number;
  readonly serverName: string;
  readonly heloName: string;
  readonly clock: Clock;
}

/** Says EHLO and QUIT; null when that went well, else what went wrong. */
const greet = async ({ clock, ...target }: Greeting): Promise<string | null> => {
  const connector = createDirectConnector({ clock, mayConnect: () => true });
  const session = await openSession({
    ...target,
    connector,
    clock,
    connectTimeoutMs: TIMEOUT_MS,
    replyTimeoutMs: TIMEOUT_MS,
  });
  if (!session.ok) return `${session.error.kind} at ${session.error.stage}`;
  session.value.close();
  return null;
};
