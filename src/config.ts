import { hostname } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { err, ok, type Result } from "./base/errors.ts";
import { LOG_LEVELS } from "./base/log.ts";
import { nearestName } from "./base/nearest.ts";
import { formatServer } from "./net/dns.ts";
import { GEOIP_FILES_MAX } from "./net/geoip-files.ts";
import { formatImapUrl } from "./net/imap-url.ts";
import {
  byNumber,
  cidr,
  asnLookup,
  dnsServers,
  filePath,
  formatProxy,
  formatRelay,
  heloName,
  httpUrl,
  ipAddress,
  isHostName,
  list,
  listenAddress,
  mailDomain,
  listId,
  listKeys,
  notifyFrom,
  onOff,
  reportHost,
  seconds,
  sender,
  smtpUrl,
  socksProxy,
  wholeNumber,
} from "./setting-parsers.ts";
import { formatImapAfter, imapAfter, imapProblem, imapSettingsOf, imapUrl } from "./imap-settings.ts";

const PREFIX = "POSTWARDEN_";
export const DATA_DIR_SETTING = `${PREFIX}DATA_DIR`;
export const USE_PROXY_ENV_SETTING = `${PREFIX}USE_PROXY_ENV`;

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
  HELO_NAME: heloName.optional(),
  MAIL_FROM: sender.default(""),
  SMTP_PORT: wholeNumber(1, 65_535).prefault("25"),
  SMTP_CONNECT_TIMEOUT_MS: wholeNumber(100, 120_000).prefault("10000"),
  SMTP_REPLY_TIMEOUT_MS: wholeNumber(100, 600_000).prefault("30000"),
  GREYLIST_RETRIES_S: list(seconds).prefault("60,300,900,1800"),
  MAX_CONNECTIONS: wholeNumber(1, 20_000).prefault("500"),
  MAX_CONNECTIONS_PER_HOST: wholeNumber(1, 1_000).prefault("4"),
  MAX_RCPT_PER_CONNECTION: wholeNumber(2, 10_000).prefault("50"),
  SOURCE_ADDRESSES: list(ipAddress).prefault(""),
  SOCKS_PROXIES: list(socksProxy, byNumber).prefault(""),
  PROBE_ALLOW_NETWORKS: list(cidr).prefault(""),
  WEBHOOK_ALLOW_NETWORKS: list(cidr).prefault(""),
  USE_PROXY_ENV: onOff.prefault("off"),
  DNSBL_SIGNAL: onOff.prefault("on"),
  BLOCKLIST_CATALOGUE: z.string().min(1).optional(),
  BLOCKLIST_KEYS: listKeys.prefault(""),
  BLOCKLISTS_ENABLE: list(listId).prefault(""),
  BLOCKLISTS_DISABLE: list(listId).prefault(""),
  BLOCKLIST_RETENTION_DAYS: wholeNumber(1, 3_650).prefault("90"),
  ASN_LOOKUP: asnLookup.default("dns"),
  GEOIP_DB: list(filePath)
    .refine(({ length }) => length <= GEOIP_FILES_MAX, `at most ${GEOIP_FILES_MAX} files can be given`)
    .prefault(""),
  REPORT_HOST: reportHost.optional(),
  REPORT_LISTEN: listenAddress.optional(),
  REPORT_TLS_CERT: z.string().min(1).optional(),
  REPORT_TLS_KEY: z.string().min(1).optional(),
  IMAP_URL: imapUrl.optional(),
  IMAP_PASSWORD_FILE: z.string().min(1).optional(),
  IMAP_TOKEN_COMMAND: z.string().min(1).optional(),
  IMAP_CA_FILE: z.string().min(1).optional(),
  IMAP_AFTER: imapAfter.prefault("seen"),
  IMAP_ACCOUNT: z.string().min(1).optional(),
  NOTIFY_SMTP_URL: smtpUrl.optional(),
  NOTIFY_FROM: notifyFrom.optional(),
  NOTIFY_DOMAINS: list(mailDomain).prefault(""),
  LOG_LEVEL: z.enum(LOG_LEVELS, { error: `one of ${LOG_LEVELS.join(", ")} is needed` }).default("info"),
};

/** Settings that fit their form but not the world (a file that is not there): one sentence a problem. */
export class SettingsError extends Error {
  constructor(readonly problems: readonly string[]) {
    super(["The settings do not fit:", ...problems.map((problem) => `  ${problem}`)].join("\n"));
  }
}

