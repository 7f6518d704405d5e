import { hostname } from "node:os";
import { resolve } from "node:path";
import { z } from "zod";
import { err, ok, type Result } from "../foundation/base/errors.ts";
import { LOG_LEVELS } from "../foundation/base/log.ts";
import { nearestName } from "../foundation/base/nearest.ts";
import { formatImapAfter, imapAddress, imapAfter, imapProblem, imapSettingsOf, imapUrl } from "./imap-settings.ts";
import { formatServer } from "../foundation/net/dns.ts";
import { formatImapUrl } from "../foundation/net/imap-client.ts";
import { formatRelay } from "../foundation/net/mailer.ts";
import {
  byNumber,
  cidr,
  dnsServers,
  filePath,
  heloName,
  httpUrl,
  ipAddress,
  isHostName,
  metricsToken,
  commaList,
  listenAddress,
  listId,
  listKeys,
  mailDomain,
  notifyFrom,
  onOff,
  choiceOf,
  reportHost,
  keptDays,
  seconds,
  sender,
  smtpUrl,
  socksProxy,
  wholeNumber,
} from "./setting-parsers.ts";
import { formatProxy } from "../foundation/net/socks-connector.ts";

/** Each is read into memory. */
const GEOIP_FILES_MAX = 8;
const PREFIX = "POSTWARDEN_";
export const DATA_DIR_SETTING = `${PREFIX}DATA_DIR`;
export const HOST_SETTING = `${PREFIX}HOST`;
export const PORT_SETTING = `${PREFIX}PORT`;
export const USE_PROXY_ENV_SETTING = `${PREFIX}USE_PROXY_ENV`;

/** A value as `postwarden config` shows it; null when the setting is not set. */
type Shown = string | number | readonly (string | number)[] | null;

/** A setting: its name without the prefix, how its text is read, and how the value is shown, without any secret. */
interface Setting<Schema extends z.ZodType> {
  readonly name: string;
  readonly schema: Schema;
  readonly show: (value: z.output<Schema>) => Shown;
}

/** A setting whose value is shown as it is. */
const setting = <Schema extends z.ZodType<Shown>>(name: string, schema: Schema): Setting<Schema> => ({
  name,
  schema,
  show: (value) => value,
});

/** A setting whose value `show` formats. */
const formatted = <Schema extends z.ZodType>(
  name: string,
  schema: Schema,
  show: (value: z.output<Schema>) => Shown,
): Setting<Schema> => ({ name, schema, show });

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.optional().transform((value) => value ?? null);
const text = z.string().min(1);
const showDays = (days: number | null) => days ?? "off";
const showOnOff = (isOn: boolean): string => (isOn ? "on" : "off");

