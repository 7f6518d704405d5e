import type { Mail } from "../net/mailer.ts";
import { oneLine, shortName } from "./mail-text.ts";

/** What a mail says. Its plain text and its HTML are both made from this; text from elsewhere may stand anywhere in it. */
export interface MailContent {
  readonly subject: string;
  readonly sections: readonly MailSection[];
  /** Paragraphs after the last section; the last one says why the reader receives the mail. */
  readonly closing: readonly string[];
}

export interface MailSection {
  readonly heading: string;
  /** A user's label for what the heading names; null without one. */
  readonly label?: string | null;
  /** Null blocks are left out. */
  readonly blocks: readonly (MailBlock | null)[];
}

/** `bad` is a problem, and marked as one in plain text. */
export type MailTone = "plain" | "strong" | "muted" | "good" | "bad";

export type MailBlock =
  | { readonly kind: "line"; readonly text: string; readonly tone: MailTone }
  | {
      readonly kind: "list";
      readonly title: string | null;
      readonly items: readonly MailItem[];
      /** Items that are left out. */
      readonly more: number;
    }
  | MailAction;

export interface MailItem {
  readonly text: string;
  readonly tone?: MailTone;
  /** Further lines about the item. */
  readonly lines?: readonly string[];
}

/** What to do. `text` ends in a colon where `code`, a DNS record or a shell command to copy, follows. */
export interface MailAction {
  readonly kind: "action";
  readonly text: string;
  readonly code: string | null;
}

/** A line of a section; nothing for null. */
export const line = (text: string | null, tone: MailTone = "plain"): MailBlock | null =>
  text === null ? null : { kind: "line", text, tone };

/** A list of at most `max` items, which counts what it leaves out of `total`; nothing without items. */
export const list = (
  title: string | null,
  items: readonly MailItem[],
  { max, total = items.length }: { readonly max: number; readonly total?: number },
): MailBlock | null => {
  const shown = items.slice(0, max);
  return shown.length === 0 ? null : { kind: "list", title, items: shown, more: Math.max(0, total - shown.length) };
};

export const action = (text: string, code: string | null = null): MailAction => ({ kind: "action", text, code });

/** Makes the mail: plain text, and the same as HTML that loads nothing and reads well on a phone, light or dark. */
export const composeMail = (content: MailContent): Required<Omit<Mail, "to">> => {
  const subject = oneLine(content.subject);
  const { sections, closing } = content;
  const text = [...sections.map(sectionText), ...closing.map(oneLine)].join("\n\n");
  return { subject, text: `${text}\n`, html: page(subject, sections, closing).markup };
};

const presentBlocks = ({ blocks }: MailSection): readonly MailBlock[] => blocks.filter((block) => block !== null);

const sectionText = (section: MailSection): string => {
  const label = section.label == null ? "" : ` (${shortName(section.label)})`;
  return [`${oneLine(section.heading)}${label}`, ...presentBlocks(section).flatMap(blockText)].join("\n");
};

const blockText = (block: MailBlock): readonly string[] => {
  switch (block.kind) {
    case "line":
      return [`${block.tone === "bad" ? "PROBLEM: " : ""}${oneLine(block.text)}`];
    case "action":
      return [oneLine(block.text), ...(block.code === null ? [] : [`    ${oneLine(block.code)}`])];
    case "list":
      return [
        ...(block.title === null ? [] : [`${oneLine(block.title)}:`]),
        ...block.items.flatMap(({ text, lines = [] }) => [
          `  - ${oneLine(text)}`,
          ...lines.map((each) => `    ${oneLine(each)}`),
        ]),
        ...(block.more > 0 ? [`  - and ${block.more} more`] : []),
      ];
    default:
      return block satisfies never;
  }
};

/** Escaped markup. */
interface Html {
  readonly markup: string;
}

/** A template whose values are escaped, unless they are markup already; null is nothing. */
const html = (parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[] | null)[]): Html => ({
  markup: parts.map((part, at) => part + markupOf(values[at] ?? null)).join(""),
});

const markupOf = (value: string | Html | readonly Html[] | null): string => {
  if (value === null) return "";
  if (typeof value === "string") return Bun.escapeHTML(oneLine(value));
  return "markup" in value ? value.markup : value.map(({ markup }) => markup).join("");
};

/** Colours that can be read on white and on black: a mail client may use either. */
const STYLES: Readonly<Record<MailTone, string>> = {
  plain: "",
  strong: "font-weight:bold",
  muted: "color:#767676;font-size:13px",
  good: "color:#1f8a4c",
  bad: "color:#d33a2c;font-weight:bold",
};
/** Long words break anywhere. */
const WRAP = "overflow-wrap:anywhere";

const page = (title: string, sections: readonly MailSection[], closing: readonly string[]): Html =>
  html`<!doctype html>
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
          ${sections.map(sectionHtml)}
          <div style="border-top:1px solid #888888;margin:32px 0 0;padding:12px 0 0">
            ${closing.map((text) => html`<p style="${STYLES.muted};margin:0 0 8px;${WRAP}">${text}</p> `)}
          </div>
        </div>
      </body>
    </html> `;

const sectionHtml = (section: MailSection): Html => {
  const { heading, label = null } = section;
  const named = label === null ? null : html` <span style="${STYLES.muted}">${shortName(label)}</span>`;
  return html`<section style="border-top:1px solid #888888;margin:0 0 24px;padding:12px 0 0">
    <h2 style="font-size:17px;line-height:1.3;margin:0;${WRAP}">${heading}${named}</h2>
    ${presentBlocks(section).map(blockHtml)}
  </section> `;
};

const blockHtml = (block: MailBlock): Html => {
  switch (block.kind) {
    case "line":
      return html`<p style="${STYLES[block.tone]};margin:4px 0;${WRAP}">${block.text}</p> `;
    case "action":
      return html`<p style="border-left:4px solid #888888;margin:8px 0;padding:0 12px;${WRAP}">
        ${block.text}${block.code === null ? null : html`<br /><code style="font-size:14px">${block.code}</code>`}
      </p> `;
    case "list":
      return html`${block.title === null ? null : html`<h3 style="font-size:15px;margin:12px 0 4px">${block.title}</h3>`}
        <ul style="margin:4px 0;padding-left:20px">
          ${block.items.map(itemHtml)}${block.more > 0 ? html`<li>${`and ${block.more} more`}</li> ` : null}
        </ul> `;
    default:
      return block satisfies never;
  }
};

const itemHtml = ({ text, tone = "plain", lines = [] }: MailItem): Html =>
  html`<li style="${STYLES[tone]};${WRAP}">${text}${lines.map((each) => html`<br />${each}`)}</li> `;