/** Names and values, as an operating system hands them to a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

type SettingName = keyof typeof settings;
const settingNames = Object.keys(settings) as SettingName[];

const schema = z
  .object(settings)
  .refine((values) => (values.TLS_CERT === undefined) === (values.TLS_KEY === undefined), {
    message: "POSTWARDEN_TLS_CERT and POSTWARDEN_TLS_KEY go together: give both or none",
  })
  .refine((values) => (values.REPORT_TLS_CERT === undefined) === (values.REPORT_TLS_KEY === undefined), {
    message: "POSTWARDEN_REPORT_TLS_CERT and POSTWARDEN_REPORT_TLS_KEY go together: give both or none",
  })
  .refine((values) => values.REPORT_LISTEN === undefined || values.REPORT_HOST !== undefined, {
    message: "POSTWARDEN_REPORT_LISTEN needs POSTWARDEN_REPORT_HOST: the domain whose mail is received there",
  })
  .refine((values) => (values.NOTIFY_SMTP_URL === undefined) === (values.NOTIFY_FROM === undefined), {
    message: "POSTWARDEN_NOTIFY_SMTP_URL and POSTWARDEN_NOTIFY_FROM go together: give both or none",
  })
  .superRefine((values, context) => {
    const message = imapProblem(values);
    if (message !== null) context.addIssue({ code: "custom", message });
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
    sourceAddresses: values.SOURCE_ADDRESSES,
    socksProxies: values.SOCKS_PROXIES,
    probeAllowNetworks: values.PROBE_ALLOW_NETWORKS,
    webhookAllowNetworks: values.WEBHOOK_ALLOW_NETWORKS,
    useProxyEnv: values.USE_PROXY_ENV,
    dnsblSignal: values.DNSBL_SIGNAL,
    blocklistCataloguePath: values.BLOCKLIST_CATALOGUE ?? null,
    blocklistKeys: values.BLOCKLIST_KEYS,
    blocklistsEnable: values.BLOCKLISTS_ENABLE,
    blocklistsDisable: values.BLOCKLISTS_DISABLE,
    blocklistRetentionDays: values.BLOCKLIST_RETENTION_DAYS,
    asnLookup: values.ASN_LOOKUP,
    geoipPaths: values.GEOIP_DB.map((path) => resolve(path)),
    reportHost: values.REPORT_HOST ?? null,
    reportListen: values.REPORT_LISTEN ?? null,
    reportTls:
      values.REPORT_TLS_CERT && values.REPORT_TLS_KEY
        ? { certPath: values.REPORT_TLS_CERT, keyPath: values.REPORT_TLS_KEY }
        : null,
    imap: imapSettingsOf(values),
    notifyRelay: values.NOTIFY_SMTP_URL ?? null,
    notifyFrom: values.NOTIFY_FROM ?? null,
    notifyDomains: values.NOTIFY_DOMAINS,
    logLevel: values.LOG_LEVEL,
  }));

export type Config = z.output<typeof schema>;

/** The settings in force under the names by which they are set; `null` for what is not. */
export const settingsInForce = (config: Config) => ({
  [`${PREFIX}DATA_DIR`]: config.dataDir,
  [`${PREFIX}HOST`]: config.host,
  [`${PREFIX}PORT`]: config.port,
  [`${PREFIX}BASE_URL`]: config.baseUrl,
  [`${PREFIX}TLS_CERT`]: config.tls?.certPath ?? null,
  [`${PREFIX}TLS_KEY`]: config.tls?.keyPath ?? null,
  [`${PREFIX}TRUSTED_PROXIES`]: config.trustedProxies,
  [`${PREFIX}DNS_SERVERS`]: config.dnsServers?.map(formatServer) ?? null,
  [`${PREFIX}HELO_NAME`]: config.heloName,
  [`${PREFIX}MAIL_FROM`]: config.mailFrom === "" ? "<>" : config.mailFrom,
  [`${PREFIX}SMTP_PORT`]: config.smtpPort,
  [`${PREFIX}SMTP_CONNECT_TIMEOUT_MS`]: config.connectTimeoutMs,
  [`${PREFIX}SMTP_REPLY_TIMEOUT_MS`]: config.replyTimeoutMs,
  [`${PREFIX}GREYLIST_RETRIES_S`]: config.retryWaitsS,
  [`${PREFIX}MAX_CONNECTIONS`]: config.connectionsMax,
  [`${PREFIX}MAX_CONNECTIONS_PER_HOST`]: config.connectionsPerHostMax,
  [`${PREFIX}MAX_RCPT_PER_CONNECTION`]: config.rcptPerConnectionMax,
  [`${PREFIX}SOURCE_ADDRESSES`]: config.sourceAddresses,
  [`${PREFIX}SOCKS_PROXIES`]: config.socksProxies.map(formatProxy),
  [`${PREFIX}PROBE_ALLOW_NETWORKS`]: config.probeAllowNetworks,
  [`${PREFIX}WEBHOOK_ALLOW_NETWORKS`]: config.webhookAllowNetworks,
  [USE_PROXY_ENV_SETTING]: config.useProxyEnv ? "on" : "off",
  [`${PREFIX}DNSBL_SIGNAL`]: config.dnsblSignal ? "on" : "off",
  [`${PREFIX}BLOCKLIST_CATALOGUE`]: config.blocklistCataloguePath,
  [`${PREFIX}BLOCKLIST_KEYS`]: [...config.blocklistKeys.keys()],
  [`${PREFIX}BLOCKLISTS_ENABLE`]: config.blocklistsEnable,
  [`${PREFIX}BLOCKLISTS_DISABLE`]: config.blocklistsDisable,
  [`${PREFIX}BLOCKLIST_RETENTION_DAYS`]: config.blocklistRetentionDays,
  [`${PREFIX}ASN_LOOKUP`]: config.asnLookup,
  [`${PREFIX}GEOIP_DB`]: config.geoipPaths,
  [`${PREFIX}REPORT_HOST`]: config.reportHost,
  [`${PREFIX}REPORT_LISTEN`]: config.reportListen && formatServer(config.reportListen),
  [`${PREFIX}REPORT_TLS_CERT`]: config.reportTls?.certPath ?? null,
  [`${PREFIX}REPORT_TLS_KEY`]: config.reportTls?.keyPath ?? null,
  [`${PREFIX}IMAP_URL`]: config.imap && formatImapUrl(config.imap.url),
  [`${PREFIX}IMAP_PASSWORD_FILE`]: config.imap?.passwordFile ?? null,
  [`${PREFIX}IMAP_TOKEN_COMMAND`]: config.imap?.tokenCommand ? "(set)" : null,
  [`${PREFIX}IMAP_CA_FILE`]: config.imap?.caFile ?? null,
  [`${PREFIX}IMAP_AFTER`]: config.imap && formatImapAfter(config.imap.after),
  [`${PREFIX}IMAP_ACCOUNT`]: config.imap?.account ?? null,
  [`${PREFIX}NOTIFY_SMTP_URL`]: config.notifyRelay && formatRelay(config.notifyRelay),
  [`${PREFIX}NOTIFY_FROM`]: config.notifyFrom,
  [`${PREFIX}NOTIFY_DOMAINS`]: config.notifyDomains,
  [`${PREFIX}LOG_LEVEL`]: config.logLevel,
});

