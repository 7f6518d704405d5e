import { type EventMessage, eventMessage } from "./event-message.ts";

/** `standard`: the event as Standard Webhooks defines it. The others are messages for people. */
export const DELIVERY_FORMATS = ["standard", "slack", "teams"] as const;
export type DeliveryFormat = (typeof DELIVERY_FORMATS)[number];

/** Chat services accept about one message per second and URL. */
export const PACE_MS = 1_000;

const SLACK_HOSTS: readonly string[] = ["hooks.slack.com", "hooks.slack-gov.com"];
/** Slack workflows have another path and their own fields. */
const SLACK_PATH = "/services/";
const TEAMS_HOST = /\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)$/;

/** The format of deliveries to a URL, by its host. */
export const formatOf = (url: string): DeliveryFormat => {
  const { hostname, pathname } = new URL(url);
  if (SLACK_HOSTS.includes(hostname) && pathname.startsWith(SLACK_PATH)) return "slack";
  return TEAMS_HOST.test(hostname) ? "teams" : "standard";
};

/** Whether a URL takes one request at a time. */
export const isPaced = (url: string): boolean => formatOf(url) !== "standard";

export interface Format {
  /** The request body for the JSON text of an event; `baseUrl`: the base of links, or null. */
  readonly payloadOf: (event: string, baseUrl: string | null) => string;
  /** Whether a 2xx response with this body is a failure. */
  readonly isFailure: (response: string) => boolean;
}

export const formatFor = (url: string): Format => FORMATS[formatOf(url)];

/** `&`, `<` and `>` are the only characters with a meaning in Slack's text. */
const escapeSlack = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const slackLink = ({ title, url }: EventMessage["links"][number]): string =>
  `<${url.replaceAll("|", "%7C").replaceAll("<", "%3C").replaceAll(">", "%3E")}|${escapeSlack(title)}>`;

/** `verbatim`: channel names and URLs in the text do not become links. */
const slackSection = (text: string) => ({ type: "section", text: { type: "mrkdwn", text, verbatim: true } }) as const;

const SEVERITY_NAMES: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Info",
  low: "Low",
  medium: "Medium",
  high: "High",
  critical: "Critical",
};

/** The body for an incoming webhook of Slack: `text` for notifications, and Block Kit blocks. */
const slackPayload = ({ title, severity, facts, links }: EventMessage): string => {
  const escaped = escapeSlack(title);
  const heading = severity === null ? escaped : `${SEVERITY_NAMES[severity]}: ${escaped}`;
  return JSON.stringify({
    text: heading,
    mrkdwn: false,
    parse: "none",
    link_names: false,
    unfurl_links: false,
    unfurl_media: false,
    blocks: [
      slackSection(`*${heading}*`),
      ...facts.map(([name, value]) => slackSection(`*${escapeSlack(name)}:* ${escapeSlack(value)}`)),
      ...(links.length === 0 ? [] : [slackSection(links.map(slackLink).join("  "))]),
    ],
  });
};

const TEAMS_COLOURS: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Default",
  low: "Default",
  medium: "Warning",
  high: "Attention",
  critical: "Attention",
};

/** Text runs have no Markdown, so quoted text cannot contain a link or mention. */
const teamsRun = (text: string, style: Readonly<Record<string, string>> = {}) => ({ type: "TextRun", text, ...style });
const teamsLine = (...inlines: ReadonlyArray<ReturnType<typeof teamsRun>>) => ({ type: "RichTextBlock", inlines });

/** The body for a workflow or incoming webhook of Microsoft Teams: a message with an Adaptive Card 1.4. */
const teamsPayload = ({ title, severity, facts, links }: EventMessage): string => {
  const colour = severity === null ? {} : { color: TEAMS_COLOURS[severity] };
  const actions = links.map((link) => ({ type: "Action.OpenUrl", title: link.title, url: link.url }));
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      teamsLine(teamsRun(title, { weight: "Bolder", size: "Medium", ...colour })),
      ...facts.map(([name, value]) => teamsLine(teamsRun(`${name}: `, { weight: "Bolder" }), teamsRun(value))),
    ],
    ...(actions.length === 0 ? {} : { actions }),
  };
  const contentType = "application/vnd.microsoft.card.adaptive";
  return JSON.stringify({ type: "message", attachments: [{ contentType, contentUrl: null, content }] });
};

/** A Teams connector responds 200 even when it could not deliver, and says so in the body. */
const isTeamsFailure = (response: string): boolean =>
  /webhook message delivery failed|endpoint returned http error/i.test(response);

const FORMATS: Readonly<Record<DeliveryFormat, Format>> = {
  standard: { payloadOf: (event) => event, isFailure: () => false },
  slack: { payloadOf: (event, baseUrl) => slackPayload(eventMessage(event, baseUrl)), isFailure: () => false },
  teams: { payloadOf: (event, baseUrl) => teamsPayload(eventMessage(event, baseUrl)), isFailure: isTeamsFailure },
};
