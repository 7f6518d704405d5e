import { eventMessage } from "./event-message.ts";
import { slackPayload } from "./slack.ts";
import { isTeamsFailure, teamsPayload } from "./teams.ts";

/** `standard`: the event as Standard Webhooks has it. The others are messages for people. */
export const DELIVERY_FORMATS = ["standard", "slack", "teams"] as const;
export type DeliveryFormat = (typeof DELIVERY_FORMATS)[number];

/** Chats take about one message a second for a URL. */
export const PACE_MS = 1_000;

const SLACK_HOSTS: readonly string[] = ["hooks.slack.com", "hooks.slack-gov.com"];
/** Workflows begin with another path, and take fields of their own. */
const SLACK_PATH = "/services/";
const TEAMS_HOST = /\.(webhook\.office\.com|logic\.azure\.com|powerplatform\.com)$/;

/** How events are written for a URL: it depends on its host alone. */
export const formatOf = (url: string): DeliveryFormat => {
  const { hostname, pathname } = new URL(url);
  if (SLACK_HOSTS.includes(hostname) && pathname.startsWith(SLACK_PATH)) return "slack";
  return TEAMS_HOST.test(hostname) ? "teams" : "standard";
};

/** Whether a URL wants one request at a time. */
export const isPaced = (url: string): boolean => formatOf(url) !== "standard";

export interface FormatDeps {
  /** Where people reach the service, for links; null when nobody said. */
  readonly baseUrl: string | null;
}

export interface Format {
  /** The request body for an event, which is the JSON text of its standard body. */
  readonly payloadOf: (event: string) => string;
  /** Whether a 2xx with such a body is a failure all the same. */
  readonly isRefused: (answer: string) => boolean;
}

export const createFormats = ({ baseUrl }: FormatDeps) => {
  const formats: Readonly<Record<DeliveryFormat, Format>> = {
    standard: { payloadOf: (event) => event, isRefused: () => false },
    slack: { payloadOf: (event) => slackPayload(eventMessage(event, baseUrl)), isRefused: () => false },
    teams: { payloadOf: (event) => teamsPayload(eventMessage(event, baseUrl)), isRefused: isTeamsFailure },
  };
  return { formatFor: (url: string): Format => formats[formatOf(url)] };
};
