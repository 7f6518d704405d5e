CREATE TABLE `rate_limited_daily` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`day` integer NOT NULL,
	`key_id` text NOT NULL,
	`requests` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `day`, `key_id`)
);
--> statement-breakpoint
CREATE TABLE `usage_daily` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`day` integer NOT NULL,
	`key_id` text NOT NULL,
	`source` text NOT NULL,
	`sub_status` text NOT NULL,
	`verdict` text NOT NULL,
	`verifications` integer NOT NULL,
	`credits` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `day`, `key_id`, `source`, `sub_status`)
);
--> statement-breakpoint
CREATE TABLE `webhook_attempts` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`delivery_id` text NOT NULL,
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`at_ms` integer NOT NULL,
	`http_status` integer,
	`problem` text,
	`answer` text
);
--> statement-breakpoint
CREATE INDEX `webhook_attempts_by_delivery` ON `webhook_attempts` (`delivery_id`,`id`);--> statement-breakpoint
CREATE INDEX `webhook_attempts_by_url` ON `webhook_attempts` (`account_id`,`mode`,`url`,`id`);--> statement-breakpoint
CREATE INDEX `ledger_grants` ON `ledger` (`account_id`,`id`) WHERE kind = 'grant';--> statement-breakpoint
CREATE INDEX `verifications_by_account` ON `verifications` (`account_id`,`mode`,`id`);
--> statement-breakpoint
-- The history so far. What a check was charged is in the ledger.
INSERT INTO `usage_daily` (`account_id`, `mode`, `day`, `key_id`, `source`, `sub_status`, `verdict`, `verifications`, `credits`)
SELECT v.`account_id`, v.`mode`, v.`completed_at_ms` / 86400000, v.`key_id`, 'single', v.`sub_status`, max(v.`verdict`), count(*),
	coalesce(sum(l.`kind` = 'settle'), 0)
FROM `verifications` v LEFT JOIN `ledger` l ON l.`reference` = v.`id` AND l.`kind` IN ('settle', 'release')
WHERE v.`status` = 'completed' AND v.`sub_status` IS NOT NULL AND v.`completed_at_ms` IS NOT NULL
GROUP BY v.`account_id`, v.`mode`, v.`completed_at_ms` / 86400000, v.`key_id`, v.`sub_status`;
--> statement-breakpoint
-- The ledger sums up the addresses of a list: what each was charged is concluded from its result. Results of test keys have a fixed time.
INSERT INTO `usage_daily` (`account_id`, `mode`, `day`, `key_id`, `source`, `sub_status`, `verdict`, `verifications`, `credits`)
SELECT j.`account_id`, j.`mode`, iif(j.`mode` = 'test', coalesce(j.`completed_at_ms`, j.`created_at_ms`), a.`verified_at_ms`) / 86400000, j.`key_id`, 'list', a.`sub_status`,
	CASE WHEN a.`sub_status` = 'mailbox_exists' THEN 'deliverable'
		WHEN a.`sub_status` IN ('invalid_syntax', 'domain_not_found', 'no_mail_server', 'null_mx', 'unroutable_mx',
			'mailbox_not_found', 'mailbox_disabled', 'smtputf8_unsupported') THEN 'undeliverable'
		ELSE 'risky' END,
	count(*),
	sum(j.`mode` = 'live' AND a.`sub_status` NOT IN ('smtp_unreachable', 'smtp_timeout', 'dns_error', 'internal_error'))
FROM `bulk_jobs` j JOIN `bulk_addresses` a ON a.`job` = j.`number`
WHERE j.`status` <> 'receiving' AND a.`normalized_email` <> '' AND a.`sub_status` IS NOT NULL AND a.`verified_at_ms` IS NOT NULL
GROUP BY j.`account_id`, j.`mode`, 3, j.`key_id`, a.`sub_status`;
--> statement-breakpoint
-- The last attempt of each delivery.
INSERT INTO `webhook_attempts` (`delivery_id`, `account_id`, `mode`, `url`, `at_ms`, `http_status`, `problem`, `answer`)
SELECT `id`, `account_id`, `mode`, `url`, `last_attempt_at_ms`, `last_http_status`, `last_problem`, `last_answer`
FROM `webhook_deliveries` WHERE `last_attempt_at_ms` IS NOT NULL ORDER BY `last_attempt_at_ms`;
