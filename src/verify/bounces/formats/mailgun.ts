import { z } from "zod";
import { findStatus, ignored, readBounce, type EventReading, unreadable } from "../bounce.ts";

/** The code with which Mailgun says that it did not try, since the address bounced before. */
const NOT_TRIED = 605;

/** https://documentation.mailgun.com/docs/mailgun/user-manual/events/event-structure */
const MailgunFailure = z.object({
  id: z.string(),
  timestamp: z.number(),
  recipient: z.string(),
  severity: z.enum(["permanent", "temporary"]),
  reason: z.string().default(""),
  "delivery-status": z.object({
    code: z.union([z.number(), z.string()]).optional(),
    "enhanced-code": z.string().optional(),
    message: z.string().optional(),
    description: z.string().optional(),
  }),
});

export const MailgunEvent = z.object({ "event-data": z.looseObject({ event: z.string() }) });

/** The event of one request of Mailgun. */
export const readMailgun = ({ "event-data": event }: z.infer<typeof MailgunEvent>, nowMs: number): EventReading => {
  if (event.event !== "failed") return ignored(`an event of the type ${JSON.stringify(event.event.slice(0, 40))}`);
  const read = MailgunFailure.safeParse(event);
  if (!read.success) return unreadable("a failure of Mailgun that has not its fields");
  const { id, timestamp, recipient, severity, reason, "delivery-status": delivery } = read.data;
  if (Number(delivery.code) === NOT_TRIED || reason.startsWith("suppress-"))
    return ignored("on a suppression list of Mailgun: no server was asked");
  const said = [delivery.message, delivery.description].find((text) => text !== undefined && text !== "") ?? null;
  return readBounce(
    {
      source: "mailgun",
      eventId: id,
      recipient,
      // The message often begins with the enhanced code, and the code of the reply stands in a field of its own.
      status: findStatus(delivery["enhanced-code"], said, `${delivery.code ?? ""} ${said ?? ""}`),
      diagnostic: said,
      atMs: timestamp * 1000,
      isTemporary: severity === "temporary",
    },
    nowMs,
  );
};
