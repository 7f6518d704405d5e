import type { Runtime } from "../../../foundation/db/runtime.ts";
import type { DnsResolver } from "../../../foundation/net/dns.ts";
import type { GeoipFiles } from "../../../foundation/net/geoip-files.ts";
import { AddressLookupJob } from "./address-lookup-job.ts";
import { type AddressNetwork, NetworkQueue, type ReverseName, ReverseNameQueue } from "./address-store.ts";
import { NetworkLookup } from "./network-lookup.ts";
import { ReverseNameLookup } from "./reverse-name-lookup.ts";

export interface AddressLookupOptions {
  readonly resolver: DnsResolver;
  /** Whether networks are looked up in the DNS (`POSTWARDEN_ASN_LOOKUP`). */
  readonly hasAsnLookup: boolean;
  /** The operator's databases (`POSTWARDEN_GEOIP_DB`); null when there are none. */
  readonly geoip: Pick<GeoipFiles, "find" | "refresh"> | null;
}

/**
 * Looks up the reverse names and networks of the addresses in reports, and stores them for weeks. The two lookups do not wait for
 * each other; a run ends with the slower one, after at most a minute.
 */
export class AddressLookups {
  readonly #options: AddressLookupOptions;
  readonly #names: AddressLookupJob<ReverseName>;
  readonly #networks: AddressLookupJob<AddressNetwork>;

  constructor(runtime: Pick<Runtime, "db" | "clock" | "log">, options: AddressLookupOptions) {
    const { resolver, hasAsnLookup, geoip } = options;
    this.#options = options;
    this.#names = new AddressLookupJob(runtime, new ReverseNameLookup(resolver), new ReverseNameQueue(runtime.db));
    const networks = new NetworkQueue(runtime.db);
    const lookup = new NetworkLookup(runtime, { store: networks, resolver: hasAsnLookup ? resolver : null, geoip });
    this.#networks = new AddressLookupJob(runtime, lookup, networks);
  }

  /** Looks up what is due: at most 1,000 names and 1,000 networks. */
  async run(): Promise<void> {
    await Promise.all([this.#names.run(), this.#findNetworks()]);
  }

  /** Ends a run soon; no other begins. */
  stop(): void {
    this.#names.stop();
    this.#networks.stop();
  }

  async #findNetworks(): Promise<void> {
    const { hasAsnLookup, geoip } = this.#options;
    await geoip?.refresh();
    if (hasAsnLookup || geoip !== null) await this.#networks.run();
  }
}
