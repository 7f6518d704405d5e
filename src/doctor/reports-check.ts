import type { Clock } from "../foundation/base/clock.ts";
import { newId } from "../foundation/base/secrets.ts";
import { checkAuthorisation, serviceRecords } from "../dmarc/records/record/discovery.ts";
import { isSameOrganisation } from "../foundation/mail/organisational-domain.ts";
import { createDirectConnector } from "../foundation/net/connector.ts";
import { type DnsResolver, formatServer, isDefinite } from "../foundation/net/dns.ts";
import { openSession } from "../foundation/net/smtp-client.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const reportHostCheck = doctorFindings("report_host", "Report host", "dmarc-reports#choose-how-reports-arrive");
const reportMxCheck = doctorFindings("report_mx", "MX of the report host", "dmarc-reports#report-mail-by-smtp");
const reportPortCheck = doctorFindings("report_port", "Incoming port 25", "dmarc-reports#report-mail-by-smtp");
const authorizationCheck = doctorFindings(
  "report_authorisation",
  "Authorization of the report host",
  "dmarc-reports#report-mail-by-smtp",
);
const reportListenerCheck = doctorFindings(
  "report_listener",
  "Receiver of report mail",
  "dmarc-reports#report-mail-by-smtp",
);

export interface ReportChecksOptions {
  readonly config: DoctorSettings;
  /** The name of this machine as an MX record can have it; null when the HELO name cannot be one. */
  readonly mailHost: string | null;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
  /** The domains that are enrolled; null when they cannot be read. */
  readonly readDomains: () => readonly string[] | null;
}

const SMTP_PORT = 25;
const TIMEOUT_MS = 5_000;
const HOSTS_MAX = 5;

/**
 * Checks the DMARC report path: the setting, the MX of the report host, the record that authorizes it to receive reports
 * about other domains, the listener, and port 25. Never rejects.
 */
export const checkReports = async (options: ReportChecksOptions): Promise<readonly DoctorCheck[]> => {
  const { reportHost, reportListen } = options.config;
  if (reportHost === null) {
    return [
      reportHostCheck.warn(
        "POSTWARDEN_REPORT_HOST is not set, so no domain can be enrolled in DMARC monitoring. Choose how reports arrive.",
      ),
    ];
  }
  const [mx, authorisation, listener] = await Promise.all([
    checkMx(options, reportHost),
    checkWildcard(options, reportHost),
    checkListener(options),
  ]);
  return [...mx, authorisation, ...(reportListen === null ? [] : [listener])];
};

/** What to do about a missing record. */
const adviceFor = (mailHost: string | null, reportHost: string, type: "MX" | "TXT"): string => {
  const record = serviceRecords(reportHost, mailHost).find((candidate) => candidate.type === type);
  if (record === undefined) return "";
  return type === "MX" && mailHost === null
    ? `Set POSTWARDEN_HELO_NAME to this machine's public host name, and publish an MX record of ${record.host} that names it.`
    : `Publish: ${record.host} ${type} ${JSON.stringify(record.value)}.`;
};

type RecordChecksOptions = Pick<ReportChecksOptions, "mailHost" | "resolver"> &
  Partial<Pick<ReportChecksOptions, "readDomains">>;

/** Whether the two records of a report host are published: its MX and the authorization. Connects to no mail host. Never rejects. */
export const checkReportRecords = async (
  options: RecordChecksOptions,
  reportHost: string,
): Promise<readonly DoctorCheck[]> => {
  const [{ check }, authorisation] = await Promise.all([
    findMx(options, reportHost),
    checkWildcard(options, reportHost),
  ]);
  return [check, authorisation];
};

interface FoundMx {
  readonly check: DoctorCheck;
  /** Empty unless the check is ok. */
  readonly addresses: MailHosts["addresses"];
}

const checkMx = async (options: ReportChecksOptions, reportHost: string): Promise<readonly DoctorCheck[]> => {
  const { config, clock } = options;
  const { check, addresses } = await findMx(options, reportHost);
  if (addresses.length === 0) return [check];
  return [check, await checkPort25({ addresses, clock, heloName: config.heloName })];
};

