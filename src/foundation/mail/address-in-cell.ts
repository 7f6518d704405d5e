import { err, ok, type Result } from "../base/errors.ts";
import { type Address, normalizeLoosely, parseAddress } from "./address.ts";
import type { AddressProblem } from "./address-problem.ts";

/** A cell with more code points than this holds no address; its text is cut here. */
export const CELL_CHARACTERS_MAX = 320;
const CUT_MARK = "…";
/** Every step takes something off both ends; deeper nesting is no cell of a list. */
const STEPS_MAX = 8;

/** An address as it stands in a cell, without what surrounds it. */
interface CellAddress {
  /** The address as it is spelled in the cell. */
  readonly text: string;
  readonly address: Address;
}

/** Zero-width characters that copying leaves in texts. Joiners (U+200C, U+200D) are left out: words are written with them. */
const ZERO_WIDTH = /[\u00ad\u200b\u2060\ufeff]/gu;
// input ≤ 640 characters
const EDGES = /^[\s\0,;\p{Bidi_Control}]+|[\s\0,;\p{Bidi_Control}]+$/gu;
const QUOTED = /^(?:"(.*)"|'(.*)'|`(.*)`|“(.*)”|„(.*)[“”]|‘(.*)’|«(.*)»|<([^<>]*)>)$/su;
/** Typographic quotation marks are no part of any real address, but no rule of a standard keeps them out of one. */
const TYPOGRAPHIC = /^[“„‘«]/u;
const NAMED = /^([^<>]*)<([^<>]*)>$/u;
const MAILTO = /^mailto:/iu;
// input ≤ 640 characters
const TOKEN = /[^\s@<>,;|"'()]+@[^\s@<>,;|"'()]+\.[^\s@<>,;|"'()]+/gu;

/** The address of a `mailto:` URI (RFC 6068 §2), without its header fields. */
const withoutMailto = (text: string) => {
  // input ≤ 640 characters
  const target = text.replace(MAILTO, "").replace(/(@[^?]*)\?.*$/su, "$1");
  try {
    return decodeURIComponent(target);
  } catch {
    // A percent sign that encodes nothing stands for itself.
    return target;
  }
};

const addressesIn = (text: string) => new Set([...text.matchAll(TOKEN)].map(([token]) => token.toLowerCase()));

/** One layer of what surrounds an address taken off; the same text when there is none. */
const unwrapped = (text: string) => {
  const bare = text.replace(ZERO_WIDTH, "").replace(EDGES, "");
  if (bare !== text) return bare;
  if (MAILTO.test(bare)) return withoutMailto(bare);
  const quoted = QUOTED.exec(bare)
    ?.slice(1)
    .find((part) => part !== undefined);
  if (quoted !== undefined) return quoted;
  const [, name = "", inside = ""] = NAMED.exec(bare) ?? [];
  // The display name is another address: which of the two is meant is not known.
  return inside !== "" && addressesIn(`${name} ${inside}`).size <= 1 ? inside : bare;
};

const isLongerThan = (text: string, charactersMax: number) =>
  text.length > charactersMax && (text.length > 2 * charactersMax || [...text].length > charactersMax);

/**
 * Reads the address of a cell of a list: as `parseAddress` does, and where that finds none, without a display name
 * (`Anna <anna@example.com>`), `mailto:`, surrounding quotes and angle brackets, commas and semicolons at the ends,
 * zero-width characters, no-break spaces and NULs at the ends. `empty` when nothing but those is there. Never throws.
 */
export const readAddressCell = (cell: string): Result<CellAddress, AddressProblem> => {
  if (isLongerThan(cell, CELL_CHARACTERS_MAX)) return err(cell.trim() === "" ? "empty" : "address_too_long");
  let text = cell.trim();
  if (TYPOGRAPHIC.test(text)) text = unwrapped(text);
  let parsed = parseAddress(text);
  for (let step = 0; !parsed.ok && step < STEPS_MAX; step++) {
    const next = unwrapped(text);
    if (next === text) break;
    text = next;
    parsed = parseAddress(text);
  }
  if (parsed.ok) return ok({ text: text.trim(), address: parsed.value });
  return err(addressesIn(text).size > 1 ? "several_addresses" : parsed.error);
};

/** The text of a cell as it is kept: a longer one is cut, marked by an ellipsis, and still too long to be an address. */
export const keptCell = (cell: string): string => {
  if (!isLongerThan(cell, CELL_CHARACTERS_MAX)) return cell;
  return [...cell.slice(0, 2 * CELL_CHARACTERS_MAX)].slice(0, CELL_CHARACTERS_MAX).join("") + CUT_MARK;
};

/** The deduplication key of a cell: equal ones are checked and charged once. Empty for a cell without address. */
export const normalizeCell = (cell: string): string => {
  const read = readAddressCell(cell);
  if (read.ok) return read.value.address.normalized;
  return read.error === "empty" ? "" : normalizeLoosely(keptCell(cell));
};
