import type { DnsResolver } from "../net/dns.ts";
import type { Blocklist } from "./blocklist.ts";
import { zoneOf } from "./blocklist.ts";
import type { DnsblPacing } from "./budget.ts";
import type { Decoded } from "./decode.ts";
import { decodeAnswer } from "./decode.ts";
import { maskKey } from "./list-keys.ts";

/** What came of one query to one list. */
export interface ListAnswer {
  /** The name asked for, a key in it masked. */
  readonly question: string;
  /** The A records as they came. */
  readonly answers: readonly string[];
  readonly decoded: Decoded;
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
export interface Presence {
  readonly kind: "records" | "no_records" | "absent" | "unknown";
  readonly ttlS: number;
}

/** Sends queries to lists. No method rejects for anything that a list, a resolver or a budget does. */
export interface ListAsker {
  /** Asks a list for its verdict about a prefix (see `formQueries`). */
  ask(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<ListAnswer>;
  /** Asks whether a name exists, by another record type than A. */
  findPresence(list: Blocklist, prefix: string, type: PresenceType): Promise<Presence>;
  /** The explanation a list gives for a listing (RFC 5782 §2.1), a key in it masked; null when it gives none. */
  explain(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<string | null>;
}

/** What operators write may be long and is shown to users. */
const TEXT_CHARACTERS_MAX = 500;
const TEXT_RECORDS_MAX = 4;
const TEXT_TIMEOUT_MS = 5000;

export const createListAsker = ({ resolver, pacing }: { resolver: DnsResolver; pacing: DnsblPacing }): ListAsker => ({
  async ask(list, prefix, signal) {
    const zone = zoneOf(list);
    if (zone === null) return notAsked(prefix, `${list.name} can only be asked with a key.`);
    const name = `${prefix}.${zone}`;
    const question = maskKey(list, name);
    const turn = await pacing.takeTurn(list);
    if (!turn.ok) return notAsked(question, turn.error.problem);
    const reply = await resolver.resolve(name, "A", signal === undefined ? {} : { signal });
    return { question, answers: reply.records, decoded: decodeAnswer(list, reply), ttlS: reply.ttlS };
  },

  async findPresence(list, prefix, type) {
    const zone = zoneOf(list);
    const turn = zone === null ? null : await pacing.takeTurn(list);
    if (turn === null || !turn.ok) return UNKNOWN;
    const { outcome, ttlS } = await resolver.resolve(`${prefix}.${zone}`, type, { timeoutMs: TEXT_TIMEOUT_MS });
    if (outcome === "answer") return { kind: "records", ttlS };
    // A list without an SOA record cannot vouch for an empty response; a random name that is absent can.
    if (outcome === "no_data" || outcome === "unconfirmed") return { kind: "no_records", ttlS };
    return outcome === "nxdomain" ? { kind: "absent", ttlS } : UNKNOWN;
  },

  async explain(list, prefix, signal) {
    const zone = zoneOf(list);
    const turn = zone === null ? null : await pacing.takeTurn(list);
    if (turn === null || !turn.ok) return null;
    const options = { timeoutMs: TEXT_TIMEOUT_MS, ...(signal === undefined ? {} : { signal }) };
    const { records } = await resolver.resolve(`${prefix}.${zone}`, "TXT", options);
    const texts = records.slice(0, TEXT_RECORDS_MAX).map(printable);
    const text = maskKey(list, texts.filter((line) => line !== "").join(" ")).slice(0, TEXT_CHARACTERS_MAX);
    return text === "" ? null : text;
  },
});

const UNKNOWN: Presence = { kind: "unknown", ttlS: 0 };

const notAsked = (question: string, reason: string): ListAnswer => ({
  question,
  answers: [],
  decoded: { outcome: "failed", cause: "not_asked", reason },
  ttlS: 0,
});

const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
