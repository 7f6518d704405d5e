import type { DnsResolver } from "../net/dns.ts";
import type { Blocklist } from "./blocklist.ts";
import { zoneOf } from "./blocklist.ts";
import type { DnsblPacing } from "./budget.ts";
import type { Decoded } from "./decode.ts";
import { decodeAnswer } from "./decode.ts";
import { maskKey } from "./list-keys.ts";

/** What came of one question to one list. */
export interface ListAnswer {
  /** The name asked for, a key in it masked. */
  readonly question: string;
  /** The A records as they came. */
  readonly answers: readonly string[];
  readonly decoded: Decoded;
}

/** Puts questions to lists. Neither method rejects for anything that a list, a resolver or a budget does. */
export interface ListAsker {
  /** Asks a list for its verdict about a prefix (see `formQueries`). */
  ask(list: Blocklist, prefix: string, signal?: AbortSignal): Promise<ListAnswer>;
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
    return { question, answers: reply.records, decoded: decodeAnswer(list, reply) };
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

const notAsked = (question: string, reason: string): ListAnswer => ({
  question,
  answers: [],
  decoded: { outcome: "failed", cause: "not_asked", reason },
});

const printable = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();
