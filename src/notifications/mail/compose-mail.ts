import type { Mail } from "../../foundation/net/mailer.ts";
import {
  type MailContent,
  type MailLinks,
  type MailBlock,
  type MailItem,
  type MailOff,
  type MailPageLink,
  type MailSection,
  type MailTone,
  oneLine,
  shortName,
} from "./mail-content.ts";

/** Makes the mail: plain text, and the same as HTML that loads nothing and reads well on a phone, light or dark. */
export const composeMail = (content: MailContent, links: MailLinks): Required<Omit<Mail, "to" | "oneClickUrl">> => {
  const subject = oneLine(content.subject);
  return { subject, text: mailText(content, links), html: mailPage({ ...content, subject }, links) };
};

/** Escaped markup. */
interface Html {
  readonly markup: string;
}

/** A template whose values are escaped, unless they are markup already; null is nothing. */
const html = (parts: TemplateStringsArray, ...values: readonly (string | Html | readonly Html[] | null)[]): Html => ({
  markup: parts.map((part, at) => part + markupOf(values[at] ?? null)).join(""),
});

const markupOf = (value: string | Html | readonly Html[] | null) => {
  if (value === null) return "";
  if (typeof value === "string") return Bun.escapeHTML(oneLine(value));
  return "markup" in value ? value.markup : value.map(({ markup }) => markup).join("");
};

/** Colours that can be read on white and on black: a mail client may use either. */
const STYLES: Readonly<Record<MailTone, string>> = {
  plain: "",
  strong: "font-weight:600",
  muted: "opacity:.7;font-size:13px",
  good: "color:#1f8a4c",
  bad: "color:#d33a2c;font-weight:600",
};
/** Long words break anywhere. */
const WRAP = "overflow-wrap:anywhere";
const RULE = "1px solid #8a949a66";
const ACCENT = "#0f8277";
const FONT = "16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,Helvetica,Arial,sans-serif";
const BUTTON = `display:inline-block;padding:7px 14px;border-radius:8px;background:${ACCENT};color:#ffffff;font-weight:600;font-size:14px;text-decoration:none`;

