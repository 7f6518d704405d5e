/** Outgoing mail: a real Postfix and a real Exim ask the policy service about recipients, also while it is away. */
import { Database } from "bun:sqlite";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { eventually } from "../harness/binary.ts";
import type { Subject } from "./ask.ts";
import { openTalk } from "./dmarc-smtp.ts";
import { OUTGOING, SMTP_PORT, SUFFIX } from "./hosts.ts";
import { startEximInstance } from "./mail-servers.ts";
import { serverDirectory, withLabResolver } from "./namespace.ts";
import { type Claim, claim } from "./claims.ts";
import { mainCfHead, startInstance } from "./postfix.ts";
import type { Supervisor } from "./processes.ts";
import { startService } from "./run.ts";

const { http, policy, postfix: POSTFIX_IP, exim: EXIM_IP } = OUTGOING;
const POLICY = `${policy.ip}:${policy.port}`;
const SERVE = "serve-outgoing";
const MISSING = `nobody@exists.${SUFFIX}`;
const PRESENT = `alice@exists.${SUFFIX}`;
const SUPPRESSED = `stop@exists.${SUFFIX}`;
/** The timeout of the guide, the second that Postfix waits after a failure, and the rest for a busy machine. */
const AWAY_MS_MAX = 15_000;
const VERIFIED_MS_MAX = 60_000;
const LOGGED_MS_MAX = 20_000;

const mainCf = (directory: string): string => `${mainCfHead(directory)}myhostname = out.${SUFFIX}
mydestination =
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
inet_protocols = ipv4
default_transport = discard:
smtpd_peername_lookup = no
smtpd_relay_restrictions =
smtpd_recipient_restrictions =
    check_policy_service { inet:${POLICY}, timeout=2s, try_limit=1, default_action=DUNNO },
    permit_mynetworks, reject_unauth_destination
`;

const MASTER_CF = `${POSTFIX_IP}:${SMTP_PORT} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
rewrite unix - - n - - trivial-rewrite
anvil unix - - n - 1 anvil
bounce unix - - n - 0 bounce
postlog unix-dgram n - n - 1 postlogd
`;

/** Returns the path of the log. */
const startPostfix = async (supervisor: Supervisor, parent: string): Promise<string> => {
  const name = "postfix-outgoing";
  const directory = await serverDirectory(parent, name, ["queue", "data"]);
  await Bun.write(join(directory, "main.cf"), mainCf(directory));
  await Bun.write(join(directory, "master.cf"), MASTER_CF);
  await startInstance(supervisor, { name, directory, files: await withLabResolver(directory) });
  await supervisor.waitForPort(name, POSTFIX_IP, SMTP_PORT);
  return join(directory, "mail.log");
};

/** The ACL is that of the guide. */
const eximConf = (directory: string, unpacked: string): string => `primary_hostname = out.${SUFFIX}
spool_directory = ${directory}/spool
log_file_path = ${directory}/log/%slog
pid_file_path = ${directory}/exim.pid
exim_path = ${unpacked}/usr/sbin/exim4
keep_environment =
local_interfaces = ${EXIM_IP}
daemon_smtp_ports = ${SMTP_PORT}
host_lookup =
rfc1413_hosts =
tls_advertise_hosts =
acl_smtp_rcpt = acl_check_rcpt

begin acl
acl_check_rcpt:
  warn  set acl_m_policy = \${readsocket{inet:${POLICY}}{RCPT $local_part@$domain\\n}{2s}{}{DUNNO}}
  deny  condition = \${if match{$acl_m_policy}{\\N^REJECT \\N}}
        message   = \${sg{$acl_m_policy}{\\N^REJECT ([0-9.]+ )\\N}{550 \\$1}}
  accept

begin routers
all:
  driver = accept
  transport = nowhere

begin transports
nowhere:
  driver = appendfile
  file = /dev/null

begin retry
* * F,1h,1m

begin rewrite
begin authenticators
`;

interface Answered {
  readonly text: string;
  readonly ms: number;
}

/** The reply to a recipient, and how long it took. */
const rcpt = async (ip: string, recipient: string, sender = `news@out.${SUFFIX}`): Promise<Answered> => {
  const talk = await openTalk({ ip, port: SMTP_PORT });
  try {
    await talk.read();
    await talk.say(`EHLO app.${SUFFIX}`);
    await talk.say(`MAIL FROM:<${sender}>`);
    const sinceMs = performance.now();
    const { text } = await talk.say(`RCPT TO:<${recipient}>`);
    return { text, ms: performance.now() - sinceMs };
  } finally {
    talk.end();
  }
};

const cellOf = (what: string, expected: string | RegExp, got: string): Claim => claim("outgoing", what, expected, got);

const SERVERS = { Postfix: POSTFIX_IP, Exim: EXIM_IP } as const;
/** Exim breaks long replies into lines. */
const KNOWN = /^55\d[ -]5\.1\.1 .*known not to exist since \d{4}-\d\d-\d\d\s/;
const ON_LIST = /^55\d[ -]5\.7\.1 .*on the suppression list\s/;
const PASSES = /^250 /;

