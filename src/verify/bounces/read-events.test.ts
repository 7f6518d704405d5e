import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import type { EventReading } from "./bounce.ts";
import { EVENTS_MAX, readJsonEvents, readLogLines } from "./read-events.ts";

const NOW_MS = Date.parse("2026-11-28T08:00:00Z");

/** A bounce as `KIND STATUS ADDRESS TIME`, another event as `OUTCOME: REASON`. */
const told = (reading: EventReading): string =>
  reading.outcome === "bounce"
    ? `${reading.bounce.kind} ${reading.bounce.status} ${reading.bounce.email} ${new Date(reading.bounce.bouncedAtMs).toISOString().slice(0, 19)}`
    : `${reading.outcome}: ${reading.reason}`;

const tellJson = (body: unknown): string[] | string => {
  const read = readJsonEvents(body, NOW_MS);
  return read.ok ? read.value.events.map((event) => told(event())) : read.error;
};
const tellLog = (text: string): string[] | string => {
  const read = readLogLines(text, NOW_MS);
  return read.ok ? read.value.events.map((event) => told(event())) : read.error;
};

const line = (rest: string, time = "Nov 28 07:12:01") => `${time} mx postfix/smtp[123]: 4F1A22C0: ${rest}`;
const delivery = (address: string, dsn: string, status: string, reply: string) =>
  line(
    `to=<${address}>, relay=mx.b.example[192.0.2.1]:25, delay=1.2, delays=0/0/1/0.2, dsn=${dsn}, status=${status} (${reply})`,
  );
const SAID = "host mx.b.example[192.0.2.1] said: 550 5.1.1 User unknown (in reply to RCPT TO command)";

