import { z } from "zod";
import type { EventDoc } from "../../../foundation/http/openapi.ts";
import { POLICY_EXAMPLE } from "../../records/domains/domain-examples.ts";
import { ALERT_RULES, type AlertRule } from "../../records/domains/raise.ts";
import { ALERT_DATA, type AlertData } from "./alert-data.ts";

/** The fields about the domain in the data of every event. */
const domainSchema = z.object({
  domain_id: z.uuid().meta({ description: "Identifier of the domain." }),
  domain: z.string().meta({ description: "Name of the domain." }),
  label: z.string().nullable().meta({ description: "Your label of the domain." }),
  mode: z.enum(["live", "test"]).meta({ description: "Mode of the key that enrolled the domain." }),
});

const DOMAIN = {
  domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  label: "shop",
  mode: "live",
} as const;

const SUMMARIES: Readonly<Record<AlertRule, string>> = {
  status_changed: "The status of a domain changed",
  record_changed: "The DMARC record of a domain was published, changed or removed",
  policy_weakened: "The policy of a domain protects less than before",
  new_source: "A source that was not seen before sends mail with a domain in From",
  new_subdomain: "Mail that passes DMARC has a subdomain in From that was not seen before",
  failure_spike: "Much more mail of a source fails DMARC than usual; again when that doubles, and when it ends",
  spoofing_campaign:
    "Far more unauthenticated mail than usual comes from addresses without a proper reverse name; once for each campaign",
  reports_stopped: "No report about a domain has arrived for 72 hours, or three times as long as is usual for it",
  tls_failures: "TLS sessions of servers that deliver mail to a domain begin to fail for a reason, or no longer fail",
  excessive_reporter:
    "The counts of a reporter that is neither known nor accepted are far above those of all others; once, until they no longer are",
};

const CHECKED = { trigger: "scheduled", checked_at: "2026-01-01T00:00:03.120Z" } as const;
const MONITORING_RECORD = "v=DMARC1; p=none; rua=mailto:k3y7@reports.example.net";
const REJECT_RECORD = "v=DMARC1; p=reject; rua=mailto:k3y7@reports.example.net";

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
} satisfies AlertData<"new_source">["sources"][number];

const SHARES = { failing: 412, failing_share: 0.9581, usual_failing_share: 0.01 };

/** An example of the data of each alert. */
export const ALERT_EXAMPLES: { readonly [R in AlertRule]: AlertData<R> } = {
  status_changed: {
    ...CHECKED,
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
  record_changed: {
    ...CHECKED,
    changes: ["record_changed"],
    previous_record: MONITORING_RECORD,
    record: REJECT_RECORD,
  },
  policy_weakened: {
    ...CHECKED,
    previous_policy: POLICY_EXAMPLE,
    policy: { ...POLICY_EXAMPLE, p: "none", sp: "none", np: "none" },
    record: MONITORING_RECORD,
  },
  new_source: { count: 1, sources: [SOURCE] },
  new_subdomain: {
    count: 1,
    names: [{ name: "news.example.com", first_day: "2026-01-01", messages: 412, aligned: 410 }],
  },
  failure_spike: {
    state: "started",
    started_day: "2026-01-01",
    day: "2026-01-02",
    messages: 430,
    ...SHARES,
    sources: [
      {
        ...SOURCE,
        started_day: "2026-01-01",
        ...SHARES,
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
  spoofing_campaign: {
    started_day: "2026-01-01",
    day: "2026-01-01",
    messages: 312,
    networks: 41,
    quarantined: 0,
    rejected: 312,
  },
  reports_stopped: { last_report_at: "2026-01-01T05:12:44.310Z", last_day: "2025-12-31" },
  tls_failures: {
    state: "began",
    policy_domain: "example.com",
    policy_type: "sts",
    result_type: "certificate-expired",
    meaning: "the certificate has expired",
    advice: "Renew the certificate of the MX host, and make sure that the mail server has loaded the new one.",
    sessions: 1_203,
    failed_sessions: 84,
    failing_share: 0.0698,
    mx_hosts: [{ host: "mx1.example.com", sessions: 84 }],
    reporters: ["Google Inc."],
    first_day: "2025-12-31",
    last_day: "2026-01-01",
  },
  excessive_reporter: {
    count: 1,
    reporters: [{ name: "reports.example", messages: 1_000_000 }],
    compared_with: "known_reporters",
    other_messages: 1_234,
    first_day: "2025-12-03",
    last_day: "2026-01-01",
  },
};

const titleOf = (rule: AlertRule): string =>
  `Dmarc${rule.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}`;

/** The events of DMARC monitoring, as the OpenAPI document describes them. */
export const DMARC_EVENTS: readonly EventDoc[] = ALERT_RULES.map((rule) => ({
  type: `dmarc.${rule}`,
  tag: "DMARC monitoring",
  summary: SUMMARIES[rule],
  data: domainSchema.extend(ALERT_DATA[rule].shape).meta({ title: titleOf(rule) }),
  example: { ...DOMAIN, ...ALERT_EXAMPLES[rule] },
}));
