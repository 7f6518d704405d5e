import { ALERT_RULES } from "./alerts/rules/alert-rules.ts";
import { POLICY_EXAMPLE } from "./records/domains/domain-state.ts";
import { DEFAULT_THRESHOLDS, isRuleOn } from "./records/domains/alert-store.ts";

/** What the OpenAPI document shows of monitored domains: one domain at several moments. */

const ADDRESS = "kq3v7m2xwz5ntb4hsy6a@reports.example.net";
const RECORD = `v=DMARC1; p=reject; rua=mailto:dmarc@example.com,mailto:${ADDRESS}`;
const AUTHORISATION = "v=DMARC1;";

export const CHECKS_EXAMPLE = [
  {
    code: "record",
    ok: true,
    observed: RECORD,
    expected: RECORD,
    message: "There is one DMARC record at _dmarc.example.com.",
  },
  {
    code: "reporting_address",
    ok: true,
    observed: `mailto:dmarc@example.com,mailto:${ADDRESS}`,
    expected: `mailto:${ADDRESS}`,
    message: "The reporting address is in rua.",
  },
  {
    code: "authorisation",
    ok: true,
    observed: AUTHORISATION,
    expected: AUTHORISATION,
    message: "Receivers may send reports to reports.example.net.",
  },
];

export const DOMAIN_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  status: "active",
  label: "shop",
  monitoring_enabled: true,
  reporting_address: ADDRESS,
  policy: POLICY_EXAMPLE,
  reporting: "receiving",
  last_report_at: "2026-01-02T04:10:09.000Z",
  last_check: { at: "2026-01-02T00:00:00.120Z", ok: true, checks: CHECKS_EXAMPLE },
  settings: {
    webhook_configured: true,
    recipients: ["ops@example.com"],
    alerts: Object.fromEntries(ALERT_RULES.map((rule) => [rule.name, isRuleOn({ alerts: {} }, rule)])),
    alert_thresholds: DEFAULT_THRESHOLDS,
    source_rules: [],
    digest: "weekly",
    retention_days: 400,
    raw_retention_days: 90,
    sends_mail: null,
    require_authentic_reports: false,
    store_failure_reports: false,
    failure_reports_redact: true,
  },
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:20:00.120Z",
};

const DAYS_SHOWN = 30;

export const FIGURES_EXAMPLE = {
  last_7_days: { messages: 910, aligned: 903, failing: 7, aligned_percent: 99.2 },
  last_30_days: { messages: 3_900, aligned: 3_870, failing: 30, aligned_percent: 99.2 },
  days: {
    from: "2025-12-04",
    messages: new Array<number>(DAYS_SHOWN).fill(130),
    failing: new Array<number>(DAYS_SHOWN).fill(1),
  },
};

export const UPDATE_EXAMPLE = {
  host: "_dmarc.example.com",
  type: "TXT",
  action: "update",
  value: RECORD,
  current: "v=DMARC1; p=reject; rua=mailto:dmarc@example.com",
  strings: [RECORD],
  reason: null,
  message: "Replace the TXT record with this one: only the reporting address is added.",
  warnings: [],
};
export const NONE_EXAMPLE = {
  ...UPDATE_EXAMPLE,
  action: "none",
  current: RECORD,
  message: "The reporting address is in the record. Nothing to do.",
};

export const ENROLLED_EXAMPLE = {
  ...DOMAIN_EXAMPLE,
  status: "pending",
  reporting: "waiting",
  last_report_at: null,
  last_check: null,
  settings: { ...DOMAIN_EXAMPLE.settings, webhook_configured: false, recipients: [], digest: "off" },
  updated_at: DOMAIN_EXAMPLE.created_at,
};

export const SERVICE_RECORDS_EXAMPLE = [
  {
    host: "*._report._dmarc.reports.example.net",
    type: "TXT",
    value: AUTHORISATION,
    strings: [AUTHORISATION],
    purpose: "Receivers may send reports about any domain here.",
  },
  {
    host: "reports.example.net",
    type: "MX",
    value: "10 reports.example.net.",
    strings: null,
    purpose: "Delivers mail for the report host to this server.",
  },
];

export const HISTORY_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a61",
  at: "2026-01-01T00:20:00.120Z",
  trigger: "manual",
  status: "active",
  previous_status: "pending",
  record: RECORD,
  policy: POLICY_EXAMPLE,
  checks: CHECKS_EXAMPLE,
  changes: ["record_changed", "reporting_address_added", "status"],
};
