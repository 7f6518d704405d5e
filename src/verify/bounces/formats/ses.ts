import { z } from "zod";
import { findStatus, ignored, readBounce, type UnreadEvent, unreadable } from "../bounce.ts";

const RECIPIENTS_MAX = 100;
/** A list of suppressed addresses repeats an older bounce: no server was asked. */
const SUPPRESSED: ReadonlySet<string> = new Set(["Suppressed", "OnAccountSuppressionList"]);

/** https://docs.aws.amazon.com/ses/latest/dg/notification-contents.html#bounce-object */
const SesBounce = z.object({
  bounceType: z.enum(["Undetermined", "Permanent", "Transient"]),
  bounceSubType: z.string().default("Undetermined"),
  bouncedRecipients: z
    .array(
      z.object({
        emailAddress: z.string(),
        status: z.string().optional(),
        diagnosticCode: z.string().optional(),
      }),
    )
    .max(RECIPIENTS_MAX),
  timestamp: z.string(),
  feedbackId: z.string(),
});

/** `notificationType` in notifications, `eventType` in published events. */
export const SesEvent = z.union([
  z.object({ notificationType: z.string(), bounce: z.unknown() }),
  z.object({ eventType: z.string(), bounce: z.unknown() }),
]);

/** The events of one message of Amazon SES: one for each recipient. */
export const readSes = (event: z.infer<typeof SesEvent>, nowMs: number): UnreadEvent[] => {
  const type = "eventType" in event ? event.eventType : event.notificationType;
  if (type !== "Bounce") return [() => ignored(`an event of the type ${JSON.stringify(type.slice(0, 40))}`)];
  const read = SesBounce.safeParse(event.bounce);
  if (!read.success) return [() => unreadable("a bounce of Amazon SES that has not its fields")];
  const { bounceType, bounceSubType, bouncedRecipients, timestamp, feedbackId } = read.data;
  if (SUPPRESSED.has(bounceSubType)) return [() => ignored("on a suppression list of Amazon SES: no server was asked")];
  return bouncedRecipients.map(
    ({ emailAddress, status, diagnosticCode = null }) =>
      () =>
        readBounce(
          {
            source: "ses",
            eventId: feedbackId,
            recipient: emailAddress,
            status: findStatus(status, diagnosticCode),
            diagnostic: diagnosticCode,
            atMs: Date.parse(timestamp),
            isTemporary: bounceType !== "Permanent",
          },
          nowMs,
        ),
  );
};

/** What Amazon SNS puts around a message: https://docs.aws.amazon.com/sns/latest/dg/sns-message-and-json-formats.html */
export const SnsEnvelope = z.object({
  Type: z.enum(["Notification", "SubscriptionConfirmation", "UnsubscribeConfirmation"]),
  Message: z.string(),
  TopicArn: z.string(),
  SubscribeURL: z.string().optional(),
});
