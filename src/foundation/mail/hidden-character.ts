import type { AddressProblem } from "./address-problem.ts";

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
