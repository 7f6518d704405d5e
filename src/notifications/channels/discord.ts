import type { Severity } from "../../foundation/base/severity.ts";
import {
  type NotificationChannel,
  type ChannelMessage,
  cutTo,
  detailsUrlOf,
  jsonOf,
  readStatus,
  urgencyOf,
} from "./channel.ts";

const HOST = /^((ptb|canary)\.)?discord(app)?\.com$/;
const PATH = /^\/api(\/v\d+)?\/webhooks\/\d+\/([\w-]+)$/;
const EXAMPLE = "https://discord.com/api/webhooks/ID/TOKEN";

/** Limits of an embed: https://discord.com/developers/docs/resources/message#embed-object-embed-limits */
const TITLE_MAX = 256;
const DESCRIPTION_MAX = 4_096;
const NAME_MAX = 256;
const VALUE_MAX = 1_024;
const FIELDS_MAX = 25;
/** Of all texts of a message together. */
const TOTAL_MAX = 6_000;

/** The bar beside the message. */
const COLOURS: Readonly<Record<Severity, number>> = {
  critical: 0xb91c1c,
  high: 0xdc2626,
  medium: 0xd97706,
  low: 0x64748b,
  info: 0x2563eb,
};
const ENDED_COLOUR = 0x16a34a;

/** Punctuation that makes Markdown, links and mentions; a backslash before it shows it as it is. */
const MARKS: ReadonlySet<string> = new Set("\\*_~`|<>#-+[]():@&/");
const escaping = (character: string) => (MARKS.has(character) ? `\\${character}` : character);

/** A link; a bracket would end it. */
const linkText = ({ title, url }: ChannelMessage["links"][number]) =>
  `[${title}](${url.replaceAll("(", "%28").replaceAll(")", "%29")})`;

const payloadOf = (message: ChannelMessage) => {
  const { incident, facts, links, at } = message;
  const title = cutTo(message.title, TITLE_MAX, { escaping });
  const description = links.map(linkText).join(" · ");
  let left = TOTAL_MAX - title.length - description.length;
  const fields = facts.slice(0, FIELDS_MAX).flatMap(([factName, factValue]) => {
    const name = cutTo(factName, Math.min(NAME_MAX, left), { escaping });
    const value = cutTo(factValue, Math.min(VALUE_MAX, left - name.length), { escaping });
    if (name === "" || value === "") return [];
    left -= name.length + value.length;
    return [{ name, value }];
  });
  const url = detailsUrlOf(message);
  return JSON.stringify({
    // Nobody is notified by name, whatever the texts contain.
    allowed_mentions: { parse: [] },
    embeds: [
      {
        title,
        ...(url === null ? {} : { url }),
        ...(description === "" || description.length > DESCRIPTION_MAX ? {} : { description }),
        color: incident?.ends === true ? ENDED_COLOUR : COLOURS[message.severity ?? urgencyOf(message)],
        fields,
        timestamp: at,
      },
    ],
  });
};

const MS = 1_000;

/** Webhooks of Discord: an embed. A channel takes 30 messages a minute. */
export const DISCORD: NotificationChannel = {
  name: "discord",
  title: "Discord",
  example: EXAMPLE,
  matches: ({ hostname }) => HOST.test(hostname),
  problem: ({ pathname }) =>
    PATH.test(pathname) ? null : `The URL of a Discord webhook is needed: ${EXAMPLE}, with nothing after the token.`,
  secrets: ({ pathname }) => PATH.exec(pathname)?.slice(2) ?? [],
  paceMs: 2_000,
  hasIncidents: false,
  request: ({ href }, message) => ({ url: href, body: payloadOf(message) }),
  read(response) {
    const { retry_after: seconds } = jsonOf(response);
    const waitMs = response.status === 429 && typeof seconds === "number" ? Math.ceil(seconds * MS) : null;
    // 10015: unknown webhook; 50027: invalid token.
    if (response.status === 404 || response.status === 401)
      return { verdict: "gone", hint: "The webhook was deleted: create a new one in Discord." };
    return { ...readStatus(response), waitMs };
  },
};
