import { POLICY_EXAMPLE } from "../domains/domain-examples.ts";
import { z } from "zod";
import type { EventDoc } from "../../http/openapi.ts";
import { eventDoc } from "./event-doc.ts";
import { failureSpike, newSource, spoofingCampaign } from "./event-docs-sources.ts";
import { CHANGE_CODES } from "../domains/dns-changes.ts";
import { policySchema } from "../domains/domain-schemas.ts";
import { dnsCheckSchema } from "../domains/domain-state.ts";
import { DOMAIN_STATUSES } from "../domains/domain-store.ts";

const day = z.iso.date();
const time = z.iso.datetime({ precision: 3 });
const share = z.number().min(0).max(1);
const recordSchema = z
  .string()
  .nullable()
  .meta({ description: "The text of the DMARC record at the domain; null when there is none, or more than one." });

const RECORD = "v=DMARC1; p=reject; rua=mailto:k3y7@reports.example.net";

const nameSchema = z.object({
  name: z.string(),
  first_day: day,
  messages: z.int().meta({ description: "On the last seven days." }),
  aligned: z.int(),
});

const NAME = { name: "news.example.com", first_day: "2026-01-01", messages: 412, aligned: 410 };

const statusSchema = z.enum(DOMAIN_STATUSES);
/** What every event of a check of the DNS says. */
const checkedFields = { trigger: z.enum(["enrolled", "scheduled", "manual"]), checked_at: time };
const CHECKED = { trigger: "scheduled", checked_at: "2026-01-01T00:00:03.120Z" } as const;

const statusChanged = eventDoc(
  "status_changed",
  "The status of a domain changed",
  z.object({
    previous_status: statusSchema,
    status: statusSchema,
    checks: z.array(dnsCheckSchema),
    ...checkedFields,
  }),
  {
    ...CHECKED,
    previous_status: "active",
    status: "action_required",
    checks: [
      {
        code: "reporting_address",
        ok: false,
        observed: "mailto:dmarc@example.com",
        expected: "mailto:k3y7@reports.example.net",
        message: "The reporting address is not in rua, so that no reports come.",
      },
    ],
  },
);

const recordChanged = eventDoc(
  "record_changed",
  "The DMARC record of a domain changed, came or went",
  z.object({
    changes: z.array(z.enum(CHANGE_CODES)).meta({ description: "What changed, as in `GET …/history`." }),
    previous_record: recordSchema,
    record: recordSchema,
    ...checkedFields,
  }),
  {
    ...CHECKED,
    changes: ["record_changed"],
    previous_record: "v=DMARC1; p=none; rua=mailto:k3y7@reports.example.net",
    record: RECORD,
  },
);

const policyWeakened = eventDoc(
  "policy_weakened",
  "The policy of a domain protects less than before",
  z.object({
    previous_policy: policySchema.nullable(),
    policy: policySchema.nullable(),
    record: recordSchema,
    ...checkedFields,
    trigger: z.enum(["enrolled", "scheduled", "manual", "reports"]).meta({
      description:
        "`reports`: trusted reports say that receivers found a weaker policy between two checks; `record` is what stands there now.",
    }),
    reported: z
      .object({ first_day: day, last_day: day, reporters: z.array(z.string()) })
      .optional()
      .meta({
        description: "With `reports`: the days on which reporters found the weaker policy, and which ones did.",
      }),
  }),
  {
    ...CHECKED,
    previous_policy: POLICY_EXAMPLE,
    policy: { ...POLICY_EXAMPLE, p: "none", sp: "none", np: "none" },
    record: "v=DMARC1; p=none; rua=mailto:k3y7@reports.example.net",
  },
);

const newSubdomain = eventDoc(
  "new_subdomain",
  "Mail names a subdomain in `From` that was not seen before",
  z.object({
    count: z.int().meta({ description: "How many names are new; more than ten come as one event." }),
    names: z.array(nameSchema).meta({ description: "The ten with the most messages." }),
  }),
  { count: 1, names: [NAME] },
);

const reportsStopped = eventDoc(
  "reports_stopped",
  "No report about a domain has come for 72 hours, or three times as long as is usual for it",
  z.object({ last_report_at: time, last_day: day.meta({ description: "The last day that a report is about." }) }),
  { last_report_at: "2026-01-01T05:12:44.310Z", last_day: "2025-12-31" },
);

const tlsFailures = eventDoc(
  "tls_failures",
  "TLS sessions of servers that deliver mail to a domain fail for a reason, or do so no longer",
  z.object({
    state: z.enum(["began", "ended"]),
    policy_domain: z.string(),
    policy_type: z.string().nullable().meta({ description: "`sts`, `tlsa` or `no-policy-found`." }),
    result_type: z
      .string()
      .meta({ description: "As in RFC 8460 section 4.3; `unspecified` where reports do not say." }),
    meaning: z.string(),
    advice: z.string(),
    sessions: z.int().meta({ description: "All sessions under the policy on the last two days with reports." }),
    failed_sessions: z.int(),
    failing_share: share,
    mx_hosts: z.array(z.object({ host: z.string(), sessions: z.int() })).meta({ description: "With failed sessions." }),
    reporters: z.array(z.string()),
    first_day: day,
    last_day: day,
  }),
  {
    state: "began",
    policy_domain: "example.com",
    policy_type: "sts",
    result_type: "certificate-expired",
    meaning: "the certificate has expired",
    advice: "Renew the certificate of the MX host, and see that the mail server has loaded the new one.",
    sessions: 1_203,
    failed_sessions: 84,
    failing_share: 0.0698,
    mx_hosts: [{ host: "mx1.example.com", sessions: 84 }],
    reporters: ["Google Inc."],
    first_day: "2025-12-31",
    last_day: "2026-01-01",
  },
);

/** The events of DMARC monitoring, as the OpenAPI document describes them. */
export const DMARC_EVENTS: readonly EventDoc[] = [
  statusChanged,
  recordChanged,
  policyWeakened,
  newSource,
  newSubdomain,
  failureSpike,
  spoofingCampaign,
  reportsStopped,
  tlsFailures,
];
