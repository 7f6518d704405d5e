import type { Command } from "commander";
import { type Clock, systemClock } from "../base/clock.ts";
import { waitFor } from "../base/wait.ts";
import { dnsServersOf, systemPlatform } from "../compose-platform.ts";
import type { Config } from "../config.ts";
import { addCommand } from "./command.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import { checkBackups } from "./doctor-backup.ts";
import { checkBaseUrl } from "./doctor-base-url.ts";
import { checkBlocklistsThrough } from "./doctor-blocklists.ts";
import { checkClock, readClockSync } from "./doctor-clock.ts";
import { checkDatabase } from "./doctor-database.ts";
import { checkDisk, readDisk } from "./doctor-disk.ts";
import { checkDnsServers, DOCTOR_DNS_TIMEOUTS } from "./doctor-dns.ts";
import { checkEgresses } from "./doctor-egress.ts";
import { checkFiles } from "./doctor-files.ts";
import { checkOpenFiles, readOpenFiles } from "./doctor-limits.ts";
import { checkListings, listingLookup } from "./doctor-listings.ts";
import { checkNetworks } from "./doctor-networks.ts";
import { checkNotify } from "./doctor-notify.ts";
import { checkReports } from "./doctor-reports.ts";
import { checkHelo, checkSender } from "./doctor-sender.ts";
import { CommandFailed, type Io, print } from "./io.ts";
import { wrapText } from "./terminal-text.ts";
import { databasePath, loadConfig } from "./data-directory.ts";

type Found = DoctorCheck | readonly DoctorCheck[];

/** One check, under the heading of its findings. Checks of one area stand together. */
interface AreaCheck {
  readonly area: string;
  readonly run: () => Found | Promise<Found>;
}

/** A finding as it is printed. */
export interface DoctorFinding extends DoctorCheck {
  readonly area: string;
}

/** A check that takes longer is given up. All run at the same time, so that this bounds the whole command. */
const CHECK_MS_MAX = 25_000;

/** The findings of one check; what it throws is one, so that it does not hide the findings of the others. */
const runCheck = async ({ area, run }: AreaCheck, clock: Clock): Promise<readonly DoctorCheck[]> => {
  const { warn, fail } = doctorFindings(area.toLowerCase().replaceAll(" ", "_"));
  try {
    const waited = await waitFor(clock, Promise.resolve().then(run), { timeoutMs: CHECK_MS_MAX });
    if (waited.ok) return [waited.value].flat();
    return [
      warn(
        `A check was not finished within ${CHECK_MS_MAX / 1_000} seconds: a server responds too slowly. Run doctor again.`,
      ),
    ];
  } catch (error) {
    return [
      fail(`A check ended with an error: ${error instanceof Error ? error.message : error}. Run doctor as root.`),
    ];
  }
};

/** Runs all checks at the same time, each within its deadline; the findings are in the order of the checks. */
export const runChecks = async (checks: readonly AreaCheck[], clock: Clock): Promise<readonly DoctorFinding[]> => {
  const found = await Promise.all(
    checks.map(async (check) => (await runCheck(check, clock)).map((finding) => ({ area: check.area, ...finding }))),
  );
  return found.flat();
};

interface DoctorOptions {
  readonly domain: string;
  readonly json?: boolean;
  readonly envFile?: string | null;
}

const checksOf = (io: Io, config: Config, { domain, envFile = null }: Pick<DoctorOptions, "domain" | "envFile">) => {
  const platform = systemPlatform(config, DOCTOR_DNS_TIMEOUTS);
  const { clock, random, resolver } = platform;
  const servers = dnsServersOf(config);
  const lookup = listingLookup(config, platform);
  const listed = (address: string) => checkListings(address, lookup);
  // Checks that block the process come first, before anything waits for a response.
  const checks: readonly AreaCheck[] = [
    { area: "Data", run: () => checkFiles({ ...config, envFile }) },
    { area: "Data", run: () => checkDisk(readDisk(config.dataDir)) },
    { area: "Data", run: () => checkDatabase(io, config) },
    { area: "Data", run: () => checkBackups({ config, database: databasePath(config), nowMs: clock.nowMs() }) },
    { area: "Machine", run: () => checkOpenFiles(config, readOpenFiles()) },
    { area: "Machine", run: () => checkClock({ clock, resolver, sync: readClockSync() }) },
    { area: "API", run: () => checkBaseUrl(config) },
    { area: "DNS", run: () => checkDnsServers({ servers, clock, random, domain }) },
    { area: "DNS", run: () => checkNetworks({ config, resolver, clock }) },
    { area: "Sender", run: () => checkHelo(config, resolver) },
    { area: "Sender", run: () => checkSender(config, resolver) },
    { area: "Egress", run: () => checkEgresses({ config, platform, domain, checkListings: listed }) },
    { area: "Blocklists", run: () => checkBlocklistsThrough(config, { servers, clock }) },
    { area: "Report mail", run: () => checkReports({ config, resolver, clock }) },
    { area: "Alert mail", run: () => checkNotify({ config, clock }) },
  ];
  return { checks, close: () => platform.close() };
};

const STATE_WIDTH = 6;
const INDENT = "  ";

/** The findings under the headings of their areas, wrapped at `columns`. */
export const doctorText = (findings: readonly DoctorFinding[], columns: number): string => {
  const margin = INDENT.length + STATE_WIDTH;
  const linesOf = ({ state, message }: DoctorFinding): string[] =>
    wrapText(message, columns - margin).map(
      (line, at) => `${INDENT}${(at === 0 ? state : "").padEnd(STATE_WIDTH)}${line}`,
    );
  const areas = [...new Set(findings.map(({ area }) => area))];
  const sections = areas.map((area) =>
    [area, ...findings.filter((finding) => finding.area === area).flatMap(linesOf)].join("\n"),
  );
  const count = (state: DoctorCheck["state"]): number => findings.filter((finding) => finding.state === state).length;
  const plural = (number: number, what: string): string => `${number} ${what}${number === 1 ? "" : "s"}`;
  const summary = `${count("ok")} ok, ${plural(count("warn"), "warning")}, ${plural(count("fail"), "failure")}`;
  return [...sections, summary].join("\n\n");
};

/** `doctor`: checks this machine and its settings. Exit status 1 when a check fails. */
export const addDoctorCommand = (program: Command, io: Io): void => {
  addCommand(program, "doctor", {
    description:
      "Check this machine and the settings: clock, disk, files, database, backups, DNS servers, HELO name, every egress, blocklists, report mail and alert mail. Suggests fixes. Sends no mail.",
    example: "doctor --env-file /etc/postwarden.env",
    json: "print JSON: checks with area, check, state (ok, warn, fail) and message",
  })
    .option("--domain <domain>", "domain whose mail host is used to test outgoing SMTP", "gmail.com")
    .action(async (_: unknown, command: Command) => {
      const { json, ...options } = command.optsWithGlobals<DoctorOptions>();
      const config = loadConfig(io);
      const { checks: all, close } = checksOf(io, config, options);
      const checks = await runChecks(all, systemClock).finally(close);
      print(io, json, { checks }, () => doctorText(checks, io.columns));
      const failures = checks.filter(({ state }) => state === "fail").length;
      if (failures > 0) throw new CommandFailed(`${failures} of ${checks.length} checks failed.`, "unhealthy");
    });
};
