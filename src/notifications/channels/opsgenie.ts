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

/** Jira Service Management, which follows Opsgenie, has the same calls at another place. */
const PATHS: Readonly<Record<string, string>> = {
  "api.opsgenie.com": "/v2/alerts",
  "api.eu.opsgenie.com": "/v2/alerts",
  "api.atlassian.com": "/jsm/ops/integration/v2/alerts",
};
const KEY = /^[\w-]{20,100}$/;
const EXAMPLE = "https://api.opsgenie.com/v2/alerts?apiKey=KEY";

/** https://docs.opsgenie.com/docs/alert-api */
const MESSAGE_MAX = 130;
const DESCRIPTION_MAX = 15_000;
const ENTITY_MAX = 512;
/** Of all names and values together. */
const DETAILS_MAX = 8_000;
const TAG_MAX = 50;
const NOTE_MAX = 25_000;

const PRIORITIES: Readonly<Record<Severity, string>> = {
  critical: "P1",
  high: "P2",
  medium: "P3",
  low: "P4",
  info: "P5",
};

const keyOf = ({ searchParams }: URL) => searchParams.get("apiKey") ?? "";

const detailsOf = (facts: ChannelMessage["facts"]) => {
  let left = DETAILS_MAX;
  return Object.fromEntries(
    facts.filter(([name, value]) => {
      left -= name.length + value.length;
      return left >= 0;
    }),
  );
};

/** The description is shown as HTML or Markdown by some clients: without the characters that begin a tag or a link. */
const plain = (text: string) => text.replaceAll("<", "‹").replaceAll(">", "›").replaceAll("](", "] (");

const createBody = (message: ChannelMessage) => {
  const { title, source, facts, links, type, incident } = message;
  const lines = [title, ...facts.map(([name, value]) => `${name}: ${value}`)].map(plain);
  return {
    message: cutTo(title, MESSAGE_MAX),
    ...(incident === null ? {} : { alias: incident.key }),
    description: cutTo([...lines, ...links.map((link) => `${link.title}: ${link.url}`)].join("\n"), DESCRIPTION_MAX),
    entity: cutTo(source, ENTITY_MAX),
    details: detailsOf(facts),
    tags: [cutTo(type, TAG_MAX)],
    priority: PRIORITIES[urgencyOf(message)],
    source: "Postwarden",
  };
};

const closeBody = (message: ChannelMessage) => {
  const url = detailsUrlOf(message);
  return { source: "Postwarden", note: cutTo(url === null ? message.title : `${message.title} ${url}`, NOTE_MAX) };
};

/** The Alert API of Opsgenie and of Jira Service Management. */
export const OPSGENIE: NotificationChannel = {
  name: "opsgenie",
  title: "Opsgenie",
  example: EXAMPLE,
  // api.atlassian.com serves much else, which gets the event itself.
  matches: ({ hostname, pathname }) =>
    Object.hasOwn(PATHS, hostname) && (hostname !== "api.atlassian.com" || pathname === PATHS[hostname]),
  problem: (url) =>
    url.pathname === PATHS[url.hostname] && KEY.test(keyOf(url))
      ? null
      : `The URL needs the key of an API integration: ${EXAMPLE}, or with api.eu.opsgenie.com.`,
  secrets: (url) => [keyOf(url)],
  paceMs: 1_000,
  hasIncidents: true,
  request(url, message) {
    const { incident } = message;
    const base = url.origin + url.pathname;
    const closes = incident?.ends === true;
    return {
      url: closes ? `${base}/${incident.key}/close?identifierType=alias` : base,
      headers: { authorization: `GenieKey ${keyOf(url)}` },
      body: JSON.stringify(closes ? closeBody(message) : createBody(message)),
    };
  },
  read(response) {
    const { requestId } = jsonOf(response);
    if (response.status >= 200 && response.status < 300)
      return acceptedOnlyIf(typeof requestId === "string", "Opsgenie");
    if (response.status === 401)
      return { verdict: "gone", hint: "The key is invalid, of another region, or its integration is disabled." };
    return { ...readStatus(response), waitMs: response.status === 429 ? BUSY_WAIT_MS : null };
  },
};
