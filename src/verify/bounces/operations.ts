import { z } from "zod";
import { isId } from "../../foundation/base/secrets.ts";
import { declareRoute } from "../../foundation/http/route.ts";
import { pageQuery } from "../../foundation/http/route-input.ts";
import {
  countField,
  enumField,
  idField,
  integerField,
  listField,
  namedResponse,
  nextCursorField,
  nullableEnum,
  nullableInteger,
  nullableText,
  nullableTime,
  optionalEnum,
  textField,
  timeField,
} from "../../foundation/http/schema-fields.ts";
import { parseAddress } from "../../foundation/mail/address.ts";
import { VERDICTS } from "../result.ts";

export const BOUNCE_SOURCES = ["postfix", "ses", "sendgrid", "mailgun", "postmark", "mailbox"] as const;
export const BOUNCE_KINDS = ["hard", "soft"] as const;

const TAG = "Bounces";
const PATH = "/v1/bounces";
const OUTCOMES = ["stored", "known", "ignored", "unreadable"] as const;

const eventOutcome = z.object({
  position: integerField("The place of the event, or of the line that is not empty, in the request; the first is 1."),
  outcome: enumField(OUTCOMES, "`known`: the same event was stored before. `ignored`: it is no bounce."),
  kind: nullableEnum(BOUNCE_KINDS, "`hard`: the address does not exist; null when the event is no bounce."),
  reason: nullableText("Why it is ignored or unreadable; null for a bounce."),
});

const reportSchema = namedResponse("BounceReport", {
  counts: z
    .object({
      stored: countField("New bounces."),
      known: countField("Bounces that were stored before."),
      ignored: countField("Events of other kinds, such as deliveries."),
      unreadable: countField("Events that could not be read."),
    })
    .meta({ description: "How many events had which outcome." }),
  events: listField(eventOutcome, "What became of each event, in their order."),
  confirmation: z
    .object({
      topic: textField("The topic of Amazon SNS."),
      url: textField(
        "The URL that confirms the subscription. Open it yourself; Postwarden never does. With a live key it is also in the audit log.",
      ),
    })
    .nullable()
    .meta({ description: "Where a new subscription of Amazon SNS is confirmed; null for all other requests." }),
});

const POSTFIX_LINE =
  "2026-01-01T00:00:00+00:00 mx postfix/smtp[123]: 4XyZ12: to=<someone@example.com>, relay=mx.example.com[192.0.2.1]:25, delay=1, delays=0/0/0/1, dsn=5.1.1, status=bounced (host mx.example.com[192.0.2.1] said: 550 5.1.1 No such user)";

export const REPORT_BOUNCES = declareRoute({
  method: "POST",
  path: PATH,
  operationId: "reportBounces",
  tag: TAG,
  summary: "Report bounces",
  description:
    "Takes the events of Amazon SES (also through SNS), SendGrid, Mailgun and Postmark as they are sent, and lines of the log of Postfix as `text/plain`: at most 1 MiB and 1,000 events. The same event is stored once. A hard bounce counts for the next checks of the address. For services that can only call a URL, the key may be the password of HTTP Basic: `https://bounces:<API_KEY>@host/v1/bounces`. With a test key nothing is stored.",
  scope: "verifications:write",
  unrecorded: "the bounces themselves are stored",
  rateLimited: true,
  acceptsBasic: true,
  uploads: {
    "application/json": {
      schema: z.union([z.looseObject({}), z.array(z.looseObject({}))]),
      example: [
        {
          event: "bounce",
          type: "bounce",
          email: "someone@example.com",
          timestamp: 1_767_225_600,
          sg_event_id: "event-1",
          status: "5.1.1",
          reason: "550 5.1.1 No such user",
        },
      ],
    },
    "text/plain": { schema: z.string(), example: POSTFIX_LINE },
  },
  responses: {
    200: {
      description: "What became of each event.",
      schema: reportSchema,
      example: {
        counts: { stored: 1, known: 0, ignored: 0, unreadable: 0 },
        events: [{ position: 1, outcome: "stored", kind: "hard", reason: null }],
        confirmation: null,
      },
    },
  },
  errors: ["payload_too_large", "unsupported_media_type", "Request body must be valid JSON", "Invalid request body"],
});

const bounceSchema = z.object({
  id: idField("The id of the bounce."),
  email: textField("The recipient, in normal form."),
  kind: enumField(BOUNCE_KINDS, "`hard`: the address does not exist. `soft`: this says nothing about the address."),
  status: nullableText("The enhanced status code (RFC 3463); null when none was given."),
  diagnostic: nullableText("What the server said, in at most 500 characters."),
  source: enumField(BOUNCE_SOURCES, "Who reported it; `mailbox`: a mail in the bounce mailbox."),
  bounced_at: timeField("When the message bounced."),
  reported_at: timeField("When it was reported."),
  provider: nullableText("Who runs the mail hosts, as the last check before found them; null when that is not known."),
  promised: nullableEnum(VERDICTS, "The verdict of the last check before the bounce; null without one."),
  promised_days: nullableInteger("How many days before the bounce that check was; null without one."),
  refuted_at: nullableTime("When a later check proved that the mailbox exists; null when none did."),
});

