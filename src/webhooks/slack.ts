import type { EventMessage } from "./event-message.ts";

/** `&`, `<` and `>` are all that Slack reads commands, mentions and links from. */
const escapeText = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

/** A URL cannot end its own link. */
const linkTo = ({ title, url }: EventMessage["links"][number]): string =>
  `<${url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E")}|${escapeText(title)}>`;

/** `verbatim`: names of channels and URLs in what others wrote become no links. */
const words = (text: string) => ({ type: "mrkdwn", text, verbatim: true }) as const;

const MARKS: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Info",
  low: "Low",
  medium: "Medium",
  high: "High",
  critical: "Critical",
};

/** The body for an incoming webhook of Slack: `text` for notifications, and Block Kit blocks. */
export const slackPayload = ({ title, severity, facts, links }: EventMessage): string => {
  const said = escapeText(title);
  const heading = severity === null ? said : `${MARKS[severity]}: ${said}`;
  return JSON.stringify({
    text: heading,
    mrkdwn: false,
    parse: "none",
    link_names: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      { type: "section", text: words(`*${heading}*`) },
      ...facts.map(([name, value]) => ({
        type: "section",
        text: words(`*${escapeText(name)}:* ${escapeText(value)}`),
      })),
      ...(links.length === 0 ? [] : [{ type: "section", text: words(links.map(linkTo).join("  ")) }]),
    ],
  });
};
