import type { Clock } from "../base/clock.ts";
import type { OnBehalfOf } from "../base/on-behalf-of.ts";
import { waitFor } from "../base/wait.ts";

/** The record data by record type, of the types that are queried. Host names are lower case, without a final dot; the root is ".". */
export interface DnsRecordData {
  /** An IPv4 address in dotted form. */
  readonly A: string;
  /** An IPv6 address in the form of RFC 5952. */
  readonly AAAA: string;
  readonly MX: MxRecord;
  /** One string per record: its character-strings joined without a separator (RFC 7208 §3.3). UTF-8 where valid, else Latin-1. */
  readonly TXT: string;
  readonly CNAME: string;
  readonly PTR: string;
  readonly NS: string;
  readonly SOA: SoaRecord;
  readonly TLSA: TlsaRecord;
}

/** A mail exchange (RFC 5321 §5.1). The exchange "." is the null MX of RFC 7505. */
export interface MxRecord {
  readonly preference: number;
  readonly exchange: string;
}

/** A certificate association (RFC 6698 §2.1). `dataBytes`: the octets of its digest, or of a whole certificate or key. */
export interface TlsaRecord {
  readonly usage: number;
  readonly selector: number;
  readonly matching: number;
  readonly dataBytes: number;
}

/** The start of authority of a zone (RFC 1035 §3.3.13). `minimumS` is the TTL of negative responses (RFC 2308 §4). */
export interface SoaRecord {
  readonly primary: string;
  readonly mailbox: string;
  readonly serial: number;
  readonly refreshS: number;
  readonly retryS: number;
  readonly expireS: number;
  readonly minimumS: number;
}

export type DnsType = keyof DnsRecordData;

/**
 * The outcome of a query. Only the first three are statements about the name; all others mean that nothing is known.
 * `no_data` and `nxdomain` are confirmed: by the SOA of the zone in the response, or by a second response that agrees.
 *
 * - `response`: there are records.
 * - `no_data`: the name exists without records of this type (NOERROR, RFC 2308 §2.2).
 * - `nxdomain`: the name does not exist (RFC 2308 §2.1); after a chain of aliases, its last target does not.
 * - `unconfirmed`: a response without records and without an SOA, which nothing confirmed. Broken servers send those too.
 * - `servfail`: SERVFAIL or another error code, or a referral.
 * - `refused`: the server refuses this client.
 * - `timeout`: no server responded in time, or the caller's own timeout came first.
 * - `malformed`: the response is invalid.
 * - `network_error`: no server could be reached.
 * - `cname_loop`: the aliases form a loop, or a longer chain than is followed.
 * - `invalid_name`: not a valid name (RFC 1035 §2.3.4); nothing was sent.
 * - `local_failure`: this machine could not open a socket; nothing was sent.
 * - `overloaded`: too many queries were waiting in this process; nothing was sent.
 * - `aborted`: the caller's signal fired, or the resolver was closed.
 */
export type DnsOutcome =
  | "response"
  | "no_data"
  | "nxdomain"
  | "unconfirmed"
  | "servfail"
  | "refused"
  | "timeout"
  | "malformed"
  | "network_error"
  | "cname_loop"
  | "invalid_name"
  | "local_failure"
  | "overloaded"
  | "aborted";

/** The result of one query. It is stored as evidence and shown to users unchanged. */
export interface DnsResponse<T extends DnsType = DnsType> {
  /** The queried name: lower case, no final dot. */
  readonly name: string;
  readonly type: T;
  readonly outcome: DnsOutcome;
  /** The records found, at the end of the aliases; empty unless the outcome is `response`. */
  readonly records: ReadonlyArray<DnsRecordData[T]>;
  /** The targets of the aliases followed, in order; the last one owns the records. */
  readonly cnames: readonly string[];
  /** For how many more seconds the outcome may be cached, by the TTLs of the DNS; 0 when there are none. */
  readonly ttlS: number;
  /** Whether the server validated every step with DNSSEC (the AD bit, RFC 6840 §5.8). */
  readonly authenticated: boolean;
  /** The server that responded, or the last one tried, as `address:port`; null when nothing was sent. */
  readonly server: string | null;
  readonly fromCache: boolean;
  /** How long the caller waited, in whole milliseconds. */
  readonly elapsedMs: number;
}

/** A response without records. */
export const emptyResponse = <T extends DnsType>(name: string, type: T, outcome: DnsOutcome): DnsResponse<T> => ({
  name,
  type,
  outcome,
  records: [],
  cnames: [],
  ttlS: 0,
  authenticated: false,
  server: null,
  fromCache: false,
  elapsedMs: 0,
});

/** Limits of one caller. The query itself continues for other callers that wait for it. */
export interface ResolveOptions {
  /** Ends the wait with the outcome `aborted`. */
  readonly signal?: AbortSignal;
  /** Ends the wait with the outcome `timeout`; the resolver's own deadline holds as well. */
  readonly timeoutMs?: number;
  /** The account that it is made for; by default the service itself. */
  readonly onBehalfOf?: OnBehalfOf;
}

/** Queries the DNS. `resolve` never rejects for anything that a name, a server or the network does: see the outcome. */
export interface DnsResolver {
  resolve<T extends DnsType>(name: string, type: T, options?: ResolveOptions): Promise<DnsResponse<T>>;
}

/** The same resolver, with everything on behalf of an account. */
export const resolverFor = (resolver: DnsResolver, onBehalfOf: OnBehalfOf): DnsResolver => ({
  resolve: (name, type, options) => resolver.resolve(name, type, { onBehalfOf, ...options }),
});

/** The same resolver until the signal fires: from then on everything is `aborted`, even if the one behind it does not listen. */
export const abortableResolver = (resolver: DnsResolver, clock: Clock, signal: AbortSignal): DnsResolver => ({
  async resolve(name, type, options) {
    const waited = await waitFor(clock, resolver.resolve(name, type, { ...options, signal }), { signal });
    return waited.ok ? waited.value : emptyResponse(name, type, "aborted");
  },
});

/** A recursive name server: an IP address (IPv6 perhaps with a zone, as in `fe80::1%eth0`) and a port. */
export interface DnsServer {
  readonly address: string;
  readonly port: number;
}

/** Whether an outcome is a statement about the name; if not, it must never be read as "no". */
export const isDefinite = (outcome: DnsOutcome): outcome is "response" | "no_data" | "nxdomain" =>
  outcome === "response" || outcome === "no_data" || outcome === "nxdomain";

/** `192.0.2.1:53`, `[2001:db8::1]:53`. */
export const formatServer = ({ address, port }: DnsServer): string =>
  address.includes(":") ? `[${address}]:${port}` : `${address}:${port}`;
