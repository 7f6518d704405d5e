import { err, ok, type Result } from "../base/errors.ts";
import { type AddressProblem, findHiddenCharacter } from "./address-problem.ts";
import { uts46 } from "./organisational-domain.ts";

/** RFC 1035 §2.3.4. */
const LABEL_OCTETS_MAX = 63;
/** RFC 5321 §4.5.3.1.2 says 255, but the wire form of RFC 1035 adds two octets to the text. */
const DOMAIN_OCTETS_MAX = 253;

/**
 * UTS 46 non-transitional. Hyphens, LDH and lengths are judged by `findLabelProblem`: UTS 46's CheckHyphens would refuse
 * ASCII labels such as `r3---sn`, which exist and which RFC 5321 allows; STD3 would hide which rule was broken.
 */
const UTS46 = { checkBidi: true, checkJoiners: true, transitionalProcessing: false } as const;

/** A domain name in its two spellings, both lower case and without a trailing dot. */
interface DomainName {
  /** A-labels, as DNS and SMTP carry them. */
  readonly ascii: string;
  /** U-labels, as people read them. */
  readonly unicode: string;
}

/**
 * Reads a domain name of a mailbox: RFC 5321 §4.1.2 `Domain`, with U-labels (RFC 6531 §3.3) by UTS 46 non-transitional.
 *
 * A single label (`localhost`) is a domain by the grammar; whether mail can reach it is for DNS to say. A trailing dot,
 * an underscore, a top-level domain of digits only (RFC 3696 §2) and `xn--` labels that decode to nothing valid are refused.
 */
export const parseDomain = (text: string): Result<DomainName, AddressProblem> => {
  if (text === "") return err("domain_empty");
  const hidden = findHiddenCharacter(text);
  if (hidden !== null) return err(hidden);
  const name = mapToLabels(text);
  if (name === null) return err("domain_invalid_idn");
  const asciiLabels = name.ascii.split(".");
  const unicodeLabels = name.unicode.split(".");
  const problem =
    findEmptyLabel(asciiLabels) ??
    asciiLabels.reduce<AddressProblem | null>(
      (found, label, index) => found ?? findLabelProblem(label, unicodeLabels[index] ?? label),
      null,
    );
  if (problem !== null) return err(problem);
  if (/^\d+$/u.test(asciiLabels.at(-1) ?? "")) return err("domain_numeric_tld");
  return name.ascii.length > DOMAIN_OCTETS_MAX ? err("domain_too_long") : ok(name);
};

const mapToLabels = (text: string): DomainName | null => {
  if (/^[\0-\x7f]*$/u.test(text) && !/(?:^|\.)xn--/iu.test(text)) {
    const ascii = text.toLowerCase();
    return { ascii, unicode: ascii };
  }
  const { toASCII, toUnicode } = uts46();
  const ascii = toASCII(text, UTS46);
  return ascii === null ? null : { ascii, unicode: toUnicode(ascii, UTS46).domain };
};

const findEmptyLabel = (labels: readonly string[]): AddressProblem | null => {
  const empty = labels.indexOf("");
  if (empty === -1) return null;
  if (empty === 0) return "domain_leading_dot";
  return empty === labels.length - 1 ? "domain_trailing_dot" : "domain_consecutive_dots";
};

const findLabelProblem = (ascii: string, unicode: string): AddressProblem | null => {
  if (/[<>]/u.test(ascii)) return "angle_brackets";
  if (/[()]/u.test(ascii)) return "comment";
  // Punycode keeps ASCII characters as they are, so this also judges the ASCII part of a U-label.
  if (!/^[a-z\d-]+$/u.test(ascii)) return "domain_forbidden_character";
  if (ascii.startsWith("-") || ascii.endsWith("-")) return "domain_misplaced_hyphen";
  // RFC 5891 §4.2.3.1, for U-labels only.
  if (unicode !== ascii && /^-|^..--|-$/u.test(unicode)) return "domain_misplaced_hyphen";
  return ascii.length > LABEL_OCTETS_MAX ? "domain_label_too_long" : null;
};

// input ≤ 1,000 characters
const WEB_URL = /^https?:\/\/([^/?#@:\s[\]]+)(?::\d{1,5})?(?:[/?#]\S*)?$/i;
const WEB_URL_CHARACTERS_MAX = 1_000;

/** The host of a web URL, as somebody copies it from a browser; any other text as it is. */
export const hostOfWebUrl = (text: string): string =>
  text.length > WEB_URL_CHARACTERS_MAX ? text : (WEB_URL.exec(text)?.[1] ?? text);
