import { z } from "zod";
import { SOURCE_KINDS } from "../sources/source-identity.ts";
import { sourceSchema } from "../sources/source-response.ts";
import { eventDoc } from "./event-doc.ts";
import { CAUSE_CODES } from "./failure-causes.ts";

const day = z.iso.date();
const share = z.number().min(0).max(1);

const eventSourceSchema = z.object({
  key: z.string().meta({ description: "As in `GET …/sources`." }),
  name: z.string(),
  kind: z.enum(SOURCE_KINDS),
  service: z.string().nullable(),
  classification: z.enum(["authorized", "misconfigured", "forwarder", "unknown", "threat"]),
  first_day: day,
  messages: z.int().meta({ description: "On the last seven days." }),
  aligned: z.int(),
  dkim: sourceSchema.shape.dkim,
  spf: sourceSchema.shape.spf,
  addresses: sourceSchema.shape.addresses,
});

const SOURCE = {
  key: "service:brevo",
  name: "Brevo",
  kind: "service",
  service: "Brevo",
  classification: "misconfigured",
  first_day: "2026-01-01",
  messages: 412,
  aligned: 0,
  dkim: [{ domain: "brevo.com", selector: null, aligned: false, messages: 412 }],
  spf: [{ domain: "ab.d.mailin.fr", messages: 412 }],
  addresses: [
    {
      ip: "192.0.2.10",
      reverse_name: "ab.d.mailin.fr",
      confirmed: true,
      asn: 200484,
      as_name: "SENDINBLUE",
      country: "FR",
    },
  ],
};

export const newSource = eventDoc(
  "new_source",
  "Somebody sends mail in the name of a domain who was not seen before",
  z.object({
    count: z.int().meta({ description: "How many sources are new; more than ten come as one event." }),
    sources: z.array(eventSourceSchema).meta({ description: "The ten with the most messages." }),
  }),
  { count: 1, sources: [SOURCE] },
);

export const failureSpike = eventDoc(
  "failure_spike",
  "Much more mail of a source fails DMARC than usual; again when that doubles, and when it ends",
  z.object({
    state: z.enum(["started", "grew", "ended"]),
    started_day: day,
    day: day.meta({ description: "The last day that was judged." }),
    messages: z
      .int()
      .meta({ description: "Since it started; when it ended, on that day. Without what was forwarded." }),
    failing: z.int(),
    failing_share: share,
    usual_failing_share: share.meta({ description: "Before, on the same weekdays." }),
    sources: z
      .array(
        eventSourceSchema.extend({
          started_day: day,
          failing: z.int(),
          failing_share: share,
          usual_failing_share: share,
          causes: z
            .array(
              z.object({
                code: z.enum(CAUSE_CODES),
                domain: z.string(),
                selector: z.string().nullable(),
                result: z.string().nullable(),
                message: z.string(),
              }),
            )
            .meta({ description: "What the records show: what usually passed and now fails or is missing." }),
        }),
      )
      .meta({ description: "A hundred at most, those with the most failing messages first." }),
  }),
  {
    state: "started",
    started_day: "2026-01-01",
    day: "2026-01-02",
    messages: 430,
    failing: 412,
    failing_share: 0.9581,
    usual_failing_share: 0.01,
    sources: [
      {
        ...SOURCE,
        started_day: "2026-01-01",
        failing: 412,
        failing_share: 0.9581,
        usual_failing_share: 0.01,
        causes: [
          {
            code: "dkim_failing",
            domain: "example.com",
            selector: "mail",
            result: "fail",
            message: "DKIM signatures of example.com with selector mail have failed since 2026-01-01 (fail).",
          },
        ],
      },
    ],
  },
);

export const spoofingCampaign = eventDoc(
  "spoofing_campaign",
  "Far more unauthenticated mail than usual comes from addresses without a proper reverse name; once for each campaign",
  z.object({
    started_day: day,
    day: day.meta({ description: "The last day of it so far." }),
    messages: z.int(),
    networks: z.int(),
    quarantined: z.int(),
    rejected: z.int(),
  }),
  { started_day: "2026-01-01", day: "2026-01-01", messages: 312, networks: 41, quarantined: 0, rejected: 312 },
);
