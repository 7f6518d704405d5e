import type { EventMessage } from "./event-message.ts";

const COLOURS: Readonly<Record<NonNullable<EventMessage["severity"]>, string>> = {
  info: "Default",
  low: "Default",
  medium: "Warning",
  high: "Attention",
  critical: "Attention",
};

/** Text runs know no Markdown: what others wrote can hold no link and no mention. */
const run = (text: string, more: Readonly<Record<string, string>> = {}) => ({ type: "TextRun", text, ...more });
const line = (...inlines: ReadonlyArray<ReturnType<typeof run>>) => ({ type: "RichTextBlock", inlines });

/** The body for a workflow or an incoming webhook of Microsoft Teams: a message with one Adaptive Card 1.4. */
export const teamsPayload = ({ title, severity, facts, links }: EventMessage): string =>
  JSON.stringify({
    type: "message",
    attachments: [
      {
        contentType: "application/vnd.microsoft.card.adaptive",
        contentUrl: null,
        content: {
          $schema: "http://adaptivecards.io/schemas/adaptive-card.json",
          type: "AdaptiveCard",
          version: "1.4",
          body: [
            line(run(title, { weight: "Bolder", size: "Medium", ...(severity && { color: COLOURS[severity] }) })),
            ...facts.map(([name, value]) => line(run(`${name}: `, { weight: "Bolder" }), run(value))),
          ],
          ...(links.length === 0
            ? {}
            : { actions: links.map((link) => ({ type: "Action.OpenUrl", title: link.title, url: link.url })) }),
        },
      },
    ],
  });

/** A connector of Teams answers 200 also when it could not deliver, and says so in the text. */
export const isTeamsFailure = (answer: string): boolean =>
  /webhook message delivery failed|endpoint returned http error/i.test(answer);
