import { z } from "zod";
import { nullableText } from "../../../foundation/http/schema-fields.ts";
import { action } from "../../../notifications/mail/mail-content.ts";
import { CHANGE_CODES } from "../../records/domains/domain-state.ts";
import { alertRule, domainLink, texts } from "./alert-rule.ts";
import { CHECK_FIELDS_EXAMPLE, CHECK_FIELDS } from "./status-changed.ts";

export const recordField = nullableText(
  "The text of the DMARC record at the domain; null when there is none, or more than one.",
);
export const MONITORING_RECORD = "v=DMARC1; p=none; rua=mailto:k3y7@reports.example.net";

/** Raised by checks of the DNS: see `check-effects.ts`. */
export const RECORD_CHANGED = alertRule({
  name: "record_changed",
  words: "Record changed",
  description: "The DMARC record changed.",
  summary: "The DMARC record of a domain was published, changed or removed",
  title: "the DMARC record changed",
  data: z.object({
    changes: z.array(z.enum(CHANGE_CODES)).describe("What changed, as in `GET …/history`."),
    previous_record: recordField,
    record: recordField,
    ...CHECK_FIELDS,
  }),
  example: {
    ...CHECK_FIELDS_EXAMPLE,
    changes: ["record_changed"],
    previous_record: MONITORING_RECORD,
    record: "v=DMARC1; p=reject; rua=mailto:k3y7@reports.example.net",
  },
  mail: ({ previous_record: before, record }, domain) => [
    before === record ? null : texts(`Before: ${before ?? "no record"}`, `Now: ${record ?? "no record"}`),
    before === null || record !== null
      ? null
      : action(`To restore it, publish this TXT record at _dmarc.${domain.domain}:`, before),
    action("If you did not make this change, somebody else can change your DNS."),
    domainLink(domain, "record", "Show the history of the record"),
  ],
});
