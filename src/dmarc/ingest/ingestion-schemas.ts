import { z } from "zod";
import { isId } from "../../base/secrets.ts";
import { findingSchema } from "./ingestion-finding.ts";

const OUTCOMES = ["stored", "duplicate", "empty", "quarantined", "rejected"] as const;
const STATUSES = ["pending", "done"] as const;
const VIAS = ["smtp", "http", "import", "imap"] as const;
const REASON_CHARACTERS_MAX = 100;

const time = z.iso.datetime({ precision: 3 });
/** As it is asked for: milliseconds since 1970. */
const moment = z.iso.datetime({ offset: true }).transform((text) => Date.parse(text));

/** The filters of the list of ingestions. */
export const ingestionFiltersSchema = z.strictObject({
  status: z.enum(STATUSES).optional(),
  outcome: z.enum(OUTCOMES).optional(),
  reason: z.string().min(1).max(REASON_CHARACTERS_MAX).optional(),
  via: z.enum(VIAS).optional(),
  domain_id: z.string().refine(isId, "The id of a domain is needed").optional(),
  created_after: moment.optional(),
  created_before: moment.optional(),
});

/** The choices of the filters, for the OpenAPI document. */
export const INGESTION_CHOICES = { status: STATUSES, outcome: OUTCOMES, via: VIAS } as const;

export const ingestionSchema = z
  .object({
    id: z.uuid(),
    via: z.enum(VIAS),
    status: z.enum(STATUSES).meta({ description: "`pending`: taken and kept, and still to be read." }),
    outcome: z.enum(OUTCOMES).nullable().meta({ description: "The most telling of the findings' outcomes." }),
    reason: z.string().nullable().meta({ description: "The reason of that finding." }),
    name: z.string().nullable().meta({ description: "The name of the file; null for mails." }),
    bytes: z.int(),
    received_at: time,
    finished_at: time.nullable(),
    domain_id: z
      .string()
      .nullable()
      .meta({ description: "The domain whose reporting address a mail came to; null for files." }),
    client: z.string().nullable().meta({ description: "The address of the host that handed a mail in." }),
    mail_from: z.string().nullable(),
    raw_available: z.boolean().meta({ description: "Whether the bytes are still kept." }),
    accepted_at: time.nullable().meta({
      description: "When you accepted the mail although it is not authenticated (`accept_unauthenticated`).",
    }),
    findings: z.array(findingSchema),
  })
  .meta({ title: "DmarcIngestion" });

export const ingestionsSchema = z
  .object({ ingestions: z.array(ingestionSchema), next_cursor: z.string().nullable() })
  .meta({ title: "DmarcIngestionList" });

export const uploadedSchema = z
  .object({ ingestions: z.array(ingestionSchema).meta({ description: "One for each file, in their order." }) })
  .meta({ title: "DmarcUploadedReports" });

/** Body of `POST …/retry`; it may be left out. */
export const retrySchema = z
  .strictObject({
    accept_unauthenticated: z.literal(true).optional().meta({
      description:
        "Count the reports of this mail although it is not authenticated as the reporter's: you vouch for it, as if you had uploaded it. The ingestion keeps that in `accepted_at`; it cannot be taken back.",
    }),
  })
  .meta({ title: "DmarcRetry" });

export const retriedSchema = z
  .object({ retried: z.int().meta({ description: "How many are read again." }) })
  .meta({ title: "DmarcRetriedIngestions" });