describe("lines of the log of Postfix", () => {
  const AT = "2026-11-28T07:12:01";
  test.each([
    ["no such user", delivery("Ann@B.example", "5.1.1", "bounced", SAID), `hard 5.1.1 ann@b.example ${AT}`],
    [
      "blocked with the status of an unknown user",
      delivery(
        "ann@b.example",
        "5.1.1",
        "bounced",
        "host mx.b.example[192.0.2.1] said: 550 5.1.1 Message rejected: 192.0.2.9 is listed at zen.spamhaus.org",
      ),
      `soft 5.1.1 ann@b.example ${AT}`,
    ],
    [
      "a refusal without a reason",
      delivery(
        "ann@b.example",
        "5.1.1",
        "bounced",
        "host mx.b.example[192.0.2.1] said: 550-5.1.1 Recipient address rejected: Access denied",
      ),
      `soft 5.1.1 ann@b.example ${AT}`,
    ],
    [
      "its content",
      delivery(
        "ann@b.example",
        "5.1.1",
        "bounced",
        "host mx.b.example[192.0.2.1] said: 550 5.1.1 This looks like spam (in reply to end of DATA command)",
      ),
      `soft 5.1.1 ann@b.example ${AT}`,
    ],
    [
      "our own policy service",
      delivery(
        "ann@b.example",
        "5.1.1",
        "bounced",
        "host relay.example[192.0.2.1] said: 554 5.1.1 <ann@b.example>: Recipient address rejected: <ann@b.example>: known not to exist since 2026-11-03 (Postwarden)",
      ),
      `soft 5.1.1 ann@b.example ${AT}`,
    ],
    [
      "unknown, in two lines",
      delivery(
        "ann@b.example",
        "5.1.1",
        "bounced",
        "host mx.b.example[192.0.2.1] said: 550-5.1.1 The email account that you tried to reach does not exist. 550 5.1.1 Check the address. (in reply to RCPT TO command)",
      ),
      `hard 5.1.1 ann@b.example ${AT}`,
    ],
    [
      "a full mailbox",
      delivery("ann@b.example", "5.2.2", "bounced", "said: 552 5.2.2 full"),
      `soft 5.2.2 ann@b.example ${AT}`,
    ],
    ["a policy", delivery("ann@b.example", "5.7.1", "bounced", "said: 550 5.7.1 no"), `soft 5.7.1 ann@b.example ${AT}`],
    [
      "no such host",
      delivery(
        "ann@no.example",
        "5.4.4",
        "bounced",
        "Host or domain name not found. Name service error for name=no.example type=AAAA: Host not found",
      ),
      `hard 5.4.4 ann@no.example ${AT}`,
    ],
    [
      "a name server that was away",
      delivery(
        "ann@no.example",
        "5.4.4",
        "bounced",
        "Host or domain name not found. Name service error: Host not found, try again",
      ),
      `soft 5.4.4 ann@no.example ${AT}`,
    ],
    [
      "unable to route",
      delivery("ann@b.example", "5.4.4", "bounced", "unable to route"),
      `soft 5.4.4 ann@b.example ${AT}`,
    ],
    ["deferred", delivery("ann@b.example", "4.1.1", "deferred", "later"), "ignored: status=deferred"],
    ["sent", delivery("ann@b.example", "2.0.0", "sent", "250 ok"), "ignored: status=sent"],
    ["another line", line("from=<me@a.example>, size=12, nrcpt=1 (queue active)"), "ignored: not a delivery"],
    ["not a log", "hello", "unreadable: not a line of the log of Postfix"],
    ["no status", line("to=<ann@b.example>, relay=none"), "unreadable: a delivery without dsn= and status="],
    ["not an address", delivery("ann", "5.1.1", "bounced", SAID), "unreadable: the recipient is not an address"],
    ["too long", line("x".repeat(4_000)), "unreadable: longer than 4000 characters"],
    [
      "a reply that looks like a line",
      delivery(
        "ann@b.example",
        "4.7.1",
        "deferred",
        "said: 450 to=<eve@c.example>, dsn=5.1.1, status=bounced (550 5.1.1 no)",
      ),
      "ignored: status=deferred",
    ],
    [
      "an address that looks like the end of a line",
      delivery('"a>, dsn=5.1.1, status=bounced (x"@b.example', "2.0.0", "sent", "ok"),
      "unreadable: a delivery whose reply has a status= of its own",
    ],
    [
      "an address that is all of a line, in a log without quotes",
      delivery("victim@c.example>, relay=x, dsn=5.1.1, status=bounced (550 5.1.1 no)@b.example", "2.0.0", "sent", "ok"),
      "unreadable: a delivery whose reply has a status= of its own",
    ],
    [
      "a time of RFC 3339",
      line("to=<ann@b.example>, relay=none, dsn=5.1.1, status=bounced (unknown)", "2026-11-27T09:00:00.123456+02:00"),
      "hard 5.1.1 ann@b.example 2026-11-27T07:00:00",
    ],
    [
      "a time of the year before",
      line("to=<ann@b.example>, relay=none, dsn=5.1.1, status=bounced (unknown)", "Dec 31 23:00:00"),
      "hard 5.1.1 ann@b.example 2025-12-31T23:00:00",
    ],
    [
      "a time of a zone that is ahead, which the line does not name",
      line("to=<ann@b.example>, relay=none, dsn=5.1.1, status=bounced (unknown)", "Nov 28 12:00:00"),
      "hard 5.1.1 ann@b.example 2026-11-28T08:00:00",
    ],
    [
      "a time in the future",
      line("to=<ann@b.example>, relay=none, dsn=5.1.1, status=bounced (unknown)", "2031-01-01T00:00:00+00:00"),
      "hard 5.1.1 ann@b.example 2026-11-28T08:00:00",
    ],
  ])("%s", (_, text, expected) => expect(tellLog(text)).toEqual([expected]));

  test("empty lines are no events, and more lines than allowed are refused", () => {
    expect(tellLog("\n\r\n \n")).toEqual([]);
    expect(tellLog("x\n".repeat(EVENTS_MAX + 1))).toBe("too_many_events");
    expect(tellLog("x\n\n".repeat(EVENTS_MAX))).toHaveLength(EVENTS_MAX);
    expect(tellLog("x\n\n".repeat(EVENTS_MAX + 1))).toBe("too_many_events");
  });
});

