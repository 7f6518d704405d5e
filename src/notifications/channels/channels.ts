import type { NotificationChannel } from "./channel.ts";
import { DISCORD } from "./discord.ts";
import { NTFY } from "./ntfy.ts";
import { OPSGENIE } from "./opsgenie.ts";
import { PAGERDUTY } from "./pagerduty.ts";
import { SLACK } from "./slack.ts";
import { TEAMS } from "./teams.ts";
import { TELEGRAM } from "./telegram.ts";

/** The services that get messages instead of events. Everything about a service is in its file. */
export const CHANNELS: readonly NotificationChannel[] = [SLACK, TEAMS, DISCORD, TELEGRAM, NTFY, PAGERDUTY, OPSGENIE];

/** The names of the services in a sentence. */
export const CHANNEL_TITLES = CHANNELS.map(({ title }) => title)
  .join(", ")
  .replace(/, ([^,]+)$/, " and $1");

/** `standard`: the event as Standard Webhooks defines it. The others are messages for people. */
export const DELIVERY_FORMATS = ["standard", ...CHANNELS.map(({ name }) => name)] as const;
export type DeliveryFormat = (typeof DELIVERY_FORMATS)[number];

/** The service of a URL; null for one that gets the event itself. */
export const channelOf = (url: string): NotificationChannel | null => {
  const parsed = new URL(url);
  return CHANNELS.find(({ matches }) => matches(parsed)) ?? null;
};

/** The format of deliveries to a URL. */
export const formatOf = (url: string): DeliveryFormat => channelOf(url)?.name ?? "standard";

/** What people call the service of a URL; null for a webhook. */
export const channelTitleOf = (url: string): string | null => channelOf(url)?.title ?? null;

/** Why nothing can be sent to a URL of a service, as a sentence; null when it is complete or belongs to none. */
export const channelProblem = (url: string): string | null => channelOf(url)?.problem(new URL(url)) ?? null;

/** Shorter secrets are hidden whole. */
const PARTLY_SHOWN_MIN = 16;
const SHOWN = 4;

const maskOf = (secret: string) => (secret.length < PARTLY_SHOWN_MIN ? "…" : `…${secret.slice(-SHOWN)}`);

const secretsOf = (url: string) => {
  const secrets = channelOf(url)?.secrets(new URL(url)) ?? [];
  return secrets.filter((secret) => secret !== "");
};

/** Text with the secrets of a URL replaced by `…` and their last four characters. */
export const hideSecrets = (text: string, url: string): string =>
  secretsOf(url).reduce((shown, secret) => shown.replaceAll(secret, maskOf(secret)), text);

/** A URL as pages, deliveries and logs show it. */
export const maskUrl = (url: string): string => hideSecrets(url, url);
