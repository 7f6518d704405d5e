/** What the OpenAPI document shows of reports and what is read out of them. */

const REPORT_ID = "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a81";

const REPORTER = { name: "google.com", claimed_name: null, authenticated_as: "google.com", trusted: true };

export const SOURCE_EXAMPLE = {
  key: "service:sendgrid",
  kind: "service",
  name: "SendGrid",
  service: "SendGrid",
  service_id: "sendgrid",
  classification: "misconfigured",
  classified_by: "service",
  messages: 120,
  aligned: 0,
  failing: 120,
  aligned_percent: 0,
  dkim_aligned: 0,
  spf_aligned: 0,
  forwarded: 0,
  authenticated_unaligned: 120,
  quarantined: 120,
  rejected: 0,
  first_day: "2025-12-14",
  last_day: "2026-01-01",
  dkim: [{ domain: "sendgrid.info", selector: null, aligned: false, messages: 120 }],
  spf: [{ domain: "sendgrid.net", messages: 120 }],
  network_count: 1,
  address_count: 1,
  lookups_pending: false,
  addresses: [
    {
      ip: "192.0.2.10",
      reverse_name: "o1.example.sendgrid.net",
      confirmed: true,
      asn: 11377,
      as_name: "SENDGRID",
      country: "US",
    },
  ],
};

const COUNTS = { messages: 5_120, aligned: 5_000 };

export const SUMMARY_EXAMPLE = {
  domain_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60",
  domain: "example.com",
  from: "2025-12-03",
  to: "2026-01-01",
  reports: 60,
  reporters: 2,
  ...COUNTS,
  failing: 120,
  aligned_percent: 97.7,
  unauthenticated_messages: 0,
  unauthenticated_percent: 0,
  unauthenticated_reports: 0,
  unauthenticated_note: null,
  unknown_reporter_messages: 0,
  unknown_reporter_note: null,
  dkim_aligned: 5_000,
  spf_aligned: 4_800,
  forwarded: 0,
  authenticated_unaligned: 120,
  dispositions: { none: 5_000, quarantine: 120, reject: 0 },
  classes: [
    { classification: "authorized", sources: 1, messages: 5_000, aligned: 5_000 },
    { classification: "misconfigured", sources: 1, messages: 120, aligned: 0 },
    { classification: "forwarder", sources: 0, messages: 0, aligned: 0 },
    { classification: "unknown", sources: 0, messages: 0, aligned: 0 },
    { classification: "threat", sources: 0, messages: 0, aligned: 0 },
  ],
  top_sources: [SOURCE_EXAMPLE],
  top_reporters: [
    { org_name: "google.com", reporter: REPORTER, standing: "known", reports: 30, messages: 5_000, aligned: 4_900 },
  ],
  names: [{ header_from: "example.com", ...COUNTS }],
  first_day: "2025-11-20",
  last_day: "2026-01-01",
};

export const TIMESERIES_EXAMPLE = {
  domain_id: SUMMARY_EXAMPLE.domain_id,
  from: "2026-01-01",
  to: "2026-01-01",
  interval: "day",
  points: [
    {
      date: "2026-01-01",
      reports: 2,
      messages: 200,
      aligned: 196,
      failing: 4,
      dkim_aligned: 196,
      spf_aligned: 190,
      forwarded: 0,
      quarantined: 4,
      rejected: 0,
      aligned_percent: 98,
    },
  ],
};

const PERIOD = { begin: "2026-01-01T00:00:00.000Z", end: "2026-01-01T23:59:59.000Z" };

export const RECORD_EXAMPLE = {
  date: "2026-01-01",
  source_ip: "192.0.2.10",
  reverse_name: "o1.example.sendgrid.net",
  asn: 64_500,
  as_name: "EXAMPLE-MAIL",
  country: "US",
  source: "service:sendgrid",
  source_name: "SendGrid",
  count: 4,
  aligned: false,
  dkim: "fail",
  spf: "fail",
  disposition: "quarantine",
  forwarded: false,
  header_from: "example.com",
  envelope_from: "sendgrid.net",
  envelope_to: null,
  reasons: [],
  dkim_results: [{ domain: "sendgrid.net", selector: "s1", result: "pass", human_result: null }],
  spf_results: [{ domain: "sendgrid.net", scope: "mfrom", result: "pass", human_result: null }],
  report: { id: REPORT_ID, org_name: "google.com", reporter: REPORTER, report_id: "1234567890", ...PERIOD },
};

export const REPORT_EXAMPLE = {
  id: REPORT_ID,
  org_name: "google.com",
  reporter: REPORTER,
  email: "noreply-dmarc-support@google.com",
  report_id: "1234567890",
  ...PERIOD,
  date: "2026-01-01",
  received_at: "2026-01-02T04:10:09.000Z",
  policy_domain: "example.com",
  policy: {
    domain: "example.com",
    p: "quarantine",
    sp: "quarantine",
    np: null,
    adkim: "r",
    aspf: "r",
    pct: 100,
    fo: null,
    testing: null,
    discovery_method: null,
  },
  rows: 2,
  messages: 104,
  aligned: 100,
  authenticity: {
    result: "pass",
    from: "google.com",
    spf: { result: "pass", domain: "google.com" },
    dkim: [{ domain: "google.com", selector: "20230601", result: "pass", aligned: true }],
    dmarc: { result: "pass", policy: "reject" },
    message: "The mail is from google.com: an aligned DKIM signature passes.",
  },
  notices: [],
  skipped_rows: [],
  ingestion_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a80",
  raw_available: true,
};

export const REPORT_DETAIL_EXAMPLE = {
  ...REPORT_EXAMPLE,
  version: "1.0",
  generator: null,
  extra_contact_info: "https://support.google.com/a/answer/2466580",
  errors: [],
  records: [RECORD_EXAMPLE],
  records_next_cursor: null,
};

export const TLS_REPORT_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a82",
  org_name: "Google Inc.",
  report_id: "2026-01-01T00:00:00Z_example.com",
  contact: "smtp-tls-reporting@google.com",
  ...PERIOD,
  received_at: "2026-01-02T10:00:00.000Z",
  successful_sessions: 320,
  failed_sessions: 1,
  policies: [
    {
      domain: "example.com",
      policy_type: "sts",
      successful_sessions: 320,
      failed_sessions: 1,
      failures: [{ result_type: "certificate-expired", sessions: 1, receiving_mx_hostname: "mx1.example.com" }],
    },
  ],
  ingestion_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a83",
};
