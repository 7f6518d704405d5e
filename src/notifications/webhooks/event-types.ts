/** Every type of event that is sent. */
export const EVENT_TYPES = [
  ...["bulk.completed", "bulk.cancelled", "bulk.failed"],
  ...["blacklist.listed", "blacklist.delisted", "blacklist.list_unusable", "blacklist.list_usable"],
  ...["dmarc.status_changed", "dmarc.record_changed", "dmarc.policy_weakened", "dmarc.new_source"],
  ...[
    "dmarc.new_subdomain",
    "dmarc.failure_spike",
    "dmarc.spoofing_campaign",
    "dmarc.reports_stopped",
    "dmarc.tls_failures",
    "dmarc.excessive_reporter",
  ],
];

/** The type of a test event by default. */
export const TEST_TYPE = "webhook.test";
/** The `message` of a `webhook.test` event. */
export const TEST_MESSAGE =
  "This is a test event. Use it to check that the URL is reachable and the signature is valid.";
