import type { Result } from "../../foundation/base/errors.ts";
import { err, ok } from "../../foundation/base/errors.ts";

/** Which A records match: an inclusive range of addresses, or one bit of the last octet of 127.0.0.x. */
export type CodeMatch =
  | { readonly kind: "range"; readonly from: number; readonly to: number }
  | { readonly kind: "bit"; readonly bit: number };

/** Why a text is not a code. `problem` is a sentence that contains the text. */
export interface CodeMatchProblem {
  readonly kind: "invalid_match";
  readonly problem: string;
}

const IPV4 = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/;
const BIT = /^bit (\d{1,3})$/;
const BITS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128];
const LOOPBACK_FIRST = 0x7f_00_00_00;
const LOOPBACK_LAST = 0x7f_ff_ff_ff;
const BIT_SUMS_FIRST = 0x7f_00_00_01;
const BIT_SUMS_LAST = 0x7f_00_00_ff;

/** An IPv4 address in dotted form as a number; null for anything else, including leading zeros. */
export const ipv4Number = (text: string): number | null => {
  const octets = IPV4.exec(text)?.slice(1) ?? [];
  if (octets.length !== 4 || octets.some((octet) => Number(octet) > 255 || String(Number(octet)) !== octet))
    return null;
  return octets.reduce((number, octet) => number * 256 + Number(octet), 0);
};

/** Whether an address is in 127.0.0.0/8, as all return codes of blocklists are (RFC 5782 §2.1). */
export const isLoopback = (address: number): boolean => address >= LOOPBACK_FIRST && address <= LOOPBACK_LAST;

/** Parses `127.0.0.2`, `127.0.0.2-127.0.0.9` or `bit 8` (a power of two up to 128). Addresses must lie in 127.0.0.0/8. */
export const parseCodeMatch = (text: string): Result<CodeMatch, CodeMatchProblem> => {
  const fail = (what: string) => err({ kind: "invalid_match", problem: `"${text}" ${what}.` } as const);
  const bit = BIT.exec(text)?.[1];
  if (bit !== undefined) {
    return BITS.includes(Number(bit))
      ? ok({ kind: "bit", bit: Number(bit) })
      : fail("is not a bit: use a power of two from 1 to 128");
  }
  const ends = text.split("-");
  const from = ipv4Number(ends[0] ?? "");
  const to = ipv4Number(ends.at(-1) ?? "");
  if (ends.length > 2 || from === null || to === null) {
    return fail("is not an address, a range such as 127.0.0.2-127.0.0.9, or a bit such as bit 8");
  }
  if (!isLoopback(from) || !isLoopback(to)) return fail("is outside 127.0.0.0/8");
  return from <= to ? ok({ kind: "range", from, to }) : fail("is a range whose end is before its start");
};

/** Whether an address matches. A bit matches in 127.0.0.x only, also in a sum of several bits. */
export const matchesCode = (match: CodeMatch, address: number): boolean =>
  match.kind === "range"
    ? address >= match.from && address <= match.to
    : address >= BIT_SUMS_FIRST && address <= BIT_SUMS_LAST && (address & match.bit) !== 0;

/** Whether one address could match both. Different bits never overlap: their sum means both. */
export const codesOverlap = (a: CodeMatch, b: CodeMatch): boolean => {
  if (a.kind === "bit" && b.kind === "bit") return a.bit === b.bit;
  if (a.kind === "range" && b.kind === "range") return a.from <= b.to && b.from <= a.to;
  const range = a.kind === "range" ? a : b;
  return range.kind === "range" && range.from <= BIT_SUMS_LAST && range.to >= BIT_SUMS_FIRST;
};

/** The text that `parseCodeMatch` accepts. */
export const formatCodeMatch = (match: CodeMatch): string => {
  if (match.kind === "bit") return `bit ${match.bit}`;
  return match.from === match.to ? formatIpv4(match.from) : `${formatIpv4(match.from)}-${formatIpv4(match.to)}`;
};

const formatIpv4 = (address: number): string => [24, 16, 8, 0].map((shift) => (address >>> shift) & 0xff).join(".");
