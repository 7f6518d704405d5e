import { isIP } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { ok, type Result } from "../../base/errors.ts";
import type { Db } from "../../db/open.ts";
import { lookUpAsName, lookUpOrigin } from "../../net/asn-lookup.ts";
import type { DnsOutcome, DnsResolver } from "../../net/dns.ts";
import type { GeoipFacts } from "../../net/geoip-files.ts";
import { createAddressPolicy } from "../../net/public-address.ts";
import type { AddressStore, AddressNetwork } from "./address-store.ts";
import type { AddressLookup, LookupOutcome } from "./address-lookup-job.ts";

export interface NetworkLookupDeps {
  readonly db: Db;
  readonly store: Pick<AddressStore, "asName" | "saveAsName">;
  readonly clock: Clock;
  /** Null: no query is sent. */
  readonly resolver: DnsResolver | null;
  /** The user's databases; null when there are none. */
  readonly geoip: { find(ip: string): GeoipFacts } | null;
}

/** The patience with each query, and failures one after the other that mean that the service is out. */
export const NETWORK_LIMITS = { timeoutMs: 5_000, failuresInARowMax: 100 } as const;

const DAY_MS = 86_400_000;
const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;

type Lookup = LookupOutcome<AddressNetwork>;

/** An AS number with what is known beside it; all null when no network announces the address. */
type Origin = Omit<AddressNetwork, "asName">;
const NO_ORIGIN: Origin = { asn: null, country: null, prefix: null };

/**
 * Finds the network that announces an address: in the user's databases, and by DNS what they do not say. No query is sent
 * about an address whose AS number the databases know. The name of an AS is asked for once in 30 days.
 */
export class NetworkLookup implements AddressLookup<AddressNetwork> {
  readonly what = "the network of an address";
  readonly failuresInARowMax = NETWORK_LIMITS.failuresInARowMax;
  readonly #deps: NetworkLookupDeps;
  readonly #isPublic = createAddressPolicy([]).isAllowed;
  /** AS names that are being asked for: many addresses of a run are of the same network. */
  readonly #asking = new Map<number, Promise<Result<string | null, DnsOutcome>>>();

  constructor(deps: NetworkLookupDeps) {
    this.#deps = deps;
  }

  async lookUp(ip: string, signal: AbortSignal): Promise<Lookup> {
    if (isIP(ip) === 0 || !this.#isPublic(ip)) return { kind: "private" };
    const known = this.#deps.geoip?.find(ip) ?? null;
    const origin = await this.#findOrigin(ip, known, signal);
    if (signal.aborted) return { kind: "aborted" };
    const country = known?.country ?? null;
    if (!origin.ok)
      return { kind: "failed", partial: country === null ? null : { ...NO_ORIGIN, asName: null, country } };
    const { asn } = origin.value;
    const found = { ...origin.value, country: country ?? origin.value.country, asName: null };
    if (asn === null) return { kind: "found", fact: found, validMs: NONE_MS };
    const name = await this.#findAsName(asn, known, signal);
    if (signal.aborted) return { kind: "aborted" };
    if (!name.ok) return { kind: "failed", partial: found };
    // Databases are replaced every week or so, and a look-up in one costs nothing.
    const validMs = known?.asn === null || known === null ? FOUND_MS : NONE_MS;
    return { kind: "found", fact: { ...found, asName: name.value }, validMs };
  }

  async #findOrigin(ip: string, known: GeoipFacts | null, signal: AbortSignal): Promise<Result<Origin, DnsOutcome>> {
    if (known !== null && known.asn !== null)
      return ok({ asn: known.asn, country: known.country, prefix: known.prefix });
    const { resolver } = this.#deps;
    if (resolver === null) return ok(NO_ORIGIN);
    const origin = await lookUpOrigin(resolver, ip, { timeoutMs: NETWORK_LIMITS.timeoutMs, signal });
    return origin.ok ? ok(origin.value ?? NO_ORIGIN) : origin;
  }

  async #findAsName(
    asn: number,
    known: GeoipFacts | null,
    signal: AbortSignal,
  ): Promise<Result<string | null, DnsOutcome>> {
    const { store, clock, resolver } = this.#deps;
    if (known?.asn === asn && known.asName !== null) return ok(known.asName);
    const kept = store.asName(asn, clock.nowMs());
    if (kept !== undefined) return ok(kept);
    if (resolver === null) return ok(null);
    const asking = this.#asking.get(asn) ?? this.#askAsName(resolver, asn, signal);
    this.#asking.set(asn, asking);
    return asking;
  }

  async #askAsName(
    resolver: DnsResolver,
    asn: number,
    signal: AbortSignal,
  ): Promise<Result<string | null, DnsOutcome>> {
    const { db, store, clock } = this.#deps;
    try {
      const name = await lookUpAsName(resolver, asn, { timeoutMs: NETWORK_LIMITS.timeoutMs, signal });
      if (name.ok) {
        const dueAtMs = clock.nowMs() + (name.value === null ? NONE_MS : FOUND_MS);
        await db.commit((tx) => store.saveAsName(tx, asn, name.value, dueAtMs));
      }
      return name;
    } finally {
      this.#asking.delete(asn);
    }
  }
}
