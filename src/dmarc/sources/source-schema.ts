import { z } from "zod";
import { CLASSIFICATIONS } from "./rollup-store.ts";
import { SOURCE_KINDS } from "./source-identity.ts";

const count = z.int().nonnegative();
const date = z.iso.date();

/** A source as users see it, exactly as the interface answers it. Counts are of the range that was asked for. */
export const sourceSchema = z
  .object({
    key: z.string().meta({
      description:
        "`own`: the domain's own servers. `service:<id>`: a known service; with `/others` at the end what comes from there without being connected with the domain's own account, such as forwarded mail. `org:<domain>`: another organization. `net:<network>`: a network without a name. `unauthenticated`: unauthenticated mail from addresses without a proper reverse name, taken together. `pending`: the same while reverse names are still being looked up. `other`: addresses beyond the most that are kept apart for a domain.",
    }),
    kind: z.enum(SOURCE_KINDS).meta({ description: "The first part of the key in words; `network` also for `other`." }),
    name: z.string().meta({ description: "For people." }),
    service: z.string().nullable().meta({ description: "The sending service, when it is a known one." }),
    service_id: z.string().nullable().meta({ description: "Its identifier in the table of services." }),
    classification: z
      .enum(CLASSIFICATIONS)
      .meta({ description: "Yours, else by the rules that the list of sources states." }),
    classified_by: z.enum(["user", "service"]).meta({
      description: "`user` when you classified it, itself or by a rule, which overrides the automatic classification.",
    }),
    messages: count,
    aligned: count.meta({ description: "Passed DMARC: by aligned DKIM or aligned SPF." }),
    failing: count,
    aligned_percent: z.number().nullable().meta({ description: "One decimal; null when there are no messages." }),
    dkim_aligned: count,
    spf_aligned: count,
    forwarded: count.meta({ description: "Not aligned, but recognized as forwarded by the receiver." }),
    authenticated_unaligned: count.meta({
      description: "Not aligned, although DKIM or SPF passed for another domain.",
    }),
    quarantined: count,
    rejected: count,
    first_day: date.meta({ description: "The first day in any report, whatever the range." }),
    last_day: date,
    dkim: z
      .array(z.object({ domain: z.string(), selector: z.string().nullable(), aligned: z.boolean(), messages: count }))
      .meta({ description: "Signatures that passed, ten at most, those with the most messages first." }),
    spf: z
      .array(z.object({ domain: z.string(), messages: count }))
      .meta({ description: "Envelope domains that passed SPF, ten at most, those with the most messages first." }),
    network_count: count.meta({ description: "Its networks: /24 of IPv4, /48 of IPv6." }),
    address_count: count,
    lookups_pending: z
      .boolean()
      .meta({ description: "Whether reverse names of its addresses are still being looked up." }),
    addresses: z
      .array(
        z.object({
          ip: z.string(),
          reverse_name: z.string().nullable(),
          confirmed: z.boolean().meta({ description: "Whether the reverse name leads back to the address." }),
          asn: z.int().nullable().meta({ description: "The AS that announces the address; null: not known." }),
          as_name: z.string().nullable(),
          country: z.string().nullable().meta({ description: "ISO 3166-1 alpha-2." }),
        }),
      )
      .meta({ description: "Some of its addresses, eight at most, the most recent first." }),
  })
  .meta({ title: "DmarcSource" });

export type Source = Readonly<z.infer<typeof sourceSchema>>;
