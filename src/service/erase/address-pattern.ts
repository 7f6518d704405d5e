import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { type Address, normalizeLoosely, parseAddress } from "../../foundation/mail/address.ts";

/** What replaces an erased address in a text. */
export const ERASED = "[erased]";

/** Finds one address in texts: in any case, with its domain in A-labels or U-labels, quoted or percent-encoded. */
export interface AddressPattern {
  readonly normalized: string;
  /** In lower case; every text that may contain the address contains it. Empty: any text may. */
  readonly needle: string;
  matches(text: string): boolean;
  /** The text without the address. */
  redact(text: string): string;
}

/** Characters of a local part in front of the match: they make it another address. */
const LONGER_LOCAL_PART = "(?<![\\p{L}\\p{N}.!#$%&*+/?^_`{|}~-])(?<![\\p{L}\\p{N}.+-]')";
/** In JSON, what looks like a letter may be the end of an escaped line break. */
const AFTER_ESCAPE = "(?<=(?<!\\\\)\\\\[nrtbf])";
const AFTER_SCHEME = "(?<=:\\/\\/)";
const LONGER_DOMAIN = "(?![\\p{L}\\p{N}-]|\\.[\\p{L}\\p{N}])";

const escaped = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");
const isAscii = (text: string): boolean => /^[\0-\x7f]*$/.test(text);

const expressionOf = ({ localPart, domain, unicodeDomain }: Address): string => {
  const bare = localPart.replace(/^"(.*)"$/, "$1");
  const locals = new Set([localPart, bare, localPart.replaceAll('"', '\\"'), encodeURIComponent(bare)]);
  const local = [...locals].map(escaped).join("|");
  const host = [...new Set([domain, unicodeDomain])].map(escaped).join("|");
  return `(?:${LONGER_LOCAL_PART}|${AFTER_ESCAPE}|${AFTER_SCHEME})(?:${local}|\\\\?"${escaped(bare)}\\\\?")(?:@|%40)(?:${host})${LONGER_DOMAIN}`;
};

const patternOf = (normalized: string, expression: string, needle: string): AddressPattern => {
  // input ≤ 26,214,400 characters
  const [find, replace] = [new RegExp(expression, "iu"), new RegExp(expression, "giu")];
  return {
    ...{ normalized, needle },
    matches: (text) => find.test(text.normalize("NFC")),
    redact: (text) => text.normalize("NFC").replace(replace, ERASED),
  };
};

/**
 * The pattern of an address. A text with an `@` that is no valid address is matched as it is, because such texts are
 * verified and stored, too. The error is a sentence.
 */
export const createAddressPattern = (text: string): Result<AddressPattern, string> => {
  const address = parseAddress(text.trim());
  if (address.ok) {
    const { normalized, localPart } = address.value;
    return ok(
      patternOf(
        normalized,
        expressionOf(address.value),
        isAscii(localPart) && /^[\w.+-]+$/.test(localPart) ? localPart : "",
      ),
    );
  }
  const loose = normalizeLoosely(text);
  if (!/.@./.test(loose)) return err(`"${text}" is not an address.`);
  return ok(patternOf(loose, escaped(loose), isAscii(loose) && !/["\\\n]/.test(loose) ? loose : ""));
};
