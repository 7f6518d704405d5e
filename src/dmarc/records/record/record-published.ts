import { type DnsOutcome, type DnsResponse, isDefinite } from "../../../foundation/net/dns.ts";
import { parseRecord, STRING_OCTETS_MAX, type ValidRecord } from "./record.ts";

/** What the DNS says about the TXT records at one `_dmarc` name. */
export type Published =
  /** The texts at the name itself; none when it does not exist or has no TXT. */
  | { readonly kind: "texts"; readonly texts: readonly string[] }
  /** The name is an alias (CNAME) of `target`; `texts` are those at the end of the aliases. */
  | { readonly kind: "alias"; readonly target: string; readonly texts: readonly string[] }
  /** The DNS query failed. Never means "none". */
  | { readonly kind: "failure"; readonly outcome: DnsOutcome };

/** The name of the DMARC record of a domain (lower-case A-labels; RFC 9989 §4.5). */
export const recordHost = (domain: string): string => `_dmarc.${domain}`;

/** Interprets the response to a TXT query for a `_dmarc` name. */
export const readPublished = ({ outcome, records, cnames }: DnsResponse<"TXT">): Published => {
  if (!isDefinite(outcome)) return { kind: "failure", outcome };
  const [target] = cnames;
  return target === undefined ? { kind: "texts", texts: records } : { kind: "alias", target, texts: records };
};

/** Those of the texts that are DMARC records; all others at the name are ignored (RFC 9989 §4.10). */
export const dmarcRecordsIn = (texts: readonly string[]): readonly ValidRecord[] =>
  texts.map(parseRecord).filter((record): record is ValidRecord => record.valid);

/** Splits a text into the strings of one TXT record, each at most 255 octets of UTF-8; no character is cut. At least one string. */
export const splitStrings = (text: string): readonly string[] => {
  const strings: string[] = [];
  let current = "";
  let octets = 0;
  for (const character of text) {
    const size = new TextEncoder().encode(character).length;
    if (octets + size > STRING_OCTETS_MAX) {
      strings.push(current);
      current = "";
      octets = 0;
    }
    current += character;
    octets += size;
  }
  return [...strings, current];
};
