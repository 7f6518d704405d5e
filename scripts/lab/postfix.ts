import { join } from "node:path";
import {
  EXITS,
  type HostName,
  IPV6,
  POSTGREY,
  POSTGREY_LONG,
  PROBE_DOMAIN,
  type PostfixHost,
  SMTP_PORT,
  SUFFIX,
  addressOf,
  hasIpv6,
} from "./hosts.ts";
import { inNamespace, serverDirectory, withLabResolver } from "./namespace.ts";
import type { Supervisor } from "./processes.ts";
import { ADDRESS_LIST, NAME_LIST } from "./rbldnsd.ts";
import { DISPOSABLE, DISPOSABLE_DOMAIN, IDN_DOMAIN } from "./zone.ts";

/** The least that `openssl ca` wants to know; it alone lets both dates be chosen. */
const configuration = (directory: string): string => `[ca]
default_ca = lab
[lab]
database = ${directory}/ca.index
serial = ${directory}/ca.serial
new_certs_dir = ${directory}
default_md = sha256
policy = names
[names]
commonName = supplied
`;

/**
 * Writes `tls.key`, and two certificates of it that nobody vouches for: `tls.crt` is of today, `expired.crt` ended in
 * 2020.
 */
const makeCertificates = async (supervisor: Supervisor, directory: string): Promise<void> => {
  const path = (name: string): string => join(directory, name);
  const subject = ["-subj", `/CN=mx.${SUFFIX}`];
  await supervisor.run([
    ...["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", ...subject],
    ...["-keyout", path("tls.key"), "-out", path("tls.crt")],
  ]);
  await Bun.write(path("ca.cnf"), configuration(directory));
  await Bun.write(path("ca.index"), "");
  await Bun.write(path("ca.serial"), "01\n");
  await supervisor.run(["openssl", "req", "-new", "-key", path("tls.key"), ...subject, "-out", path("tls.csr")]);
  await supervisor.run([
    ...["openssl", "ca", "-batch", "-notext", "-config", path("ca.cnf"), "-selfsign", "-keyfile", path("tls.key")],
    ...["-in", path("tls.csr"), "-out", path("expired.crt")],
    ...["-startdate", "20200101000000Z", "-enddate", "20200201000000Z"],
  ]);
};

const greylistedBy = (postgrey: { readonly ip: string; readonly port: number }): string =>
  `smtpd_recipient_restrictions=reject_unauth_destination, check_policy_service inet:${postgrey.ip}:${postgrey.port}`;

const BLOCKS_EVERYBODY =
  "smtpd_client_restrictions=check_client_access static:{554 5.7.1 Service unavailable; client host blocked using bl.lab.example}";
const REFUSES_SENDER =
  "smtpd_sender_restrictions=check_sender_access static:{550 5.1.8 Domain of sender address does not exist}";
const REFUSES_HELO =
  "smtpd_helo_restrictions=check_helo_access static:{550 5.7.1 Your HELO name does not resolve to your address}";
const REFUSES_LISTED = `smtpd_client_restrictions=reject_rbl_client ${ADDRESS_LIST}`;
const NEEDS_REVERSE = "smtpd_client_restrictions=reject_unknown_client_hostname";
const WELCOMES_EXITS = `smtpd_client_restrictions=check_client_access inline:{${EXITS.welcome}=OK, ${EXITS.behindSocks}=OK, ${EXITS.behindSecondSocks}=OK}, reject`;
const AT_ONCE = "smtpd_delay_reject=no";
const NEEDS_TLS = "smtpd_tls_security_level=encrypt";
const TAKES_EVERYTHING = "virtual_mailbox_maps=static:all";

/**
 * One listener per behaviour: what its `smtpd` does otherwise than `main.cf`. A value may hold spaces. The restriction
 * lists repeat `reject_unauth_destination`, because Postfix refuses to run an smtpd that relays for everybody.
 */
