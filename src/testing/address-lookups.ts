import { createLog } from "../base/log.ts";
import { openDb } from "../db/open.ts";
import { type AddressLookupsDeps, createAddressLookups } from "../dmarc/addresses/address-lookups.ts";
import { createAddressStore } from "../dmarc/addresses/address-store.ts";
import { createTestClock } from "./clock.ts";
import { createZoneResolver, type Zone } from "./dns-zone.ts";

export interface AddressWorldParts {
  /** Addresses that reports told of. */
  readonly ips: readonly string[];
  readonly hasAsnLookup: boolean;
  readonly geoip?: AddressLookupsDeps["geoip"];
}

/** The job that finds out about addresses, over a literal zone and an empty database. */
export const startAddressWorld = (zone: Zone, { ips, hasAsnLookup, geoip = null }: AddressWorldParts) => {
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
    /** A report tells of more addresses. */
    tell,
    store: createAddressStore(db),
    job: createAddressLookups({ db, clock, log, resolver, hasAsnLookup, geoip }),
    close: () => db.close(),
  };
};

export type AddressWorld = ReturnType<typeof startAddressWorld>;
