import { chmod, mkdir } from "node:fs/promises";
import { join } from "node:path";
import { HOSTS, POSTGREY, POSTGREY_LONG, SMTP_PORT, SUFFIX } from "./hosts.ts";
import type { HostName } from "./hosts.ts";
import type { Supervisor } from "./processes.ts";
import { DISPOSABLE_DOMAIN, IDN_DOMAIN } from "./zone.ts";

const NAME = "postfix";
const SPEND_TIMEOUT_S = 10;

/** The domains whose mailboxes Postfix knows, and the local parts of each; `@` alone takes every one. */
const MAILBOXES: Readonly<Record<string, readonly string[]>> = {
  exists: ["alice", "bob.builder", "carol", "info", "o'neil", "john..smith", "x"],
  full: ["stuffed", "brimful", "roomy"],
  catchall: ["@"],
  acceptall: ["@"],
  grey: ["alice"],
  greylong: ["alice"],
  blocked: ["alice"],
  blockedatconnect: ["alice"],
  helo: ["alice"],
  tempfail: ["alice"],
  sender: ["alice"],
  senderatrcpt: ["alice"],
  rate: ["alice"],
  recipientrate: ["alice"],
  tls: ["alice"],
  utf8: ["alice", "jürgen", "用户"],
  noutf8: ["alice"],
  soft: ["alice"],
  onercpt: ["alice"],
  failover: ["alice"],
  failoversilent: ["alice"],
  failoverbusy: ["alice"],
  failovershuts: ["alice"],
  secondary: ["alice"],
  secondarydefers: ["alice"],
  implicit: ["alice"],
  privatefirst: ["alice"],
  mxcname: ["alice"],
  domaincname: ["alice"],
  [IDN_DOMAIN]: ["alice"],
  [DISPOSABLE_DOMAIN]: ["alice"],
};

/** Answers that Postfix gives from its access table instead of looking at the mailbox. */
const ACCESS: Readonly<Record<string, string>> = {
  [`gone@exists.${SUFFIX}`]: "550 5.2.1 The email account that you tried to reach is disabled",
  [`suspended@exists.${SUFFIX}`]: "554 5.2.1 Account suspended, contact your provider",
  [`stuffed@full.${SUFFIX}`]: "452 4.2.2 Mailbox full",
  [`brimful@full.${SUFFIX}`]: "552 5.2.2 The recipient's mailbox is over quota",
};

/**
 * One listener per behaviour: what its `smtpd` does otherwise than `main.cf`. A value may hold spaces. The restriction
 * lists repeat `reject_unauth_destination`, because Postfix refuses to run an smtpd that relays for everybody.
 */
const LISTENERS: Readonly<Partial<Record<HostName, readonly string[]>>> = {
  main: [],
  grey: [greylistedBy(POSTGREY)],
  greylong: [greylistedBy(POSTGREY_LONG)],
  blocked: [
    "smtpd_client_restrictions=check_client_access static:{554 5.7.1 Service unavailable; client host blocked using bl.lab.example}",
  ],
  blockedatconnect: [
    "smtpd_delay_reject=no",
    "smtpd_client_restrictions=check_client_access static:{554 5.7.1 Service unavailable; client host blocked using bl.lab.example}",
  ],
  helo: [
    "smtpd_helo_restrictions=check_helo_access static:{550 5.7.1 Your HELO name does not resolve to your address}",
  ],
  tempfail: ["virtual_mailbox_maps=fail:lab"],
  sender: [
    "smtpd_delay_reject=no",
    "smtpd_sender_restrictions=check_sender_access static:{550 5.1.8 Domain of sender address does not exist}",
  ],
  senderatrcpt: [
    "smtpd_sender_restrictions=check_sender_access static:{550 5.1.8 Domain of sender address does not exist}",
  ],
  rate: ["smtpd_client_connection_rate_limit=1"],
  recipientrate: ["smtpd_client_recipient_rate_limit=1"],
  tls: ["smtpd_tls_security_level=encrypt"],
  noutf8: ["smtputf8_enable=no"],
  onercpt: ["smtpd_recipient_limit=1"],
  soft: ["unknown_virtual_mailbox_reject_code=450"],
  acceptall: ["virtual_mailbox_maps=static:all"],
};

function greylistedBy(postgrey: { readonly ip: string; readonly port: number }): string {
  return `smtpd_recipient_restrictions=reject_unauth_destination, check_policy_service inet:${postgrey.ip}:${postgrey.port}`;
}

