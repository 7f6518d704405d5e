/** One of these. Every pattern here is a source over folded text (see `foldText`). */
export const anyOf = (...sources: ReadonlyArray<string | readonly string[]>): string =>
  `(?:${sources.flat().join("|")})`;

/** Whole words only, so that "full" is not seen in "fully". For ASCII words. */
export const word = (...sources: ReadonlyArray<string | readonly string[]>): string => `\\b${anyOf(...sources)}\\b`;

/** Up to this many words between two parts of a phrase. Bounded, so that patterns stay linear. */
export const upTo = (words: 1 | 2 | 3 | 4): string => `(?:\\S{1,32} ){0,${words}}?`;

/** Some text within one sentence; a full stop inside a name does not end it. */
export const GAP = "(?:[^.;!?]|\\.(?! )){0,48}?";

/** The same for scripts that write without spaces. */
export const CJK_GAP = "[^。;!?]{0,24}?";
