import ipaddr from "ipaddr.js";
import { err, ok, type Result } from "../base/errors.ts";
import { type AddressProblem, findHiddenCharacter } from "./address-problem.ts";
import { parseDomain } from "./domain.ts";
import { isIPv6 } from "node:net";

/** RFC 5321 §4.5.3.1.3: a path has 256 octets, its angle brackets included. */
const ADDRESS_OCTETS_MAX = 254;
/** Far above what normalisation could bring down to 254 octets; bounds the work spent on a hostile text. */
const INPUT_LENGTH_MAX = 2048;

/**
 * The everyday address: an ASCII dot-string, at least two labels, letters at the start of the top-level domain, no `xn--`.
 * Every length but those of the local part and the whole is in the expression. Other texts take the thorough path, which alone
 * decides about refusals.
 */
const EVERYDAY =
  /^([\w!#$%&'*+\-/=?^`{|}~]+(?:\.[\w!#$%&'*+\-/=?^`{|}~]+)*)@((?:(?!xn--)[a-z\d](?:[a-z\d-]{0,61}[a-z\d])?\.)+(?!xn--)[a-z](?:[a-z\d-]{0,61}[a-z\d])?)$/i;

/** A mailbox that a mail server could be probed for. All spellings are Unicode NFC. */
export interface Address {
  /** Lower case, quoted only if quotes are needed. */
  readonly localPart: string;
  /** A-labels in lower case, or an address literal with its brackets: `[192.0.2.1]`, `[IPv6:2001:db8::1]`. */
  readonly domain: string;
  /** The domain in U-labels, for people; the same as `domain` where there are none. */
  readonly unicodeDomain: string;
  /** The bare IP address of an address literal (IPv6 in RFC 5952 form), else null. */
  readonly literal: string | null;
  /** `localPart@domain`: two addresses with equal `normalized` are checked and charged once. */
  readonly normalized: string;
  /** What to put between the angle brackets of RCPT TO: the local part in its submitted case, the domain in A-labels. */
  readonly mailbox: string;
  /** The local part is not ASCII, so that only a server with SMTPUTF8 can take it (RFC 6531). */
  readonly needsSmtputf8: boolean;
}

/**
 * Reads an e-mail address: `Mailbox` of RFC 5321 §4.1.2 with the UTF-8 of RFC 6531, within 64 octets of local part and
 * 254 octets in all. Surrounding white space is ignored. Never throws, whatever the text.
 *
 * Nothing is folded that a server may tell apart: dots and `+tag` stay.
 */
export const parseAddress = (text: string): Result<Address, AddressProblem> => {
  const trimmed = text.trim();
  return parseEveryday(trimmed) ?? parseThoroughly(trimmed);
};

/**
 * `parseAddress` without its short cut for everyday addresses, for trimmed text. Both give the same results; this one is
 * exported so that a test can hold the short cut to that.
 */
export const parseThoroughly = (text: string): Result<Address, AddressProblem> => {
  if (text === "") return err("empty");
  if (text.length > INPUT_LENGTH_MAX) return err("address_too_long");
  if (!text.isWellFormed()) return err("damaged_encoding");
  const parts = splitAtSign(text);
  if (!parts.ok) return parts;
  const localPart = parseLocalPart(parts.value.localPart);
  if (!localPart.ok) return localPart;
  const domain = parseHost(parts.value.domain);
  if (!domain.ok) return domain;
  const mailbox = `${localPart.value.onWire}@${domain.value.domain}`;
  if (Buffer.byteLength(mailbox) > ADDRESS_OCTETS_MAX) return err("address_too_long");
  return ok({
    localPart: localPart.value.normalized,
    ...domain.value,
    normalized: `${localPart.value.normalized}@${domain.value.domain}`,
    mailbox,
    needsSmtputf8: !/^[\0-\x7f]*$/u.test(localPart.value.onWire),
  });
};

/**
 * The nearest thing to a normalised address for text that is not an address: trimmed, NFC, lower case, unpaired surrogates
 * replaced by U+FFFD. Never throws, and returns its own results unchanged.
 */
export const normalizeLoosely = (text: string): string =>
  text.toWellFormed().normalize("NFC").toLowerCase().normalize("NFC").trim();

const parseEveryday = (text: string): Result<Address, AddressProblem> | null => {
  if (text.length > ADDRESS_OCTETS_MAX) return null;
  const match = EVERYDAY.exec(text);
  const [, submitted, host] = match ?? [];
  if (submitted === undefined || host === undefined || submitted.length > LOCAL_PART_OCTETS_MAX) return null;
  const localPart = submitted.toLowerCase();
  const domain = host.toLowerCase();
  return ok({
    localPart,
    domain,
    unicodeDomain: domain,
    literal: null,
    normalized: `${localPart}@${domain}`,
    mailbox: `${submitted}@${domain}`,
    needsSmtputf8: false,
  });
};

const splitAtSign = (text: string): Result<{ localPart: string; domain: string }, AddressProblem> => {
  const quotedLength = text.startsWith('"') ? measureQuotedString(text) : 0;
  if (quotedLength === -1) return err("local_part_unclosed_quote");
  const at = text.indexOf("@", quotedLength);
  if (at === -1) return err("no_at_sign");
  const domain = text.slice(at + 1);
  if (domain.includes("@")) return err("several_at_signs");
  return ok({ localPart: text.slice(0, at), domain });
};

const parseHost = (
  text: string,
): Result<{ domain: string; unicodeDomain: string; literal: string | null }, AddressProblem> => {
  if (text.startsWith("[")) {
    const literal = parseAddressLiteral(text);
    if (!literal.ok) return literal;
    return ok({ domain: literal.value.text, unicodeDomain: literal.value.text, literal: literal.value.ip });
  }
  const name = parseDomain(text);
  return name.ok ? ok({ domain: name.value.ascii, unicodeDomain: name.value.unicode, literal: null }) : name;
};

/** RFC 5321 §4.1.3: "::" stands for at least two groups, which is stricter than RFC 4291. */
const GROUPS_BESIDE_COMPRESSION = 6;

/** An address literal: how it is written in an address, and the bare IP address it names (RFC 5952 form). */
interface AddressLiteral {
  readonly text: string;
  readonly ip: string;
}

/**
 * Reads `[192.0.2.1]` or `[IPv6:2001:db8::1]` (RFC 5321 §4.1.3), brackets included. The tag is case-insensitive; leading
 * zeros of an IPv4 number are decimal, as the grammar says, and dropped. General address literals are refused: no tag
 * other than IPv6 was ever registered.
 */
export const parseAddressLiteral = (text: string): Result<AddressLiteral, AddressProblem> => {
  if (!text.endsWith("]") || text.length < 2) return err("literal_unclosed");
  const inner = text.slice(1, -1);
  if (/^ipv6:/iu.test(inner)) {
    const ip = parseIpv6(inner.slice("IPv6:".length));
    return ip === null ? err("literal_bad_ipv6") : ok({ text: `[IPv6:${ip}]`, ip });
  }
  if (!/^[\d.]+$/u.test(inner)) return err("literal_unknown");
  const octets = parseIpv4(inner);
  if (octets === null) return err("literal_bad_ipv4");
  const ip = octets.join(".");
  return ok({ text: `[${ip}]`, ip });
};

type Ipv4Octets = readonly [number, number, number, number];

const parseIpv4 = (text: string): Ipv4Octets | null => {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/u.exec(text);
  if (match === null) return null;
  const octets: Ipv4Octets = [Number(match[1]), Number(match[2]), Number(match[3]), Number(match[4])];
  return octets.every((octet) => octet <= 255) ? octets : null;
};

/** The address in its canonical form (RFC 5952), or null. */
const parseIpv6 = (text: string): string | null => {
  const [, front, tail = ""] = /^(.*:)([\d.]*\.[\d.]*)$/u.exec(text) ?? [];
  const octets = front === undefined ? null : parseIpv4(tail);
  if (front !== undefined && octets === null) return null;
  const [a, b, c, d] = octets ?? [0, 0, 0, 0];
  const groups = front === undefined ? text : `${front}${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
  if (!/^[\da-f:]+$/iu.test(groups) || !isIPv6(groups)) return null;
  const isCompressed = groups.includes("::");
  const written = groups.split(":").filter((group) => group !== "").length;
  return isCompressed && written > GROUPS_BESIDE_COMPRESSION ? null : ipaddr.IPv6.parse(groups).toRFC5952String();
};

/** RFC 5321 §4.5.3.1.1, quotes included. */
const LOCAL_PART_OCTETS_MAX = 64;

/** Dot-string of RFC 5321 §4.1.2, its atext widened by RFC 6531 §3.3 to everything beyond ASCII. */
const DOT_STRING = /^[\w!#$%&'*+\-/=?^`{|}~\u{80}-\u{10ffff}]+(?:\.[\w!#$%&'*+\-/=?^`{|}~\u{80}-\u{10ffff}]+)*$/u;
const UNASSIGNED = /[\p{Cn}\p{Co}\ufff9-\ufffc]/u;
/** A joiner that joins nothing, or a variation selector with nothing to vary (the keycap emoji do vary an ASCII sign). */
const STRAY_JOINER = /(?<![^\0-\x7f\u200c\u200d])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f\u200c\u200d])/u;
const STRAY_SELECTOR = /(?<![^\0-\x7f])\p{Variation_Selector}(?!\u20e3)/u;
const AT_SIGN_LOOKALIKE = /[\uff20\ufe6b]/u;
const UNQUOTABLE_ESCAPE = /\\(?![ -~])/u;

/** A local part in the two spellings that Postwarden needs. Both are NFC and quoted only where quotes are needed. */
interface LocalPart {
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

const quoteIfNeeded = (value: string) => (DOT_STRING.test(value) ? value : `"${value.replaceAll(/["\\]/gu, "\\$&")}"`);

/** What `postwarden inspect address` prints for one text. The field names are part of the interface. */
interface AddressInspection {
  /** The text as given, white space included. */
  readonly input: string;
  readonly valid: boolean;
  /** Null when the text is no address. */
  readonly normalized_email: string | null;
  /** Null when the text is an address. */
  readonly reason: AddressProblem | null;
}

/** Describes how Postwarden reads a text as an address. Never throws, and queries no server. */
export const inspectAddress = (input: string): AddressInspection => {
  const address = parseAddress(input);
  return address.ok
    ? { input, valid: true, normalized_email: address.value.normalized, reason: null }
    : { input, valid: false, normalized_email: null, reason: address.error };
};