const LISTED = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  email: "someone@example.com",
  kind: "hard",
  status: "5.1.1",
  diagnostic: "550 5.1.1 No such user",
  source: "postfix",
  bounced_at: "2026-01-01T00:00:00.000Z",
  reported_at: "2026-01-01T00:01:00.000Z",
  provider: "example.com",
  promised: "risky",
  promised_days: 12,
  refuted_at: null,
};

const csv = (example: string) => ({
  "text/csv": { schema: z.string().meta({ description: "The same, one row each, with a header line." }), example },
});

const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));
const normalizedEmail = z.string().transform((text) => {
  const address = parseAddress(text);
  return address.ok ? address.value.normalized : text.trim().toLowerCase();
});

export const LIST_BOUNCES = declareRoute({
  method: "GET",
  path: PATH,
  operationId: "listBounces",
  tag: TAG,
  summary: "List bounces",
  description: "Returns the bounces of the account in the order in which they were reported, newest first.",
  scope: "verifications:read",
  query: pageQuery(isId, {
    kind: optionalEnum(BOUNCE_KINDS, "Only bounces of this kind."),
    source: optionalEnum(BOUNCE_SOURCES, "Only bounces that this source reported."),
    email: normalizedEmail.optional().meta({ description: "Only bounces of this address." }),
    promised: optionalEnum(VERDICTS, "Only bounces of addresses whose last check had this verdict."),
    bounced_after: moment.optional().meta({ description: "Only bounces at or after this time." }),
  }),
  responses: {
    200: {
      description: "A page of bounces.",
      schema: namedResponse("BounceList", {
        bounces: listField(bounceSchema, "Newest first."),
        next_cursor: nextCursorField,
      }),
      example: { bounces: [LISTED], next_cursor: null },
      alternatives: csv(
        "email,kind,status,source,bounced_at,reported_at,provider,promised,promised_days,refuted_at,diagnostic\r\n",
      ),
    },
  },
});

const SUMMARY_DAYS = 30;
export const SUMMARY_DAYS_MAX = 365;

const promises = {
  deliverable_checks: countField("Checks since `checks_from` that said deliverable."),
  deliverable_bounced: countField("Addresses of those checks that bounced hard later."),
  error_rate: z.number().min(0).max(1).nullable().meta({
    description: "`deliverable_bounced` by `deliverable_checks`, from 0 to 1; null where no check is counted.",
  }),
};

const promisedCounts = z.object({
  deliverable: countField(
    "Addresses that the last check had called deliverable: our own errors, or mailboxes that ended since.",
  ),
  risky: countField("Addresses that it had called risky."),
  undeliverable: countField("Addresses that it had called undeliverable."),
  not_verified: countField("Addresses without a check before the bounce."),
});

export const SUMMARIZE_BOUNCES = declareRoute({
  method: "GET",
  path: `${PATH}/summary`,
  operationId: "summarizeBounces",
  tag: TAG,
  summary: "Compare bounces with what was promised",
  description:
    "Returns how many addresses bounced, by provider, and what the last check had said about them before. Checks of lists are taken into account by the next night.",
  scope: "verifications:read",
  query: z.strictObject({
    days: z.coerce
      .number()
      .int()
      .min(1)
      .max(SUMMARY_DAYS_MAX)
      .default(SUMMARY_DAYS)
      .meta({ description: "How many days until now are counted.", type: "integer" }),
  }),
  responses: {
    200: {
      description: "Bounced addresses by provider, the most hard ones first.",
      schema: namedResponse("BounceSummary", {
        days: integerField("The days that are counted."),
        checks_from: z.iso
          .date()
          .nullable()
          .meta({ description: "The first of these days (UTC) whose checks are counted; null when there are none." }),
        total: z.object(promises).meta({ description: "All providers together." }),
        providers: listField(
          z.object({
            provider: nullableText("Who runs the mail hosts; null when that is not known."),
            hard: promisedCounts.meta({ description: "Addresses that bounced hard, by the verdict before." }),
            soft: countField("Addresses with soft bounces."),
            ...promises,
          }),
          "One entry for each provider.",
        ),
      }),
      example: {
        days: SUMMARY_DAYS,
        checks_from: "2026-01-01",
        total: { deliverable_checks: 800, deliverable_bounced: 2, error_rate: 0.0025 },
        providers: [
          {
            provider: "example.com",
            hard: { deliverable: 2, risky: 3, undeliverable: 1, not_verified: 2 },
            soft: 4,
            deliverable_checks: 400,
            deliverable_bounced: 2,
            error_rate: 0.005,
          },
        ],
      },
      alternatives: csv(
        "provider,deliverable,risky,undeliverable,not_verified,soft,deliverable_checks,deliverable_bounced,error_rate\r\nexample.com,2,3,1,2,4,400,2,0.005\r\n",
      ),
    },
  },
});

/** The routes of bounces. */
export const BOUNCE_ROUTES = [REPORT_BOUNCES, LIST_BOUNCES, SUMMARIZE_BOUNCES] as const;
