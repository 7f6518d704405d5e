import { isIP } from "node:net";
import ipaddr from "ipaddr.js";
import { type DnsResolver, isDefinite } from "../../../foundation/net/dns.ts";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import { reverseQueryName } from "../../../foundation/net/dns-name.ts";
import type { AddressLookup, LookupOutcome } from "./address-lookup-job.ts";
import type { ReverseName } from "./address-store.ts";

/** Names of an address that are confirmed, and the timeout of each query. */
export const REVERSE_LIMITS = { namesMax: 10, timeoutMs: 5_000 } as const;

const DAY_MS = 86_400_000;
const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;
const PRIVATE_MS = 365 * DAY_MS;

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})+$/;

const FAILED: LookupOutcome<ReverseName> = { kind: "failed", partial: null };

/** Finds the reverse name of an address, and whether it resolves to the address (RFC 8601 §3, `iprev`). */
export class ReverseNameLookup implements AddressLookup<ReverseName> {
  readonly what = "reverse name";
  readonly failuresInARowMax = null;
  readonly #resolver: DnsResolver;
  readonly #isPublic = createAddressPolicy([]).isAllowed;

  constructor(resolver: DnsResolver) {
    this.#resolver = resolver;
  }

  async lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<ReverseName>> {
    if (isIP(ip) === 0) return { kind: "private" };
    // Public DNS has no names of private addresses: known without a query, and no other lookup waits for it.
    if (!this.#isPublic(ip)) return { kind: "found", fact: { name: null, isConfirmed: false }, validMs: PRIVATE_MS };
    const limits = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal };
    const { outcome, records } = await this.#resolver.resolve(reverseQueryName(ip), "PTR", limits);
    if (signal.aborted) return { kind: "aborted" };
    if (!isDefinite(outcome)) return FAILED;
    const names = records.filter((name) => HOST_NAME.test(name)).slice(0, REVERSE_LIMITS.namesMax);
    const resolved = await Promise.all(names.map((name) => this.#resolvesTo(name, ip, signal)));
    if (signal.aborted) return { kind: "aborted" };
    const name = names[resolved.indexOf(true)];
    if (name !== undefined) return { kind: "found", fact: { name, isConfirmed: true }, validMs: FOUND_MS };
    if (resolved.includes(null)) return FAILED;
    return { kind: "found", fact: { name: names[0] ?? null, isConfirmed: false }, validMs: NONE_MS };
  }

  /** Null without a definite answer. */
  async #resolvesTo(name: string, ip: string, signal: AbortSignal): Promise<boolean | null> {
    const limits = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal };
    const { outcome, records } = await this.#resolver.resolve(name, isIP(ip) === 4 ? "A" : "AAAA", limits);
    return isDefinite(outcome) ? records.some((address) => ipaddr.process(address).toString() === ip) : null;
  }
}
