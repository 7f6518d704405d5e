import { z } from "zod";
import { ADVICE_ACTIONS, type Advice, STAGES } from "./advice.ts";
import { NOTE_CODES } from "./advice-notes.ts";
import { REQUIREMENT_CODES } from "./advice-requirements.ts";

/** Advice as the interface answers it. */
export const adviceSchema = z
  .object({
    stage: z.enum(STAGES).meta({
      description:
        "How far the domain has come: `rehearsal` is `p=quarantine; t=y`, `reject_rehearsal` is `p=reject; t=y`.",
    }),
    ready: z.boolean().meta({ description: "Whether every requirement of the next stage is met." }),
    next: z
      .object({
        action: z.enum(ADVICE_ACTIONS),
        record: z.string().nullable().meta({
          description:
            "The whole text to publish in place of the one that stands at the `_dmarc` name; only the tags concerned differ from it.",
        }),
        why: z.string(),
        source: z.string().nullable().meta({ description: "`key` of the source that the step is about." }),
        steps: z.array(z.string()).meta({
          description: "What to do, in this order; empty where publishing `record` is all.",
        }),
      })
      .nullable()
      .meta({ description: "Null when nothing is left to do." }),
    requirements: z.array(
      z.object({
        code: z.enum(REQUIREMENT_CODES),
        met: z.boolean(),
        observed: z.union([z.number(), z.string()]),
        expected: z.union([z.number(), z.string()]).meta({ description: "Shares are numbers from 0 to 1." }),
        message: z.string(),
      }),
    ),
    notes: z.array(z.object({ code: z.enum(NOTE_CODES), message: z.string() })),
    unauthenticated_percent: z.number().nullable().meta({
      description:
        "Messages that this advice leaves out, because only reports tell of them whose mail is not authenticated as the reporter's: of all messages of the last 30 days, one decimal; null without messages.",
    }),
  })
  .meta({ title: "DmarcAdvice" });

export const ADVICE_EXAMPLE: Advice = {
  stage: "monitoring",
  ready: false,
  next: {
    action: "fix_sources",
    record: null,
    why: "Mailchimp sends 7,244 messages a month that do not pass DMARC. Set up DKIM for example.com at Mailchimp (https://mailchimp.com/help/set-up-email-domain-authentication/) and publish the CNAME records that it shows.",
    source: "service:mailchimp",
    steps: [
      "Set up DKIM for example.com at Mailchimp (https://mailchimp.com/help/set-up-email-domain-authentication/) and publish the CNAME records that it shows.",
      "SPF cannot align at this service, because it uses its own return path; DKIM is enough.",
    ],
  },
  requirements: [
    {
      code: "record_in_order",
      met: true,
      observed: "active",
      expected: "active",
      message: "The record is in order and reports come here.",
    },
    {
      code: "reported_days",
      met: false,
      observed: 6,
      expected: 14,
      message: "6 of 14 days with reports so far, counted in the last 30 days and since the present policy stands.",
    },
  ],
  notes: [],
  unauthenticated_percent: 0,
};
