/** No secret is written where others read: log, evidence, responses, output of commands, process list, and files that others may read. */
import { readFileSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { startSmtpStub } from "../../src/testing/smtp-stub.ts";
import { HttpClient } from "../dashboard/http-client.ts";
import { kill, startServer } from "../harness/binary.ts";

const EMAIL = "owner@example.com";
const PASSWORD = "four plain words 47";
const WRONG_PASSWORD = "four wrong words 48";

interface UserSecrets {
  /** Never to be found in a log, and not in the database either. */
  readonly hidden: Readonly<Record<string, string>>;
  /** Stored as it is, because codes are checked with it. */
  readonly totpSecret: string;
}

const tokenOf = (setupUrl: string): string => setupUrl.split("/").at(-1) ?? "";

const totpSecretIn = (html: string): string => {
  const shown = /<code>((?:[A-Z2-7]{4} ){7}[A-Z2-7]{4})<\/code>/.exec(html)?.[1] ?? "";
  return shown.replaceAll(" ", "");
};

/**
 * Signs in to the dashboard in the ways that handle secrets, also with wrong ones, and returns these.
 * `links` are set-up URLs: the first one is used, the second one only looked at.
 */
const useDashboard = async (url: string, links: readonly [string, string]): Promise<UserSecrets> => {
  const client = new HttpClient(url);
  const [used, unused] = links.map(tokenOf);
  const setup = `/setup/${used}`;
  await client.submit(setup, setup, { password: PASSWORD, repeat: "another one" });
  const done = await client.submit(setup, setup, { password: PASSWORD, repeat: PASSWORD });
  if (done.status !== 303) throw new Error(`the set-up link did not work: ${done.status}`);
  await client.get(setup);
  await client.get(`/setup/${unused}`);
  const sessionToken = client.cookie("pw_session") ?? "";
  const profile = "/settings/profile";
  await client.submit(profile, `${profile}/password`, {
    present: WRONG_PASSWORD,
    password: PASSWORD,
    repeat: PASSWORD,
  });
  await client.submit(profile, `${profile}/codes/enrol`, {});
  const totpSecret = totpSecretIn((await client.get(profile)).html);
  await client.submit(profile, `${profile}/codes/confirm`, { present: WRONG_PASSWORD, code: "123456" });
  const other = new HttpClient(url);
  await other.submit("/sign-in", "/sign-in", { email: EMAIL, password: WRONG_PASSWORD });
  await other.submit("/sign-in", "/sign-in", { email: EMAIL, password: PASSWORD });
  return {
    hidden: {
      ...{ "user's password": PASSWORD, "wrong password": WRONG_PASSWORD },
      ...{ "session token": sessionToken, "set-up token": used ?? "", "unused set-up token": unused ?? "" },
      "other session token": other.cookie("pw_session") ?? "",
    },
    totpSecret,
  };
};

type Settings = Readonly<Record<string, string>>;

interface SecretsRun {
  readonly binary: string;
  /** An empty directory. */
  readonly folder: string;
  readonly claim: (what: string, isTrue: boolean, seen?: unknown) => void;
}

const PASSWORDS = {
  "SOCKS password": "socksSecret41",
  "SMTP password": "smtpSecret42",
  "IMAP password": "imapSecret43",
  "blocklist key": "listSecret44",
  "token in a webhook URL": "hookSecret45",
  "metrics token": "metricsSecret46-0123456789abcdef",
};
const WORK_MS = 4_000;
/** Connections to it are refused. */
const CLOSED_PORT = 9;

/** The command lines of all processes now. */
const commandLines = (): string =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((pid) => {
      try {
        return readFileSync(`/proc/${pid}/cmdline`, "latin1");
      } catch {
        // The process has ended.
        return "";
      }
    })
    .join("\n");

const settingsFor = (folder: string, smtpPort: number): Settings => ({
  POSTWARDEN_DATA_DIR: join(folder, "data"),
  POSTWARDEN_PORT: "0",
  POSTWARDEN_LOG_LEVEL: "debug",
  POSTWARDEN_SMTP_PORT: String(smtpPort),
  POSTWARDEN_PROBE_ALLOW_NETWORKS: "127.0.0.0/8",
  POSTWARDEN_WEBHOOK_ALLOW_NETWORKS: "127.0.0.0/8",
  POSTWARDEN_DNS_SERVERS: `127.0.0.1:${CLOSED_PORT}`,
  POSTWARDEN_GREYLIST_RETRIES_S: "1",
  POSTWARDEN_SOCKS_PROXIES: `socks5://user:${PASSWORDS["SOCKS password"]}@127.0.0.1:${CLOSED_PORT}`,
  POSTWARDEN_NOTIFY_SMTP_URL: `smtp://user:${PASSWORDS["SMTP password"]}@127.0.0.1:${smtpPort}`,
  POSTWARDEN_NOTIFY_FROM: "alerts@example.com",
  POSTWARDEN_METRICS_TOKEN: PASSWORDS["metrics token"],
  POSTWARDEN_IMAP_URL: `imap://user:${PASSWORDS["IMAP password"]}@127.0.0.1:${CLOSED_PORT}/INBOX`,
  POSTWARDEN_BLOCKLIST_KEYS: `spamhaus-zen=${PASSWORDS["blocklist key"]}`,
});

/** Uses the service in ways that fail, and returns everything that it responded. */
const provoke = async (url: string, key: string): Promise<string> => {
  const headers = { authorization: `Bearer ${key}` };
  const hook = `http://127.0.0.1:${CLOSED_PORT}/hook/${PASSWORDS["token in a webhook URL"]}`;
  const ask = async (path: string, body?: object, more: Record<string, string> = headers): Promise<string> => {
    const init = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
    return (await fetch(url + path, { ...init, headers: more })).text();
  };
  const checked = await ask("/v1/email-verifications?timeout=3", { email: "ada@[127.0.0.1]" });
  const other = await ask("/v1/email-verifications?timeout=3", { email: "ada@example.com" });
  const ids = [checked, other].map((text) => /"id":"([^"]+)"/.exec(text)?.[1] ?? "");
  const listed = await ask("/v1/bulk-verifications", { emails: ["ada@example.com"], webhook_url: hook });
  const added = await ask("/v1/blacklist/targets", { target: "8.8.8.8" });
  const target = `/v1/blacklist/targets/${/"id":"([^"]+)"/.exec(added)?.[1]}`;
  const looked = await ask(`${target}/check?timeout=10`, {});
  await Bun.sleep(WORK_MS);
  const evidence = await Promise.all(ids.map((id) => ask(`/v1/email-verifications/${id}/evidence`)));
  const wrong = [
    await ask("/v1/account", undefined, { authorization: `Bearer ${key}x` }),
    await ask(`/v1/account?key=${key}`, undefined, {}),
    await ask("/v1/blacklist/targets", { target: "8.8.8.8", webhook_url: 7, key }),
  ];
  const plain = [await ask("/readyz"), await ask("/v1/account"), await ask("/v1/blacklist/lists")];
  return [checked, other, listed, added, looked, await ask(`${target}/checks`), ...evidence, ...wrong, ...plain].join(
    "\n",
  );
};