/** Every setting with its default. The reference of the manual says what each one does. */
const settings = {
  dataDir: setting(
    "DATA_DIR",
    text.default("./data").transform((path) => resolve(path)),
  ),
  backupDir: setting("BACKUP_DIR", optional(text.transform((path) => resolve(path)))),
  backupKeep: setting("BACKUP_KEEP", wholeNumber(1, 1_000).prefault("7")),
  host: setting("HOST", text.default("127.0.0.1")),
  port: setting("PORT", wholeNumber(0, 65_535).prefault("8080")),
  baseUrl: setting("BASE_URL", optional(httpUrl)),
  tlsCertPath: setting("TLS_CERT", optional(text)),
  tlsKeyPath: setting("TLS_KEY", optional(text)),
  trustedProxies: setting("TRUSTED_PROXIES", commaList(cidr).prefault("")),
  dnsServers: formatted("DNS_SERVERS", optional(dnsServers), (servers) => servers?.map(formatServer) ?? null),
  heloName: setting(
    "HELO_NAME",
    heloName.default(() => ownHostName()),
  ),
  mailFrom: formatted("MAIL_FROM", sender.default(""), (address) => (address === "" ? "<>" : address)),
  smtpPort: setting("SMTP_PORT", wholeNumber(1, 65_535).prefault("25")),
  connectTimeoutMs: setting("SMTP_CONNECT_TIMEOUT_MS", wholeNumber(100, 120_000).prefault("10000")),
  replyTimeoutMs: setting("SMTP_REPLY_TIMEOUT_MS", wholeNumber(100, 600_000).prefault("30000")),
  retryWaitsS: setting("GREYLIST_RETRIES_S", commaList(seconds).prefault("60,300,900,1800")),
  connectionsMax: setting("MAX_CONNECTIONS", wholeNumber(1, 20_000).prefault("500")),
  connectionsPerHostMax: setting("MAX_CONNECTIONS_PER_HOST", wholeNumber(1, 1_000).prefault("4")),
  connectionsPerEgressMax: setting("MAX_CONNECTIONS_PER_EGRESS", optional(wholeNumber(1, 20_000))),
  rcptPerConnectionMax: setting("MAX_RCPT_PER_CONNECTION", wholeNumber(2, 10_000).prefault("50")),
  sourceAddresses: setting("SOURCE_ADDRESSES", commaList(ipAddress).prefault("")),
  socksProxies: formatted("SOCKS_PROXIES", commaList(socksProxy, byNumber).prefault(""), (all) => all.map(formatProxy)),
  probeAllowNetworks: setting("PROBE_ALLOW_NETWORKS", commaList(cidr).prefault("")),
  webhookAllowNetworks: setting("WEBHOOK_ALLOW_NETWORKS", commaList(cidr).prefault("")),
  useProxyEnv: formatted("USE_PROXY_ENV", onOff.prefault("off"), showOnOff),
  dnsblSignal: formatted("DNSBL_SIGNAL", onOff.prefault("on"), showOnOff),
  blocklistCataloguePath: setting("BLOCKLIST_CATALOGUE", optional(text)),
  blocklistKeys: formatted("BLOCKLIST_KEYS", listKeys.prefault(""), (keys) => [...keys.keys()]),
  blocklistsEnable: setting("BLOCKLISTS_ENABLE", commaList(listId).prefault("")),
  blocklistsDisable: setting("BLOCKLISTS_DISABLE", commaList(listId).prefault("")),
  blocklistRetentionDays: setting("BLOCKLIST_RETENTION_DAYS", wholeNumber(1, 3_650).prefault("90")),
  verificationRetentionDays: formatted("VERIFICATION_RETENTION_DAYS", keptDays.prefault("400"), showDays),
  evidenceRetentionDays: formatted("EVIDENCE_RETENTION_DAYS", keptDays.prefault("30"), showDays),
  listRetentionDays: formatted("LIST_RETENTION_DAYS", keptDays.prefault("400"), showDays),
  listFileRetentionDays: formatted("LIST_FILE_RETENTION_DAYS", keptDays.prefault("30"), showDays),
  reportMailRetentionDays: formatted("REPORT_MAIL_RETENTION_DAYS", keptDays.prefault("90"), showDays),
  asnLookup: setting("ASN_LOOKUP", choiceOf(["dns", "off"]).default("dns")),
  geoipPaths: setting(
    "GEOIP_DB",
    commaList(filePath)
      .refine(({ length }) => length <= GEOIP_FILES_MAX, `must name at most ${GEOIP_FILES_MAX} files`)
      .prefault(""),
  ),
  reportHost: setting("REPORT_HOST", optional(reportHost)),
  reportListen: formatted("REPORT_LISTEN", optional(listenAddress), (address) => address && formatServer(address)),
  reportTlsCertPath: setting("REPORT_TLS_CERT", optional(text)),
  reportTlsKeyPath: setting("REPORT_TLS_KEY", optional(text)),
  imapUrl: formatted("IMAP_URL", optional(imapUrl), (url) => url && formatImapUrl(url)),
  imapPasswordFile: setting("IMAP_PASSWORD_FILE", optional(text)),
  imapTokenCommand: formatted("IMAP_TOKEN_COMMAND", optional(text), (command) => command && "(set)"),
  imapCaFile: setting("IMAP_CA_FILE", optional(text)),
  imapAfter: formatted("IMAP_AFTER", imapAfter.prefault("seen"), formatImapAfter),
  imapAccount: setting("IMAP_ACCOUNT", optional(text)),
  imapAddress: setting("IMAP_ADDRESS", optional(imapAddress)),
  notifyRelay: formatted("NOTIFY_SMTP_URL", optional(smtpUrl), (relay) => relay && formatRelay(relay)),
  notifyFrom: setting("NOTIFY_FROM", optional(notifyFrom)),
  notifyDomains: setting("NOTIFY_DOMAINS", commaList(mailDomain).prefault("")),
  metricsToken: formatted("METRICS_TOKEN", optional(metricsToken), (token) => token && "(set)"),
  logLevel: setting("LOG_LEVEL", choiceOf(LOG_LEVELS).default("info")),
};

type SettingKey = keyof typeof settings;
type Values = { readonly [Key in SettingKey]: z.output<(typeof settings)[Key]["schema"]> };

/** Names and values, as an operating system hands them to a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Why settings that are valid alone do not fit together. */
const conflictsOf = (values: Values): readonly string[] => {
  const { tlsCertPath, tlsKeyPath, reportTlsCertPath, reportTlsKeyPath, notifyRelay, notifyFrom } = values;
  const isHalf = (one: unknown, other: unknown) => (one === null) !== (other === null);
  const bothOrNeither = (one: string, other: string) => `Set both ${PREFIX}${one} and ${PREFIX}${other}, or neither.`;
  const mailbox = imapProblem(values);
  return [
    ...(isHalf(tlsCertPath, tlsKeyPath) ? [bothOrNeither("TLS_CERT", "TLS_KEY")] : []),
    ...(isHalf(reportTlsCertPath, reportTlsKeyPath) ? [bothOrNeither("REPORT_TLS_CERT", "REPORT_TLS_KEY")] : []),
    ...(values.reportListen !== null && values.reportHost === null
      ? [`${PREFIX}REPORT_LISTEN needs ${PREFIX}REPORT_HOST, the domain of the report addresses.`]
      : []),
    ...(values.backupDir === values.dataDir
      ? [`${PREFIX}BACKUP_DIR must not be the data directory. Choose a directory on another disk.`]
      : []),
    ...(isHalf(notifyRelay, notifyFrom) ? [bothOrNeither("NOTIFY_SMTP_URL", "NOTIFY_FROM")] : []),
    ...(mailbox === null ? [] : [mailbox]),
  ];
};

