import {
  acceptedOnlyIf,
  type NotificationChannel,
  type ChannelMessage,
  cutTo,
  jsonOf,
  type Reading,
  readStatus,
  urgencyOf,
} from "./channel.ts";

const HOST = "api.telegram.org";
const PATH = /^\/bot\d+:([\w-]{20,})\/sendMessage$/;
/** The number of a chat (of a group it is negative), or the name of a public channel. */
const CHAT = /^(-?\d{1,20}|@\w{4,64})$/;
const TOPIC = /^\d{1,20}$/;
const EXAMPLE = `https://${HOST}/bot123456:TOKEN/sendMessage?chat_id=-100123456`;

/** https://core.telegram.org/bots/api#sendmessage: counted without tags, here with them. */
const TEXT_MAX = 4_096;
const TITLE_MAX = 600;
const VALUE_MAX = 600;

/** The characters with a meaning in messages of HTML style. */
const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
const escaping = (character: string) => ESCAPES[character] ?? character;

/**
 * Telegram makes links of names, addresses, commands and tags in plain text, and notifies the user of an `@name`. An invisible word joiner
 * after these characters prevents it. Text in `<code>` needs none.
 */
const MARKS = /[@/#.:$]/;
const escapePlain = (character: string) => (MARKS.test(character) ? `${character}\u2060` : escaping(character));

const linkText = ({ title, url }: ChannelMessage["links"][number]) =>
  `<a href="${[...url].map(escaping).join("")}">${[...title].map(escaping).join("")}</a>`;

/** Lines until the message is full. A line is never divided, so that every tag is closed. */
const joined = (lines: readonly string[]) => {
  let text = "";
  for (const line of lines) {
    const longer = text === "" ? line : `${text}\n${line}`;
    if (longer.length <= TEXT_MAX) text = longer;
  }
  return text;
};

const textOf = ({ title, severity, facts, links }: ChannelMessage) =>
  joined([
    `<b>${severity === null ? "" : `${severity.toUpperCase()} `}${cutTo(title, TITLE_MAX, { escaping: escapePlain })}</b>`,
    ...(links.length === 0 ? [] : [links.map(linkText).join(" · ")]),
    ...facts.map(
      ([name, value]) =>
        `${cutTo(name, VALUE_MAX, { escaping: escapePlain })}: <code>${cutTo(value, VALUE_MAX, { escaping })}</code>`,
    ),
  ]);

const QUIET: ReadonlySet<string> = new Set(["info", "low"]);

const payloadOf = ({ searchParams }: URL, message: ChannelMessage) => {
  const topic = searchParams.get("message_thread_id");
  return JSON.stringify({
    chat_id: searchParams.get("chat_id"),
    ...(topic === null ? {} : { message_thread_id: Number(topic) }),
    text: textOf(message),
    parse_mode: "HTML",
    link_preview_options: { is_disabled: true },
    disable_notification: QUIET.has(message.severity ?? urgencyOf(message)),
  });
};

const problemOf = ({ pathname, searchParams }: URL) => {
  if (!PATH.test(pathname)) return `The URL of a Telegram bot is needed: ${EXAMPLE}.`;
  if (!CHAT.test(searchParams.get("chat_id") ?? ""))
    return `The URL needs the chat: chat_id with its number, or the @name of a public channel, such as ${EXAMPLE}.`;
  const topic = searchParams.get("message_thread_id");
  return topic === null || TOPIC.test(topic) ? null : "message_thread_id is the number of a topic.";
};

const objectOf = (value: unknown) => jsonOf({ status: 0, body: JSON.stringify(value ?? null) });

/** https://core.telegram.org/bots/api#making-requests */
const readRefusal = (description: string, status: number): Reading | null => {
  if (status === 401 || status === 404) return { verdict: "gone", hint: "Telegram does not know this bot token." };
  if (/blocked by the user|kicked|user is deactivated|not a member|group chat was deleted/i.test(description))
    return { verdict: "gone", hint: "Add the bot to the chat again, then enable the URL." };
  return null;
};

const MS = 1_000;

/** The Telegram Bot API: a group takes 20 messages a minute. */
export const TELEGRAM: NotificationChannel = {
  name: "telegram",
  title: "Telegram",
  example: EXAMPLE,
  matches: ({ hostname }) => hostname === HOST,
  problem: problemOf,
  secrets: ({ pathname }) => PATH.exec(pathname)?.slice(1) ?? [],
  paceMs: 3_000,
  hasIncidents: false,
  request: (url, message) => ({ url: url.origin + url.pathname, body: payloadOf(url, message) }),
  read(response) {
    const { ok, description, parameters } = jsonOf(response);
    const { retry_after: seconds, migrate_to_chat_id: movedTo } = objectOf(parameters);
    if (response.status === 200) return acceptedOnlyIf(ok === true, "Telegram");
    const refusal = readRefusal(String(description ?? ""), response.status);
    if (refusal !== null) return refusal;
    if (typeof movedTo === "number")
      return { verdict: "refused", hint: `The group became a supergroup: set chat_id=${movedTo}.` };
    return { ...readStatus(response), waitMs: typeof seconds === "number" ? seconds * MS : null };
  },
};
