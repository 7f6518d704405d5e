import { hostname } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { err, ok, type Result } from "./base/errors.ts";
import { LOG_LEVELS } from "./base/log.ts";
import { parseAddress } from "./mail/address.ts";
import { parseCidr } from "./net/public-address.ts";
import { parseDnsServers } from "./net/resolv-conf.ts";

const PREFIX = "POSTWARDEN_";

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d{1,9}$/, "a whole number is needed")
    .transform(Number)
    .pipe(z.number().min(min, `at least ${min}`).max(max, `at most ${max}`));

const list = <T>(parse: (item: string) => Result<T, string>) =>
  z.string().transform((text, context) => {
    const items: T[] = [];
    for (const item of text.split(",").map((part) => part.trim())) {
      if (item === "") continue;
      const parsed = parse(item);
      if (parsed.ok) items.push(parsed.value);
      else context.addIssue({ code: "custom", message: `"${item}": ${parsed.error}` });
    }
    return items;
  });

const seconds = (item: string): Result<number, string> => {
  const value = Number(item);
  return /^\d+$/.test(item) && value >= 1 && value <= 86_400 ? ok(value) : err("seconds from 1 to 86400 are needed");
};

const cidr = (item: string): Result<string, string> => {
  const parsed = parseCidr(item);
  return parsed.ok ? ok(item) : err("an address range such as 10.0.0.0/8 is needed");
};

const httpUrl = z.string().transform((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url !== null && /^https?:$/.test(url.protocol) && url.search === "" && url.hash === "" && url.username === "") {
    return text.replace(/\/+$/, "");
  }
  context.addIssue({ code: "custom", message: "an http or https URL without query is needed" });
  return z.NEVER;
});

const hostName = z
  .string()
  .regex(
    /^(?=.{1,253}$)[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?(\.[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)*$|^\[[0-9a-fA-F.:]+\]$/i,
    "a host name is needed",
  );

const sender = z
  .string()
  .refine(
    (text) => text === "" || text === "<>" || parseAddress(text).ok,
    "an address, or <> for the null sender, is needed",
  );

const dnsServers = z.string().transform((text, context) => {
  const parsed = parseDnsServers(text);
  if (parsed.ok) return parsed.value;
  context.addIssue({ code: "custom", message: parsed.error.problem });
  return z.NEVER;
});

/** Every setting: what it may be, what it is when it is not given. The README's table says what each does. */
const settings = {
  DATA_DIR: z.string().min(1).default("./data"),
  HOST: z.string().min(1).default("127.0.0.1"),
  PORT: wholeNumber(0, 65_535).prefault("8080"),
  BASE_URL: httpUrl.optional(),
  TLS_CERT: z.string().min(1).optional(),
  TLS_KEY: z.string().min(1).optional(),
  TRUSTED_PROXIES: list(cidr).prefault(""),
  DNS_SERVERS: dnsServers.optional(),
  HELO_NAME: hostName.optional(),
  MAIL_FROM: sender.default(""),
  SMTP_PORT: wholeNumber(1, 65_535).prefault("25"),
  SMTP_CONNECT_TIMEOUT_MS: wholeNumber(100, 120_000).prefault("10000"),
  SMTP_REPLY_TIMEOUT_MS: wholeNumber(100, 600_000).prefault("30000"),
  GREYLIST_RETRIES_S: list(seconds).prefault("60,300,900,1800"),
  MAX_CONNECTIONS: wholeNumber(1, 20_000).prefault("500"),
  MAX_CONNECTIONS_PER_HOST: wholeNumber(1, 1_000).prefault("4"),
  MAX_RCPT_PER_CONNECTION: wholeNumber(2, 10_000).prefault("50"),
  PROBE_ALLOW_NETWORKS: list(cidr).prefault(""),
  LOG_LEVEL: z.enum(LOG_LEVELS).default("info"),
};

type SettingName = keyof typeof settings;
const settingNames = Object.keys(settings) as SettingName[];

const schema = z
  .object(settings)
  .refine((values) => (values.TLS_CERT === undefined) === (values.TLS_KEY === undefined), {
    path: ["TLS_CERT"],
    message: "the certificate and the key (POSTWARDEN_TLS_KEY) go together",
  })
  .transform((values) => ({
    dataDir: resolve(values.DATA_DIR),
    host: values.HOST,
    port: values.PORT,
    baseUrl: values.BASE_URL ?? null,
    tls: values.TLS_CERT && values.TLS_KEY ? { certPath: values.TLS_CERT, keyPath: values.TLS_KEY } : null,
    trustedProxies: values.TRUSTED_PROXIES,
    dnsServers: values.DNS_SERVERS ?? null,
    heloName: values.HELO_NAME ?? ownHostName(),
    mailFrom: values.MAIL_FROM === "<>" ? "" : values.MAIL_FROM,
    smtpPort: values.SMTP_PORT,
    connectTimeoutMs: values.SMTP_CONNECT_TIMEOUT_MS,
    replyTimeoutMs: values.SMTP_REPLY_TIMEOUT_MS,
    retryWaitsS: values.GREYLIST_RETRIES_S,
    connectionsMax: values.MAX_CONNECTIONS,
    connectionsPerHostMax: values.MAX_CONNECTIONS_PER_HOST,
    rcptPerConnectionMax: values.MAX_RCPT_PER_CONNECTION,
    probeAllowNetworks: values.PROBE_ALLOW_NETWORKS,
    logLevel: values.LOG_LEVEL,
  }));

export type Config = z.output<typeof schema>;

const ownHostName = (): string => {
  const name = hostname();
  return hostName.safeParse(name).success ? name : "localhost";
};

/** Steps of one letter (put in, left out, changed) from one text to the other. */
const distance = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, n) => n);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (letter === b[j - 1] ? 0 : 1);
      next.push(Math.min(change, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
};

const nearest = (name: string): string =>
  settingNames.toSorted((a, b) => distance(name, a) - distance(name, b))[0] ?? "";

/**
 * Reads the settings out of an environment. The error is one sentence a problem: a value that does not fit, or a
 * `POSTWARDEN_` name that does not exist, with the nearest one that does. An empty value counts as not given.
 */
export const readConfig = (environment: Readonly<Record<string, string | undefined>>): Result<Config, string[]> => {
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || value === undefined || value === "") continue;
    const setting = name.slice(PREFIX.length);
    if (Object.hasOwn(settings, setting)) given[setting] = value;
    else problems.push(`${name} is not a setting. Did you mean ${PREFIX}${nearest(setting)}?`);
  }
  const read = schema.safeParse(given);
  if (read.success && problems.length === 0) return ok(read.data);
  const misfits = read.success ? [] : read.error.issues;
  return err([...problems, ...misfits.map((issue) => `${PREFIX}${issue.path.join(".")}: ${issue.message}`)]);
};

/** The settings of this process. The only place that reads the environment. */
export const readEnvironment = (): Result<Config, string[]> => readConfig(Bun.env);