const SES_BOUNCE = {
  feedbackId: "0100017a-1",
  bounceType: "Permanent",
  bounceSubType: "General",
  bouncedRecipients: [
    {
      emailAddress: "ann@b.example",
      action: "failed",
      status: "5.1.1",
      diagnosticCode: "smtp; 550 5.1.1 user unknown",
    },
    { emailAddress: "bob@b.example", action: "failed", status: "5.0.0", diagnosticCode: "smtp; 550 5.7.1 blocked" },
    { emailAddress: "cid@b.example" },
  ],
  timestamp: "2026-11-27T10:00:00.000Z",
};
const sns = (message: unknown, type = "Notification") => ({
  Type: type,
  MessageId: "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
  TopicArn: "arn:aws:sns:eu-west-1:123456789012:bounces",
  Message: typeof message === "string" ? message : JSON.stringify(message),
  Timestamp: "2026-11-27T10:00:01.000Z",
});
const sendgrid = (fields: object) => ({
  email: "ann@b.example",
  timestamp: 1_795_770_000,
  "smtp-id": "<1@a.example>",
  event: "bounce",
  sg_event_id: "e1",
  sg_message_id: "m1",
  ...fields,
});
const mailgun = (fields: object, delivery: object) => ({
  signature: { token: "t", timestamp: "1795770000", signature: "0" },
  "event-data": {
    id: "G9Bn5sl1TC6nu79C8C0bwg",
    event: "failed",
    timestamp: 1_795_770_000.5,
    recipient: "ann@b.example",
    severity: "permanent",
    reason: "bounce",
    "delivery-status": delivery,
    ...fields,
  },
});
const postmark = (fields: object) => ({
  RecordType: "Bounce",
  ID: 692_560_173,
  Type: "HardBounce",
  TypeCode: 1,
  MessageID: "883953f4-6105-42a2-a16a-77a8eac79483",
  Email: "ann@b.example",
  BouncedAt: "2026-11-27T10:00:00Z",
  Details: "smtp;550 5.1.1 The email account does not exist.",
  Inactive: true,
  ...fields,
});
const SES_TOLD = [
  "hard 5.1.1 ann@b.example 2026-11-27T10:00:00",
  "soft 5.7.1 bob@b.example 2026-11-27T10:00:00",
  "soft null cid@b.example 2026-11-27T10:00:00",
];
const AT = "2026-11-27T09:00:00";

