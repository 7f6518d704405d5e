import { type NotificationChannel, type ChannelMessage, readStatus } from "./channel.ts";

const HOSTS: readonly string[] = ["hooks.slack.com", "hooks.slack-gov.com"];
/** Slack workflows have another path and their own fields: they get the event itself. */
const PATH = "/services/";
/** A token after the workspace and the webhook. */
const SECRET_SEGMENT = 4;

const SEVERITY_NAMES: Readonly<Record<NonNullable<ChannelMessage["severity"]>, string>> = {
  info: "Info",
  low: "Low",
  medium: "Medium",
  high: "High",
  critical: "Critical",
};

/** `&`, `<` and `>` are the only characters with a meaning in Slack's text. */
const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const linkText = ({ title, url }: ChannelMessage["links"][number]) =>
  `<${url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E")}|${escaped(title)}>`;

/** `verbatim`: channel names and URLs in the text do not become links. A section has at most 3,000 characters. */
const section = (text: string) => ({ type: "section", text: { type: "mrkdwn", text, verbatim: true } }) as const;

/** The body: `text` for notifications, and at most 50 blocks. */
const payloadOf = ({ title, severity, facts, links }: ChannelMessage) => {
  const heading = severity === null ? escaped(title) : `${SEVERITY_NAMES[severity]}: ${escaped(title)}`;
  return JSON.stringify({
    text: heading,
    mrkdwn: false,
    parse: "none",
    link_names: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      section(`*${heading}*`),
      ...facts.map(([name, value]) => section(`*${escaped(name)}:* ${escaped(value)}`)),
      ...(links.length === 0 ? [] : [section(links.map(linkText).join("  "))]),
    ],
  });
};

/** Slack names the reason in plain text. */
const FOR_GOOD = /^(no_service|no_service_id|no_team|team_disabled|channel_is_archived|invalid_token|token_revoked)$/;

/** Incoming webhooks of Slack: Block Kit, one message per second. */
export const SLACK: NotificationChannel = {
  name: "slack",
  title: "Slack",
  example: "https://hooks.slack.com/services/T000/B000/XXXX",
  matches: ({ hostname, pathname }) => HOSTS.includes(hostname) && pathname.startsWith(PATH),
  problem: () => null,
  secrets: ({ pathname }) => pathname.split("/").slice(SECRET_SEGMENT),
  paceMs: 1_000,
  hasIncidents: false,
  request: ({ href }, message) => ({ url: href, body: payloadOf(message) }),
  read(response) {
    const isGone = response.status >= 400 && response.status < 500 && FOR_GOOD.test(response.body.trim());
    return isGone ? { verdict: "gone", hint: "Create a new webhook in Slack." } : readStatus(response);
  },
};
