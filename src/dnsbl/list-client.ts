import type { DnsResolver } from "../net/dns.ts";
import type { Blocklist } from "./blocklist.ts";
import { zoneOf } from "./blocklist.ts";
import type { DnsblPacing } from "./budget.ts";
import type { DecodedResponse } from "./decode.ts";
import { decodeResponse } from "./decode.ts";
import { maskKey } from "./list-keys.ts";

/** What came of one query to one list. */
export interface ListResponse {
  /** The name asked for, a key in it masked. */
  readonly queryName: string;
  /** The A records as they came. */
  readonly returnCodes: readonly string[];
  readonly decoded: DecodedResponse;
  /** For how many more seconds a resolver on the way may keep this answer; 0 when it says nothing. */
  readonly ttlS: number;
}

/**
 * Record types by which the existence of a name can be asked. A resolver keeps the answer for each type apart, so the
 * query reaches the list although the A record is in a cache.
 */
export const PRESENCE_TYPES = ["TXT", "AAAA", "MX", "NS", "PTR", "SOA"] as const;
export type PresenceType = (typeof PRESENCE_TYPES)[number];

/**
 * Whether a name exists: `records` and `no_records` (NOERROR without a record) say that it may, `absent` that it does
 * not (NXDOMAIN). `unknown`: no usable response. A server may give `no_records` for names that do not exist, so the
 * caller compares with a random name.
 */
export interface NamePresence {
  readonly kind: "records" | "no_records" | "absent" | "unknown";
  readonly ttlS: number;
}

/** Sends queries to lists. No method rejects for anything that a list, a resolver or a budget does. */
export interface ListClient {
  /** Asks a list for its verdict about a prefix (see `formQueries`). */
  query(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<ListResponse>;
  /** Asks whether a name exists, by another record type than A. */
  queryPresence(list: Blocklist, prefix: string, type: PresenceType): Promise<NamePresence>;
  /** The explanation a list gives for a listing (RFC 5782 §2.1), a key in it masked; null when it gives none. */
  queryText(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<string | null>;
}

/** What operators write may be long and is shown to users. */
const TEXT_CHARACTERS_MAX = 500;
const TEXT_RECORDS_MAX = 4;
const TEXT_TIMEOUT_MS = 5000;

export const createListClient = ({ resolver, pacing }: { resolver: DnsResolver; pacing: DnsblPacing }): ListClient => ({
  async query(list, prefix, signal) {
    const zone = zoneOf(list);
    if (zone === null) return notAsked(prefix, `${list.name} can only be asked with a key.`);
    const name = `${prefix}.${zone}`;
    const queryName = maskKey(list, name);
    const turn = await pacing.acquire(list);
    if (!turn.ok) return notAsked(queryName, turn.error.problem);
    const reply = await resolver.resolve(name, "A", signal === undefined ? {} : { signal });
    return { queryName, returnCodes: reply.records, decoded: decodeResponse(list, reply), ttlS: reply.ttlS };
  },

  async queryPresence(list, prefix, type) {
    const zone = zoneOf(list);
    const turn = zone === null ? null : await pacing.acquire(list);
    if (turn === null || !turn.ok) return UNKNOWN;
    const { outcome, ttlS } = await resolver.resolve(`${prefix}.${zone}`, type, { timeoutMs: TEXT_TIMEOUT_MS });
    if (outcome === "answer") return { kind: "records", ttlS };
    // A list without an SOA record cannot vouch for an empty response; a random name that is absent can.
    if (outcome === "no_data" || outcome === "unconfirmed") return { kind: "no_records", ttlS };
    return outcome === "nxdomain" ? { kind: "absent", ttlS } : UNKNOWN;
  },

  async queryText(list, prefix, signal) {
    const zone = zoneOf(list);
    const turn = zone === null ? null : await pacing.acquire(list);
    if (turn === null || !turn.ok) return null;
    const options = { timeoutMs: TEXT_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
    const { records } = await resolver.resolve(`${prefix}.${zone}`, "TXT", options);
    const texts = records.slice(0, TEXT_RECORDS_MAX).map(printable);
    const text = maskKey(list, texts.filter((line) => line !== "").join(" ")).slice(0, TEXT_CHARACTERS_MAX);
    return text === "" ? null : text;
  },
});

const UNKNOWN: NamePresence = { kind: "unknown", ttlS: 0 };

const notAsked = (queryName: string, reason: string): ListResponse => ({
  queryName,
  returnCodes: [],
  decoded: { outcome: "failed", cause: "not_asked", reason },
  ttlS: 0,
});

const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** The answers for all forms of a target (host, registrable domain) as one. */
export interface TargetResponse extends Omit<ListResponse, "queryName"> {
  readonly queryNames: readonly string[];
  /** The form that the outcome came from. */
  readonly prefix: string;
}

/**
 * Asks one list for every form of a target. A listing of one form is a listing; else what is unknown of one form makes
 * the whole unknown. An answer outside 127/8 to one form makes all of them worthless. `prefixes` is never empty.
 */
export const queryTarget = async (
  client: ListClient,
  list: Blocklist,
  { prefixes, signal }: { readonly prefixes: readonly string[]; readonly signal?: AbortSignal | undefined },
): Promise<TargetResponse> => {
  const asked = await Promise.all(
    prefixes.map(async (prefix) => ({ prefix, ...(await client.query(list, prefix, signal)) })),
  );
  const decisive = asked.toSorted((a, b) => rank(a.decoded) - rank(b.decoded))[0];
  if (decisive === undefined) throw new Error("A list was asked about a target without any form.");
  return {
    prefix: decisive.prefix,
    decoded:
      decisive.decoded.outcome === "listed" ? mergeListings(asked.map(({ decoded }) => decoded)) : decisive.decoded,
    queryNames: asked.map(({ queryName }) => queryName),
    returnCodes: [...new Set(asked.flatMap(({ returnCodes }) => returnCodes))],
    ttlS: Math.min(...asked.map(({ ttlS }) => ttlS)),
  };
};

const PRECEDENCE = ["listed", "refused", "failed", "not_listed"] as const;

const rank = (decoded: DecodedResponse): number =>
  decoded.outcome === "failed" && decoded.cause === "outside_loopback" ? -1 : PRECEDENCE.indexOf(decoded.outcome);

const mergeListings = (all: readonly DecodedResponse[]): DecodedResponse => {
  const listings = all.flatMap((decoded) => (decoded.outcome === "listed" ? decoded.listings : []));
  return {
    outcome: "listed",
    listings: listings.filter(({ id }, index) => listings.findIndex((other) => other.id === id) === index),
  };
};