const askBoth = async (
  what: string,
  expected: RegExp,
  ...recipient: readonly [string, string?]
): Promise<readonly Claim[]> =>
  Promise.all(
    Object.entries(SERVERS).map(async ([name, ip]) =>
      cellOf(`${name}: ${what}`, expected, (await rcpt(ip, ...recipient)).text),
    ),
  );

/** As `askBoth`, within the time that mail may be delayed. */
const passBoth = async (what: string): Promise<readonly Claim[]> => {
  const cells = await Promise.all(
    Object.entries(SERVERS).map(async ([name, ip]) => {
      const { text, ms } = await rcpt(ip, MISSING);
      console.error(`outgoing: ${name}, ${what}: ${Math.round(ms)} ms`);
      return [
        cellOf(`${name}: ${what}`, PASSES, text),
        cellOf(`${name}: ${what}, time`, "short", ms <= AWAY_MS_MAX ? "short" : `${Math.round(ms)} ms`),
      ];
    }),
  );
  return cells.flat();
};

/** Waits until the first mail to a recipient has had it verified: its result. */
const untilVerified = async (dataDir: string): Promise<string> => {
  const db = new Database(join(dataDir, "postwarden.db"), { readonly: true });
  try {
    const find = db.query<{ result: string | null }, [string]>(
      "SELECT sub_status AS result FROM verifications WHERE normalized_email = ?",
    );
    for (const endsAtMs = performance.now() + VERIFIED_MS_MAX; performance.now() < endsAtMs; await Bun.sleep(100)) {
      const result = find.get(MISSING)?.result ?? null;
      if (result !== null) return result;
    }
    return "not verified";
  } finally {
    db.close();
  }
};

/** Something that takes connections in place of the service and never answers. */
const startSilence = async (): Promise<Server> => {
  const server = createServer((socket) => void socket.on("error", () => undefined));
  await new Promise<void>((resolve) => void server.listen(policy.port, policy.ip, resolve));
  return server;
};

/** A service that only warns: mail passes, and Postfix logs why it would have been refused. */
const warnOnly = async (
  supervisor: Supervisor,
  { environment, ...lab }: Subject,
  postfixLog: string,
): Promise<readonly Claim[]> => {
  const name = `${SERVE}-warn`;
  const subject = { ...lab, environment: { ...environment, POSTWARDEN_POLICY_MODE: "warn" } };
  await startService(supervisor, subject, { name, ...http });
  const env = { ...subject.environment, POSTWARDEN_DATA_DIR: join(lab.directory, `${name}-data`) };
  await supervisor.run([lab.binary, "suppress", "add", SUPPRESSED], { env });
  const cells = await askBoth("a suppressed recipient passes where it is only warned of", PASSES, SUPPRESSED);
  let logged = "";
  const isLogged = async (): Promise<boolean> => {
    logged = (await Bun.file(postfixLog).text()).split("\n").findLast((line) => line.includes(SUPPRESSED)) ?? "";
    if (logged.includes("warn: ")) return true;
    // On a busy machine the answer may come after Postfix has gone on without it.
    await rcpt(POSTFIX_IP, SUPPRESSED);
    return false;
  };
  await eventually(isLogged, LOGGED_MS_MAX);
  await supervisor.kill(name);
  return [
    ...cells,
    cellOf("Postfix logs a warning", /warn: RCPT from .*5\.7\.1 .*on the suppression list \(Postwarden\)/, logged),
  ];
};

export const runOutgoing = async (
  supervisor: Supervisor,
  lab: Subject,
  unpacked: string,
): Promise<readonly Claim[]> => {
  const environment = { ...lab.environment, POSTWARDEN_POLICY_LISTEN: POLICY };
  await startService(supervisor, { ...lab, environment }, { name: SERVE, ...http });
  const postfixLog = await startPostfix(supervisor, lab.directory);
  await startEximInstance(
    supervisor,
    { parent: lab.directory, unpacked },
    { name: "exim-outgoing", ip: EXIM_IP, configuration: eximConf },
  );
  const env = { ...environment, POSTWARDEN_DATA_DIR: join(lab.directory, `${SERVE}-data`) };
  await supervisor.run([lab.binary, "suppress", "add", SUPPRESSED], { env });
  const cells = [
    cellOf("Postfix: an unknown recipient passes", PASSES, (await rcpt(POSTFIX_IP, MISSING)).text),
    cellOf("Exim: an unknown recipient passes", PASSES, (await rcpt(EXIM_IP, `none@exists.${SUFFIX}`)).text),
    cellOf("it is verified in the background", "mailbox_not_found", await untilVerified(env.POSTWARDEN_DATA_DIR)),
    ...(await askBoth("a recipient that does not exist", KNOWN, MISSING)),
    ...(await askBoth("the same for the null sender", KNOWN, MISSING, "")),
    ...(await askBoth("a suppressed recipient", ON_LIST, SUPPRESSED)),
    ...(await askBoth("a recipient that exists", PASSES, PRESENT)),
  ];
  await supervisor.kill(SERVE);
  cells.push(...(await passBoth("mail flows while the service is away")));
  cells.push(...(await warnOnly(supervisor, { ...lab, environment }, postfixLog)));
  const silence = await startSilence();
  cells.push(...(await passBoth("mail flows while nothing answers")));
  silence.close();
  return cells;
};
