import { err, ok, type Result } from "../base/errors.ts";
import type { AddressProblem } from "./address-problem.ts";
import { findHiddenCharacter } from "./hidden-character.ts";

/** RFC 5321 §4.5.3.1.1, quotes included. */
export const LOCAL_PART_OCTETS_MAX = 64;

/** Dot-string of RFC 5321 §4.1.2, its atext widened by RFC 6531 §3.3 to everything beyond ASCII. */
const DOT_STRING = /^[\w!#$%&'*+\-/=?^`{|}~\u{80}-\u{10ffff}]+(?:\.[\w!#$%&'*+\-/=?^`{|}~\u{80}-\u{10ffff}]+)*$/u;
const UNASSIGNED = /[\p{Cn}\p{Co}\ufff9-\ufffc]/u;
/** A joiner that joins nothing, or a variation selector with nothing to vary (the keycap emoji do vary an ASCII sign). */
const STRAY_JOINER = /(?<![^\0-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f\u200c\u200d])/u;
const STRAY_SELECTOR = /(?<![^\0-\x7f])\p{Variation_Selector}(?!\u20e3)/u;
const AT_SIGN_LOOKALIKE = /[\uff20\ufe6b]/u;
const UNQUOTABLE_ESCAPE = /\\(?![ -~])/u;

/** A local part in the two spellings that Postwarden needs. Both are NFC and quoted only where quotes are needed. */
export interface LocalPart {
  /** Lower case: the spelling by which addresses are compared. */
  readonly normalized: string;
  /** In its submitted case: the spelling for RCPT. */
  readonly onWire: string;
}

/**
 * Reads the text before the @ sign: a dot-string or a quoted string (RFC 5321 §4.1.2, RFC 6531 §3.3), at most 64 octets
 * as written. Obsolete forms of RFC 5322 (comments, folding, quoted words between dots) are refused.
 */
export const parseLocalPart = (text: string): Result<LocalPart, AddressProblem> => {
  if (text === "") return err("local_part_empty");
  const content = text.startsWith('"') ? readQuoted(text) : readDotString(text);
  if (!content.ok) return content;
  const value = content.value.normalize("NFC");
  const lowered = value.toLowerCase().normalize("NFC");
  // Lower case may have other neighbours than the text had: "İ" begins with an ASCII letter then.
  const problem = findUnfitCharacter(value) ?? findUnfitCharacter(lowered);
  if (problem !== null) return err(problem);
  if (Buffer.byteLength(text.normalize("NFC")) > LOCAL_PART_OCTETS_MAX) return err("local_part_too_long");
  return ok({ normalized: quoteIfNeeded(lowered), onWire: quoteIfNeeded(value) });
};

/**
 * The length of the quoted string at the beginning of `text`, quotes included; -1 when it is never closed.
 * `text` begins with a quotation mark.
 */
export const measureQuotedString = (text: string): number => {
  for (let at = 1; at < text.length; at += 1) {
    if (text[at] === "\\") at += 1;
    else if (text[at] === '"') return at + 1;
  }
  return -1;
};

const readQuoted = (text: string): Result<string, AddressProblem> => {
  const length = measureQuotedString(text);
  if (length === -1) return err("local_part_unclosed_quote");
  if (length !== text.length) return err("local_part_misplaced_quote");
  const inner = text.slice(1, -1);
  // ASCII space is the only white space that a quoted string may hold (qtextSMTP begins at %d32).
  const hidden = findHiddenCharacter(inner.replaceAll(" ", ""));
  if (hidden !== null) return err(hidden);
  // Removing the legitimate pairs first keeps `\\é` (an escaped backslash, then é) apart from `\é`.
  if (UNQUOTABLE_ESCAPE.test(inner.replaceAll(/\\[ -~]/gu, ""))) return err("local_part_bad_escape");
  return ok(inner.replaceAll(/\\(.)/gu, "$1"));
};

const readDotString = (text: string): Result<string, AddressProblem> => {
  const normal = text.normalize("NFC");
  if (DOT_STRING.test(normal)) {
    const hidden = findHiddenCharacter(normal);
    return hidden === null ? ok(normal) : err(hidden);
  }
  return err(findHiddenCharacter(normal) ?? findMisplacedSign(normal));
};

const findMisplacedSign = (text: string): AddressProblem => {
  if (/[<>]/u.test(text)) return "angle_brackets";
  if (/[()]/u.test(text)) return "comment";
  if (text.includes('"')) return "local_part_misplaced_quote";
  if (text.startsWith(".")) return "local_part_leading_dot";
  if (text.endsWith(".")) return "local_part_trailing_dot";
  if (text.includes("..")) return "local_part_consecutive_dots";
  return "local_part_forbidden_character";
};

/** Characters that RFC 6531's grammar lets through but that RFC 5198 (its text form) or plain sense does not. */
const findUnfitCharacter = (value: string): AddressProblem | null => {
  if (AT_SIGN_LOOKALIKE.test(value)) return "local_part_at_sign_lookalike";
  if (UNASSIGNED.test(value)) return "unassigned_character";
  if (STRAY_JOINER.test(value) || STRAY_SELECTOR.test(value)) return "invisible_character";
  return null;
};

const quoteIfNeeded = (value: string): string =>
  DOT_STRING.test(value) ? value : `"${value.replaceAll(/["\\]/gu, "\\$&")}"`;
