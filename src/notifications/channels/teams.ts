import { type NotificationChannel, type ChannelMessage, readStatus } from "./channel.ts";

const HOST = /\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)$/;

const COLOURS: Readonly<Record<NonNullable<ChannelMessage["severity"]>, string>> = {
  info: "Default",
  low: "Default",
  medium: "Warning",
  high: "Attention",
  critical: "Attention",
};

/** Text runs have no Markdown, so quoted text cannot contain a link or mention. */
const run = (text: string, style: Readonly<Record<string, string>> = {}) => ({ type: "TextRun", text, ...style });
const line = (...inlines: ReadonlyArray<ReturnType<typeof run>>) => ({ type: "RichTextBlock", inlines });

/** A message with an Adaptive Card 1.4; at most 28 KiB, which the limits of a message keep. */
const payloadOf = ({ title, severity, facts, links }: ChannelMessage) => {
  const colour = severity === null ? {} : { color: COLOURS[severity] };
  const actions = links.map((link) => ({ type: "Action.OpenUrl", title: link.title, url: link.url }));
  const content = {
    $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
    type: "AdaptiveCard",
    version: "1.4",
    body: [
      line(run(title, { weight: "Bolder", size: "Medium", ...colour })),
      ...facts.map(([name, value]) => line(run(`${name}: `, { weight: "Bolder" }), run(value))),
    ],
    ...(actions.length === 0 ? {} : { actions }),
  };
  const contentType = "application/vnd.microsoft.card.adaptive";
  return JSON.stringify({ type: "message", attachments: [{ contentType, contentUrl: null, content }] });
};

/** A connector responds 200 even when it could not deliver, and says so in the body. */
const FAILURE = /webhook message delivery failed|endpoint returned http error/i;

/** The path of a connector has its token after this. */
const CONNECTOR = "/IncomingWebhook/";

/** Workflows and incoming webhooks of Microsoft Teams: one message per second. */
export const TEAMS: NotificationChannel = {
  name: "teams",
  title: "Microsoft Teams",
  example: "https://prod-00.westeurope.logic.azure.com/workflows/…",
  matches: ({ hostname }) => HOST.test(hostname),
  problem: () => null,
  secrets({ pathname, search }) {
    // As written: `searchParams` would decode it.
    const signature = /[?&]sig=([^&]*)/.exec(search)?.[1];
    const token = pathname.split(CONNECTOR)[1];
    return [signature, token].filter((secret) => secret !== undefined);
  },
  paceMs: 1_000,
  hasIncidents: false,
  request: ({ href }, message) => ({ url: href, body: payloadOf(message) }),
  read(response) {
    const reading = readStatus(response);
    return reading.verdict === "accepted" && FAILURE.test(response.body) ? { verdict: "failed" } : reading;
  },
};
