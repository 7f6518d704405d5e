import { join } from "node:path";
import { RECEIVER, RELAY, RELAY_EXIT, REPORT_HOST } from "./dmarc-places.ts";
import { serverDirectory } from "./namespace.ts";
import { mainCfHead, startInstance } from "./postfix-instance.ts";
import type { Supervisor } from "./processes.ts";

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
export const startRelay = async (
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
