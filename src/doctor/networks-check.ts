import type { Clock } from "../foundation/base/clock.ts";
import { isoDay } from "../foundation/base/days.ts";
import { createLog } from "../foundation/base/log.ts";
import { lookUpOrigin } from "../foundation/net/asn-lookup.ts";
import type { DnsResolver } from "../foundation/net/dns.ts";
import { GeoipFiles } from "../foundation/net/geoip-files.ts";
import { type DoctorCheck, doctorFindings } from "./doctor-check.ts";
import type { DoctorSettings } from "./doctor-settings.ts";

const asnCheck = doctorFindings("asn", "Networks of addresses", "dmarc-senders#networks-and-countries");
const geoipCheck = doctorFindings("geoip", "GeoIP database", "dmarc-senders#networks-and-countries");

export interface NetworkChecksOptions {
  readonly config: Pick<DoctorSettings, "asnLookup" | "geoipPaths">;
  readonly resolver: DnsResolver;
  readonly clock: Clock;
}

/** A query for this address reveals nothing; one network has announced it for many years. */
const WELL_KNOWN_ADDRESS = "8.8.8.8";
const TIMEOUT_MS = 5_000;
const DAY_MS = 86_400_000;
/** An older database is out of date. */
const OLD_DAYS = 90;

/** Whether AS and country of an address can be looked up, by DNS and in GeoIP databases. */
export const checkNetworks = async ({
  config,
  resolver,
  clock,
}: NetworkChecksOptions): Promise<readonly DoctorCheck[]> => [
  await checkAsnLookup(config, resolver),
  ...(config.geoipPaths.length === 0 ? [] : [checkGeoip(config.geoipPaths, clock)]),
];

const checkAsnLookup = async (
  { asnLookup }: Pick<DoctorSettings, "asnLookup">,
  resolver: DnsResolver,
): Promise<DoctorCheck> => {
  if (asnLookup === "off") return asnCheck.ok("POSTWARDEN_ASN_LOOKUP is off: no AS queries are sent.");
  const origin = await lookUpOrigin(resolver, WELL_KNOWN_ADDRESS, { timeoutMs: TIMEOUT_MS });
  const effect = "Records and sources have no AS. Check the resolver, or set POSTWARDEN_GEOIP_DB.";
  if (!origin.ok) return asnCheck.warn(`Team Cymru's IP to ASN service does not respond (${origin.error}). ${effect}`);
  if (origin.value === null)
    return asnCheck.warn(`The resolver returns no AS for ${WELL_KNOWN_ADDRESS}, so it filters responses. ${effect}`);
  const { asn, prefix } = origin.value;
  return asnCheck.ok(`${WELL_KNOWN_ADDRESS} is in ${prefix} of AS${asn}.`);
};

const checkGeoip = (paths: readonly string[], clock: Clock): DoctorCheck => {
  const opened = GeoipFiles.open(
    paths,
    createLog("silent", clock, () => undefined),
  );
  if (!opened.ok) return geoipCheck.fail(`POSTWARDEN_GEOIP_DB: ${opened.error.join(" ")}`);
  const files = opened.value.contents();
  const dayOf = (ms: number): number => Math.floor(ms / DAY_MS);
  const named = files.map(({ path, type, builtAtMs }) => `${path} (${type}, ${isoDay(dayOf(builtAtMs))})`).join(", ");
  const old = files.filter(({ builtAtMs }) => dayOf(clock.nowMs()) - dayOf(builtAtMs) > OLD_DAYS);
  return old.length === 0
    ? geoipCheck.ok(`Loaded ${named}.`)
    : geoipCheck.warn(
        `Loaded ${named}. ${old.length} of ${files.length} are older than ${OLD_DAYS} days; download newer ones.`,
      );
};
