import { join } from "node:path";
import { addressOf, SMTP_PORT, SUFFIX } from "./hosts.ts";
import { inNamespace, serverDirectory, withLabResolver, withUsers } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";

const NAME = "opensmtpd";
const USERS = [
  { name: "opensmtpd", id: 64_998 },
  { name: "opensmtpq", id: 64_997 },
];

/** Directories that are compiled into the program. */
const EMPTY = { "/var/spool": ["smtpd"], "/var/lib": ["opensmtpd/empty"], "/run": [] };

/** Mailboxes are known by a table of virtual users or by the rule that matches; one listener wants to know who we are. */
const configuration = (directory: string): string => `table mailboxes file:${directory}/mailboxes
table known file:${directory}/known
filter "reverse" phase connect match !rdns disconnect "550 no rDNS is so 80s"
listen on ${addressOf("osmtpd")} port ${SMTP_PORT} hostname osmtpd.mx.${SUFFIX}
listen on ${addressOf("osmtpdrdns")} port ${SMTP_PORT} hostname osmtpd.mx.${SUFFIX} filter "reverse"
action "local" maildir "${directory}/mail" virtual <mailboxes>
match from any for domain { "osmtpd.${SUFFIX}" "osmtpdrdns.${SUFFIX}" } action "local"
match from any for domain "osmtpdrules.${SUFFIX}" rcpt-to <known> action "local"
`;

/** Starts OpenSMTPD from the unpacked package, in a namespace that has its users and the directories it insists on. */
export const startOpensmtpd = async (supervisor: Supervisor, parent: string, unpacked: string): Promise<void> => {
  const directory = await serverDirectory(parent, NAME);
  const configPath = join(directory, "smtpd.conf");
  const domains = [`osmtpd.${SUFFIX}`, `osmtpdrules.${SUFFIX}`];
  await Bun.write(join(directory, "mailboxes"), domains.map((domain) => `alice@${domain}: nobody\n`).join(""));
  await Bun.write(join(directory, "known"), domains.map((domain) => `alice@${domain}\n`).join(""));
  await Bun.write(configPath, configuration(directory));
  const files = { ...(await withUsers(directory, USERS)), ...(await withLabResolver(directory)) };
  const argv = [`${unpacked}/usr/sbin/smtpd`, "-d", "-f", configPath];
  supervisor.start({ name: NAME, argv: inNamespace({ files, empty: EMPTY }, argv) });
  await supervisor.waitForPort(NAME, addressOf("osmtpd"), SMTP_PORT);
};
