import { err, ok, type Result } from "../base/errors.ts";
import { ipv4Number } from "../dnsbl/code-match.ts";

/** Addresses that one target may have: a /22. */
export const RANGE_ADDRESSES_MAX = 1024;

/** Consecutive IPv4 addresses, both ends included, as numbers. */
export interface AddressRange {
  readonly first: number;
  readonly last: number;
}

const ADDRESS_BITS = 32;
const RANGE = /^([\d.]+)\s*(?:\/\s*(\d{1,3})|[-–]\s*([\d.]+))$/;

const dotted = (number: number): string =>
  [2 ** 24, 2 ** 16, 2 ** 8, 1].map((unit) => Math.floor(number / unit) % 256).join(".");

/** Whether a text is meant as a range of IPv4 addresses, correct or not. */
export const isRangeForm = (text: string): boolean => RANGE.test(text.trim());

/**
 * Reads `198.51.100.0/24` or `198.51.100.1-198.51.100.9`. The error is a sentence: it is no range, its ends are the wrong
 * way round, the network has host bits, or there are more than `RANGE_ADDRESSES_MAX` addresses.
 */
export const parseRange = (text: string): Result<AddressRange, string> => {
  const [, start = "", bitsText, end] = RANGE.exec(text.trim()) ?? [];
  const first = ipv4Number(start);
  const tooLarge = `A range may have ${RANGE_ADDRESSES_MAX.toLocaleString("en")} addresses at most (a /22).`;
  if (first === null) return err("Not a range of IPv4 addresses: write it as 198.51.100.0/24.");
  if (bitsText !== undefined) {
    const bits = Number(bitsText);
    if (bits > ADDRESS_BITS) return err(`/${bitsText} is no length of a prefix.`);
    const size = 2 ** (ADDRESS_BITS - bits);
    if (size > RANGE_ADDRESSES_MAX) return err(tooLarge);
    const network = first - (first % size);
    if (network !== first)
      return err(`${start}/${bits} is not the first address of its network: ${dotted(network)}/${bits} is.`);
    return ok({ first, last: first + size - 1 });
  }
  const last = ipv4Number(end ?? "");
  if (last === null) return err("Not a range of IPv4 addresses: write it as 198.51.100.1-198.51.100.9.");
  if (last < first) return err("The first address of a range comes first.");
  if (last - first >= RANGE_ADDRESSES_MAX) return err(tooLarge);
  return ok({ first, last });
};

/** A range in its one form: a network where it is one, else its two ends. */
export const rangeText = ({ first, last }: AddressRange): string => {
  const size = last - first + 1;
  const bits = ADDRESS_BITS - Math.log2(size);
  return Number.isInteger(bits) && first % size === 0 ? `${dotted(first)}/${bits}` : `${dotted(first)}-${dotted(last)}`;
};

/** Every address of a range, in order. */
export const addressesOf = ({ first, last }: AddressRange): string[] =>
  Array.from({ length: last - first + 1 }, (_, at) => dotted(first + at));
