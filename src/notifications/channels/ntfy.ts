import type { Severity } from "../../foundation/base/severity.ts";
import {
  acceptedOnlyIf,
  BUSY_WAIT_MS,
  type NotificationChannel,
  type ChannelMessage,
  cutTo,
  detailsUrlOf,
  jsonOf,
  readStatus,
  urgencyOf,
} from "./channel.ts";

const HOST = "ntfy.sh";
/** `?channel=ntfy` marks the URL of another server. */
const MARK = "ntfy";
const TOPIC = /^\/([\w-]{1,64})$/;
const TOKEN = /^tk_\w{20,64}$/;

/** A longer message becomes an attachment, in bytes: https://docs.ntfy.sh/publish/#limitations */
const MESSAGE_BYTES_MAX = 4_000;
const TITLE_BYTES_MAX = 250;
const ACTIONS_MAX = 3;

/** 1 is silent, 3 the default, 5 rings until it is seen: https://docs.ntfy.sh/publish/#message-priority */
const PRIORITIES: Readonly<Record<Severity, number>> = { critical: 5, high: 4, medium: 3, low: 2, info: 2 };

const sizeOf = (text: string) => Buffer.byteLength(text);

/** Plain text: `markdown` is not set, so that no character of it has a meaning. */
const payloadOf = (topic: string, message: ChannelMessage) => {
  const { incident, facts, links } = message;
  const severity = message.severity ?? urgencyOf(message);
  const text = facts.map(([name, value]) => `${name}: ${value}`).join("\n");
  const click = detailsUrlOf(message);
  const isProblem = incident !== null && !incident.ends;
  return JSON.stringify({
    topic,
    title: cutTo(message.title, TITLE_BYTES_MAX, { sizeOf }),
    message: cutTo(text, MESSAGE_BYTES_MAX, { sizeOf }),
    priority: isProblem ? PRIORITIES[severity] : PRIORITIES.info,
    tags: [isProblem ? "warning" : incident === null ? "information_source" : "white_check_mark"],
    ...(click === null ? {} : { click }),
    actions: links.slice(0, ACTIONS_MAX).map(({ title, url }) => ({ action: "view", label: title, url })),
  });
};

const topicOf = ({ pathname }: URL) => TOPIC.exec(pathname)?.[1] ?? "";

/** ntfy.sh, or another ntfy server. Its JSON is posted to the root of the server. */
export const NTFY: NotificationChannel = {
  name: "ntfy",
  title: "ntfy",
  example: "https://ntfy.sh/TOPIC, or https://ntfy.example.com/TOPIC?channel=ntfy&token=tk_…",
  matches: ({ hostname, searchParams }) => hostname === HOST || searchParams.get("channel") === MARK,
  problem(url) {
    const token = url.searchParams.get("token");
    if (topicOf(url) === "")
      return "The URL of an ntfy topic is needed, such as https://ntfy.sh/TOPIC: letters, digits, _ and -, at most 64.";
    return token === null || TOKEN.test(token) ? null : "The access token of ntfy begins with tk_.";
  },
  // Without a token, everybody who knows the topic can read it and write to it.
  secrets: (url) => [url.searchParams.get("token") ?? topicOf(url)],
  paceMs: 1_000,
  hasIncidents: false,
  request(url, message) {
    const token = url.searchParams.get("token");
    return {
      url: `${url.origin}/`,
      ...(token === null ? {} : { headers: { authorization: `Bearer ${token}` } }),
      body: payloadOf(topicOf(url), message),
    };
  },
  read(response) {
    if (response.status === 200) return acceptedOnlyIf(typeof jsonOf(response).id === "string", "ntfy");
    if (response.status === 401 || response.status === 403)
      return {
        verdict: "refused",
        hint: "The topic needs an access token that may write: add &token=tk_… to the URL.",
      };
    return { ...readStatus(response), waitMs: response.status === 429 ? BUSY_WAIT_MS : null };
  },
};
