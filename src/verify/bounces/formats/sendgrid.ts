import { z } from "zod";
import { findStatus, ignored, readBounce, type EventReading, unreadable } from "../bounce.ts";

/** https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/event: `status` is missing where no server answered. */
const SendgridBounce = z.object({
  email: z.string(),
  timestamp: z.number(),
  sg_event_id: z.string(),
  status: z.string().optional(),
  reason: z.string().optional(),
  /** `bounce`, or `blocked` for a refusal that may pass. */
  type: z.string().default("bounce"),
});

export const SendgridEvent = z.object({ event: z.string(), email: z.unknown(), sg_event_id: z.unknown() });

/** One event of the array that Twilio SendGrid posts. */
export const readSendgrid = (event: unknown, nowMs: number): EventReading => {
  const named = SendgridEvent.safeParse(event);
  if (!named.success) return unreadable("not an event of SendGrid");
  if (named.data.event === "dropped") return ignored("dropped by SendGrid: no server was asked");
  if (named.data.event !== "bounce")
    return ignored(`an event of the type ${JSON.stringify(named.data.event.slice(0, 40))}`);
  const read = SendgridBounce.safeParse(event);
  if (!read.success) return unreadable("a bounce of SendGrid that has not its fields");
  const { email, timestamp, sg_event_id, status, reason = null, type } = read.data;
  return readBounce(
    {
      source: "sendgrid",
      eventId: sg_event_id,
      recipient: email,
      status: findStatus(status, reason),
      diagnostic: reason,
      atMs: timestamp * 1000,
      isTemporary: type !== "bounce",
    },
    nowMs,
  );
};
