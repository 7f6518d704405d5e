import ipaddr from "ipaddr.js";
import type { Runtime } from "../../../foundation/db/runtime.ts";
import { type DnsResolver, isDefinite, type DnsOutcome } from "../../../foundation/net/dns.ts";
import type { GeoipFiles, GeoipFacts } from "../../../foundation/net/geoip-files.ts";
import {
  type AddressNetwork,
  NetworkQueue,
  type ReverseName,
  ReverseNameQueue,
  type LookupQueue,
  type LookupTimes,
} from "./address-store.ts";
import type { Tx } from "../../../foundation/db/open.ts";
import { isIP } from "node:net";
import { createAddressPolicy } from "../../../foundation/net/public-address.ts";
import { reverseQueryName } from "../../../foundation/net/dns-name.ts";
import { ok, type Result } from "../../../foundation/base/errors.ts";
import { lookUpAsName, lookUpOrigin } from "../../../foundation/net/asn-lookup.ts";

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
  readonly #names: AddressLookupJob<ReverseName>;
  readonly #networks: AddressLookupJob<AddressNetwork>;

  constructor(
    runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly deps: AddressLookupOptions,
  ) {
    const { resolver, hasAsnLookup, geoip } = deps;
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
    const { hasAsnLookup, geoip } = this.deps;
    await geoip?.refresh();
    if (hasAsnLookup || geoip !== null) await this.#networks.run();
  }
}

/**
 * The outcome of the lookup of one address.
 *
 * - `found`: also when there is nothing. It is valid for `validMs`.
 * - `failed`: no definite answer. `partial` is what was found nevertheless.
 * - `aborted`: the run ended before the response.
 * - `private`: the address is not public, so it is not looked up.
 */
type LookupOutcome<F> =
  | { readonly kind: "found"; readonly fact: F; readonly validMs: number }
  | { readonly kind: "failed"; readonly partial: F | null }
  | { readonly kind: "aborted" }
  | { readonly kind: "private" };

/** Looks up one kind of fact. */
interface AddressLookup<F> {
  /** What is looked up, for the log: `reverse name`. */
  readonly what: string;
  /**
   * After this many consecutive failures the rest waits for the next run, because all queries go to one service. Null where each
   * address has its own name server.
   */
  readonly failuresInARowMax: number | null;
  lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<F>>;
}

/** Limits of one run: addresses, concurrent lookups, and the time after which no lookup begins. */
export const JOB_LIMITS = { addressesMax: 1_000, atOnceMax: 32, runMs: 45_000 } as const;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const FAILURE_MS = HOUR_MS;
const FAILURE_MS_MAX = DAY_MS;
/** Addresses that are not in the public DNS. */
const NEVER_MS = 365 * DAY_MS;
/** Addresses whose failures are counted; at more, all counts are reset. */
const FAILURES_MAX = 10_000;
/** Outcomes written in one transaction. */
const BATCH = 128;

/** The state of a run. */
interface Run<F> {
  readonly left: Iterator<string>;
  readonly endsAtMs: number;
  found: (readonly [ip: string, lookup: LookupOutcome<F>])[];
  failuresInARow: number;
}

/**
 * Looks up one kind of fact for the addresses that are due, several at a time, outside ingestion. A failed lookup changes nothing
 * that is stored and is repeated later, less and less often.
 */
