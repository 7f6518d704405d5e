import { join } from "node:path";
import { hasIpv6 } from "./addresses.ts";
import { makeCertificates } from "./certificates.ts";
import { addressOf, IPV6, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";
import { serverDirectory, withLabResolver } from "./namespace.ts";
import { mainCfHead, startInstance } from "./postfix-instance.ts";
import { POSTSCREEN, SMTPD } from "./postfix-listeners.ts";
import { accessLines, domainLines, mailboxLines } from "./postfix-mailboxes.ts";
import { spendAllowances } from "./postfix-limits.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "postfix";

/** `in_flow_delay` would cost every probe a second; the event limits exempt `mynetworks` unless told otherwise. */
const mainCf = (directory: string): string => `${mainCfHead(directory)}myhostname = mx.${SUFFIX}
mydestination =
mynetworks = 127.255.255.255/32
alias_maps =
local_recipient_maps =
inet_protocols = ${hasIpv6() ? "all" : "ipv4"}
in_flow_delay = 0s
smtpd_peername_lookup = no
smtpd_client_event_limit_exceptions =
anvil_rate_time_unit = 1h
smtputf8_enable = yes
recipient_delimiter = +
virtual_mailbox_domains = texthash:${directory}/domains
virtual_mailbox_maps = texthash:${directory}/mailboxes
virtual_alias_domains =
virtual_alias_maps =
virtual_mailbox_base = ${directory}/mail
smtpd_helo_required = yes
smtpd_relay_restrictions =
smtpd_recipient_restrictions = reject_unauth_destination, check_recipient_access texthash:${directory}/access
smtpd_tls_cert_file = ${directory}/tls.crt
smtpd_tls_key_file = ${directory}/tls.key
smtpd_tls_loglevel = 1
`;

const overrides = (options: readonly string[]): string => options.map((option) => ` -o { ${option} }`).join("");

const masterCf = (): string => {
  const smtpd = Object.entries(SMTPD).map(([host, options]) => {
    const at = `${addressOf(host as HostName)}:${SMTP_PORT}`;
    return `${at} inet n - n - - smtpd -o syslog_name=postfix/${host}${overrides(options)}\n`;
  });
  const postscreen = Object.entries(POSTSCREEN).map(([host, options]) => {
    const at = `${addressOf(host as HostName)}:${SMTP_PORT}`;
    const cache = `postscreen_cache_map=btree:$data_directory/${host}`;
    return `${at} inet n - n - 1 postscreen -o syslog_name=postfix/${host}${overrides([cache, ...options])}\n`;
  });
  const ipv6 = hasIpv6() ? `[${IPV6.alive}]:${SMTP_PORT} inet n - n - - smtpd\n` : "";
  return `${smtpd.join("")}${postscreen.join("")}${ipv6}smtpd pass - - n - - smtpd
dnsblog unix - - n - 0 dnsblog
tlsproxy unix - - n - 0 tlsproxy
cleanup unix n - n - 0 cleanup
rewrite unix - - n - - trivial-rewrite
anvil unix - - n - 1 anvil -o max_idle=1h
tlsmgr unix - - n 1000? 1 tlsmgr
proxymap unix - - n - - proxymap
bounce unix - - n - 0 bounce
postlog unix-dgram n - n - 1 postlogd
`;
};

/**
 * Starts one Postfix instance with a listener per behaviour, in `directory`, touching nothing of /etc/postfix. It runs
 * in a mount namespace in which the system's resolver is the lab's own.
 */
export const startPostfix = async (supervisor: Supervisor, parent: string): Promise<void> => {
  const directory = await serverDirectory(parent, NAME, ["queue", "data", "mail"]);
  await Bun.write(join(directory, "domains"), domainLines());
  await Bun.write(join(directory, "mailboxes"), mailboxLines());
  await Bun.write(join(directory, "access"), accessLines());
  await Bun.write(join(directory, "main.cf"), mainCf(directory));
  await Bun.write(join(directory, "master.cf"), masterCf());
  const files = await withLabResolver(directory);
  await makeCertificates(supervisor, directory);
  await startInstance(supervisor, { name: NAME, directory, files });
  await supervisor.waitForPort(NAME, addressOf("main"), SMTP_PORT);
  await spendAllowances();
};
