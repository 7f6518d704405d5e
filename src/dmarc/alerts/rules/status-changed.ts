import { z } from "zod";
import { timeField } from "../../../foundation/http/schema-fields.ts";
import { dnsCheckSchema } from "../../records/domains/domain-state.ts";
import { DOMAIN_STATUSES } from "../../records/domains/domain-store.ts";
import { alertRule, publishActions, recordToPublish, texts } from "./alert-rule.ts";

const status = (description: string) => z.enum(DOMAIN_STATUSES).describe(description);

/** When and why the DNS was checked. */
export const CHECK_FIELDS = {
  trigger: z.enum(["enrolled", "scheduled", "manual"]).describe("What started the check of the DNS."),
  checked_at: timeField("When the DNS was checked."),
};
export const CHECK_FIELDS_EXAMPLE = { trigger: "scheduled", checked_at: "2026-01-01T00:00:03.120Z" } as const;

/** Raised by checks of the DNS: see `check-effects.ts`. */
export const STATUS_CHANGED = alertRule({
  name: "status_changed",
  words: "Status changed",
  description: "The status of the domain changed.",
  summary: "The status of a domain changed",
  title: (text) => `DMARC status ${text("status")}`,
  incident: (text) =>
    text("status") === "pending" ? null : { about: [], ends: text("status") === "active", severity: "high" },
  data: z.object({
    previous_status: status("Status before the check."),
    status: status("Status since the check."),
    checks: z.array(dnsCheckSchema).describe("The DNS checks and their results."),
    ...CHECK_FIELDS,
  }),
  example: {
    ...CHECK_FIELDS_EXAMPLE,
    previous_status: "active",
    status: "action_required",
    checks: [
      {
        code: "reporting_address",
        ok: false,
        observed: "mailto:dmarc@example.com",
        expected: "mailto:k3y7@reports.example.net",
        message: "The reporting address is not in rua.",
      },
    ],
  },
  mail: ({ status: current, checks }, domain) => [
    texts(...checks.filter(({ ok }) => ok === false).map(({ message }) => message)),
    ...(current === "active" ? [] : publishActions(domain, recordToPublish(checks))),
  ],
});
