/**
 * Characters that control a terminal, change the reading direction or are invisible: C0 and C1 controls, DEL, direction
 * marks, zero-width characters, line and paragraph separators, lone surrogates. Line feeds are kept.
 */
const UNSAFE = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** The same for pages: there, tabs and carriage returns are white space, and words and emoji may be joined. */
const UNSAFE_IN_PAGE = /(?![\t\n\r]|(?<=[^\p{ASCII}])[\u200c\u200d])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

const escaped = (character: string) =>
  Array.from(
    { length: character.length },
    (_, at) => `\\u${character.charCodeAt(at).toString(16).padStart(4, "0")}`,
  ).join("");

/** A text that is safe to print on a terminal: unsafe characters become `\uXXXX`, which JSON reads as the same. */
export const safeText = (text: string): string => text.replace(UNSAFE, escaped);

/** The same for a text that must stay on one line. */
export const safeLine = (text: string): string => safeText(text).replaceAll("\n", "\\u000a");

/**
 * Markup in which nothing is hidden: unsafe characters of texts and attributes become `\uXXXX`, but not what a form
 * sends back. The markup has to be made by
 * a renderer that escapes `"` and `<` in texts.
 */
export const visibleMarkup = (markup: string): string => {
  if (markup.search(UNSAFE_IN_PAGE) === -1) return markup;
  const pieces = markup.split('"');
  let isAreaTag = false;
  const visibleTags = (piece: string) =>
    piece
      .split("<")
      .map((segment, at) => {
        if (at > 0) isAreaTag = segment.startsWith("textarea");
        const end = isAreaTag ? segment.indexOf(">") + 1 : 0;
        if (end === 0) return visible(segment);
        isAreaTag = false;
        return visible(segment.slice(0, end)) + segment.slice(end);
      })
      .join("<");
  // Every second piece is the value of an attribute.
  return pieces
    .map((piece, at) => {
      if (at % 2 === 0) return visibleTags(piece);
      return pieces[at - 1]?.endsWith(" value=") === true ? piece : visible(piece);
    })
    .join('"');
};

const visible = (text: string) => text.replace(UNSAFE_IN_PAGE, escaped);
