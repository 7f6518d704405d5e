import { z } from "zod";
import { err, ok, type Result } from "../../foundation/base/errors.ts";
import { ignored, type UnreadEvent, unreadable } from "./bounce.ts";
import { MailgunEvent, readMailgun } from "./formats/mailgun.ts";
import { PostmarkEvent, readPostmark } from "./formats/postmark.ts";
import { readPostfixLine } from "./formats/postfix.ts";
import { readSendgrid, SendgridEvent } from "./formats/sendgrid.ts";
import { readSes, SesEvent, SnsEnvelope } from "./formats/ses.ts";

/** More than any of the services sends at once; a log is sent in parts. */
export const EVENTS_MAX = 1_000;

export type EventsProblem = "too_many_events" | "unknown_format";

/** What a request reported. */
export interface EventsRead {
  readonly events: readonly UnreadEvent[];
  /** Where Amazon SNS wants a new subscription to be confirmed. The operator opens it; the service never does. */
  readonly confirmation: { readonly topic: string; readonly url: string } | null;
}

const read = (events: readonly UnreadEvent[]): Result<EventsRead, EventsProblem> =>
  events.length > EVENTS_MAX ? err("too_many_events") : ok({ events, confirmation: null });

/** Lines of the log of Postfix: `events` has one item for each line that is not empty. */
export const readLogLines = (text: string, nowMs: number): Result<EventsRead, EventsProblem> => {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  return lines.length > EVENTS_MAX
    ? err("too_many_events")
    : read(lines.map((line) => () => readPostfixLine(line, nowMs)));
};

/** SNS hands out confirmations only below amazonaws.com: anything else is a stranger's link. */
const SNS_HOST = /^sns\.[a-z0-9-]{1,40}\.amazonaws\.com(?:\.cn)?$/;

const URL_CHARACTERS_MAX = 2_048;

const confirmationUrl = (text: string): string | null => {
  const url = text.length > URL_CHARACTERS_MAX ? null : URL.parse(text);
  return url !== null &&
    url.protocol === "https:" &&
    url.port === "" &&
    url.username === "" &&
    SNS_HOST.test(url.hostname)
    ? url.href
    : null;
};

const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
};

const readSns = (envelope: z.infer<typeof SnsEnvelope>, nowMs: number): EventsRead => {
  const none = { confirmation: null };
  if (envelope.Type === "UnsubscribeConfirmation")
    return { ...none, events: [() => ignored("Amazon SNS ended the subscription")] };
  if (envelope.Type === "SubscriptionConfirmation") {
    const url = confirmationUrl(envelope.SubscribeURL ?? "");
    return url === null
      ? { ...none, events: [() => unreadable("a confirmation whose SubscribeURL is not one of Amazon SNS")] }
      : {
          events: [() => ignored("a subscription that waits for its confirmation")],
          confirmation: { topic: envelope.TopicArn, url },
        };
  }
  const event = SesEvent.safeParse(parseJson(envelope.Message));
  return {
    ...none,
    events: event.success ? readSes(event.data, nowMs) : [() => ignored("not a message of Amazon SES")],
  };
};

const SendgridEvents = z.tuple([SendgridEvent], z.unknown());

/** Whether a text is JSON and no log: Amazon SNS sends JSON as `text/plain`. */
export const isJsonText = (text: string): boolean => /^\s*[[{]/.test(text);

/** The events of one JSON body, whose shape says who sent it. An empty array has no events. */
export const readJsonEvents = (body: unknown, nowMs: number): Result<EventsRead, EventsProblem> => {
  if (Array.isArray(body)) {
    const isSendgrid = body.length === 0 || SendgridEvents.safeParse(body).success;
    return isSendgrid ? read(body.map((event) => () => readSendgrid(event, nowMs))) : err("unknown_format");
  }
  const sns = SnsEnvelope.safeParse(body);
  if (sns.success) return ok(readSns(sns.data, nowMs));
  const ses = SesEvent.safeParse(body);
  if (ses.success) return read(readSes(ses.data, nowMs));
  const mailgun = MailgunEvent.safeParse(body);
  if (mailgun.success) return read([() => readMailgun(mailgun.data, nowMs)]);
  const postmark = PostmarkEvent.safeParse(body);
  return postmark.success ? read([() => readPostmark(postmark.data, nowMs)]) : err("unknown_format");
};
