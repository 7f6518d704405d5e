import { z } from "zod";
import { isoTime } from "../../base/clock.ts";
import type { DmarcAlertRow } from "../domains/alert-store.ts";
import { ALERT_RULES } from "../domains/raise.ts";

const bodySchema = z.object({ summary: z.string(), data: z.record(z.string(), z.unknown()) });

/** An alert as the interface shows it. */
export const alertSchema = z
  .object({
    id: z.uuid(),
    rule: z.enum(ALERT_RULES),
    subject: z.string().meta({ description: "What it is about: a source, a name, a day." }),
    at: z.iso.datetime({ precision: 3 }),
    summary: z.string(),
    data: z.record(z.string(), z.unknown()).meta({
      description: "As in the event `dmarc.<rule>`, without the fields about the domain.",
    }),
  })
  .meta({ title: "DmarcAlert" });

export const alertsSchema = z.object({ alerts: z.array(alertSchema), next_cursor: z.string().nullable() });

/** A list of alerts has no filters. */
export const noAlertFiltersSchema = z.strictObject({});

export const alertView = ({ id, rule, subject, atMs, body }: DmarcAlertRow) => ({
  id,
  rule,
  subject,
  at: isoTime(atMs),
  ...bodySchema.parse(JSON.parse(body)),
});
