import ipaddr from "ipaddr.js";
import { type Result, err, ok } from "../base/errors.ts";
import type { DnsRecordData, DnsType, MxRecord, SoaRecord, TlsaRecord } from "./dns.ts";
import { MalformedMessage, readName, wireBytesOf, writeName } from "./dns-name.ts";
import { isUtf8 } from "node:buffer";

/** Numbers of the record types (RFC 1035 §3.2.2, RFC 3596 §2.1, RFC 6698 §7.1). */
const TYPE_CODES = {
  A: 1,
  NS: 2,
  CNAME: 5,
  SOA: 6,
  PTR: 12,
  MX: 15,
  TXT: 16,
  AAAA: 28,
  TLSA: 52,
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

interface QueryForm {
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
  const bytes = new Uint8Array(HEADER_BYTES + wireBytesOf(name) + 4 + (edns ? OPT_BYTES : 0));
  const id = random16();
  setUint16(bytes, 0, id);
  setUint16(bytes, 2, QUERY_FLAGS);
  setUint16(bytes, 4, 1);
  setUint16(bytes, 10, edns ? 1 : 0);
  const nameEnd = writeName(bytes, name, HEADER_BYTES);
  if (mixCase) mixLetterCase(bytes, nameEnd, random16);
  setUint16(bytes, nameEnd, TYPE_CODES[type]);
  setUint16(bytes, nameEnd + 2, CLASS_IN);
  const questionEnd = nameEnd + 4;
  if (edns) {
    setUint16(bytes, questionEnd + 1, TYPE_OPT);
    setUint16(bytes, questionEnd + 3, EDNS_UDP_BYTES);
    if (dnssecOk) setUint16(bytes, questionEnd + 7, DNSSEC_OK);
  }
  return { id, bytes, questionEnd };
};

const mixLetterCase = (bytes: Uint8Array, nameEnd: number, random16: () => number) => {
  let bits = 0;
  for (let index = 0; HEADER_BYTES + index < nameEnd; index++) {
    if (index % 16 === 0) bits = random16();
    const byte = bytes[HEADER_BYTES + index] ?? 0;
    // Length octets are at most 63 and so never look like a lower-case letter.
    if (byte >= 0x61 && byte <= 0x7a && ((bits >> (index % 16)) & 1) === 1) bytes[HEADER_BYTES + index] = byte & ~0x20;
  }
};

// A DataView costs more than the whole message: it makes the platform allocate an ArrayBuffer.

const setUint16 = (bytes: Uint8Array, offset: number, value: number) => {
  bytes[offset] = value >> 8;
  bytes[offset + 1] = value & 0xff;
};

/** Reads a number of two octets that is within the bytes. */
export const uint16At = (bytes: Uint8Array, offset: number): number =>
  ((bytes[offset] ?? 0) << 8) | (bytes[offset + 1] ?? 0);

/** The same of four octets, with a sign. */
const int32At = (bytes: Uint8Array, offset: number) => (uint16At(bytes, offset) << 16) | uint16At(bytes, offset + 2);

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
  const flags = uint16At(bytes, 2);
  const answers = readSection(bytes, { offset: questionEnd, count: uint16At(bytes, 6) });
  const authorities = readSection(bytes, { offset: answers.next, count: uint16At(bytes, 8) });
  const additionals = readSection(bytes, { offset: authorities.next, count: uint16At(bytes, 10) });
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

const readSection = (bytes: Uint8Array, { offset, count }: { offset: number; count: number }): Section => {
  const records: DnsResourceRecord[] = [];
  let hasStrays = false;
  let rcodeHigh = 0;
  let next = offset;
  for (let index = 0; index < count; index++) {
    const owner = readName(bytes, next);
    const start = owner.next + 10;
    const typeCode = uint16At(bytes, owner.next);
    next = start + uint16At(bytes, owner.next + 8);
    if (next > bytes.length) throw new MalformedMessage("record past the end");

    if (typeCode === TYPE_OPT) rcodeHigh = bytes[owner.next + 4] ?? 0;
    const type = TYPES.get(typeCode);
    const isInternet = uint16At(bytes, owner.next + 2) === CLASS_IN;
    if (type === undefined || !isInternet) {
      hasStrays ||= !isInternet || !COMPANION_TYPES.has(typeCode);
      continue;
    }
    const ttlS = int32At(bytes, owner.next + 4);
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

/** Position of the data of a record in its message. */
interface DataRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads the data of one record (RFC 1035 §3.3, RFC 3596 §2.2), which must fill its range exactly.
 * Throws MalformedMessage otherwise. The caller has checked that the range is within the message.
 */
const readRecordData = (type: DnsType, bytes: Uint8Array, range: DataRange): DnsRecordData[DnsType] => {
  switch (type) {
    case "A":
      return readA(bytes, range);
    case "AAAA":
      return readAaaa(bytes, range);
    case "MX":
      return readMx(bytes, range);
    case "TXT":
      return readTxt(bytes, range);
    case "SOA":
      return readSoa(bytes, range);
    case "TLSA":
      return readTlsa(bytes, range);
    case "CNAME":
    case "PTR":
    case "NS":
      return readHostName(bytes, range);
    default:
      return type satisfies never;
  }
};

const readA = (bytes: Uint8Array, { start, end }: DataRange) => {
  if (end - start !== 4) throw new MalformedMessage("A record that is not 4 octets");
  return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}`;
};

const readAaaa = (bytes: Uint8Array, { start, end }: DataRange) => {
  if (end - start !== 16) throw new MalformedMessage("AAAA record that is not 16 octets");
  return ipaddr.fromByteArray([...bytes.subarray(start, end)]).toString();
};

const readHostName = (bytes: Uint8Array, { start, end }: DataRange) => {
  const { name, next } = readName(bytes, start);
  if (next !== end) throw new MalformedMessage("name does not fill its record");
  return name;
};

const readMx = (bytes: Uint8Array, { start, end }: DataRange): MxRecord => {
  if (end - start < 3) throw new MalformedMessage("MX record too short");
  const preference = ((bytes[start] ?? 0) << 8) | (bytes[start + 1] ?? 0);
  return { preference, exchange: readHostName(bytes, { start: start + 2, end }) };
};

const readTlsa = (bytes: Uint8Array, { start, end }: DataRange): TlsaRecord => {
  if (end - start < 3) throw new MalformedMessage("TLSA record too short");
  const [usage = 0, selector = 0, matching = 0] = bytes.subarray(start, start + 3);
  return { usage, selector, matching, dataBytes: end - start - 3 };
};

const readSoa = (bytes: Uint8Array, { start, end }: DataRange): SoaRecord => {
  const primary = readName(bytes, start);
  const mailbox = readName(bytes, primary.next);
  if (mailbox.next + 20 !== end) throw new MalformedMessage("SOA record of the wrong length");
  const numberAt = (index: number) => uint32At(bytes, mailbox.next + 4 * index);
  return {
    primary: primary.name,
    mailbox: mailbox.name,
    serial: numberAt(0),
    refreshS: numberAt(1),
    retryS: numberAt(2),
    expireS: numberAt(3),
    minimumS: numberAt(4),
  };
};

/** Reads a number of four octets that is within the bytes. */
const uint32At = (bytes: Uint8Array, offset: number) => {
  let value = 0;
  for (let index = offset; index < offset + 4; index++) value = value * 256 + (bytes[index] ?? 0);
  return value;
};

const readTxt = (bytes: Uint8Array, { start, end }: DataRange) => {
  const joined = Buffer.alloc(end - start);
  let length = 0;
  for (let position = start; position < end;) {
    const stringEnd = position + 1 + (bytes[position] ?? 0);
    if (stringEnd > end) throw new MalformedMessage("character-string past the end of its record");
    joined.set(bytes.subarray(position + 1, stringEnd), length);
    length += stringEnd - position - 1;
    position = stringEnd;
  }
  const text = joined.subarray(0, length);
  // Joined first: one character may be split between two strings.
  return isUtf8(text) ? text.toString("utf8") : text.toString("latin1");
};