const findMx = async ({ mailHost, resolver }: RecordChecksOptions, reportHost: string): Promise<FoundMx> => {
  const unfound = (check: DoctorCheck): FoundMx => ({ check, addresses: [] });
  const mx = await resolver.resolve(reportHost, "MX");
  const hosts = mx.records.toSorted((a, b) => a.preference - b.preference).map(({ exchange }) => exchange);
  if (hosts.length === 0) {
    return unfound(
      isDefinite(mx.outcome)
        ? reportMxCheck.fail(`${reportHost} has no MX record (${mx.outcome}). ${adviceFor(mailHost, reportHost, "MX")}`)
        : reportMxCheck.warn(`The MX query for ${reportHost} failed (${mx.outcome}). Check the DNS servers.`),
    );
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
    return unfound(
      failed === undefined
        ? reportMxCheck.fail(
            `The MX hosts of ${reportHost} (${hosts.join(", ")}) have no address. Publish A records for them.`,
          )
        : reportMxCheck.warn(
            `The address queries for the MX hosts of ${reportHost} (${hosts.join(", ")}) failed (${failed}). Check the DNS servers.`,
          ),
    );
  }
  const where = addresses.map(({ host, address }) => `${host} [${address}]`).join(", ");
  return { check: reportMxCheck.ok(`Mail for ${reportHost} goes to ${where}.`), addresses };
};

interface MailHosts {
  readonly addresses: ReadonlyArray<{ readonly host: string; readonly address: string }>;
  readonly clock: Clock;
  readonly heloName: string;
}

/** Only a warning on failure: some networks cannot reach their own public address. */
const checkPort25 = async ({ addresses, clock, heloName }: MailHosts): Promise<DoctorCheck> => {
  for (const { host, address } of addresses) {
    const greeting = await greet({ address, port: SMTP_PORT, serverName: host, heloName, clock });
    if (greeting === null) return reportPortCheck.ok(`${host} [${address}]:${SMTP_PORT} responds.`);
  }
  return reportPortCheck.warn(
    `No mail host responds on port ${SMTP_PORT} from this machine. Check the firewall and that a server listens. (In some networks a machine cannot reach its own public address.)`,
  );
};

/** Queries a domain that nobody has enrolled, so that only the wildcard record can match. */
const checkWildcard = async (
  { mailHost, resolver, readDomains }: RecordChecksOptions,
  reportHost: string,
): Promise<DoctorCheck> => {
  const domain = `${newId().slice(-12)}.postwarden-check.net`;
  const found = await checkAuthorisation(resolver, { domain, reportHost });
  if (!found.ok)
    return authorizationCheck.fail(
      `${reportHost} is too long for report addresses. Set POSTWARDEN_REPORT_HOST to a shorter name.`,
    );
  const { status, outcome, message } = found.value;
  if (status === "authorised") return authorizationCheck.ok(message);
  const domains = readDomains?.() ?? [];
  if (domains.length > 0 && domains.every((one) => isSameOrganisation(one, reportHost))) {
    const later = `Before you enroll a domain of another organization: ${adviceFor(mailHost, reportHost, "TXT")}`;
    return authorizationCheck.ok(
      `No record is needed: all enrolled domains share the organization of ${reportHost}. ${later}`,
    );
  }
  if (status === "indefinite") return authorizationCheck.warn(`${message} Check the DNS servers.`);
  // The message about a name that does not exist already names the record to publish.
  const advice = outcome === "nxdomain" ? "" : ` ${adviceFor(mailHost, reportHost, "TXT")}`;
  const without = `Domains of the organization of ${reportHost} itself need no record.`;
  return authorizationCheck.fail(`${message}${advice} ${without}`);
};

const checkListener = async ({
  config: { reportListen, heloName },
  clock,
}: ReportChecksOptions): Promise<DoctorCheck> => {
  if (reportListen === null) return reportListenerCheck.ok("No listener is set.");
  const { address, port } = reportListen;
  const local = address === "0.0.0.0" ? "127.0.0.1" : address === "::" ? "::1" : address;
  const problem = await greet({ address: local, port, serverName: "localhost", heloName, clock });
  if (problem === null) return reportListenerCheck.ok(`The receiver responds on ${formatServer(reportListen)}.`);
  return reportListenerCheck.warn(
    `Nothing responds on ${formatServer(reportListen)} (${problem}). Start \`postwarden serve\`. A port below 1024 needs a capability: run setcap cap_net_bind_service=+ep on the binary, or add AmbientCapabilities=CAP_NET_BIND_SERVICE to the systemd unit.`,
  );
};

interface Greeting {
  readonly address: string;
  readonly port: number;
  readonly serverName: string;
  readonly heloName: string;
  readonly clock: Clock;
}

/** Sends EHLO and QUIT; null on success, else what went wrong. */
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
