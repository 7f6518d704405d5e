import type { Result } from "../base/errors.ts";
import { err, ok } from "../base/errors.ts";
import type { DnsRecordData, DnsType } from "./dns.ts";
import { MalformedMessage, readName, writeName } from "./dns-name.ts";
import { readRecordData } from "./dns-record.ts";

/** Numbers of the record types (RFC 1035 §3.2.2, RFC 3596 §2.1). */
export const TYPE_CODES = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
} as const satisfies Record<DnsType, number>;
const TYPES = new Map<number, DnsType>(Object.entries(TYPE_CODES).map(([type, code]) => [code, type as DnsType]));

/** Response codes that are distinguished (RFC 1035 §4.1.1, RFC 6891 §9). */
export const RCODES = { NOERROR: 0, FORMERR: 1, SERVFAIL: 2, NXDOMAIN: 3, NOTIMP: 4, REFUSED: 5, BADVERS: 16 } as const;

/** A record of the internet class and of a type we know. `owner` is in the form of `normalizeName`. */
export interface DnsResourceRecord<T extends DnsType = DnsType> {
  readonly owner: string;
  readonly type: T;
  readonly ttlS: number;
  readonly data: DnsRecordData[T];
}

/** A response, whole and well-formed. Records of other types and classes are left out of the sections. */
export interface DnsMessage {
  /** With the upper bits from the OPT record (RFC 6891 §6.1.3). */
  readonly rcode: number;
  readonly isAuthenticated: boolean;
  readonly answers: readonly DnsResourceRecord[];
  /** The answer section holds records of another class, or of a type that was not queried and no alias explains. */
  readonly hasStrayAnswers: boolean;
  readonly authorities: readonly DnsResourceRecord[];
  readonly sizeBytes: number;
}

/** A question as it goes out. `questionEnd` is the offset behind the question section. */
export interface EncodedQuery {
  readonly id: number;
  readonly bytes: Uint8Array;
  readonly questionEnd: number;
}

export const HEADER_BYTES = 12;
const CLASS_IN = 1;
const TYPE_OPT = 41;
/** Records that may accompany an answer: signatures (RFC 4034 §3), and the alias of a whole tree (RFC 6672 §3.1). */
const COMPANION_TYPES: ReadonlySet<number> = new Set([46, 39]);
const OPT_BYTES = 11;
/** What fits every path without fragments (DNS flag day 2020). */
const EDNS_UDP_BYTES = 1232;
/** Recursion desired; AD requests the AD bit of the response (RFC 6840 §5.7). */
const QUERY_FLAGS = 0x0120;
/** The DO bit (RFC 3225 §3), in the flags of the OPT record. */
const DNSSEC_OK = 0x8000;

export interface QueryForm {
  /** Gives the id, and the case of letters. */
  readonly random16: () => number;
  /** Draws the case of every letter (0x20 encoding). */
  readonly mixCase: boolean;
  /** Adds an OPT record of 1232 octets. */
  readonly edns: boolean;
  /** With `edns`: requests the whole response, as the zone's own server gave it (the DO bit). */
  readonly dnssecOk?: boolean;
}

/** Encodes one question for a recursive server. */
export const encodeQuery = (
  name: string,
  type: DnsType,
  { random16, mixCase, edns, dnssecOk = false }: QueryForm,
): EncodedQuery => {
  const bytes = new Uint8Array(HEADER_BYTES + name.length + 2 + 4 + (edns ? OPT_BYTES : 0));
  const view = new DataView(bytes.buffer);
  const id = random16();
  view.setUint16(0, id);
  view.setUint16(2, QUERY_FLAGS);
  view.setUint16(4, 1);
  view.setUint16(10, edns ? 1 : 0);
  const nameEnd = writeName(bytes, name, HEADER_BYTES);
  if (mixCase) mixLetterCase(bytes.subarray(HEADER_BYTES, nameEnd), random16);
  view.setUint16(nameEnd, TYPE_CODES[type]);
  view.setUint16(nameEnd + 2, CLASS_IN);
  const questionEnd = nameEnd + 4;
  if (edns) {
    view.setUint16(questionEnd + 1, TYPE_OPT);
    view.setUint16(questionEnd + 3, EDNS_UDP_BYTES);
    if (dnssecOk) view.setUint16(questionEnd + 7, DNSSEC_OK);
  }
  return { id, bytes: bytes.subarray(0, questionEnd + (edns ? OPT_BYTES : 0)), questionEnd };
};

