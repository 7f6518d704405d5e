import type { Clock } from "../../base/clock.ts";
import type { Log } from "../../base/log.ts";
import type { Db } from "../../db/open.ts";
import type { DnsResolver } from "../../net/dns.ts";
import type { GeoipFiles } from "../../net/geoip-files.ts";
import { AddressLookupJob } from "./address-lookup-job.ts";
import { createAddressStore } from "./address-store.ts";
import { NetworkLookup } from "./network-lookup.ts";
import { createReverseNameLookup } from "./reverse-name-lookup.ts";

export interface AddressLookupsDeps {
  readonly db: Db;
  readonly clock: Clock;
  readonly log: Log;
  readonly resolver: DnsResolver;
  /** Whether the network of an address is asked for by DNS (`POSTWARDEN_ASN_LOOKUP`). */
  readonly hasAsnLookup: boolean;
  /** The user's databases (`POSTWARDEN_GEOIP_DB`); null when there are none. */
  readonly geoip: Pick<GeoipFiles, "find" | "refresh"> | null;
}

/**
 * Finds out about the addresses that reports tell of, and keeps it for weeks: reverse names, and the networks that announce the
 * addresses. The two do not wait for each other, except that a run ends with the slower one, after a minute at most.
 */
export const createAddressLookups = ({ db, clock, log, resolver, hasAsnLookup, geoip }: AddressLookupsDeps) => {
  const store = createAddressStore(db);
  const names = new AddressLookupJob(createReverseNameLookup(resolver), store.names, { db, clock, log });
  const asked = hasAsnLookup ? resolver : null;
  const lookup = new NetworkLookup({ db, store, clock, resolver: asked, geoip });
  const networks = new AddressLookupJob(lookup, store.networks, { db, clock, log });
  const findNetworks = async (): Promise<void> => {
    await geoip?.refresh();
    if (hasAsnLookup || geoip !== null) await networks.run();
  };
  return {
    /** Looks up what is due: 1,000 names and 1,000 networks at most. */
    run: async (): Promise<void> => void (await Promise.all([names.run(), findNetworks()])),
    /** Ends a run under way soon; none begins any more. */
    stop(): void {
      names.stop();
      networks.stop();
    },
  };
};