/** Paths of a certificate and its key; null when they are not set. */
const certificateFiles = (certPath: string | null, keyPath: string | null) =>
  certPath === null || keyPath === null ? null : { certPath, keyPath };

/** The values of the settings, and what several of them make together. */
const configOf = (values: Values) => ({
  ...values,
  tls: certificateFiles(values.tlsCertPath, values.tlsKeyPath),
  reportTls: certificateFiles(values.reportTlsCertPath, values.reportTlsKeyPath),
  imap: imapSettingsOf(values),
});

export type Config = ReturnType<typeof configOf>;

/** The settings in force under the names by which they are set, without secrets; `null` for what is not set. */
export const settingsInForce = (config: Config): Readonly<Record<string, Shown>> =>
  Object.fromEntries(
    Object.entries(settings).map(([key, { name, show }]) => [
      PREFIX + name,
      // Each setting formats its own value; a loop over all of them cannot express that in types.
      key === "imapAfter" && config.imap === null
        ? null
        : (show as (value: unknown) => Shown)(config[key as SettingKey]),
    ]),
  );

/** The names of the settings whose values differ. */
export const changedSettings = (before: Config, after: Config): readonly string[] =>
  Object.entries(settings).flatMap(([key, { name }]) =>
    Bun.deepEquals(before[key as SettingKey], after[key as SettingKey]) ? [] : [PREFIX + name],
  );

/** The name of this machine as an MX record can have it; null when the HELO name cannot be one. */
export const mailHostOf = ({ heloName: name }: Pick<Config, "heloName">): string | null =>
  name.includes(".") && !name.startsWith("[") ? name.toLowerCase() : null;

/** The URL under which the service is reached: as set, else derived from the address that it listens on. */
export const baseUrlOf = ({ baseUrl, tls, host }: Pick<Config, "baseUrl" | "tls" | "host">, port: number): string => {
  if (baseUrl !== null) return baseUrl;
  const isAnyAddress = host === "0.0.0.0" || host === "::";
  const name = isAnyAddress ? "localhost" : host.includes(":") ? `[${host}]` : host;
  return `${tls === null ? "http" : "https"}://${name}:${port}`;
};

const ownHostName = (): string => {
  const name = hostname();
  return isHostName(name) ? name : "localhost";
};

/** A name that is no setting, with the one that was probably meant. */
const unknownSetting = (name: string): string => {
  const names = Object.values(settings).map((known) => known.name);
  const near = nearestName(name.toUpperCase(), names);
  const advice = near === null ? "`postwarden config` lists all settings." : `Did you mean ${PREFIX}${near}?`;
  return `${PREFIX}${name}: Unknown setting. ${advice}`;
};

const sentence = (text: string): string => (text.endsWith(".") ? text : `${text}.`);

/**
 * Reads the settings from an environment. The error is one sentence for each problem: a value that is invalid, or a
 * `POSTWARDEN_` name that does not exist, with the name that was probably meant. An empty value counts as not set.
 */
export const readConfig = (environment: Environment): Result<Config, string[]> => {
  const known = new Set<string>(Object.values(settings).map(({ name }) => name));
  const unknown = Object.entries(environment).flatMap(([name, value]) => {
    if (!name.startsWith(PREFIX) || value === undefined || value === "") return [];
    const setting = name.slice(PREFIX.length);
    return known.has(setting) ? [] : [unknownSetting(setting)];
  });
  const invalid: string[] = [];
  const entries = Object.entries(settings).map(([key, { name, schema }]) => {
    const read = schema.safeParse(environment[PREFIX + name] || undefined);
    if (!read.success)
      invalid.push(...read.error.issues.map(({ message }) => sentence(`${PREFIX}${name}: ${message}`)));
    return [key, read.data];
  });
  if (unknown.length + invalid.length > 0) return err([...unknown, ...invalid]);
  const values: Values = Object.fromEntries(entries);
  const conflicts = conflictsOf(values);
  return conflicts.length === 0 ? ok(configOf(values)) : err([...conflicts]);
};

/** Whether an environment has any setting. */
export const hasSettings = (environment: Environment): boolean =>
  Object.entries(environment).some(([name, value]) => name.startsWith(PREFIX) && (value ?? "") !== "");

/** The environment of this process, for `readConfig`; the only place that reads it. */
export const processEnvironment = (): Environment => Bun.env;

const PROXY_VARIABLES = ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"].flatMap((name) => [name, name.toLowerCase()]);

/**
 * Removes the proxy variables from this process's environment, where the platform would find them, and returns the names
 * of those that were set. A webhook must connect to the address that was checked; a proxy would connect elsewhere.
 */
export const ignoreProxyVariables = (
  environment: Record<string, string | undefined> = process.env,
): readonly string[] => {
  const set = PROXY_VARIABLES.filter((name) => (environment[name] ?? "") !== "");
  for (const name of set) delete environment[name];
  return set;
};
