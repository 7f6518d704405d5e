/** Markup that is safe to stand in a page: what is put into it was escaped. */
export interface Html {
  readonly markup: string;
}

type Piece = string | number | Html | readonly Html[] | null;

/** A template whose values are escaped, unless they are markup themselves; null is nothing. */
export const safe = (parts: TemplateStringsArray, ...values: readonly Piece[]): Html => ({
  markup: parts.map((part, at) => part + markupOf(values[at] ?? null)).join(""),
});

const markupOf = (value: Piece): string => {
  if (value === null) return "";
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return Bun.escapeHTML(oneLine(value));
  return "markup" in value ? value.markup : value.map(({ markup }) => markup).join("");
};

/** A text from elsewhere as one line: without controls, and without what turns the direction of reading. */
export const oneLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\s]+/gu, " ").trim();

/** So long a name says nothing more; what is cut ends in `…`. */
const NAME_CHARACTERS_MAX = 120;

/** A name from elsewhere as one short line. */
export const shortName = (text: string): string => {
  const line = oneLine(text);
  return line.length > NAME_CHARACTERS_MAX ? `${line.slice(0, NAME_CHARACTERS_MAX - 1)}…` : line;
};

/** Colours that can be read on white and on black, for no mail program is asked which one it has. */
export const MUTED = "color:#767676";
export const BAD = "color:#d33a2c";
export const GOOD = "color:#1f8a4c";

/** Long words may break anywhere. */
export const WRAP = "overflow-wrap:anywhere";

/** What to do, in words that end in a colon where something to copy follows: a record, or a command for a shell. */
export interface Hint {
  readonly words: string;
  readonly code: string | null;
}

/** A hint as lines of plain text. */
export const hintText = ({ words, code }: Hint): readonly string[] => [
  `  ${words}`,
  ...(code === null ? [] : [`    ${oneLine(code)}`]),
];

/** A hint as a paragraph of a page. */
export const hintHtml = ({ words, code }: Hint): Html => {
  const copied = code === null ? null : safe`<br><code style="font-size:14px;${WRAP}">${code}</code>`;
  return safe`<p style="margin:4px 0">${words}${copied}</p> `;
};

/** A whole page for a mail: one column, readable on a phone, light or dark; nothing is loaded from elsewhere. */
export const mailPage = (title: string, body: readonly Html[], footer: string): string =>
  safe`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="supported-color-schemes" content="light dark" />
        <title>${title}</title>
      </head>
      <body style="margin:0;padding:16px;font:16px/1.5 -apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif">
        <div style="max-width:600px;margin:0 auto">
          <h1 style="font-size:20px;line-height:1.3;margin:0 0 16px">${title}</h1>
          ${body}
          <p style="${MUTED};font-size:13px;border-top:1px solid #888888;margin:32px 0 0;padding:12px 0 0;${WRAP}">${footer}</p>
        </div>
      </body>
    </html> `.markup;
