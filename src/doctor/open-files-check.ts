import { existsSync, readFileSync } from "node:fs";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const openFilesCheck = doctorFindings("open_files", "Open files");

const LIMITS = "/proc/self/limits";

/** The limit of open files that the runtime raises itself to, from the text of /proc/self/limits; null when it is not there. */
export const hardOpenFilesOf = (limits: string): number | null => {
  const hard = /^Max open files\s+\S+\s+(\S+)/m.exec(limits)?.[1];
  if (hard === undefined) return null;
  return hard === "unlimited" ? Number.POSITIVE_INFINITY : Number(hard);
};

/** The limit of this process. */
export const readOpenFiles = (): number | null =>
  existsSync(LIMITS) ? hardOpenFilesOf(readFileSync(LIMITS, "utf8")) : null;

/** DNS queries, HTTP clients, report mail, webhooks and the database need descriptors besides the SMTP sessions. */
const OTHER_DESCRIPTORS = 1_500;

/** Whether the limit of open files covers `POSTWARDEN_MAX_CONNECTIONS` and everything else. */
export const checkOpenFiles = (
  { connectionsMax }: Pick<DoctorSettings, "connectionsMax">,
  limit: number | null,
): DoctorCheck => {
  const needed = connectionsMax + OTHER_DESCRIPTORS;
  const fix = `Set LimitNOFILE=${2 ** Math.ceil(Math.log2(needed))} in the systemd unit (or ulimit -Hn in the shell), or lower POSTWARDEN_MAX_CONNECTIONS.`;
  const demand = `${connectionsMax} SMTP sessions (POSTWARDEN_MAX_CONNECTIONS) and everything else need about ${needed}`;
  if (limit === null) return openFilesCheck.warn(`The limit of open files is not known; ${demand}. ${fix}`);
  if (limit < needed) return openFilesCheck.warn(`At most ${limit} files can be open here; ${demand}. ${fix}`);
  const shown = Number.isFinite(limit) ? `${limit} files` : "Any number of files";
  return openFilesCheck.ok(
    `${shown} can be open here; ${demand}. A systemd unit has a limit of its own (LimitNOFILE).`,
  );
};
