import { errorCode } from "../foundation/base/errors.ts";
import { existsSync, lstatSync, readdirSync, statSync, type Stats } from "node:fs";
import { join } from "node:path";
import { OTHERS_PERMISSIONS } from "../foundation/base/private-file.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const filesCheck = doctorFindings("files", "File permissions", "running-it#data-directory");

/** A file that holds secrets, under the setting that names it. */
interface SecretFile {
  readonly setting: string;
  readonly path: string;
}

export interface FileSettings extends Pick<
  DoctorSettings,
  "dataDir" | "tlsKeyPath" | "reportTlsKeyPath" | "imapPasswordFile" | "bounceImapPasswordFile"
> {
  /** The file that settings were read from, which may hold passwords; null without one. */
  readonly envFile: string | null;
}

const NAMED_MAX = 3;
const FIRST_KEYS = "first-keys.json";

const namesOf = (paths: readonly string[]): string =>
  paths.length <= NAMED_MAX
    ? paths.join(", ")
    : `${paths.slice(0, NAMED_MAX).join(", ")} and ${paths.length - NAMED_MAX} more`;

/** Only the entries of the directory itself: what is below `uploads` is created and removed all the time. */
const entriesOf = (dataDir: string): ReadonlyArray<{ readonly path: string; readonly stat: Stats }> =>
  [dataDir, ...readdirSync(dataDir).map((name) => join(dataDir, name))].flatMap((path) => {
    const stat = lstatSync(path, { throwIfNoEntry: false });
    return stat === undefined ? [] : [{ path, stat }];
  });

const secretFilesOf = (settings: FileSettings): readonly SecretFile[] => {
  const { tlsKeyPath, reportTlsKeyPath, imapPasswordFile, bounceImapPasswordFile, envFile } = settings;
  return [
    { setting: "--env-file", path: envFile },
    { setting: "POSTWARDEN_TLS_KEY", path: tlsKeyPath },
    { setting: "POSTWARDEN_REPORT_TLS_KEY", path: reportTlsKeyPath },
    { setting: "POSTWARDEN_IMAP_PASSWORD_FILE", path: imapPasswordFile },
    { setting: "POSTWARDEN_BOUNCE_IMAP_PASSWORD_FILE", path: bounceImapPasswordFile },
  ].flatMap(({ setting, path }) => (path === null ? [] : [{ setting, path }]));
};

const modeOf = ({ mode }: Stats): string => (mode & 0o777).toString(8).padStart(3, "0");

/** Whether the data belongs to one user and is private, and whether files with secrets are. */
export const checkFiles = (settings: FileSettings): readonly DoctorCheck[] => {
  const { dataDir } = settings;
  const secrets = secretFilesOf(settings).flatMap(checkSecretFile);
  if (!existsSync(dataDir) || !statSync(dataDir).isDirectory()) return secrets;
  try {
    const found = [...checkOwners(dataDir), ...secrets];
    return found.length === 0 ? [filesCheck.ok(`The files in ${dataDir} belong to one user and are private.`)] : found;
  } catch (error) {
    if (errorCode(error) !== "EACCES") throw error;
    return [
      filesCheck.fail(`${dataDir} cannot be read by this user. Run doctor as the user of the service, or as root.`),
    ];
  }
};

const checkOwners = (dataDir: string): readonly DoctorCheck[] => {
  const entries = entriesOf(dataDir);
  const owner = statSync(dataDir);
  const foreign = entries.filter(({ stat }) => stat.uid !== owner.uid).map(({ path }) => path);
  const open = entries.filter(({ stat }) => !stat.isSymbolicLink() && (stat.mode & OTHERS_PERMISSIONS) !== 0);
  const keys = entries.find(({ path }) => path === join(dataDir, FIRST_KEYS));
  return [
    ...(foreign.length === 0
      ? []
      : [
          filesCheck.fail(
            `${namesOf(foreign)} belong to another user than ${dataDir}, so the service may be unable to write them. Run: chown -R ${owner.uid}:${owner.gid} ${dataDir}`,
          ),
        ]),
    ...(open.length === 0
      ? []
      : [
          filesCheck.warn(
            `Other users can open ${namesOf(open.map(({ path, stat }) => `${path} (mode ${modeOf(stat)})`))}. Run: chmod -R go= ${dataDir}`,
          ),
        ]),
    ...(keys === undefined
      ? []
      : [filesCheck.warn(`${keys.path} holds API keys. Store them elsewhere, then run: rm ${keys.path}`)]),
  ];
};

const checkSecretFile = ({ setting, path }: SecretFile): readonly DoctorCheck[] => {
  const stat = statSync(path, { throwIfNoEntry: false });
  if (stat === undefined) return [filesCheck.fail(`${path} (${setting}): no such file.`)];
  // Keys are often shared with a group, such as Debian's ssl-cert.
  if ((stat.mode & 0o007) === 0) return [];
  return [filesCheck.warn(`Every user can open ${path} (${setting}, mode ${modeOf(stat)}). Run: chmod o= ${path}`)];
};
