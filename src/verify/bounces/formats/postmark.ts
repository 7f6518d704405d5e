import { z } from "zod";
import { findStatus, ignored, readBounce, type EventReading, unreadable } from "../bounce.ts";

/** The types that are answers of people and of filters, not failed deliveries: https://postmarkapp.com/developer/api/bounce-api#bounce-types */
const NOT_BOUNCES: ReadonlySet<string> = new Set([
  "Unsubscribe",
  "Subscribe",
  "AutoResponder",
  "AddressChange",
  "OpenRelayTest",
  "SpamComplaint",
  "ManuallyDeactivated",
  "Unconfirmed",
  "InboundError",
  "TemplateRenderingFailed",
]);

const PostmarkBounce = z.object({
  ID: z.number(),
  MessageID: z.string().default(""),
  Type: z.string(),
  Email: z.string(),
  BouncedAt: z.string(),
  Details: z.string().default(""),
});

export const PostmarkEvent = z.looseObject({ RecordType: z.string() });

/** The event of one request of Postmark. */
export const readPostmark = (event: z.infer<typeof PostmarkEvent>, nowMs: number): EventReading => {
  if (event.RecordType !== "Bounce")
    return ignored(`an event of the type ${JSON.stringify(event.RecordType.slice(0, 40))}`);
  const read = PostmarkBounce.safeParse(event);
  if (!read.success) return unreadable("a bounce of Postmark that has not its fields");
  const { ID, MessageID, Type, Email, BouncedAt, Details } = read.data;
  if (NOT_BOUNCES.has(Type)) return ignored(`a bounce of the type ${Type}`);
  return readBounce(
    {
      source: "postmark",
      // Ids are longer than the digits that a number of JSON keeps here, so that one alone may stand for several.
      eventId: `${ID}/${MessageID}`,
      recipient: Email,
      status: findStatus(Details),
      diagnostic: Details,
      atMs: Date.parse(BouncedAt),
      isTemporary: Type !== "HardBounce",
    },
    nowMs,
  );
};
