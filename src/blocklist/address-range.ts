import { err, ok, type Result } from "../foundation/base/errors.ts";
import { ipv4Number } from "./lists/code-match.ts";

/** The largest range: a /22. */
export const RANGE_ADDRESSES_MAX = 1024;

/** Consecutive IPv4 addresses as numbers, inclusive. */
export interface AddressRange {
  readonly first: number;
  readonly last: number;
}

const ADDRESS_BITS = 32;
const RANGE = /^([\d.]+)\s*(?:\/\s*(\d{1,3})|[-–]\s*([\d.]+))$/;

const dotted = (number: number): string =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(number / unit) % 256).join(".");

/** Whether a text looks like a range of IPv4 addresses, valid or not. */
export const isRangeForm = (text: string): boolean => RANGE.test(text.trim());

/**
 * Parses `198.51.100.0/24` or `198.51.100.1-198.51.100.9`. The error is a sentence: not a range, ends in the wrong order,
 * host bits set, or more than `RANGE_ADDRESSES_MAX` addresses.
 */
export const parseRange = (text: string): Result<AddressRange, string> => {
  const [, start = "", bitsText, end] = RANGE.exec(text.trim()) ?? [];
  const first = ipv4Number(start);
  const tooLarge = `A range can have at most ${RANGE_ADDRESSES_MAX.toLocaleString("en")} addresses (a /22).`;
  if (first === null) return err("Not a range of IPv4 addresses. Example: 198.51.100.0/24.");
  if (bitsText !== undefined) {
    const bits = Number(bitsText);
    if (bits > ADDRESS_BITS) return err(`/${bitsText} is not a valid prefix length.`);
    const size = 2 ** (ADDRESS_BITS - bits);
    if (size > RANGE_ADDRESSES_MAX) return err(tooLarge);
    const network = first - (first % size);
    if (network !== first) return err(`${start}/${bits} has host bits set. Use ${dotted(network)}/${bits}.`);
    return ok({ first, last: first + size - 1 });
  }
  const last = ipv4Number(end ?? "");
  if (last === null) return err("Not a range of IPv4 addresses. Example: 198.51.100.1-198.51.100.9.");
  if (last < first) return err("The first address of the range must not be greater than the last.");
  if (last - first >= RANGE_ADDRESSES_MAX) return err(tooLarge);
  return ok({ first, last });
};

/** A range as text: in CIDR notation if possible, otherwise with both ends. */
export const rangeText = ({ first, last }: AddressRange): string => {
  const size = last - first + 1;
  const bits = ADDRESS_BITS - Math.log2(size);
  return Number.isInteger(bits) && first % size === 0 ? `${dotted(first)}/${bits}` : `${dotted(first)}-${dotted(last)}`;
};

/** Every address of a range, in order. */
export const addressesOf = ({ first, last }: AddressRange): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => dotted(first + at));
