import { closeSync, openSync } from "node:fs";
import { chmod, chown, mkdir, readdir, rename } from "node:fs/promises";
import { join } from "node:path";
import { inNamespace } from "./namespace.ts";
import { ensurePackages } from "./packages.ts";
import { connects, type Supervisor } from "./processes.ts";

const READY_MS_MAX = 15_000;
const LEAVE_MS_MAX = 8_000;
const PAUSE_MS = 50;

interface ProgramOptions {
  readonly directory: string;
  readonly name: string;
  readonly argv: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** Where it takes connections once it is ready. */
  readonly ports: readonly { readonly ip: string; readonly port: number }[];
}

/** A server that is started and ended several times in one run; ended by its pid. */
export interface Program {
  start(): Promise<void>;
  /** Answers how long it took to leave, in milliseconds; after some seconds it is killed. */
  stop(signal?: "SIGTERM" | "SIGKILL"): Promise<number>;
}

export const createProgram = ({ directory, name, argv, env = {}, ports }: ProgramOptions): Program => {
  let child: Bun.Subprocess | null = null;

  const untilReady = async (): Promise<void> => {
    const endsMs = performance.now() + READY_MS_MAX;
    while (performance.now() < endsMs) {
      const open = await Promise.all(ports.map(({ ip, port }) => connects(ip, port)));
      if (open.every(Boolean)) return;
      await Bun.sleep(PAUSE_MS);
    }
    const log = await Bun.file(join(directory, `${name}.log`)).text();
    throw new Error(`${name} does not answer\n${log.split("\n").slice(-15).join("\n")}`);
  };

  return {
    async start() {
      const log = openSync(join(directory, `${name}.log`), "a");
      child = Bun.spawn([...argv], {
        cwd: directory,
        env: { PATH: "/usr/sbin:/usr/bin:/sbin:/bin", LC_ALL: "C.UTF-8", ...env },
        stdin: "ignore",
        stdout: log,
        stderr: log,
      });
      closeSync(log);
      await untilReady();
    },
    async stop(signal = "SIGTERM") {
      if (child === null) return 0;
      const startedMs = performance.now();
      child.kill(signal);
      const late = setTimeout(() => child?.kill("SIGKILL"), LEAVE_MS_MAX);
      await child.exited;
      clearTimeout(late);
      child = null;
      return performance.now() - startedMs;
    },
  };
};

/** Where Dovecot listens, and the name for which STARTTLS has a certificate. */
export const DOVECOT = { ip: "127.10.9.1", imaps: 21_993, imap: 21_143, name: "localhost" } as const;
export const PASSWORD = "secret";
export const TOKEN = "a-good-token";
const INTROSPECTION = { ip: "127.10.9.2", port: 21_080 } as const;

/** The packages would create users and start a service: unpacked, never installed. Their libraries do neither. */
const UNPACKED: Readonly<Record<string, string>> = {
  "dovecot-core": "usr/sbin/dovecot",
  "dovecot-imapd": "usr/lib/dovecot/imap",
};
const LIBRARIES = ["libsodium23", "libunwind8", "liblz4-1", "libzstd1", "libpam0g"];
/** A user that is in /etc/passwd of every Debian. */
export const MAIL_OWNER = { user: "daemon", login: "nobody", uid: 1, gid: 1 } as const;

/** Sees to it that Dovecot lies below `cache`; answers the directories to lay over the machine's own. */
const ensureDovecot = async (supervisor: Supervisor, cache: string): Promise<readonly string[]> => {
  const wanted = { installed: LIBRARIES, unpacked: UNPACKED };
  await ensurePackages(supervisor, cache, { isRoot: process.getuid?.() === 0, wanted });
  return Object.keys(UNPACKED).map((name) => join(cache, name, "usr"));
};

const configuration = (directory: string): string => `base_dir = ${directory}/run
state_dir = ${directory}/run
default_internal_user = ${MAIL_OWNER.user}
default_internal_group = ${MAIL_OWNER.user}
default_login_user = ${MAIL_OWNER.login}
first_valid_uid = 1
protocols = imap
log_path = ${directory}/dovecot.log
listen = ${DOVECOT.ip}, 127.0.0.1
ssl = required
ssl_cert = <${directory}/tls.crt
ssl_key = <${directory}/tls.key
auth_mechanisms = plain xoauth2 oauthbearer
auth_failure_delay = 0
mail_location = maildir:${directory}/mail/%u
passdb {
  driver = oauth2
  mechanisms = xoauth2 oauthbearer
  args = ${directory}/oauth2.conf
}
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${MAIL_OWNER.uid} gid=${MAIL_OWNER.gid} home=${directory}/mail/%u
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${DOVECOT.imap}
  }
  inet_listener imaps {
    port = ${DOVECOT.imaps}
    ssl = yes
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
`;

