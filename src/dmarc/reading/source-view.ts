import { z } from "zod";
import { CLASSIFICATIONS } from "./reading-store.ts";

const count = z.int().nonnegative();
const date = z.iso.date();

export const SOURCE_KINDS = ["dkim", "spf", "reverse", "network"] as const;
export type SourceKind = (typeof SOURCE_KINDS)[number];

/** A source as users see it, exactly as the interface answers it. Counts are of the range that was asked for. */
export const shownSourceSchema = z
  .object({
    key: z.string().meta({
      description:
        "`dkim:` and the domain of an aligned signature, else `spf:` and the domain that passed SPF, else `ptr:` and the organisational domain of the forward-confirmed reverse name, else `net:` and the network.",
    }),
    kind: z.enum(SOURCE_KINDS),
    name: z.string(),
    service: z.string().nullable().meta({ description: "The sending service, when it is a known one." }),
    services: z.array(z.string()).meta({
      description:
        "The known services that the addresses shown belong to, by their forward-confirmed reverse names: through whom a signature or an envelope is sent.",
    }),
    classification: z.enum(CLASSIFICATIONS),
    classified_by: z.enum(["user", "service"]).meta({ description: "The user's word wins." }),
    messages: count,
    aligned: count,
    failing: count,
    aligned_percent: z.number().nullable(),
    dkim_aligned: count,
    spf_aligned: count,
    forwarded: count.meta({ description: "Not aligned, but passed on by somebody the receiver knows." }),
    authenticated_unaligned: count.meta({
      description: "Not aligned, although DKIM or SPF passed for another domain.",
    }),
    quarantined: count,
    rejected: count,
    first_day: date.meta({ description: "The first day that any report tells of it, whatever the range." }),
    last_day: date,
    addresses: z
      .array(z.object({ ip: z.string(), reverse_name: z.string().nullable(), confirmed: z.boolean() }))
      .meta({ description: "Some of its addresses, eight at most, the most recent first." }),
  })
  .meta({ title: "DmarcSource" });

export type ShownSource = Readonly<z.infer<typeof shownSourceSchema>>;
