import { createLog } from "../foundation/base/log.ts";
import { openDb } from "../foundation/db/open.ts";
import { type AddressLookupOptions, AddressLookups } from "../dmarc/insight/addresses/address-lookups.ts";
import { createTestClock } from "./clock.ts";
import { createZoneResolver, type Zone } from "./dns-zone.ts";

export interface AddressLookupSetup {
  /** Addresses in reports. */
  readonly ips: readonly string[];
  readonly hasAsnLookup: boolean;
  readonly geoip?: AddressLookupOptions["geoip"];
}

interface StoredAddress {
  readonly name: string | null;
  readonly asn: number | null;
  readonly asName: string | null;
  readonly country: string | null;
  readonly prefix: string | null;
  readonly isConfirmed: 0 | 1;
  readonly isNameKnown: 0 | 1;
  readonly isNetworkKnown: 0 | 1;
}

const STORED = `SELECT name, is_confirmed isConfirmed, asn, as_name asName, country, prefix, asked_at_ms IS NOT NULL isNameKnown,
  network_asked_at_ms IS NOT NULL isNetworkKnown FROM dmarc_reverse_names WHERE ip = ?`;

/** The job that finds out about addresses, over a literal zone and an empty database. */
export const startAddressLookups = (zone: Zone, { ips, hasAsnLookup, geoip = null }: AddressLookupSetup) => {
  const opened = openDb(":memory:");
  if (!opened.ok) throw new Error(opened.error.kind);
  const db = opened.value;
  const clock = createTestClock();
  const resolver = createZoneResolver(zone);
  const logged: string[] = [];
  const log = createLog("info", clock, (line) => logged.push(line));
  const queue = db.sqlite.query("INSERT INTO dmarc_reverse_names (ip, is_confirmed, due_at_ms) VALUES (?, 0, ?)");
  const tell = (...told: readonly string[]): void => {
    for (const ip of told) queue.run(ip, clock.nowMs());
  };
  tell(...ips);
  return {
    db,
    clock,
    resolver,
    logged,
    /** Adds a report with more addresses. */
    tell,
    /** What is stored of an address; undefined for one that no report names. */
    stored: (ip: string) => {
      const row = db.sqlite.query<StoredAddress, [string]>(STORED).get(ip);
      if (row === null) return undefined;
      const { isConfirmed, isNameKnown, isNetworkKnown, ...rest } = row;
      return {
        ...rest,
        isConfirmed: isConfirmed === 1,
        isNameKnown: isNameKnown === 1,
        isNetworkKnown: isNetworkKnown === 1,
      };
    },
    job: new AddressLookups({ db, clock, log }, { resolver, hasAsnLookup, geoip }),
    close: () => db.close(),
  };
};

export type AddressLookupHarness = ReturnType<typeof startAddressLookups>;