const OAUTH2 = `introspection_url = http://${INTROSPECTION.ip}:${INTROSPECTION.port}/introspect
introspection_mode = post
username_attribute = username
active_attribute = active
active_value = true
tls_ca_cert_file =
`;

/** Says of access tokens whose they are (RFC 7662). */
const startIntrospection = (username: string) =>
  Bun.serve({
    hostname: INTROSPECTION.ip,
    port: INTROSPECTION.port,
    fetch: async (request) =>
      Response.json((await request.text()).includes(TOKEN) ? { active: "true", username } : { active: "false" }),
  });

/** Dovecot with a maildir for every user that is asked for. */
export interface Dovecot {
  readonly program: Program;
  /** The directory with a maildir for each user. */
  readonly mailboxes: string;
  /** PEM of the authority of its certificate. */
  readonly ca: string;
  /** Delivers mails into the inbox of a user. */
  deliver(user: string, mails: readonly Uint8Array[]): Promise<void>;
  /** The flags of the messages in a folder, a text for each; `""` is the inbox. */
  flags(user: string, folder?: string): Promise<readonly string[]>;
  /** Ends the introspection; the program is ended by itself. */
  stop(): void;
}

/** Starts Dovecot below `parent`. `tokenUser` is whose the one token is. */
export const startDovecot = async (
  supervisor: Supervisor,
  { parent, cache, tokenUser }: { readonly parent: string; readonly cache: string; readonly tokenUser: string },
): Promise<Dovecot> => {
  const lower = await ensureDovecot(supervisor, cache);
  const directory = join(parent, "dovecot");
  for (const part of ["", "run", "mail"]) {
    await mkdir(join(directory, part), { recursive: true });
    await chmod(join(directory, part), 0o755);
  }
  await chown(join(directory, "mail"), MAIL_OWNER.uid, MAIL_OWNER.gid);
  await supervisor.run([
    ...["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=imap.lab.test"],
    ...["-addext", `subjectAltName=DNS:${DOVECOT.name},IP:${DOVECOT.ip}`],
    ...["-keyout", join(directory, "tls.key"), "-out", join(directory, "tls.crt")],
  ]);
  await Bun.write(join(directory, "dovecot.conf"), configuration(directory));
  await Bun.write(join(directory, "oauth2.conf"), OAUTH2);
  const introspection = startIntrospection(tokenUser);
  const argv = ["dovecot", "-F", "-c", join(directory, "dovecot.conf")];
  const program = createProgram({
    directory,
    name: "dovecot-master",
    // The paths of Dovecot are compiled in, so its /usr is an overlay that contains the packages.
    argv: inNamespace({ overlays: { "/usr": lower } }, argv),
    ports: [{ ip: DOVECOT.ip, port: DOVECOT.imaps }],
  });
  await program.start();
  let serial = 0;

  return {
    program,
    mailboxes: join(directory, "mail"),
    ca: join(directory, "tls.crt"),
    async deliver(user, mails) {
      const inbox = join(directory, "mail", user);
      for (const part of ["", "tmp", "new", "cur"]) {
        await mkdir(join(inbox, part), { recursive: true });
        await chown(join(inbox, part), MAIL_OWNER.uid, MAIL_OWNER.gid);
      }
      for (const mail of mails) {
        serial += 1;
        const name = `1700000000.M${String(serial).padStart(6, "0")}P1.lab`;
        await Bun.write(join(inbox, "tmp", name), mail);
        await chown(join(inbox, "tmp", name), MAIL_OWNER.uid, MAIL_OWNER.gid);
        await rename(join(inbox, "tmp", name), join(inbox, "new", name));
      }
    },
    async flags(user, folder = "") {
      const at = join(directory, "mail", user, folder === "" ? "" : `.${folder}`);
      const names = async (part: string) => readdir(join(at, part)).catch(() => [] as string[]);
      const all = [...(await names("new")), ...(await names("cur"))];
      return all.map((name) => /:2,(.*)$/.exec(name)?.[1] ?? "");
    },
    stop: () => void introspection.stop(true),
  };
};