class AddressLookupJob<F> {
  readonly #stopping = new AbortController();
  /** Consecutive failures by address. Empty after a restart. */
  readonly #failures = new Map<string, number>();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock" | "log">,
    private readonly lookup: AddressLookup<F>,
    private readonly queue: LookupQueue<F>,
  ) {}

  /** Looks up what is due. Never rejects because of the DNS. */
  async run(): Promise<void> {
    if (this.#stopping.signal.aborted) return;
    const { clock } = this.runtime;
    const ips = this.queue.due(clock.nowMs(), JOB_LIMITS.addressesMax);
    const run: Run<F> = {
      left: ips.values(),
      endsAtMs: clock.monotonicMs() + JOB_LIMITS.runMs,
      found: [],
      failuresInARow: 0,
    };
    await Promise.all(Array.from({ length: JOB_LIMITS.atOnceMax }, () => this.#work(run)));
    await this.#write(run);
  }

  /** Ends a run soon; no other begins. Addresses that were not looked up stay due. */
  stop(): void {
    this.#stopping.abort();
  }

  async #work(run: Run<F>): Promise<void> {
    while (this.#mayContinue(run)) {
      const { value: ip, done } = run.left.next();
      if (done === true) return;
      const lookup = await this.#lookUpIsolated(ip);
      run.failuresInARow = lookup.kind === "failed" ? run.failuresInARow + 1 : 0;
      run.found.push([ip, lookup]);
      if (run.found.length >= BATCH) await this.#write(run);
    }
  }

  #mayContinue({ endsAtMs, failuresInARow }: Run<F>): boolean {
    if (this.#stopping.signal.aborted || this.runtime.clock.monotonicMs() >= endsAtMs) return false;
    const { failuresInARowMax } = this.lookup;
    return failuresInARowMax === null || failuresInARow < failuresInARowMax;
  }

  /** A bug in the lookup of one address must not stop the others: it is logged, and the lookup is repeated later. */
  async #lookUpIsolated(ip: string): Promise<LookupOutcome<F>> {
    try {
      return await this.lookup.lookUp(ip, this.#stopping.signal);
    } catch (error) {
      this.runtime.log.error(`address lookup failed: ${this.lookup.what}`, { ip, error });
      return { kind: "failed", partial: null };
    }
  }

  async #write(run: Run<F>): Promise<void> {
    const { found } = run;
    run.found = [];
    if (found.length === 0) return;
    const askedAtMs = this.runtime.clock.nowMs();
    const due = found.map(([ip, lookup]) => ({ ip, lookup, afterMs: this.#afterMs(ip, lookup) }));
    await this.runtime.db.commit((tx) => {
      for (const { ip, lookup, afterMs } of due) {
        if (afterMs !== null) this.#save(tx, ip, lookup, { askedAtMs, dueAtMs: askedAtMs + afterMs });
      }
    });
  }

  #save(tx: Tx, ip: string, lookup: LookupOutcome<F>, times: LookupTimes): void {
    if (lookup.kind === "found") this.queue.save(tx, ip, lookup.fact, times);
    else if (lookup.kind === "failed" && lookup.partial !== null) this.queue.savePartial(tx, ip, lookup.partial, times);
    else this.queue.postpone(tx, ip, times.dueAtMs);
  }

  /** When the lookup is due again; null when it was aborted. */
  #afterMs(ip: string, lookup: LookupOutcome<F>): number | null {
    if (lookup.kind === "aborted") return null;
    if (lookup.kind === "failed") return this.#retryMs(ip);
    this.#failures.delete(ip);
    return lookup.kind === "private" ? NEVER_MS : lookup.validMs;
  }

  /** An hour, doubled at each further failure, up to a day. */
  #retryMs(ip: string): number {
    const before = this.#failures.get(ip) ?? 0;
    if (this.#failures.size >= FAILURES_MAX) this.#failures.clear();
    this.#failures.set(ip, before + 1);
    return Math.min(FAILURE_MS * 2 ** before, FAILURE_MS_MAX);
  }
}

/** Names of an address that are confirmed, and the timeout of each query. */
export const REVERSE_LIMITS = { namesMax: 10, timeoutMs: 5_000 } as const;

const FOUND_MS = 30 * DAY_MS;
const NONE_MS = 7 * DAY_MS;
const PRIVATE_MS = 365 * DAY_MS;

const HOST_NAME = /^(?=.{1,253}$)[a-z0-9_](?:[a-z0-9_-]{0,62})(?:\.[a-z0-9_][a-z0-9_-]{0,62})+$/;

const FAILED: LookupOutcome<ReverseName> = { kind: "failed", partial: null };

/** Finds the reverse name of an address, and whether it resolves to the address (RFC 8601 §3, `iprev`). */
class ReverseNameLookup implements AddressLookup<ReverseName> {
  readonly what = "reverse name";
  readonly failuresInARowMax = null;
  readonly #isPublic = createAddressPolicy([]).isAllowed;

  constructor(private readonly resolver: DnsResolver) {}

  async lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<ReverseName>> {
    if (isIP(ip) === 0) return { kind: "private" };
    // Public DNS has no names of private addresses: known without a query, and no other lookup waits for it.
    if (!this.#isPublic(ip)) return { kind: "found", fact: { name: null, isConfirmed: false }, validMs: PRIVATE_MS };
    const limits = { timeoutMs: REVERSE_LIMITS.timeoutMs, signal };
    const { outcome, records } = await this.resolver.resolve(reverseQueryName(ip), "PTR", limits);
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
    const { outcome, records } = await this.resolver.resolve(name, isIP(ip) === 4 ? "A" : "AAAA", limits);
    return isDefinite(outcome) ? records.some((address) => ipaddr.process(address).toString() === ip) : null;
  }
}

/** The timeout of each query, and the number of consecutive failures that means that the service is down. */
export const NETWORK_LIMITS = { timeoutMs: 5_000, failuresInARowMax: 100 } as const;

/** An AS number with what is known beside it; all null when no network announces the address. */
type Origin = Omit<AddressNetwork, "asName">;
const NO_ORIGIN: Origin = { asn: null, country: null, prefix: null };

/**
 * Finds the network that announces an address: in the operator's databases, and in the DNS what they do not have. No query is sent
 * for an address whose AS number the databases know. The name of an AS is looked up once in 30 days.
 */
class NetworkLookup implements AddressLookup<AddressNetwork> {
  readonly what = "network";
  readonly failuresInARowMax = NETWORK_LIMITS.failuresInARowMax;
  readonly #isPublic = createAddressPolicy([]).isAllowed;
  /** Lookups of AS names in progress: many addresses of a run are of the same network. */
  readonly #pending = new Map<number, Promise<Result<string | null, DnsOutcome>>>();

  constructor(
    private readonly runtime: Pick<Runtime, "db" | "clock">,
    private readonly deps: {
      readonly store: Pick<NetworkQueue, "asName" | "saveAsName">;
      /** Null: no query is sent. */
      readonly resolver: DnsResolver | null;
      /** The operator's databases; null when there are none. */
      readonly geoip: { find(ip: string): GeoipFacts } | null;
    },
  ) {}

  async lookUp(ip: string, signal: AbortSignal): Promise<LookupOutcome<AddressNetwork>> {
    if (isIP(ip) === 0 || !this.#isPublic(ip)) return { kind: "private" };
    const known = this.deps.geoip?.find(ip) ?? null;
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
    const { resolver } = this.deps;
    if (resolver === null) return ok(NO_ORIGIN);
    const origin = await lookUpOrigin(resolver, ip, { timeoutMs: NETWORK_LIMITS.timeoutMs, signal });
    return origin.ok ? ok(origin.value ?? NO_ORIGIN) : origin;
  }

  async #findAsName(
    asn: number,
    known: GeoipFacts | null,
    signal: AbortSignal,
  ): Promise<Result<string | null, DnsOutcome>> {
    const { store, resolver } = this.deps;
    if (known?.asn === asn && known.asName !== null) return ok(known.asName);
    const kept = store.asName(asn, this.runtime.clock.nowMs());
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
    const { db, clock } = this.runtime;
    const { store } = this.deps;
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
