/** Examples of the OpenAPI document. */
export const TARGET_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a52",
  kind: "ipv4",
  value: "192.0.2.1",
  members: null,
  range_id: null,
  label: "outbound 1",
  status: "listed",
  severity: "critical",
  monitoring_enabled: true,
  listed_on: ["spamhaus-sbl"],
  listings: [
    {
      id: "spamhaus-sbl",
      list: "spamhaus-zen",
      name: "Spamhaus SBL",
      severity: "critical",
      category: "spam",
      meaning: "Listed manually as a sender or supporter of spam.",
      address: null,
      since: "2025-12-31T18:00:02.310Z",
      last_seen_at: "2026-01-01T00:00:03.120Z",
      delist_url: "https://check.spamhaus.org/",
      acknowledged: null,
      delisting_requested: { at: "2025-12-31T19:12:40.000Z", by: "ops" },
      note: null,
    },
  ],
  listings_count: 1,
  seen_at: "2026-01-01T00:00:03.120Z",
  muted_lists: [],
  last_checked_at: "2026-01-01T00:00:03.120Z",
  next_check_at: "2026-01-01T01:01:12.480Z",
  webhook_configured: true,
  recipients: [],
  alert_severity_min: null,
  created_at: "2025-12-31T23:59:41.005Z",
};

export const CHECK_EXAMPLE = {
  id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a53",
  trigger: "manual",
  started_at: "2026-01-01T00:00:01.000Z",
  finished_at: "2026-01-01T00:00:03.120Z",
  status: "listed",
  listed_on: ["spamhaus-sbl"],
  added: ["spamhaus-sbl"],
  removed: [],
  counts: { listed: 1, not_listed: 20, unproven: 0, refused: 0, failed: 1, skipped: 9 },
  results: [
    {
      list: "spamhaus-zen",
      outcome: "listed",
      listings: ["spamhaus-sbl"],
      codes: ["127.0.0.2"],
      text: "https://www.spamhaus.org/sbl/query/SBL000000",
      reason: null,
      remedy: null,
      zone: "zen.spamhaus.org",
      delist_url: "https://check.spamhaus.org/",
    },
  ],
};

export const RUNNING_EXAMPLE = {
  ...CHECK_EXAMPLE,
  finished_at: null,
  status: "running",
  listed_on: [],
  added: [],
  counts: { listed: 0, not_listed: 0, unproven: 0, refused: 0, failed: 0, skipped: 0 },
  results: [],
};

export const CATALOGUE_EXAMPLE = {
  version: "2026-01-01",
  lists: [
    {
      id: "spamhaus-zen",
      name: "Spamhaus ZEN",
      operator: "The Spamhaus Project",
      kinds: ["ipv4"],
      zone: "zen.spamhaus.org",
      enabled: true,
      severity: "critical",
      confidence: "A",
      usage: { terms: "Open to everybody.", volume: null, cost: "Free", registration: null, url: null },
      listings: [
        {
          id: "spamhaus-sbl",
          name: "Spamhaus SBL",
          meanings: ["Listed manually as a sender or supporter of spam."],
          category: "spam",
          severity: "critical",
        },
      ],
      delist_url: "https://check.spamhaus.org/",
      lookup_url: null,
      notes: null,
      health: [{ kind: "ipv4", state: "healthy", reason: null, remedy: null, tested_at: "2026-01-01T00:00:00.500Z" }],
    },
  ],
};

export const MEMBER_EXAMPLE = { ...TARGET_EXAMPLE, range_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a60" };

const { id, kind, value, label, status, severity, listings, listings_count } = TARGET_EXAMPLE;

export const OVERVIEW_EXAMPLE = {
  generated_at: "2026-01-01T06:00:00.000Z",
  since: "2025-12-31T06:00:00.000Z",
  targets: {
    total: 60,
    addresses_in_ranges: 0,
    ranges: 0,
    listed: 1,
    paused: 0,
    by_status: { pending: 0, clean: 58, listed: 1, unknown: 1 },
    by_kind: { ipv4: 40, ipv6: 0, domain: 20 },
  },
  listings: { total: 1, acknowledged: 0, by_severity: { critical: 1, high: 0, medium: 0, low: 0, info: 0 } },
  worst: [{ id, kind, value, label, status, severity, listings, listings_count }],
  changes: {
    listed: 1,
    delisted: 0,
    is_complete: true,
    recent: [
      {
        event_id: "019aa0d6-5b7e-7c31-9f4c-0d9a3c3f1a54",
        at: "2025-12-31T18:00:02.310Z",
        change: "listed",
        target_id: id,
        target: value,
        label,
        listing: "spamhaus-sbl",
        listing_name: "Spamhaus SBL",
        severity: "critical",
        category: "spam",
        reason: null,
      },
    ],
    feed: "/v1/events?since=2025-12-31T06%3A00%3A00.000Z",
  },
  lists_in_trouble: [
    {
      list: "uribl",
      name: "URIBL",
      kind: "domain",
      state: "refused",
      reason: "The list refuses queries from public resolvers.",
      remedy: "Use your own recursive resolver.",
      tested_at: "2026-01-01T05:50:00.500Z",
    },
  ],
};

export const BATCH_EXAMPLE = {
  created: 1,
  exists: 0,
  invalid: 1,
  results: [
    { row: 1, given: "192.0.2.1", status: "created", id, value: "192.0.2.1", problem: null },
    {
      row: 2,
      given: "10.0.0.1",
      status: "invalid",
      id: null,
      value: null,
      problem: "10.0.0.1 is not a public address; no list has entries for it.",
    },
  ],
};