const mixLetterCase = (bytes: Uint8Array, random16: () => number): void => {
  let bits = 0;
  for (const [index, byte] of bytes.entries()) {
    if (index % 16 === 0) bits = random16();
    // Length octets are at most 63 and so never look like a lower-case letter.
    if (byte >= 0x61 && byte <= 0x7a && ((bits >> (index % 16)) & 1) === 1) bytes[index] = byte & ~0x20;
  }
};

/**
 * Decodes the sections behind the question. Fails with "malformed" on anything that is not exactly one whole message:
 * counts that do not fit, data that overruns its length, bad compression, bytes left over. Never throws.
 */
export const decodeMessage = (bytes: Uint8Array, questionEnd: number): Result<DnsMessage, "malformed"> => {
  try {
    return ok(decodeSections(bytes, questionEnd));
  } catch (thrown) {
    if (thrown instanceof MalformedMessage) return err("malformed");
    throw thrown;
  }
};

const decodeSections = (bytes: Uint8Array, questionEnd: number): DnsMessage => {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const flags = view.getUint16(2);
  const answers = readSection(view, bytes, { offset: questionEnd, count: view.getUint16(6) });
  const authorities = readSection(view, bytes, { offset: answers.next, count: view.getUint16(8) });
  const additionals = readSection(view, bytes, { offset: authorities.next, count: view.getUint16(10) });
  // A count that is too small would turn an answer into "no records".
  if (additionals.next !== bytes.length) throw new MalformedMessage("bytes behind the last record");
  return {
    rcode: (flags & 0x0f) | (additionals.rcodeHigh << 4),
    isAuthenticated: (flags & 0x0020) !== 0,
    answers: answers.records,
    hasStrayAnswers: answers.hasStrays,
    authorities: authorities.records,
    sizeBytes: bytes.length,
  };
};

interface Section {
  readonly records: DnsResourceRecord[];
  readonly hasStrays: boolean;
  readonly rcodeHigh: number;
  readonly next: number;
}

const readSection = (
  view: DataView,
  bytes: Uint8Array,
  { offset, count }: { offset: number; count: number },
): Section => {
  const records: DnsResourceRecord[] = [];
  let hasStrays = false;
  let rcodeHigh = 0;
  let next = offset;
  for (let index = 0; index < count; index++) {
    const owner = readName(bytes, next);
    const start = owner.next + 10;
    if (start > bytes.length) throw new MalformedMessage("record past the end");
    const typeCode = view.getUint16(owner.next);
    next = start + view.getUint16(owner.next + 8);
    if (next > bytes.length) throw new MalformedMessage("record data past the end");

    if (typeCode === TYPE_OPT) rcodeHigh = view.getUint8(owner.next + 4);
    const type = TYPES.get(typeCode);
    const isInternet = view.getUint16(owner.next + 2) === CLASS_IN;
    if (type === undefined || !isInternet) {
      hasStrays ||= !isInternet || !COMPANION_TYPES.has(typeCode);
      continue;
    }
    const ttlS = view.getInt32(owner.next + 4);
    // A TTL with the top bit set counts as zero (RFC 2181 §8).
    records.push({
      owner: owner.name,
      type,
      ttlS: Math.max(0, ttlS),
      data: readRecordData(type, bytes, { start, end: next }),
    });
  }
  return { records, hasStrays, rcodeHigh, next };
};
