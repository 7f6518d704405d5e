import { isIP } from "node:net";
import { ok, type Result } from "../../../foundation/base/errors.ts";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { lookUpAsName, lookUpOrigin } from "../../../foundation/net/asn-lookup.ts";
import type { DnsOutcome, DnsResolver } from "../../../foundation/net/dns.ts";
import type { GeoipFacts } from "../../../foundation/net/geoip-files.ts";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import type { AddressNetwork, NetworkQueue } from "./address-store.ts";
import type { AddressLookup, LookupOutcome } from "./address-lookup-job.ts";

export interface NetworkLookupOptions {
  readonly store: Pick<NetworkQueue, "asName" | "saveAsName">;
  /** Null: no query is sent. */
  readonly resolver: DnsResolver | null;
  /** The operator's databases; null when there are none. */
  readonly geoip: { find(ip: string): GeoipFacts } | null;
}

/** The timeout of each query, and the number of consecutive failures that means that the service is down. */
export const NETWORK_LIMITS = { timeoutMs: 5_000, failuresInARowMax: 100 } as const;

const DAY_MS = 86_400_000;
const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;

/** An AS number with what is known beside it; all null when no network announces the address. */
type Origin = Omit<AddressNetwork, "asName">;
const NO_ORIGIN: Origin = { asn: null, country: null, prefix: null };

/**
 * Finds the network that announces an address: in the operator's databases, and in the DNS what they do not have. No query is sent
 * for an address whose AS number the databases know. The name of an AS is looked up once in 30 days.
 */
export class NetworkLookup implements AddressLookup<AddressNetwork> {
  readonly what = "network";
  readonly failuresInARowMax = NETWORK_LIMITS.failuresInARowMax;
  readonly #runtime: Pick<Runtime, "db" | "clock">;
  readonly #options: NetworkLookupOptions;
  readonly #isPublic = createAddressPolicy([]).isAllowed;
  /** Lookups of AS names in progress: many addresses of a run are of the same network. */
  readonly #pending = new Map<number, Promise<Result<string | null, DnsOutcome>>>();

  constructor(runtime: Pick<Runtime, "db" | "clock">, options: NetworkLookupOptions) {
    this.#runtime = runtime;
    this.#options = options;
  }

  async lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<AddressNetwork>> {
    if (isIP(ip) === 0 || !this.#isPublic(ip)) return { kind: "private" };
    const known = this.#options.geoip?.find(ip) ?? null;
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
    // Databases are replaced every week or so, and a lookup in one costs nothing.
    const validMs = known?.asn === null || known === null ? FOUND_MS : NONE_MS;
    return { kind: "found", fact: { ...found, asName: name.value }, validMs };
  }

  async #findOrigin(ip: string, known: GeoipFacts | null, signal: AbortSignal): Promise<Result<Origin, DnsOutcome>> {
    if (known !== null && known.asn !== null)
      return ok({ asn: known.asn, country: known.country, prefix: known.prefix });
    const { resolver } = this.#options;
    if (resolver === null) return ok(NO_ORIGIN);
    const origin = await lookUpOrigin(resolver, ip, { timeoutMs: NETWORK_LIMITS.timeoutMs, signal });
    return origin.ok ? ok(origin.value ?? NO_ORIGIN) : origin;
  }

  async #findAsName(
    asn: number,
    known: GeoipFacts | null,
    signal: AbortSignal,
  ): Promise<Result<string | null, DnsOutcome>> {
    const { store, resolver } = this.#options;
    if (known?.asn === asn && known.asName !== null) return ok(known.asName);
    const kept = store.asName(asn, this.#runtime.clock.nowMs());
    if (kept !== undefined) return ok(kept);
    if (resolver === null) return ok(null);
    const pending = this.#pending.get(asn) ?? this.#lookUpAsName(resolver, asn, signal);
    this.#pending.set(asn, pending);
    return pending;
  }

  async #lookUpAsName(
    resolver: DnsResolver,
    asn: number,
    signal: AbortSignal,
  ): Promise<Result<string | null, DnsOutcome>> {
    const { db, clock } = this.#runtime;
    const { store } = this.#options;
    try {
      const name = await lookUpAsName(resolver, asn, { timeoutMs: NETWORK_LIMITS.timeoutMs, signal });
      if (name.ok) {
        const dueAtMs = clock.nowMs() + (name.value === null ? NONE_MS : FOUND_MS);
        await db.commit((tx) => store.saveAsName(tx, asn, name.value, dueAtMs));
      }
      return name;
    } finally {
      this.#pending.delete(asn);
    }
  }
}
