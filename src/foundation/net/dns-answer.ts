import type { DnsRecordData, DnsType } from "./dns.ts";
import type { DnsMessage, DnsResourceRecord } from "./dns-message.ts";
import { RCODES } from "./dns-message.ts";

/** What one response says about one query. `follow` means: query the last of `cnames`. */
export type DnsAnswer =
  | {
      readonly kind: "response" | "no_data" | "nxdomain" | "follow";
      readonly records: ReadonlyArray<DnsRecordData[DnsType]>;
      readonly cnames: readonly string[];
      /** The least time to live on the way; 0 when the response names none (RFC 2308 §5). */
      readonly ttlS: number;
      /** False for a negative response without the SOA of a zone that holds the name. */
      readonly isVouched: boolean;
    }
  | { readonly kind: "servfail" | "refused" | "malformed" | "cname_loop" };

/** Longest chain of aliases that is followed, over all responses. */
export const CNAMES_MAX = 8;

/**
 * Reads a response as the answer to "`type` of `name`": follows the aliases inside it, and drops every record whose
 * owner is neither the name nor one of them.
 */
export const readAnswer = (message: DnsMessage, name: string, type: DnsType): DnsAnswer => {
  const { rcode } = message;
  if (rcode === RCODES.REFUSED) return { kind: "refused" };
  if (rcode !== RCODES.NOERROR && rcode !== RCODES.NXDOMAIN) return { kind: "servfail" };

  const chain = followAliases(message.answers, name, type);
  if (!chain) return { kind: "cname_loop" };
  const { cnames } = chain;
  const owner = cnames.at(-1) ?? name;
  const found = message.answers.filter((record) => record.type === type && record.owner === owner);

  if (found.length > 0) {
    // NXDOMAIN together with records is contradictory: neither is used.
    if (rcode === RCODES.NXDOMAIN) return { kind: "malformed" };
    const ttlS = Math.min(...chain.ttlsS, ...found.map((record) => record.ttlS));
    return { kind: "response", records: found.map((record) => record.data), cnames, ttlS, isVouched: true };
  }
  // Records, but none of the queried type: no statement about this name, least of all that it has none.
  if (message.hasStrayAnswers || message.answers.some((record) => !isOnTheWay(record, name, cnames)))
    return { kind: "malformed" };
  const soaTtlS = findNegativeTtlS(message, owner);
  const isVouched = soaTtlS !== undefined;
  const negative = { records: [], cnames, ttlS: Math.min(...chain.ttlsS, soaTtlS ?? 0), isVouched };
  if (rcode === RCODES.NXDOMAIN) return { kind: "nxdomain", ...negative };
  if (cnames.length > 0 && !isVouched)
    return { kind: "follow", records: [], cnames, ttlS: Math.min(...chain.ttlsS), isVouched: true };
  if (isReferral(message)) return { kind: "servfail" };
  return { kind: "no_data", ...negative };
};

/** Beside a negative response the answer section holds the aliases that led there, and nothing else. */
const isOnTheWay = (record: DnsResourceRecord, name: string, cnames: readonly string[]): boolean =>
  isCname(record) && (record.owner === name || cnames.includes(record.owner));

/** The targets of the aliases from `name` on, with their times to live; undefined for a circle or too many. */
const followAliases = (answers: readonly DnsResourceRecord[], name: string, type: DnsType) => {
  const cnames: string[] = [];
  const ttlsS: number[] = [];
  if (type === "CNAME" || !answers.some(isCname)) return { cnames, ttlsS };
  const aliases = new Map<string, DnsResourceRecord<"CNAME">>();
  for (const record of answers) if (isCname(record) && !aliases.has(record.owner)) aliases.set(record.owner, record);

  for (let alias = aliases.get(name); alias; alias = aliases.get(alias.data)) {
    if (alias.data === name || cnames.includes(alias.data) || cnames.length >= CNAMES_MAX) return undefined;
    cnames.push(alias.data);
    ttlsS.push(alias.ttlS);
  }
  return { cnames, ttlsS };
};

const isCname = (record: DnsResourceRecord): record is DnsResourceRecord<"CNAME"> => record.type === "CNAME";
const isSoa = (record: DnsResourceRecord): record is DnsResourceRecord<"SOA"> => record.type === "SOA";

/** RFC 2308 §5: the lesser of the SOA's own time to live and its minimum; the zone must hold the name. */
const findNegativeTtlS = ({ authorities }: DnsMessage, name: string): number | undefined => {
  const soa = authorities
    .filter(isSoa)
    .find(({ owner }) => owner === "." || name === owner || name.endsWith(`.${owner}`));
  return soa && Math.min(soa.ttlS, soa.data.minimumS);
};

/** Name servers without an SOA point elsewhere: never "no data", whatever the AA bit says (RFC 2308 §2.2). */
const isReferral = ({ authorities }: DnsMessage): boolean =>
  authorities.some((record) => record.type === "NS") && !authorities.some(isSoa);