/** The HTML of a mail: one column that needs no style sheet, loads nothing, and keeps to the colours of the mail client. */
const mailPage = ({ subject, sections, closing }: MailContent, { baseUrl, brandName, off }: MailLinks) =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <meta name="supported-color-schemes" content="light dark" />
        <title>${subject}</title>
      </head>
      <body style="margin:0;padding:20px 16px;font:${FONT}">
        <div style="max-width:600px;margin:0 auto">
          <p style="margin:0 0 12px;font-size:13px;font-weight:600;letter-spacing:.02em;opacity:.7">${brandName}</p>
          <h1 style="font-size:21px;line-height:1.3;margin:0 0 20px;${WRAP}">${subject}</h1>
          ${sections.map((section) => sectionHtml(section, baseUrl, sections.length === 1 ? subject : null))}
          <div style="border-top:${RULE};margin:28px 0 0;padding:12px 0 0">
            ${closing.map((part) => closingHtml(part, baseUrl))}${off === null ? null : offHtml(off, baseUrl)}
          </div>
        </div>
      </body>
    </html> `.markup;

const footnote = (content: string | Html) => html`<p style="${STYLES.muted};margin:0 0 8px;${WRAP}">${content}</p> `;

const closingHtml = (part: string | MailPageLink, baseUrl: string | null): Html => {
  if (typeof part === "string") return footnote(part);
  return footnote(baseUrl === null ? placeText(part) : anchor(part.text, baseUrl + part.path));
};

const offHtml = (off: MailOff, baseUrl: string | null): Html => {
  if (baseUrl === null) return footnote(offCommandText(off));
  return footnote(anchor(`Stop ${off.what} to ${off.recipient}`, baseUrl + off.path));
};

const anchor = (text: string, url: string, style = "color:inherit") =>
  html`<a href="${url}" style="${style}">${text}</a>`;

/** `title`: what the mail is called already; the heading of its only section need not repeat it. */
const sectionHtml = (section: MailSection, baseUrl: string | null, title: string | null): Html => {
  const { heading, label = null } = section;
  const named = label === null ? null : html` <span style="${STYLES.muted};font-weight:400">${shortName(label)}</span>`;
  const isRepeated = label === null && title?.endsWith(oneLine(heading)) === true;
  return html`<section style="border:${RULE};border-radius:10px;margin:0 0 16px;padding:14px 16px">
    ${isRepeated ? null : html`<h2 style="font-size:17px;line-height:1.3;margin:0 0 6px;${WRAP}">${heading}${named}</h2> `}
    ${presentBlocks(section).map((block) => blockHtml(block, baseUrl))}
  </section> `;
};

const blockHtml = (block: MailBlock, baseUrl: string | null): Html => {
  switch (block.kind) {
    case "line":
      return html`<p style="${STYLES[block.tone]};margin:4px 0;${WRAP}">${block.text}</p> `;
    case "action":
      return html`<p style="border-left:3px solid ${ACCENT};margin:10px 0;padding:0 12px;${WRAP}">
        ${block.text}${block.code === null ? null : html`<br />${codeHtml(block.code)}`}
      </p> `;
    case "page":
      return baseUrl === null
        ? html`<p style="margin:10px 0 4px;${WRAP}">${placeText(block)}</p> `
        : html`<p style="margin:12px 0 4px">${anchor(block.text, baseUrl + block.path, BUTTON)}</p> `;
    case "list":
      return html`${block.title === null ? null : html`<h3 style="font-size:15px;margin:12px 0 4px">${block.title}</h3>`}
        <ul style="margin:4px 0;padding-left:20px">
          ${block.items.map((item) => itemHtml(item, baseUrl))}${
            block.more > 0 ? html`<li>${`and ${block.more} more`}</li> ` : null
          }
        </ul> `;
    default:
      return block satisfies never;
  }
};

/** What is to be copied, or a page elsewhere. */
const codeHtml = (code: string) =>
  /^https:\/\/\S+$/.test(code) ? anchor(code, code) : html`<code style="font-size:14px">${code}</code>`;

const itemHtml = ({ text, tone = "plain", lines = [], path }: MailItem, baseUrl: string | null): Html => {
  const shown = path === undefined || baseUrl === null ? text : anchor(text, baseUrl + path);
  return html`<li style="${STYLES[tone]};margin:0 0 4px;${WRAP}">
    ${shown}${lines.map((each) => html`<br />${each}`)}
  </li> `;
};

/** The plain text of a mail. */
const mailText = ({ sections, closing }: MailContent, links: MailLinks) => {
  const { baseUrl, off } = links;
  const paragraphs = [
    ...sections.map((section) => sectionText(section, baseUrl)),
    ...closing.map((part) => (typeof part === "string" ? oneLine(part) : pageText(part, baseUrl))),
    ...(off === null ? [] : [offText(off, baseUrl)]),
  ];
  return `${paragraphs.join("\n\n")}\n`;
};

/** The blocks of a section that are present. */
const presentBlocks = ({ blocks }: MailSection) => blocks.filter((block) => block !== null);

/** What stands in place of a link where there is no base URL. */
const placeText = ({ text, place }: MailPageLink) => `${text}: ${place} in the dashboard.`;

/** How to stop such mail without a link. */
const offCommandText = ({ what, recipient, command }: MailOff) =>
  `To stop ${what} to ${recipient}, open Settings › Notifications in the dashboard, or run: ${command}`;

const sectionText = (section: MailSection, baseUrl: string | null) => {
  const label = section.label == null ? "" : ` (${shortName(section.label)})`;
  const blocks = presentBlocks(section).flatMap((block) => blockText(block, baseUrl));
  return [`${oneLine(section.heading)}${label}`, ...blocks].join("\n");
};

const blockText = (block: MailBlock, baseUrl: string | null): readonly string[] => {
  switch (block.kind) {
    case "line":
      return [`${block.tone === "bad" ? "PROBLEM: " : ""}${oneLine(block.text)}`];
    case "action":
      return [oneLine(block.text), ...(block.code === null ? [] : [`    ${oneLine(block.code)}`])];
    case "page":
      return [pageText(block, baseUrl)];
    case "list":
      return [
        ...(block.title === null ? [] : [`${oneLine(block.title)}:`]),
        ...block.items.flatMap(({ text, lines = [], path }) => [
          `  - ${oneLine(text)}`,
          ...lines.map((each) => `    ${oneLine(each)}`),
          ...(path === undefined || baseUrl === null ? [] : [`    ${baseUrl}${path}`]),
        ]),
        ...(block.more > 0 ? [`  - and ${block.more} more`] : []),
      ];
    default:
      return block satisfies never;
  }
};

const pageText = (link: MailPageLink, baseUrl: string | null) =>
  oneLine(baseUrl === null ? placeText(link) : `${link.text}: ${baseUrl}${link.path}`);

const offText = (off: MailOff, baseUrl: string | null) =>
  oneLine(baseUrl === null ? offCommandText(off) : `Stop ${off.what} to ${off.recipient}: ${baseUrl}${off.path}`);