/** The name of this machine as an MX record can have it; null when the HELO name is none. */
export const mailHostOf = ({ heloName }: Config): string | null =>
  heloName.includes(".") && !heloName.startsWith("[") ? heloName.toLowerCase() : null;

const ownHostName = (): string => {
  const name = hostname();
  return isHostName(name) ? name : "localhost";
};

/** A name that is not a setting, with the one that was probably meant. */
const unknownSetting = (setting: string): string => {
  const near = nearestName(setting.toUpperCase(), settingNames);
  return near === null
    ? `${PREFIX}${setting} is not a setting. \`postwarden config\` lists all settings.`
    : `${PREFIX}${setting} is not a setting. Did you mean ${PREFIX}${near}?`;
};

/** One problem as a sentence that begins with the setting it is about. */
const sentence = ({ path, message }: z.core.$ZodIssue): string => {
  const text = path.length === 0 ? message : `${PREFIX}${path.join(".")}: ${message}`;
  return text.endsWith(".") ? text : `${text}.`;
};

/**
 * Reads the settings out of an environment. The error is one sentence a problem: a value that does not fit, or a
 * `POSTWARDEN_` name that does not exist, with the one that was probably meant. An empty value counts as not given.
 */
export const readConfig = (environment: Environment): Result<Config, string[]> => {
  const given: Record<string, string> = {};
  const problems: string[] = [];
  for (const [name, value] of Object.entries(environment)) {
    if (!name.startsWith(PREFIX) || value === undefined || value === "") continue;
    const setting = name.slice(PREFIX.length);
    if (Object.hasOwn(settings, setting)) given[setting] = value;
    else problems.push(unknownSetting(setting));
  }
  const read = schema.safeParse(given);
  if (read.success && problems.length === 0) return ok(read.data);
  const misfits = read.success ? [] : read.error.issues;
  return err([...problems, ...misfits.map(sentence)]);
};

/** The environment of this process, for `readConfig`. The only place that looks at it. */
export const processEnvironment = (): Environment => Bun.env;

const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

/**
 * Takes the proxies out of this process's environment, where the platform would find them, and answers the names of those
 * that were set. A webhook goes to the address that was checked; through a proxy nobody asked for, somebody else connects.
 */
export const ignoreProxyVariables = (
  environment: Record<string, string | undefined> = process.env,
): readonly string[] => {
  const set = PROXY_VARIABLES.filter((name) => (environment[name] ?? "") !== "");
  for (const name of set) delete environment[name];
  return set;
};
