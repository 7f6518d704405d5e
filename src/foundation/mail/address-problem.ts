const SENTENCES = {
  empty: "There is no address.",
  no_at_sign: "The address has no @ sign.",
  several_at_signs: "The address has more than one @ sign outside quotes.",
  several_addresses: "There is more than one address.",
  address_too_long: "The address is longer than 254 octets (RFC 5321 section 4.5.3.1.3).",
  angle_brackets: "Angle brackets and display names are not part of an address.",
  comment: "Comments in parentheses are not part of an address.",
  white_space: "The address has white space inside.",
  control_character: "The address has a control character.",
  bidi_control: "The address has an invisible character that changes the writing direction.",
  invisible_character: "The address has an invisible character.",
  damaged_encoding: "The address has characters that were damaged by a wrong text encoding.",
  unassigned_character: "The address has a character that Unicode leaves unassigned or private.",
  local_part_empty: "There is nothing before the @ sign.",
  local_part_too_long: "The part before the @ sign is longer than 64 octets (RFC 5321 section 4.5.3.1.1).",
  local_part_leading_dot: "The part before the @ sign begins with a dot.",
  local_part_trailing_dot: "The part before the @ sign ends with a dot.",
  local_part_consecutive_dots: "The part before the @ sign has two dots in a row.",
  local_part_forbidden_character: "The part before the @ sign has a character that is only allowed inside quotes.",
  local_part_at_sign_lookalike: "The part before the @ sign has a character that only looks like @.",
  local_part_misplaced_quote: "A quotation mark must open and close the whole part before the @ sign.",
  local_part_unclosed_quote: "The quotation mark at the beginning is never closed.",
  local_part_bad_escape: "A backslash must stand before a printable ASCII character.",
  domain_empty: "There is nothing after the @ sign.",
  domain_too_long: "The domain is longer than 253 octets.",
  domain_label_too_long: "A label of the domain is longer than 63 octets.",
  domain_leading_dot: "The domain begins with a dot.",
  domain_trailing_dot: "The domain ends with a dot.",
  domain_consecutive_dots: "The domain has two dots in a row.",
  domain_forbidden_character: "The domain has a character other than letters, digits and hyphens.",
  domain_misplaced_hyphen: "A label of the domain has a hyphen in a place where hyphens are not allowed.",
  domain_numeric_tld: "The top-level domain consists of digits only.",
  domain_invalid_idn: "The domain is not a valid internationalised domain name (UTS 46).",
  literal_unclosed: "The address literal is not closed by a square bracket at the end.",
  literal_unknown: "The address literal is neither an IPv4 address nor one that begins with IPv6:.",
  literal_bad_ipv4: "The address literal is not a valid IPv4 address.",
  literal_bad_ipv6: "The address literal is not a valid IPv6 address (RFC 5321 section 4.1.3).",
} as const;

/** Why a text is not an address. The codes are stable: scripts read them in `inspect address`. */
export type AddressProblem = keyof typeof SENTENCES;

/** Describes a problem in one sentence. */
export const describeProblem = (problem: AddressProblem): string => SENTENCES[problem];

const CONTROL = /\p{Cc}/u;
const WHITE_SPACE = /\p{Z}/u;
const BIDI_CONTROL = /\p{Bidi_Control}/u;
/** Joiners and variation selectors are left out: real words and emoji are written with them. */
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}--[\p{Variation_Selector}\u200c\u200d]]/v;

/**
 * Finds what nobody can see or type on purpose: controls (C0, DEL, C1), Unicode white space, bidi controls, zero-width
 * characters, and U+FFFD, the trace of a text that was decoded wrongly. Null when there is none.
 *
 * UTS 46 would silently drop some of them from a domain. They are refused there too, because whoever mails the
 * submitted text sends it with them.
 */
export const findHiddenCharacter = (text: string): AddressProblem | null => {
  if (CONTROL.test(text)) return "control_character";
  if (WHITE_SPACE.test(text)) return "white_space";
  if (BIDI_CONTROL.test(text)) return "bidi_control";
  if (INVISIBLE.test(text)) return "invisible_character";
  return text.includes("\ufffd") ? "damaged_encoding" : null;
};

/** The same about a text that should be a domain alone: "Not a domain: it has white space inside." */
export const describeNoDomain = (problem: AddressProblem): string => {
  const sentence = SENTENCES[problem].replace(/^The (address|domain) has/, "it has");
  return `Not a domain: ${sentence.charAt(0).toLowerCase()}${sentence.slice(1)}`;
};
