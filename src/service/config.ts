import { err, ok, type Result } from "../foundation/base/errors.ts";
import { nearestName } from "../foundation/base/nearest.ts";
import type { z } from "zod";
import { bounceMailboxOf, mailboxProblems, reportMailboxOf } from "./imap-settings.ts";
import { PREFIX, type Shown } from "./setting.ts";
import { settings } from "./settings.ts";

export const DATA_DIR_SETTING = `${PREFIX}DATA_DIR`;
export const HOST_SETTING = `${PREFIX}HOST`;
export const PORT_SETTING = `${PREFIX}PORT`;
export const WORKERS_SETTING = `${PREFIX}WORKERS`;
export const USE_PROXY_ENV_SETTING = `${PREFIX}USE_PROXY_ENV`;

type SettingKey = keyof typeof settings;
type Values = { readonly [Key in SettingKey]: z.output<(typeof settings)[Key]["schema"]> };

/** Names and values, as an operating system hands them to a process. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** Why settings that are valid alone do not fit together. */
const conflictsOf = (values: Values): readonly string[] => {
  const { tlsCertPath, tlsKeyPath, reportTlsCertPath, reportTlsKeyPath, notifyRelay, notifyFrom } = values;
  const isHalf = (one: unknown, other: unknown) => (one === null) !== (other === null);
  const bothOrNeither = (one: string, other: string) => `Set both ${PREFIX}${one} and ${PREFIX}${other}, or neither.`;
  return [
    ...(isHalf(tlsCertPath, tlsKeyPath) ? [bothOrNeither("TLS_CERT", "TLS_KEY")] : []),
    ...(isHalf(reportTlsCertPath, reportTlsKeyPath) ? [bothOrNeither("REPORT_TLS_CERT", "REPORT_TLS_KEY")] : []),
    ...(values.reportListen !== null && values.reportHost === null
      ? [`${PREFIX}REPORT_LISTEN needs ${PREFIX}REPORT_HOST, the domain of the report addresses.`]
      : []),
    ...(values.policyListen === null && values.policyAccount !== null
      ? [`${PREFIX}POLICY_ACCOUNT requires ${PREFIX}POLICY_LISTEN.`]
      : []),
    ...(values.backupDir === values.dataDir
      ? [`${PREFIX}BACKUP_DIR must not be the data directory. Choose a directory on another disk.`]
      : []),
    ...(isHalf(notifyRelay, notifyFrom) ? [bothOrNeither("NOTIFY_SMTP_URL", "NOTIFY_FROM")] : []),
    ...mailboxProblems(values),
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
  imap: reportMailboxOf(values),
  bounceImap: bounceMailboxOf(values),
});

export type Config = ReturnType<typeof configOf>;

/** The settings in force under the names by which they are set, without secrets; `null` for what is not set. */
export const settingsInForce = (config: Config): Readonly<Record<string, Shown>> =>
  Object.fromEntries(
    Object.entries(settings).map(([key, { name, show }]) => [
      PREFIX + name,
      // Each setting formats its own value; a loop over all of them cannot express that in types.
      (key === "imapAfter" && config.imap === null) || (key === "bounceImapAfter" && config.bounceImap === null)
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

/** Variables of what calls a running service, such as `postwarden mcp`. They are no settings of a service. */
export const CLIENT_VARIABLES = { url: "POSTWARDEN_URL", key: "POSTWARDEN_API_KEY" } as const;

const isSetting = (name: string): boolean =>
  name.startsWith(PREFIX) && name !== CLIENT_VARIABLES.url && name !== CLIENT_VARIABLES.key;

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
    if (!isSetting(name) || value === undefined || value === "") return [];
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
  Object.entries(environment).some(([name, value]) => isSetting(name) && (value ?? "") !== "");

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