describe("events of services", () => {
  const tests: Array<[string, unknown, string[] | string]> = [
    ["SES: a notification in SNS", sns({ notificationType: "Bounce", bounce: SES_BOUNCE, mail: {} }), SES_TOLD],
    ["SES: a published event in SNS", sns({ eventType: "Bounce", bounce: SES_BOUNCE, mail: {} }), SES_TOLD],
    ["SES: raw delivery", { notificationType: "Bounce", bounce: SES_BOUNCE }, SES_TOLD],
    [
      "SES: transient",
      {
        eventType: "Bounce",
        bounce: { ...SES_BOUNCE, bounceType: "Transient", bouncedRecipients: SES_BOUNCE.bouncedRecipients.slice(0, 1) },
      },
      ["soft 5.1.1 ann@b.example 2026-11-27T10:00:00"],
    ],
    [
      "SES: suppressed",
      { eventType: "Bounce", bounce: { ...SES_BOUNCE, bounceSubType: "OnAccountSuppressionList" } },
      ["ignored: on a suppression list of Amazon SES: no server was asked"],
    ],
    ["SES: a delivery", sns({ eventType: "Delivery", bounce: null }), ['ignored: an event of the type "Delivery"']],
    [
      "SES: no fields",
      { eventType: "Bounce", bounce: {} },
      ["unreadable: a bounce of Amazon SES that has not its fields"],
    ],
    [
      "SES: more recipients than one message has",
      {
        eventType: "Bounce",
        bounce: {
          ...SES_BOUNCE,
          bouncedRecipients: Array.from({ length: 101 }, () => ({ emailAddress: "a@b.example" })),
        },
      },
      ["unreadable: a bounce of Amazon SES that has not its fields"],
    ],
    ["SNS: another message", sns("Successfully validated SNS topic"), ["ignored: not a message of Amazon SES"]],
    ["SNS: the end", sns("x", "UnsubscribeConfirmation"), ["ignored: Amazon SNS ended the subscription"]],
    [
      "SendGrid: a bounce",
      [sendgrid({ status: "5.0.0", reason: "550 5.1.1 no such user" })],
      [`hard 5.1.1 ann@b.example ${AT}`],
    ],
    [
      "SendGrid: blocked",
      [sendgrid({ type: "blocked", reason: "unable to get mx info" })],
      [`soft null ann@b.example ${AT}`],
    ],
    [
      "SendGrid: blocked with the words of an unknown user",
      [sendgrid({ type: "blocked", status: "5.1.1", reason: "550 5.1.1 no such user" })],
      [`soft 5.1.1 ann@b.example ${AT}`],
    ],
    [
      "SendGrid: a time before 1970",
      [sendgrid({ status: "5.1.1", timestamp: -1 })],
      ["hard 5.1.1 ann@b.example 2026-11-28T08:00:00"],
    ],
    [
      "SendGrid: a long id",
      [sendgrid({ sg_event_id: "e".repeat(501) })],
      ["unreadable: the id of the event is too long"],
    ],
    [
      "SendGrid: dropped",
      [sendgrid({ event: "dropped", reason: "Bounced Address" })],
      ["ignored: dropped by SendGrid: no server was asked"],
    ],
    [
      "SendGrid: several",
      [sendgrid({ event: "open" }), 1],
      ['ignored: an event of the type "open"', "unreadable: not an event of SendGrid"],
    ],
    [
      "Mailgun: permanent",
      mailgun({}, { code: 550, message: "5.1.1 no such user" }),
      [`hard 5.1.1 ann@b.example ${AT}`],
    ],
    [
      "Mailgun: temporary",
      mailgun({ severity: "temporary" }, { code: 550, message: "5.1.1 no such user" }),
      [`soft 5.1.1 ann@b.example ${AT}`],
    ],
    [
      "Mailgun: not tried",
      mailgun({ reason: "suppress-bounce" }, { code: 550 }),
      ["ignored: on a suppression list of Mailgun: no server was asked"],
    ],
    [
      "Mailgun: not tried, by its code",
      mailgun({}, { code: 605, message: "Not delivering to previously bounced address" }),
      ["ignored: on a suppression list of Mailgun: no server was asked"],
    ],
    ["Mailgun: delivered", { "event-data": { event: "delivered" } }, ['ignored: an event of the type "delivered"']],
    ["Postmark: hard", postmark({}), ["hard 5.1.1 ann@b.example 2026-11-27T10:00:00"]],
    ["Postmark: hard, without a status", postmark({ Details: "no" }), ["soft null ann@b.example 2026-11-27T10:00:00"]],
    ["Postmark: soft", postmark({ Type: "SoftBounce" }), ["soft 5.1.1 ann@b.example 2026-11-27T10:00:00"]],
    [
      "Postmark: an automatic reply",
      postmark({ Type: "AutoResponder" }),
      ["ignored: a bounce of the type AutoResponder"],
    ],
    ["Postmark: an opened message", postmark({ RecordType: "Open" }), ['ignored: an event of the type "Open"']],
    ["no events", [], []],
    ["no known shape", { hello: 1 }, "unknown_format"],
    ["an array of something else", [{ hello: 1 }], "unknown_format"],
    ["nothing", null, "unknown_format"],
    ["too many", Array.from({ length: EVENTS_MAX + 1 }, () => sendgrid({})), "too_many_events"],
  ];
  test.each(tests)("%s", (_, body, expected) => expect(tellJson(body)).toEqual(expected));

  test.each([
    ["https://sns.eu-west-1.amazonaws.com/?Action=ConfirmSubscription&Token=1", true],
    ["http://sns.eu-west-1.amazonaws.com/?Token=1", false],
    ["https://sns.eu-west-1.amazonaws.com.evil.example/?Token=1", false],
    ["https://sns.eu-west-1.amazonaws.com@evil.example/?Token=1", false],
    ["https://sns.eu-west-1.amazonaws.com:8443/?Token=1", false],
    ["https://someone@sns.eu-west-1.amazonaws.com/?Token=1", false],
    ["javascript:alert(1)", false],
    ["", false],
  ])("the confirmation of a subscription at %s", (url, isShown) => {
    const read = readJsonEvents({ ...sns("confirm", "SubscriptionConfirmation"), SubscribeURL: url }, NOW_MS);
    expect(read.ok && read.value.confirmation?.url).toBe(isShown ? url : undefined);
  });
});

