import { err, ok, type Result } from "../base/errors.ts";
import { parseAddressLiteral } from "./address-literal.ts";
import type { AddressProblem } from "./address-problem.ts";
import { parseDomain } from "./domain.ts";
import { LOCAL_PART_OCTETS_MAX, measureQuotedString, parseLocalPart } from "./local-part.ts";

/** RFC 5321 §4.5.3.1.3: a path has 256 octets, its angle brackets included. */
const ADDRESS_OCTETS_MAX = 254;
/** Far above what normalisation could bring down to 254 octets; bounds the work spent on a hostile text. */
const INPUT_LENGTH_MAX = 2048;

/**
 * The everyday address: an ASCII dot-string, at least two labels, letters at the start of the top-level domain, no
 * `xn--`. Every length but those of the local part and the whole is in the expression. Whatever does not match
 * takes the thorough path, which alone decides what is refused.
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
 * The nearest thing to a normalised address for text that is none: trimmed, NFC, lower case, unpaired surrogates replaced
 * by U+FFFD. Never throws, and returns its own results unchanged.
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
