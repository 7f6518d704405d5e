import { ok } from "../foundation/base/errors.ts";
import { SERVICE_CHECKED_BYTES_MAX } from "../foundation/db/database-state.ts";
import type { DnsServer } from "../foundation/net/dns.ts";
import type { Platform } from "../foundation/net/platform.ts";
import type { TestedList } from "../blocklist/list-status.ts";
import { isEnabled } from "../blocklist/lists/blocklist.ts";
import { catalogueOf, openDnsbl, type CatalogueSettings } from "../blocklist/lists/open.ts";
import { egressesOf, type EgressSettings } from "../verify/smtp/open.ts";
import { checkMailboxAccounts, readAccounts } from "./accounts-check.ts";
import { checkBackups, checkCopies } from "./backup-check.ts";
import { checkBaseUrl } from "./base-url-check.ts";
import { checkBlocklistsThrough } from "./blocklists-check.ts";
import { checkClock, readClockSync } from "./clock-check.ts";
import { checkDatabase, type DatabasePlace, readEnrolledDomains } from "./database-check.ts";
import { checkDisk, readDisk } from "./disk-check.ts";
import { checkDnsServers } from "./dns-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";
import { checkEgresses } from "./egress-check.ts";
import { checkFiles } from "./files-check.ts";
import { checkListings, type ListingLookup } from "./listings-check.ts";
import { checkNetworks } from "./networks-check.ts";
import { checkNotify } from "./notify-check.ts";
import { checkOpenFiles, readOpenFiles } from "./open-files-check.ts";
import { checkPolicy } from "./policy-check.ts";
import { checkReports } from "./reports-check.ts";
import { checkHelo, checkSender } from "./sender-check.ts";
import { runChecks, type AreaCheck, type DoctorFinding } from "./doctor-check.ts";

export interface ExaminedSettings extends DoctorSettings, EgressSettings, CatalogueSettings {}

/** What is examined beside the settings. */
export interface Examined {
  readonly platform: Platform;
  readonly dnsServers: readonly DnsServer[];
  /** The URL under which the service is reached. */
  readonly baseUrl: string;
  /** The name of this machine in MX records; null where it has none. */
  readonly mailHost: string | null;
  /** The domain whose mail host is used to test outgoing SMTP. */
  readonly domain: string;
  readonly envFile: string | null;
  /** Path of the database. */
  readonly database: string;
  readonly place: () => DatabasePlace;
  readonly checkedBytesMax?: number;
  /** The tests of the lists that the service makes itself; null before the first. Without it, the doctor tests them. */
  readonly testedLists?: (() => readonly TestedList[] | null) | undefined;
}

/** The mail hosts of Gmail report the client address that they see. */
const SERVICE_DOMAIN = "gmail.com";

/** What the service examines, which has opened its database. */
export const examinedByService = (
  database: string,
): Omit<Examined, "platform" | "dnsServers" | "baseUrl" | "mailHost" | "testedLists"> => ({
  ...{ domain: SERVICE_DOMAIN, envFile: null, database, place: () => ok(database) },
  checkedBytesMax: SERVICE_CHECKED_BYTES_MAX,
});

/** Checks this machine and its settings. */
export const examine = (settings: ExaminedSettings, examined: Examined): Promise<readonly DoctorFinding[]> =>
  runChecks(checksOf(settings, examined), examined.platform.clock);

const checksOf = (
  config: ExaminedSettings,
  { platform, dnsServers: servers, baseUrl, mailHost, domain, envFile, testedLists, ...file }: Examined,
): readonly AreaCheck[] => {
  const { clock, random, resolver } = platform;
  const [catalogue, dnsbl] = [catalogueOf(config), openDnsbl(platform)];
  const listed: ListingLookup = {
    ...{ clock, lists: catalogue.lists.filter(isEnabled) },
    lookUp: (target, lists) => dnsbl.lookup.checkAll(target, lists),
  };
  const egress = {
    ...{ config, resolver, domain },
    egresses: (note: Parameters<typeof egressesOf>[2]) => egressesOf(config, platform, note),
    checkListings: (address: string) => checkListings(address, listed),
  };
  const accounts = { config, readAccounts: () => readAccounts(file.database) };
  const reports = { config, readDomains: () => readEnrolledDomains(file.database) };
  // Checks that block the process come first, before anything waits for a response.
  return [
    { area: "Data", run: () => checkFiles({ ...config, envFile }) },
    { area: "Data", run: () => checkDisk(readDisk(config.dataDir)) },
    { area: "Data", run: () => checkDatabase({ dataDir: config.dataDir, ...file }) },
    { area: "Data", run: () => checkBackups({ config, ...file, nowMs: clock.nowMs() }) },
    { area: "Data", run: () => checkCopies(file.database) },
    { area: "Machine", run: () => checkOpenFiles(config, readOpenFiles()) },
    { area: "Machine", run: () => checkClock({ clock, resolver, sync: readClockSync() }) },
    { area: "API", run: () => checkBaseUrl(config, baseUrl) },
    { area: "DNS", run: () => checkDnsServers({ servers, clock, random, domain }) },
    { area: "DNS", run: () => checkNetworks({ config, resolver, clock }) },
    { area: "Sender", run: () => checkHelo(config, resolver) },
    { area: "Sender", run: () => checkSender(config, resolver) },
    { area: "Egress", run: () => checkEgresses(egress) },
    {
      area: "Blocklists",
      run: () => checkBlocklistsThrough(listed.lists, { servers, clock, tested: testedLists?.() ?? null }),
    },
    { area: "Report mail", run: () => checkReports({ ...reports, mailHost, resolver, clock }) },
    { area: "Mailboxes", run: () => checkMailboxAccounts(accounts) },
    { area: "Outgoing mail", run: () => checkPolicy({ ...accounts, clock }) },
    { area: "Alert mail", run: () => checkNotify({ config, clock }) },
  ];
};