export const SMTPD: Readonly<Partial<Record<PostfixHost, readonly string[]>>> = {
  main: [],
  grey: [greylistedBy(POSTGREY)],
  greylong: [greylistedBy(POSTGREY_LONG)],
  soft: ["unknown_virtual_mailbox_reject_code=450"],
  tempfail: ["virtual_mailbox_maps=fail:lab"],
  storage: ["queue_minfree=4000000000000000"],
  acceptall: [TAKES_EVERYTHING],
  datareject: [TAKES_EVERYTHING, "smtpd_data_restrictions=reject"],
  noutf8: ["smtputf8_enable=no"],
  // who we are
  blocked: [BLOCKS_EVERYBODY],
  blockedatconnect: [AT_ONCE, BLOCKS_EVERYBODY],
  dnsblconnect: [AT_ONCE, REFUSES_LISTED],
  dnsblhelo: [AT_ONCE, `smtpd_helo_restrictions=reject_rhsbl_helo ${NAME_LIST}`],
  dnsblrcpt: [`smtpd_recipient_restrictions=reject_unauth_destination, reject_rbl_client ${ADDRESS_LIST}`],
  dnsblsoft: [REFUSES_LISTED, "maps_rbl_reject_code=450"],
  dnsblclean: [REFUSES_LISTED],
  reverse: ["smtpd_peername_lookup=yes", NEEDS_REVERSE],
  reversehard: ["smtpd_peername_lookup=yes", NEEDS_REVERSE, "unknown_client_reject_code=550"],
  reversegood: ["smtpd_peername_lookup=yes", NEEDS_REVERSE],
  exitonly: [WELCOMES_EXITS],
  helo: [REFUSES_HELO],
  heloatehlo: [AT_ONCE, REFUSES_HELO],
  helogood: ["smtpd_helo_restrictions=reject_non_fqdn_helo_hostname, reject_unknown_helo_hostname"],
  sender: [AT_ONCE, REFUSES_SENDER],
  senderatrcpt: [REFUSES_SENDER],
  // how much we ask
  rate: ["smtpd_client_connection_rate_limit=1"],
  concurrency: ["smtpd_client_connection_count_limit=1", "smtpd_timeout=3600s"],
  recipientrate: ["smtpd_client_recipient_rate_limit=1"],
  messagerate: ["smtpd_client_message_rate_limit=1"],
  onercpt: ["smtpd_recipient_limit=1"],
  hardlimit: ["smtpd_hard_error_limit=1"],
  // TLS
  tls: [NEEDS_TLS],
  tlsexpired: [NEEDS_TLS, "smtpd_tls_cert_file=$data_directory/../expired.crt"],
  tls13: [NEEDS_TLS, "smtpd_tls_mandatory_protocols=TLSv1.3"],
  tls10: [NEEDS_TLS, "smtpd_tls_mandatory_protocols=TLSv1", "tls_medium_cipherlist=ALL:@SECLEVEL=0"],
  tlsatrcpt: ["smtpd_tls_security_level=may", "smtpd_client_restrictions=reject_plaintext_session"],
  tlsclientcert: [NEEDS_TLS, "smtpd_tls_req_ccert=yes"],
  // where our own sender lives
  ourmx: [],
  ourmxempty: ["virtual_mailbox_maps=inline:{nobody@nowhere=lab}"],
};

/** What a list says after the greet wait comes too late for postscreen, which then lets us pass for an hour. */
const LISTED_SITES = [`postscreen_dnsbl_sites=${ADDRESS_LIST}`, "postscreen_greet_wait=4s"];

/** Hosts behind postscreen, which hands those that pass its tests to an `smtpd` like `main`. */
export const POSTSCREEN: Readonly<Partial<Record<PostfixHost, readonly string[]>>> = {
  greets: ["postscreen_greet_wait=2s", "postscreen_greet_action=enforce"],
  deepscreen: [
    ...["postscreen_greet_wait=1s", "postscreen_greet_action=enforce"],
    ...["postscreen_pipelining_enable=yes", "postscreen_pipelining_action=enforce"],
    ...["postscreen_non_smtp_command_enable=yes", "postscreen_bare_newline_enable=yes"],
  ],
  screened: [...LISTED_SITES, "postscreen_dnsbl_action=enforce"],
  screenedout: [...LISTED_SITES, "postscreen_dnsbl_action=drop"],
};

const KNOWN = ["alice"];
const EVERYBODY = ["@"];

/** Domains that have only alice: one for each listener, and those that several listeners serve. */
const WITH_ALICE = [
  ...Object.keys(SMTPD),
  ...Object.keys(POSTSCREEN),
  ...[
    "failover",
    "failoversilent",
    "failoverbusy",
    "failovershuts",
    "equals",
    "thirty",
    "firstservfail",
    "firstnohost",
    "lastsilent",
  ],
  ...["secondary", "secondarydefers", "secondarygrey", "secondarydead", "implicit", "privatefirst"],
  ...["mxcname", "domaincname", "cnamechain", "truncated", "longtxt", "dualdead6", "dualdead4", "only6", "implicit6"],
  ...["twoaddresses", `any.wild.${SUFFIX}`, `mail.renamed.${SUFFIX}`],
];

/** The domains whose mailboxes Postfix knows, and the local parts of each; `@` alone takes every one. */
const MAILBOXES: Readonly<Record<string, readonly string[]>> = {
  ...Object.fromEntries(WITH_ALICE.map((domain) => [domain, KNOWN])),
  exists: ["alice", "bob.builder", "carol", "info", "o'neil", "john..smith", "x"],
  full: ["stuffed", "brimful", "roomy"],
  catchall: EVERYBODY,
  acceptall: EVERYBODY,
  datareject: EVERYBODY,
  greyall: EVERYBODY,
  oneall: EVERYBODY,
  exitall: EVERYBODY,
  tlsall: EVERYBODY,
  [DISPOSABLE.catchAll]: EVERYBODY,
  [DISPOSABLE_DOMAIN]: ["alice", "info"],
  grey: ["alice", "jürgen"],
  tls: ["alice", "jürgen"],
  utf8: ["alice", "jürgen", "用户"],
  [IDN_DOMAIN]: ["alice", "jürgen"],
  [IDN_DOMAIN.replace("xn--bcher-kva", "bücher")]: ["alice", "jürgen"],
  [PROBE_DOMAIN]: ["probe", "service"],
};