test("the first 500 characters of what a server said are kept, and count", () => {
  const read = readJsonEvents(postmark({ Details: `550 5.1.1 no such user ${"x".repeat(600)}` }), NOW_MS);
  const [event] = (read.ok ? read.value.events : []).map((one) => one());
  expect(event?.outcome === "bounce" && event.bounce.diagnostic?.length).toBe(500);
  expect(tellJson(postmark({ Details: `${"x ".repeat(250)}550 5.1.1 no` }))).toEqual([
    "soft null ann@b.example 2026-11-27T10:00:00",
  ]);
});

test("the key of an event is the same whenever it is sent, and another for each recipient", () => {
  const keys = (body: unknown) => {
    const read = readJsonEvents(body, NOW_MS);
    return (read.ok ? read.value.events : []).flatMap((read) => {
      const event = read();
      return event.outcome === "bounce" ? [event.bounce.eventKey] : [];
    });
  };
  const event = { eventType: "Bounce", bounce: SES_BOUNCE };
  expect(new Set(keys(event)).size).toBe(SES_BOUNCE.bouncedRecipients.length);
  expect(keys(sns(event))).toEqual(keys(event));
  // Two ids that are one number after JSON was read.
  expect(2 ** 62).toBe(2 ** 62 + 1);
  expect(keys(postmark({ ID: 2 ** 62 }))).not.toEqual(keys(postmark({ ID: 2 ** 62 + 1, MessageID: "another" })));
});

describe("whatever is sent", () => {
  test("no JSON makes a reader throw, and no bounce lies in the future", () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.constantFrom("SES", "SendGrid", "Mailgun", "Postmark", "any"), (value, format) => {
        const shapes: Record<string, unknown> = {
          SES: { eventType: "Bounce", bounce: { ...SES_BOUNCE, bouncedRecipients: value } },
          SendGrid: [sendgrid({ reason: value, timestamp: value }), value],
          Mailgun: mailgun({ timestamp: value }, { message: value }),
          Postmark: postmark({ Details: value, BouncedAt: value }),
          any: value,
        };
        const read = readJsonEvents(shapes[format], NOW_MS);
        for (const event of (read.ok ? read.value.events : []).map((one) => one()))
          if (event.outcome === "bounce") expect(event.bounce.bouncedAtMs).toBeLessThanOrEqual(NOW_MS);
      }),
    );
  });

  test("no text of a server changes what Postfix says of a message that was not refused", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary" }), fc.constantFrom("sent", "deferred"), (reply, status) => {
        const text = delivery("ann@b.example", "4.0.0", status, reply.replaceAll("\n", " "));
        expect(tellLog(text)).toEqual([`ignored: status=${status}`]);
      }),
    );
  });
});
