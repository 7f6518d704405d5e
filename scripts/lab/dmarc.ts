import { join } from "node:path";
import type { Subject } from "./ask.ts";
import { createApi } from "./dmarc-api.ts";
import { type Claim, claim } from "./claims.ts";
import { startChangingDns } from "./dmarc-dns.ts";
import { ZONE_BEFORE, runDomains } from "./dmarc-domains.ts";
import { ensureReporters } from "./packages.ts";
import { runRefusals } from "./dmarc-refusals.ts";
import { makeSigningKey, prepareMailDmarc, prepareOpenDmarc } from "./dmarc-reporters.ts";
import { judgeReports } from "./dmarc-reports.ts";
import { REVERSE_ZONE, judgeSources } from "./dmarc-sources.ts";
import { DMARC_DNS, DMARC_HTTP, RECEIVER, RELAY, RELAY_EXIT, REPORT_HOST } from "./hosts.ts";
import { serverDirectory } from "./namespace.ts";
import { mainCfHead, startInstance } from "./postfix.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const NAME = "postfix-dmarc";

/** Mail for the report host goes to the binary, over TLS when it is offered; all other mail is thrown away. */
const mainCf = (directory: string): string => `${mainCfHead(directory)}myhostname = ${RELAY.name}
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
inet_protocols = ipv4
in_flow_delay = 0s
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
transport_maps = inline:{${REPORT_HOST}=smtp:[${RECEIVER.ip}]:${RECEIVER.port}}
default_transport = discard
smtp_bind_address = ${RELAY_EXIT}
smtp_tls_security_level = may
smtp_tls_loglevel = 1
minimal_backoff_time = 1s
maximal_backoff_time = 2s
queue_run_delay = 1s
`;

const MASTER_CF = `${RELAY.ip}:${RELAY.port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
tlsmgr unix - - n 1000? 1 tlsmgr
postlog unix-dgram n - n - 1 postlogd
`;

/** Starts a Postfix that relays the mails of reporters on this machine; answers its log. */
const startRelay = async (
  supervisor: Supervisor,
  parent: string,
  files: Readonly<Record<string, string>>,
): Promise<() => Promise<string>> => {
  const directory = await serverDirectory(parent, NAME, ["queue", "data"]);
  await Bun.write(join(directory, "main.cf"), mainCf(directory));
  await Bun.write(join(directory, "master.cf"), MASTER_CF);
  await startInstance(supervisor, { name: NAME, directory, files });
  await supervisor.waitForPort(NAME, RELAY.ip, RELAY.port);
  return () => Bun.file(join(directory, "mail.log")).text();
};

const SERVICE = "serve-dmarc";
const THEME = "DMARC reports";
const OVER_TLS = new RegExp(`TLS connection established to ${RECEIVER.ip.replaceAll(".", "\\.")}.*TLSv1\\.3`);

/** The name server of the domains, for programs that have only the machine's settings. */
const writeResolver = async (directory: string): Promise<Readonly<Record<string, string>>> => {
  const path = join(directory, "dmarc-resolv.conf");
  await Bun.write(path, `nameserver ${DMARC_DNS.ip}\noptions timeout:2 attempts:2\n`);
  return { "/etc/resolv.conf": path };
};

/**
 * Enrols domains of every state, has real reporters write about messages of which the truth is known, and compares what the
 * interface says with it; tries what the receiver must refuse. `cache` holds the unpacked packages.
 */
export const runDmarc = async (supervisor: Supervisor, lab: Subject, cache: string): Promise<readonly Claim[]> => {
  const { directory } = lab;
  const unpacked = await ensureReporters(supervisor, cache);
  const key = makeSigningKey();
  const files = await writeResolver(directory);
  const dns = await startChangingDns(supervisor, directory, {
    always: { ...key.zone, ...REVERSE_ZONE },
    zone: ZONE_BEFORE,
  });
  const environment = {
    ...lab.environment,
    POSTWARDEN_DNS_SERVERS: `${DMARC_DNS.ip}:${DMARC_DNS.port}`,
    POSTWARDEN_REPORT_HOST: REPORT_HOST,
    POSTWARDEN_REPORT_LISTEN: `${RECEIVER.ip}:${RECEIVER.port}`,
  };
  const [relayLog, mailDmarc, openDmarc, liveKey] = await Promise.all([
    startRelay(supervisor, directory, files),
    prepareMailDmarc(supervisor, directory, { files, pem: key.pem }),
    prepareOpenDmarc(supervisor, directory, { unpacked, files }),
    startService(supervisor, { ...lab, environment }, { name: SERVICE, ...DMARC_HTTP }),
  ]);
  const api = createApi(liveKey);
  const { enrolled, cells } = await runDomains(api, dns);
  const refusals = runRefusals(supervisor, api, enrolled);
  const tokens = [...enrolled].map(([name, { domain }]) => [name, domain.reporting_address.split("@")[0] ?? ""]);
  openDmarc.setTokens(Object.fromEntries(tokens));
  await mailDmarc.report();
  await openDmarc.report();
  const reports = await judgeReports(api, enrolled);
  const sources = await judgeSources(api, enrolled);
  const overTls = OVER_TLS.test(await relayLog()) ? "over TLS 1.3" : "in the clear";
  const relay = claim(THEME, "how Postfix delivered", "over TLS 1.3", overTls);
  return [...cells, ...reports, ...sources, relay, ...(await refusals)];
};
