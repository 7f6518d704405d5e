import type { Database as Sqlite } from "bun:sqlite";

/** Work of an account that is not done: on another instance, it would be done twice or never. */
const OPEN_WORK: ReadonlyArray<readonly [what: string, sql: string]> = [
  ["pending verifications", "SELECT count(*) AS n FROM verifications WHERE account_id = ?1 AND status = 'pending'"],
  [
    "unfinished lists",
    "SELECT count(*) AS n FROM bulk_jobs WHERE account_id = ?1 AND (status NOT IN ('completed', 'cancelled', 'failed') OR is_resetting = 1)",
  ],
  ["unread report mails", "SELECT count(*) AS n FROM dmarc_ingestions WHERE account_id = ?1 AND status = 'pending'"],
  ["events without deliveries", "SELECT count(*) AS n FROM outbox WHERE account_id = ?1 AND delivered_at_ms IS NULL"],
  [
    "waiting webhooks (`postwarden webhooks cancel` ends them)",
    "SELECT count(*) AS n FROM webhook_deliveries WHERE account_id = ?1 AND status = 'pending'",
  ],
  [
    "waiting mails",
    `SELECT (SELECT count(*) FROM bulk_mails WHERE account_id = ?1) + (SELECT count(*) FROM blocklist_alerts WHERE account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains d JOIN dmarc_alerts a ON a.domain = d.number JOIN dmarc_alert_mails m ON m.alert = a.id
          WHERE d.account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains d JOIN dmarc_alert_mails m ON m.alert LIKE 'digest:' || d.number || ':%'
          WHERE d.account_id = ?1) AS n`,
  ],
  [
    "removed targets and domains whose history is still being deleted",
    `SELECT (SELECT count(*) FROM blocklist_removed_targets WHERE account_id = ?1)
      + (SELECT count(*) FROM dmarc_domains WHERE account_id = ?1 AND deleted_at_ms IS NOT NULL) AS n`,
  ],
];

/** What of the work of an account is not done, as `3 pending verifications`. */
export const openWorkOf = (sqlite: Sqlite, accountId: string): readonly string[] =>
  OPEN_WORK.flatMap(([what, sql]) => {
    const count = sqlite.query<{ n: number }, [string]>(sql).get(accountId)?.n ?? 0;
    return count === 0 ? [] : [`${count} ${what}`];
  });