/** Answers that Postfix gives from its access table instead of looking at the mailbox. */
const ACCESS: Readonly<Record<string, string>> = {
  [`gone@exists.${SUFFIX}`]: "550 5.2.1 The email account that you tried to reach is disabled",
  [`suspended@exists.${SUFFIX}`]: "554 5.2.1 Account suspended, contact your provider",
  [`stuffed@full.${SUFFIX}`]: "452 4.2.2 Mailbox full",
  [`info@full.${SUFFIX}`]: "552 5.2.2 The recipient's mailbox is over quota",
  [`brimful@full.${SUFFIX}`]: "552 5.2.2 The recipient's mailbox is over quota",
};

const qualified = (domain: string): string => (domain.includes(".") ? domain : `${domain}.${SUFFIX}`);

/** The table of domains, as `texthash` reads it. */
const domainLines = (): string =>
  Object.keys(MAILBOXES)
    .map((domain) => `${qualified(domain)} lab\n`)
    .join("");

/** The table of mailboxes. */
const mailboxLines = (): string =>
  Object.entries(MAILBOXES)
    .flatMap(([domain, localParts]) =>
      localParts.map((localPart) => {
        const address = localPart === "@" ? `@${qualified(domain)}` : `${localPart}@${qualified(domain)}`;
        return `${address} lab/\n`;
      }),
    )
    .join("");

/** The access table. */
const accessLines = (): string =>
  Object.entries(ACCESS)
    .map(([address, answer]) => `${address} ${answer}\n`)
    .join("");

const DIALOGUE_TIMEOUT_S = 10;
const LAST_LINE = /^\d{3} .*$/m;

/** Says `lines`, each after a whole reply; resolves with the open socket when the last one was answered. */
const talk = async (ip: string, lines: readonly string[]): Promise<Bun.Socket> => {
  const left = [...lines];
  let heard = "";
  const { promise, resolve, reject } = Promise.withResolvers<Bun.Socket>();
  await Bun.connect({
    hostname: ip,
    port: SMTP_PORT,
    socket: {
      open: (socket) => socket.timeout(DIALOGUE_TIMEOUT_S),
      data: (socket, bytes) => {
        heard += bytes.toString();
        if (!LAST_LINE.test(bytes.toString())) return;
        const line = left.shift();
        if (line === undefined) {
          socket.timeout(0);
          resolve(socket);
        } else socket.write(`${line}\r\n`);
      },
      close: () => reject(new Error(`${ip} hung up after ${JSON.stringify(heard)}`)),
      timeout: () => reject(new Error(`${ip} did not answer while its allowance was spent`)),
    },
  });
  return promise;
};

const HELLO = "EHLO probe.lab.example";

/** Uses up what each rate-limited listener allows in an hour, and holds the one connection of another. */
const spendAllowances = async (): Promise<void> => {
  const spend = async (host: PostfixHost): Promise<void> => {
    const socket = await talk(addressOf(host), [HELLO, "MAIL FROM:<>", `RCPT TO:<alice@${host}.${SUFFIX}>`]);
    socket.end("QUIT\r\n");
  };
  await spend("rate");
  await spend("recipientrate");
  await spend("messagerate");
  await talk(addressOf("concurrency"), [HELLO]);
};

const MASTER = "/usr/lib/postfix/sbin/master";

interface PostfixInstance {
  /** What the supervisor calls it. */
  readonly name: string;
  /** Holds main.cf, master.cf and the empty directories `queue` and `data`. */
  readonly directory: string;
  /** Files that it sees in the place of others: the path there → the path here. */
  readonly files: Readonly<Record<string, string>>;
}

/** The beginning of a main.cf: an instance that lives in `directory`, and touches nothing of /etc/postfix. */
export const mainCfHead = (directory: string): string => `compatibility_level = 3.6
queue_directory = ${directory}/queue
data_directory = ${directory}/data
daemon_directory = /usr/lib/postfix/sbin
command_directory = /usr/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = ${directory}/mail.log
maillog_file_prefixes = ${directory}
`;

/** Starts a Postfix as its directory says, in a mount namespace of its own. It may not listen yet. */
export const startInstance = async (supervisor: Supervisor, instance: PostfixInstance): Promise<void> => {
  const { name, directory, files } = instance;
  await supervisor.run(["chown", "postfix", join(directory, "data")]);
  await supervisor.run(["postfix", "-c", directory, "check"]);
  supervisor.start({
    name,
    argv: inNamespace({ files }, [MASTER, "-c", directory]),
    env: { MAIL_CONFIG: directory },
    makesOwnSession: true,
  });
};

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
dnsblog unix - - n - 0 dnsblog -o max_idle=1h
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
