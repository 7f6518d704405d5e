import type { Severity } from "../../foundation/base/severity.ts";
import {
  acceptedOnlyIf,
  BUSY_WAIT_MS,
  type NotificationChannel,
  type ChannelMessage,
  cutTo,
  jsonOf,
  readStatus,
  urgencyOf,
} from "./channel.ts";

const HOSTS: readonly string[] = ["events.pagerduty.com", "events.eu.pagerduty.com"];
const ALERTS = "/v2/enqueue";
const CHANGES = "/v2/change/enqueue";
const KEY = /^[A-Za-z0-9]{32}$/;
const EXAMPLE = "https://events.pagerduty.com/v2/enqueue?routing_key=KEY";

/** https://developer.pagerduty.com/docs/send-alert-event */
const SUMMARY_MAX = 1_024;
const SOURCE_MAX = 255;

const SEVERITIES: Readonly<Record<Severity, "critical" | "error" | "warning" | "info">> = {
  critical: "critical",
  high: "error",
  medium: "warning",
  low: "info",
  info: "info",
};

const keyOf = ({ searchParams }: URL) => searchParams.get("routing_key") ?? "";

const detailsOf = ({ title, source, facts, at }: ChannelMessage) => ({
  summary: cutTo(title, SUMMARY_MAX),
  source: cutTo(source, SOURCE_MAX),
  timestamp: at,
  custom_details: Object.fromEntries(facts),
});

const linksOf = ({ links }: ChannelMessage) => links.map(({ title, url }) => ({ href: url, text: title }));

/** An alert event: begins, or resolves, the incident of its key. Texts are plain. */
const alertOf = (url: URL, message: ChannelMessage) => ({
  routing_key: keyOf(url),
  event_action: message.incident?.ends === true ? "resolve" : "trigger",
  ...(message.incident === null ? {} : { dedup_key: message.incident.key }),
  payload: { ...detailsOf(message), severity: SEVERITIES[urgencyOf(message)], class: message.type },
  links: linksOf(message),
  client: "Postwarden",
});

/** A change event: shown beside incidents, notifies nobody. */
const changeOf = (url: URL, message: ChannelMessage) => ({
  routing_key: keyOf(url),
  payload: detailsOf(message),
  links: linksOf(message),
});

/** Keys of orchestrations and rulesets begin with R and take no change events: their rules decide about `info`. */
const takesChanges = (url: URL) => !keyOf(url).startsWith("R");

/** The Events API v2 of PagerDuty: https://developer.pagerduty.com/docs/events-api-v2-overview */
export const PAGERDUTY: NotificationChannel = {
  name: "pagerduty",
  title: "PagerDuty",
  example: EXAMPLE,
  matches: ({ hostname }) => HOSTS.includes(hostname),
  problem: (url) =>
    url.pathname === ALERTS && KEY.test(keyOf(url))
      ? null
      : `The URL needs the integration key of 32 letters and digits (Events API v2): ${EXAMPLE}.`,
  secrets: (url) => [keyOf(url)],
  paceMs: 1_000,
  hasIncidents: true,
  request(url, message) {
    const isChange = message.incident === null && takesChanges(url);
    const body = isChange ? changeOf(url, message) : alertOf(url, message);
    return { url: url.origin + (isChange ? CHANGES : ALERTS), body: JSON.stringify(body) };
  },
  read(response) {
    const { status, message, errors } = jsonOf(response);
    if (response.status === 202) return acceptedOnlyIf(status === "success", "PagerDuty");
    // A 200 is not documented: a proxy.
    if (response.status >= 200 && response.status < 300) return acceptedOnlyIf(false, "PagerDuty");
    if (response.status === 400 && /routing.?key/i.test(JSON.stringify([message, errors])))
      return { verdict: "gone", hint: "PagerDuty does not know this integration key: set the URL with a new one." };
    return { ...readStatus(response), waitMs: response.status === 429 ? BUSY_WAIT_MS : null };
  },
};