const qualified = (domain: string): string => (domain.includes(".") ? domain : `${domain}.${SUFFIX}`);

const domainLines = (): string =>
  Object.keys(MAILBOXES)
    .map((domain) => `${qualified(domain)} lab\n`)
    .join("");

const mailboxLines = (): string =>
  Object.entries(MAILBOXES)
    .flatMap(([domain, localParts]) =>
      localParts.map((localPart) => {
        const address = localPart === "@" ? `@${qualified(domain)}` : `${localPart}@${qualified(domain)}`;
        return `${address} lab/\n`;
      }),
    )
    .join("");

const accessLines = (): string =>
  Object.entries(ACCESS)
    .map(([address, answer]) => `${address} ${answer}\n`)
    .join("");

/** `in_flow_delay` would cost every probe a second; the event limits exempt `mynetworks` unless told otherwise. */
const mainCf = (directory: string): string => `compatibility_level = 3.6
queue_directory = ${directory}/queue
data_directory = ${directory}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = ${directory}/mail.log
maillog_file_prefixes = ${directory}
myhostname = mx.${SUFFIX}
mydestination =
mynetworks = 127.255.255.255/32
alias_maps =
local_recipient_maps =
inet_protocols = ipv4
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

const masterCf = (): string => {
  const listeners = Object.entries(LISTENERS).map(([host, options]) => {
    const overrides = options.map((option) => ` -o { ${option} }`).join("");
    return `${HOSTS[host as HostName]}:${SMTP_PORT} inet n - n - - smtpd -o syslog_name=postfix/${host}${overrides}\n`;
  });
  return `${listeners.join("")}cleanup unix n - n - 0 cleanup
rewrite unix - - n - - trivial-rewrite
anvil unix - - n - 1 anvil -o max_idle=1h
tlsmgr unix - - n 1000? 1 tlsmgr
proxymap unix - - n - - proxymap
bounce unix - - n - 0 bounce
postlog unix-dgram n - n - 1 postlogd
`;
};

/** Starts one Postfix instance with a listener per behaviour, in `directory`, touching nothing of /etc/postfix. */
export const startPostfix = async (supervisor: Supervisor, parent: string): Promise<void> => {
  const directory = join(parent, NAME);
  for (const part of ["", "queue", "data", "mail"]) await mkdir(join(directory, part), { recursive: true });
  await chmod(directory, 0o755);
  await Bun.write(join(directory, "domains"), domainLines());
  await Bun.write(join(directory, "mailboxes"), mailboxLines());
  await Bun.write(join(directory, "access"), accessLines());
  await Bun.write(join(directory, "main.cf"), mainCf(directory));
  await Bun.write(join(directory, "master.cf"), masterCf());
  await supervisor.run(["chown", "postfix", join(directory, "data")]);
  await supervisor.run([
    ...["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", `/CN=mx.${SUFFIX}`],
    ...["-keyout", join(directory, "tls.key"), "-out", join(directory, "tls.crt")],
  ]);
  await supervisor.run(["postfix", "-c", directory, "check"]);
  supervisor.start({
    name: NAME,
    argv: ["/usr/lib/postfix/sbin/master", "-c", directory],
    env: { MAIL_CONFIG: directory },
    makesOwnSession: true,
  });
  await supervisor.waitForPort(NAME, HOSTS.main, SMTP_PORT);
  await spendAllowance(HOSTS.rate, "rate");
  await spendAllowance(HOSTS.recipientrate, "recipientrate");
};

/** One dialogue that uses up what a rate-limited listener allows in an hour, so that the binary meets the limit. */
const spendAllowance = async (ip: string, domain: string): Promise<void> => {
  const lines = ["EHLO probe.lab.example", "MAIL FROM:<>", `RCPT TO:<alice@${domain}.${SUFFIX}>`, "QUIT"];
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const lineEnd = /^\d{3} .*$/m;
  await Bun.connect({
    hostname: ip,
    port: SMTP_PORT,
    socket: {
      open: (socket) => socket.timeout(SPEND_TIMEOUT_S),
      data: (socket, bytes) => {
        if (lineEnd.test(bytes.toString())) socket.write(`${lines.shift() ?? "NOOP"}\r\n`);
      },
      close: () => resolve(),
      timeout: () => reject(new Error(`${ip} did not answer while its allowance was spent`)),
    },
  });
  await promise;
};
