/**
 * Characters that a terminal acts on or does not show: C0 and C1 controls, DEL, what changes the direction of text, what
 * has no width, line and paragraph separators, lone surrogates. A line feed ends a line of our own.
 */
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string): string =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");

/** A text that can be printed on a terminal: what is not to be printed stands as `\uXXXX`, which JSON reads as the same. */
export const safeText = (text: string): string => text.replace(UNSAFE, escaped);

/** The same for a text that has to stay on its line. */
export const safeLine = (text: string): string => safeText(text).replaceAll("\n", "\\u000a");
