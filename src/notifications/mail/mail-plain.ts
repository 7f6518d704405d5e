import type { MailBlock, MailContent, MailLinks, MailOff, MailPageLink, MailSection } from "./mail-content.ts";
import { oneLine, shortName } from "./mail-text.ts";

/** The plain text of a mail. */
export const mailText = ({ sections, closing }: MailContent, links: MailLinks): string => {
  const { baseUrl, off } = links;
  const paragraphs = [
    ...sections.map((section) => sectionText(section, baseUrl)),
    ...closing.map((part) => (typeof part === "string" ? oneLine(part) : pageText(part, baseUrl))),
    ...(off === null ? [] : [offText(off, baseUrl)]),
  ];
  return `${paragraphs.join("\n\n")}\n`;
};

/** The blocks of a section that are present. */
export const presentBlocks = ({ blocks }: MailSection): readonly MailBlock[] =>
  blocks.filter((block) => block !== null);

/** What stands in place of a link where there is no base URL. */
export const placeText = ({ text, place }: MailPageLink): string => `${text}: ${place} in the dashboard.`;

/** How to stop such mail without a link. */
export const offCommandText = ({ what, recipient, command }: MailOff): string =>
  `To stop ${what} to ${recipient}, open Settings › Notifications in the dashboard, or run: ${command}`;

const sectionText = (section: MailSection, baseUrl: string | null): string => {
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

const pageText = (link: MailPageLink, baseUrl: string | null): string =>
  oneLine(baseUrl === null ? placeText(link) : `${link.text}: ${baseUrl}${link.path}`);

const offText = (off: MailOff, baseUrl: string | null): string =>
  oneLine(baseUrl === null ? offCommandText(off) : `Stop ${off.what} to ${off.recipient}: ${baseUrl}${off.path}`);
