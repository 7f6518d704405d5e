import { composeLookups } from "./compose-blocklist.ts";
import { egressesOf } from "./compose-engine.ts";
import { dnsServersOf, systemPlatform } from "./compose-platform.ts";
import { baseUrlOf, type Config, mailHostOf } from "./config.ts";
import { checkBackups, checkCopies } from "../doctor/backup-check.ts";
import { checkBaseUrl } from "../doctor/base-url-check.ts";
import { checkBlocklistsThrough } from "../doctor/blocklists-check.ts";
import { checkClock, readClockSync } from "../doctor/clock-check.ts";
import { checkDatabase, type DatabasePlace } from "../doctor/database-check.ts";
import { checkDisk, readDisk } from "../doctor/disk-check.ts";
import { checkDnsServers, DOCTOR_DNS_TIMEOUTS } from "../doctor/dns-check.ts";
import { checkEgresses } from "../doctor/egress-check.ts";
import { checkFiles } from "../doctor/files-check.ts";
import { checkListings, type ListingLookup } from "../doctor/listings-check.ts";
import { checkNetworks } from "../doctor/networks-check.ts";
import { checkNotify } from "../doctor/notify-check.ts";
import { checkOpenFiles, readOpenFiles } from "../doctor/open-files-check.ts";
import { checkReports } from "../doctor/reports-check.ts";
import { type AreaCheck, type DoctorFinding, runChecks } from "../doctor/run-checks.ts";
import { checkHelo, checkSender } from "../doctor/sender-check.ts";
import { ok } from "../foundation/base/errors.ts";
import { SERVICE_CHECKED_BYTES_MAX } from "../foundation/db/database-state.ts";
import { isEnabled } from "../blocklist/lists/blocklist.ts";

export interface DoctorOptions {
  /** Its mail host is used to test outgoing SMTP. */
  readonly domain: string;
  readonly envFile: string | null;
  /** The port that the service listens on. */
  readonly port: number;
  /** Path of the database. */
  readonly database: string;
  readonly place: () => DatabasePlace;
  readonly checkedBytesMax?: number;
}

/** Its mail hosts say which address they see. */
const SERVICE_DOMAIN = "gmail.com";

/** Checks this machine and its settings. */
export const composeDoctor =
  (config: Config, options: DoctorOptions) => async (): Promise<readonly DoctorFinding[]> => {
    const { checks, platform } = checksOf(config, options);
    return runChecks(checks, platform.clock).finally(() => platform.close());
  };

const checksOf = (config: Config, { domain, envFile, port, ...file }: DoctorOptions) => {
  const platform = systemPlatform(config, DOCTOR_DNS_TIMEOUTS);
  const { clock, random, resolver } = platform;
  const servers = dnsServersOf(config);
  const { catalogue, dnsbl } = composeLookups(config, platform);
  const listed: ListingLookup = {
    ...{ clock, lists: catalogue.lists.filter(isEnabled) },
    lookUp: (target, lists) => dnsbl.lookup.checkAll(target, lists),
  };
  const egress = {
    ...{ config, resolver, domain },
    egresses: (note: Parameters<typeof egressesOf>[2]) => egressesOf(config, platform, note),
    checkListings: (address: string) => checkListings(address, listed),
  };
  // Checks that block the process come first, before anything waits for a response.
  const checks: readonly AreaCheck[] = [
    { area: "Data", run: () => checkFiles({ ...config, envFile }) },
    { area: "Data", run: () => checkDisk(readDisk(config.dataDir)) },
    { area: "Data", run: () => checkDatabase({ dataDir: config.dataDir, ...file }) },
    { area: "Data", run: () => checkBackups({ config, ...file, nowMs: clock.nowMs() }) },
    { area: "Data", run: () => checkCopies(file.database) },
    { area: "Machine", run: () => checkOpenFiles(config, readOpenFiles()) },
    { area: "Machine", run: () => checkClock({ clock, resolver, sync: readClockSync() }) },
    { area: "API", run: () => checkBaseUrl(config, baseUrlOf(config, port)) },
    { area: "DNS", run: () => checkDnsServers({ servers, clock, random, domain }) },
    { area: "DNS", run: () => checkNetworks({ config, resolver, clock }) },
    { area: "Sender", run: () => checkHelo(config, resolver) },
    { area: "Sender", run: () => checkSender(config, resolver) },
    { area: "Egress", run: () => checkEgresses(egress) },
    { area: "Blocklists", run: () => checkBlocklistsThrough(listed.lists, { servers, clock }) },
    { area: "Report mail", run: () => checkReports({ config, mailHost: mailHostOf(config), resolver, clock }) },
    { area: "Alert mail", run: () => checkNotify({ config, clock }) },
  ];
  return { checks, platform };
};

/** The same inside the service, which has opened its database. */
export const composeServiceDoctor = (config: Config, database: string) =>
  composeDoctor(config, {
    ...{ domain: SERVICE_DOMAIN, envFile: null, port: config.port },
    ...{ database, place: () => ok(database), checkedBytesMax: SERVICE_CHECKED_BYTES_MAX },
  });