/** Files that someone other than their owner may read or write. */
const openFiles = (folder: string): readonly string[] =>
  ["", ...readdirSync(folder, { recursive: true, encoding: "utf8" })].filter(
    (name) => (statSync(join(folder, name)).mode & 0o077) !== 0,
  );

/** Drives a server with every kind of secret and looks for them. */
export const claimNoSecrets = async ({ binary, folder, claim }: SecretsRun): Promise<void> => {
  const stub = startSmtpStub({ rcpt: () => "550 5.1.1 User unknown" });
  const env = settingsFor(folder, stub.port);
  const run = (...args: string[]): string => {
    const { stdout, stderr } = Bun.spawnSync([binary, ...args], { cwd: folder, env, stdin: "ignore" });
    return stdout.toString() + stderr.toString();
  };
  run("accounts", "create", "secrets", "--plan", "scale");
  run("credits", "grant", "secrets", "100");
  const key = /pw_live_\w+/.exec(run("keys", "create", "--account", "secrets", "--mode", "live", "--json"))?.[0] ?? "";
  const signing = /whsec_[\w+/=]+/.exec(run("webhooks", "secret", "--account", "secrets"))?.[0] ?? "";
  claim("a key and a signing secret exist", key !== "" && signing !== "", { key, signing });
  const [used = "", unused = ""] = ["owner@example.com", "member@example.com"].map(
    (email) => /http\S+\/setup\/\w{43}/.exec(run("users", "add", email, "--account", "secrets"))?.[0] ?? "",
  );
  const server = await startServer(env, { cwd: folder, binary });
  const { url } = server;
  const scrape = { headers: { authorization: `Bearer ${PASSWORDS["metrics token"]}` } };
  const metrics = await fetch(`${url}/metrics`, scrape);
  claim("the metrics token opens /metrics", metrics.status === 200, metrics.status);
  const responses = await provoke(url, key);
  const { hidden, totpSecret } = await useDashboard(url, [used, unused]);
  const userSecrets = { ...hidden, "TOTP secret": totpSecret };
  const missing = Object.entries(userSecrets).filter(([, secret]) => secret.length < 10);
  claim("the dashboard has sessions, set-up tokens and a TOTP secret", missing.length === 0, missing);
  const processes = commandLines();
  const printed = [
    ...[run("config", "--json"), run("config"), run("doctor", "--json"), run("keys", "list"), run("accounts", "list")],
    ...[run("credits", "show", "secrets"), run("dmarc", "imap-check"), run("users", "list", "--json"), run("audit")],
    ...[run("blocklist", "lists"), run("blocklist", "check", "8.8.8.8", "--json")],
  ].join("\n");
  await kill(server, "SIGTERM");
  await server.ended;
  const log = server.log();
  stub.stop();
  const stored = ["postwarden.db", "postwarden.db-wal"]
    .map((name) => join(folder, "data", name))
    .filter((path) => statSync(path, { throwIfNoEntry: false }) !== undefined)
    .map((path) => readFileSync(path, "latin1"))
    .join();
  const places = {
    log,
    responses,
    metrics: await metrics.text(),
    "output of commands": printed,
    "process list": processes,
  };
  const secrets = { ...PASSWORDS, "API key": key, "signing secret": signing, ...userSecrets };
  for (const [kind, secret] of Object.entries(secrets)) {
    // The owner of a list sees the webhook URL that it set.
    const foundIn = Object.entries(places)
      .filter(([, text]) => text.includes(secret))
      .map(([place]) => place);
    claim(
      `no ${kind} in the log, responses, metrics, output of commands or process list`,
      foundIn.length === 0,
      foundIn,
    );
  }
  claim(
    "the log of this run is not empty, and debug lines are in it",
    log.includes('"level":"debug"'),
    log.slice(0, 400),
  );
  claim(
    "sessions, set-up tokens and passwords of users are stored as hashes only",
    !Object.values(hidden).some((one) => stored.includes(one)) && stored.includes("$argon2id$"),
  );
  claim("API keys are stored as hashes only", !stored.includes(key) && stored.includes(key.slice(-4)));
  claim(
    "passwords of the settings are not in the database",
    !Object.values(PASSWORDS)
      .slice(0, 4)
      .some((one) => stored.includes(one)),
  );
  claim(
    "only the owner may read the data directory and its files",
    openFiles(join(folder, "data")).length === 0,
    openFiles(join(folder, "data")),
  );
};
