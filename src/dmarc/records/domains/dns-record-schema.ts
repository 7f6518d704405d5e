import { z } from "zod";
import { nullableText, textField } from "../../../foundation/http/schema-fields.ts";

/** A DNS record that the owner of a domain publishes, as the API shows it and a check stores it. */
export const dnsRecordSchema = z
  .object({
    host: textField("The name of the record."),
    type: z.literal("TXT").meta({ description: "The type of the record." }),
    action: z.enum(["create", "update", "none", "conflict"]).meta({
      description:
        "`create`: publish `value`. `update`: replace `current` with `value`. `none`: the record contains the reporting address; `message` says if anything else must be done. `conflict`: no record can be advised; see `reason`.",
    }),
    value: textField(
      "The complete text of the TXT record. Every tag of an existing record is kept; the reporting address is added to its `rua`. Empty for `conflict`, except for an alias that a record may replace.",
    ),
    current: nullableText("What is published now, one record per line; null for nothing."),
    strings: z
      .array(z.string())
      .meta({ description: "`value` as the strings of one TXT record, at most 255 octets each." }),
    reason: z.enum(["several_records", "cname", "several_rua_tags", "too_long", "dns_failure"]).nullable().meta({
      description:
        "Why the action is `conflict`; otherwise null. `dns_failure`: there was no DNS response; request it again, and publish nothing before that.",
    }),
    message: textField("What to do, in a sentence."),
    warnings: z
      .array(z.object({ code: textField("The kind of fault."), message: textField("The fault, in a sentence.") }))
      .meta({ description: "Faults of the existing record." }),
  })
  .meta({ title: "DmarcDnsRecord" });
export type DnsRecordView = z.output<typeof dnsRecordSchema>;
