import { isUtf8 } from "node:buffer";
import ipaddr from "ipaddr.js";
import type { DnsRecordData, DnsType, MxRecord, SoaRecord } from "./dns.ts";
import { MalformedMessage, readName } from "./dns-name.ts";

/** Position of the data of a record in its message. */
export interface DataRange {
  readonly start: number;
  readonly end: number;
}

/**
 * Reads the data of one record (RFC 1035 §3.3, RFC 3596 §2.2), which must fill its range exactly.
 * Throws MalformedMessage otherwise. The caller has checked that the range is within the message.
 */
export const readRecordData = (type: DnsType, bytes: Uint8Array, range: DataRange): DnsRecordData[DnsType] => {
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
    case "CNAME":
    case "PTR":
    case "NS":
      return readHostName(bytes, range);
    default:
      return type satisfies never;
  }
};

const readA = (bytes: Uint8Array, { start, end }: DataRange): string => {
  if (end - start !== 4) throw new MalformedMessage("A record that is not 4 octets");
  return `${bytes[start]}.${bytes[start + 1]}.${bytes[start + 2]}.${bytes[start + 3]}`;
};

const readAaaa = (bytes: Uint8Array, { start, end }: DataRange): string => {
  if (end - start !== 16) throw new MalformedMessage("AAAA record that is not 16 octets");
  return ipaddr.fromByteArray([...bytes.subarray(start, end)]).toString();
};

const readHostName = (bytes: Uint8Array, { start, end }: DataRange): string => {
  const { name, next } = readName(bytes, start);
  if (next !== end) throw new MalformedMessage("name does not fill its record");
  return name;
};

const readMx = (bytes: Uint8Array, { start, end }: DataRange): MxRecord => {
  if (end - start < 3) throw new MalformedMessage("MX record too short");
  const preference = ((bytes[start] ?? 0) << 8) | (bytes[start + 1] ?? 0);
  return { preference, exchange: readHostName(bytes, { start: start + 2, end }) };
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
const uint32At = (bytes: Uint8Array, offset: number): number => {
  let value = 0;
  for (let index = offset; index < offset + 4; index++) value = value * 256 + (bytes[index] ?? 0);
  return value;
};

const readTxt = (bytes: Uint8Array, { start, end }: DataRange): string => {
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
