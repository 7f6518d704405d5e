-- Written by `npm run migrations`. Do not edit.
CREATE TABLE `accounts` (
	`id` text PRIMARY KEY NOT NULL,
	`name` text NOT NULL,
	`plan` text NOT NULL,
	`credits_available` integer DEFAULT 0 NOT NULL,
	`credits_held` integer DEFAULT 0 NOT NULL,
	`created_at_ms` integer NOT NULL
, `rate_per_second` integer, `rate_burst` integer, `disabled_at_ms` integer, `deleted_at_ms` integer);
CREATE UNIQUE INDEX `accounts_name_unique` ON `accounts` (`name`);
CREATE TABLE `api_keys` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`name` text NOT NULL,
	`mode` text NOT NULL,
	`scopes` text NOT NULL,
	`expires_at_ms` integer,
	`revoked_at_ms` integer,
	`last_used_at_ms` integer,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE INDEX `api_keys_by_account` ON `api_keys` (`account_id`);
CREATE TABLE `idempotency_keys` (
	`key_id` text NOT NULL,
	`idempotency_key` text NOT NULL,
	`request_hash` text NOT NULL,
	`resource_id` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	PRIMARY KEY(`key_id`, `idempotency_key`)
);
CREATE INDEX `idempotency_keys_by_age` ON `idempotency_keys` (`created_at_ms`);
CREATE TABLE `key_secrets` (
	`hash` text PRIMARY KEY NOT NULL,
	`key_id` text NOT NULL,
	`ending` text NOT NULL,
	`valid_until_ms` integer,
	`created_at_ms` integer NOT NULL,
	FOREIGN KEY (`key_id`) REFERENCES `api_keys`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE INDEX `key_secrets_by_key` ON `key_secrets` (`key_id`);
CREATE TABLE `ledger` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`account_id` text NOT NULL,
	`kind` text NOT NULL,
	`available` integer NOT NULL,
	`held` integer NOT NULL,
	`reference` text,
	`note` text,
	`at_ms` integer NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE INDEX `ledger_by_account` ON `ledger` (`account_id`,`id`);
CREATE UNIQUE INDEX `ledger_hold_once` ON `ledger` (`reference`) WHERE kind = 'hold';
CREATE UNIQUE INDEX `ledger_end_once` ON `ledger` (`reference`) WHERE kind in ('settle', 'release');
CREATE TABLE `verification_evidence` (
	`verification_id` text PRIMARY KEY NOT NULL,
	`body` text NOT NULL
);
CREATE TABLE `verifications` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`mode` text NOT NULL,
	`email` text NOT NULL,
	`normalized_email` text NOT NULL,
	`source` text,
	`status` text NOT NULL,
	`verdict` text,
	`sub_status` text,
	`result` text,
	`created_at_ms` integer NOT NULL,
	`completed_at_ms` integer,
	`due_at_ms` integer,
	`attempts` integer DEFAULT 0 NOT NULL
);
CREATE INDEX `verifications_by_key` ON `verifications` (`key_id`,`id`);
CREATE UNIQUE INDEX `verifications_pending_once` ON `verifications` (`account_id`,`mode`,`normalized_email`) WHERE status = 'pending';
CREATE INDEX `verifications_due` ON `verifications` (`due_at_ms`) WHERE status = 'pending';
CREATE TRIGGER `ledger_never_shrinks` BEFORE DELETE ON `ledger` BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE `suppressions` (
	`entry` text PRIMARY KEY NOT NULL,
	`note` text,
	`created_at_ms` integer NOT NULL
);
CREATE TABLE `bulk_addresses` (
	`job` integer NOT NULL,
	`position` integer NOT NULL,
	`email` text NOT NULL,
	`normalized_email` text NOT NULL,
	`rows` integer NOT NULL,
	`due_at_ms` integer DEFAULT 0 NOT NULL,
	`sub_status` text,
	`quality_score` integer,
	`confidence` integer,
	`signals` text,
	`verified_at_ms` integer, `trouble` integer,
	PRIMARY KEY(`job`, `position`)
) WITHOUT ROWID;
CREATE TABLE `bulk_counts` (
	`job` integer NOT NULL,
	`sub_status` text NOT NULL,
	`rows` integer NOT NULL,
	PRIMARY KEY(`job`, `sub_status`)
) WITHOUT ROWID;
CREATE TABLE `bulk_jobs` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`account_id` text NOT NULL,
	`key_id` text NOT NULL,
	`mode` text NOT NULL,
	`name` text,
	`source` text,
	`status` text NOT NULL,
	`format` text NOT NULL,
	`webhook_url` text,
	`rows_total` integer DEFAULT 0 NOT NULL,
	`rows_finished` integer DEFAULT 0 NOT NULL,
	`addresses_total` integer DEFAULT 0 NOT NULL,
	`addresses_finished` integer DEFAULT 0 NOT NULL,
	`credits_charged` integer DEFAULT 0 NOT NULL,
	`credits_released` integer DEFAULT 0 NOT NULL,
	`created_at_ms` integer NOT NULL,
	`started_at_ms` integer,
	`completed_at_ms` integer
, `reading` text, `rows_empty` integer DEFAULT 0 NOT NULL, `round` integer DEFAULT 0 NOT NULL, `is_resetting` integer DEFAULT false NOT NULL, `notify_email` text);
CREATE UNIQUE INDEX `bulk_jobs_id_unique` ON `bulk_jobs` (`id`);
CREATE INDEX `bulk_jobs_by_account` ON `bulk_jobs` (`account_id`,`mode`,`id`);
CREATE INDEX `bulk_jobs_unfinished` ON `bulk_jobs` (`number`) WHERE status in ('receiving', 'queued', 'running', 'deleting');
CREATE TABLE `bulk_rows` (
	`job` integer NOT NULL,
	`row_index` integer NOT NULL,
	`position` integer NOT NULL,
	`submitted_email` text,
	`cells` text,
	PRIMARY KEY(`job`, `row_index`)
) WITHOUT ROWID;
CREATE TABLE `outbox` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`type` text NOT NULL,
	`data` text NOT NULL,
	`url` text,
	`created_at_ms` integer NOT NULL,
	`delivered_at_ms` integer
, `mode` text DEFAULT 'live' NOT NULL, `subject` text DEFAULT '' NOT NULL);
CREATE TABLE `blocklist_alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`body` text NOT NULL,
	`created_at_ms` integer NOT NULL
, `account_id` text DEFAULT '' NOT NULL);
CREATE INDEX `blocklist_alerts_by_recipient` ON `blocklist_alerts` (`recipient`,`id`);
CREATE TABLE `blocklist_checks` (
	`id` text PRIMARY KEY NOT NULL,
	`target_id` text NOT NULL,
	`trigger` text NOT NULL,
	`started_at_ms` integer NOT NULL,
	`finished_at_ms` integer NOT NULL,
	`status` text NOT NULL,
	`is_change` integer NOT NULL,
	`body` text NOT NULL
);
CREATE TABLE `blocklist_targets` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`kind` text NOT NULL,
	`value` text NOT NULL,
	`label` text,
	`status` text NOT NULL,
	`listed_on` text NOT NULL,
	`muted_lists` text NOT NULL,
	`monitoring_enabled` integer NOT NULL,
	`webhook_url` text,
	`recipients` text NOT NULL,
	`last_checked_at_ms` integer,
	`next_check_at_ms` integer NOT NULL,
	`created_at_ms` integer NOT NULL
, `range_id` text DEFAULT '' NOT NULL, `members` integer, `severity_rank` integer DEFAULT 0 NOT NULL, `alert_severity_min` text, `unknown_checks` integer DEFAULT 0 NOT NULL);
CREATE INDEX `blocklist_targets_by_account` ON `blocklist_targets` (`account_id`,`mode`,`id`);
CREATE TABLE `webhook_deliveries` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`type` text NOT NULL,
	`body` text NOT NULL,
	`status` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`due_at_ms` integer,
	`last_attempt_at_ms` integer,
	`last_http_status` integer,
	`last_problem` text,
	`created_at_ms` integer NOT NULL,
	`finished_at_ms` integer
, `event_id` text DEFAULT '' NOT NULL, `subject` text DEFAULT '' NOT NULL, `via` text DEFAULT 'subject' NOT NULL, `rejections` integer DEFAULT 0 NOT NULL, `last_answer` text);
CREATE INDEX `webhook_deliveries_by_account` ON `webhook_deliveries` (`account_id`,`mode`,`id`);
CREATE INDEX `webhook_deliveries_finished` ON `webhook_deliveries` (`finished_at_ms`) WHERE finished_at_ms is not null;
CREATE TABLE `webhook_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`secret` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`valid_until_ms` integer
, `mode` text DEFAULT 'live' NOT NULL);
CREATE TABLE `dmarc_names` (
	`domain` integer NOT NULL,
	`name` text NOT NULL,
	`first_day` integer NOT NULL,
	`first_seen_at_ms` integer NOT NULL,
	`is_reviewed` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`domain`, `name`)
);
CREATE TABLE `dmarc_records` (
	`report` integer NOT NULL,
	`position` integer NOT NULL,
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`source` integer NOT NULL,
	`source_ip` text NOT NULL,
	`count` integer NOT NULL,
	`disposition` text,
	`dkim` text,
	`spf` text,
	`is_aligned` integer NOT NULL,
	`is_forwarded` integer NOT NULL,
	`header_from` text,
	`rank` integer NOT NULL,
	`body` text NOT NULL,
	PRIMARY KEY(`report`, `position`)
);
CREATE INDEX `dmarc_records_by_day` ON `dmarc_records` (`domain`,`day`,`rank`,`report`,`position`);
CREATE INDEX `dmarc_records_by_source` ON `dmarc_records` (`source`,`day`,`rank`,`report`,`position`);
CREATE TABLE `dmarc_reports` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`domain` integer NOT NULL,
	`ingestion` text NOT NULL,
	`org` text,
	`email` text,
	`report_id` text,
	`begin_ms` integer NOT NULL,
	`end_ms` integer NOT NULL,
	`day` integer NOT NULL,
	`received_at_ms` integer NOT NULL,
	`policy_domain` text NOT NULL,
	`policy` text NOT NULL,
	`body` text NOT NULL,
	`rows` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`sameness` text NOT NULL,
	`content` text NOT NULL,
	`authenticity` text,
	`authenticity_body` text,
	`is_complete` integer NOT NULL
, `voucher` integer DEFAULT 1 NOT NULL);
CREATE UNIQUE INDEX `dmarc_reports_id_unique` ON `dmarc_reports` (`id`);
CREATE UNIQUE INDEX `dmarc_reports_once` ON `dmarc_reports` (`domain`,`sameness`);
CREATE INDEX `dmarc_reports_by_domain` ON `dmarc_reports` (`domain`,`id`);
CREATE INDEX `dmarc_reports_incomplete` ON `dmarc_reports` (`number`) WHERE is_complete = 0;
CREATE INDEX `dmarc_reports_unproven` ON `dmarc_reports` (`number`) WHERE authenticity = 'pending';
CREATE TABLE `dmarc_reverse_names` (
	`ip` text PRIMARY KEY NOT NULL,
	`name` text,
	`is_confirmed` integer NOT NULL,
	`due_at_ms` integer NOT NULL,
	`asked_at_ms` integer
, `asn` integer, `as_name` text, `country` text, `prefix` text, `network_due_at_ms` integer DEFAULT 0 NOT NULL, `network_asked_at_ms` integer);
CREATE INDEX `dmarc_reverse_names_due` ON `dmarc_reverse_names` (`due_at_ms`);
CREATE TABLE `dmarc_source_words` (
	`domain` integer NOT NULL,
	`key` text NOT NULL,
	`classification` text NOT NULL,
	`at_ms` integer NOT NULL, `note` text,
	PRIMARY KEY(`domain`, `key`)
);
CREATE TABLE `dmarc_sources` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`domain` integer NOT NULL,
	`key` text NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`first_seen_at_ms` integer NOT NULL,
	`is_reviewed` integer DEFAULT false NOT NULL
, `is_vouched` integer DEFAULT true NOT NULL);
CREATE UNIQUE INDEX `dmarc_sources_once` ON `dmarc_sources` (`domain`,`key`);
CREATE INDEX `dmarc_sources_unreviewed` ON `dmarc_sources` (`domain`) WHERE is_reviewed = 0;
CREATE TABLE `dmarc_tls_reports` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`ingestion` text NOT NULL,
	`org` text,
	`report_id` text,
	`begin_ms` integer,
	`end_ms` integer,
	`successful_sessions` integer NOT NULL,
	`failed_sessions` integer NOT NULL,
	`body` text NOT NULL,
	`sameness` text NOT NULL,
	`received_at_ms` integer NOT NULL
, `voucher` integer DEFAULT 1 NOT NULL);
CREATE UNIQUE INDEX `dmarc_tls_reports_once` ON `dmarc_tls_reports` (`domain`,`sameness`);
CREATE INDEX `dmarc_tls_reports_by_domain` ON `dmarc_tls_reports` (`domain`,`id`);
CREATE TABLE `dmarc_alert_mails` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`alert` text NOT NULL,
	`created_at_ms` integer NOT NULL
);
CREATE INDEX `dmarc_alert_mails_by_recipient` ON `dmarc_alert_mails` (`recipient`,`id`);
CREATE TABLE `dmarc_alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`at_ms` integer NOT NULL,
	`body` text NOT NULL
, `acknowledged_at_ms` integer);
CREATE INDEX `dmarc_alerts_by_subject` ON `dmarc_alerts` (`domain`,`rule`,`subject`,`at_ms`);
CREATE INDEX `dmarc_alerts_by_domain` ON `dmarc_alerts` (`domain`,`id`);
CREATE TABLE `dmarc_domains` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`id` text NOT NULL,
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`domain` text NOT NULL,
	`token` text NOT NULL,
	`status` text NOT NULL,
	`label` text,
	`monitoring_enabled` integer DEFAULT true NOT NULL,
	`webhook_url` text,
	`recipients` text NOT NULL,
	`alerts` text NOT NULL,
	`digest` text NOT NULL,
	`retention_days` integer NOT NULL,
	`raw_retention_days` integer NOT NULL,
	`sends_mail` integer,
	`require_authentic_reports` integer NOT NULL,
	`state` text,
	`last_check` text,
	`bad_since_ms` integer,
	`next_check_at_ms` integer NOT NULL,
	`last_report_at_ms` integer,
	`digest_due_at_ms` integer,
	`is_unreviewed` integer DEFAULT false NOT NULL,
	`created_at_ms` integer NOT NULL,
	`updated_at_ms` integer NOT NULL,
	`deleted_at_ms` integer
, `usage_day` integer DEFAULT 0 NOT NULL, `usage_bytes` integer DEFAULT 0 NOT NULL, `store_failure_reports` integer DEFAULT false NOT NULL, `failure_reports_redact` integer DEFAULT true NOT NULL, `alert_thresholds` text DEFAULT '{}' NOT NULL, `source_rules` text DEFAULT '[]' NOT NULL, `bulk_senders` text DEFAULT '[]' NOT NULL, `tags` text DEFAULT '[]' NOT NULL);
CREATE UNIQUE INDEX `dmarc_domains_id_unique` ON `dmarc_domains` (`id`);
CREATE UNIQUE INDEX `dmarc_domains_token_unique` ON `dmarc_domains` (`token`);
CREATE UNIQUE INDEX `dmarc_domains_once` ON `dmarc_domains` (`account_id`,`mode`,`domain`) WHERE deleted_at_ms is null;
CREATE INDEX `dmarc_domains_by_account` ON `dmarc_domains` (`account_id`,`mode`,`id`);
CREATE INDEX `dmarc_domains_due` ON `dmarc_domains` (`next_check_at_ms`) WHERE deleted_at_ms is null and monitoring_enabled = 1;
CREATE INDEX `dmarc_domains_deleted` ON `dmarc_domains` (`deleted_at_ms`) WHERE deleted_at_ms is not null;
CREATE TABLE `dmarc_history` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`trigger` text NOT NULL,
	`at_ms` integer NOT NULL,
	`body` text NOT NULL
);
CREATE INDEX `dmarc_history_by_domain` ON `dmarc_history` (`domain`,`id`);
CREATE TABLE `dmarc_ingestions` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`domain` integer,
	`via` text NOT NULL,
	`received_at_ms` integer NOT NULL,
	`name` text,
	`bytes` integer NOT NULL,
	`client` text,
	`helo` text,
	`mail_from` text,
	`status` text NOT NULL,
	`attempts` integer DEFAULT 0 NOT NULL,
	`outcome` text,
	`reason` text,
	`findings` text,
	`has_raw` integer DEFAULT true NOT NULL,
	`finished_at_ms` integer
, `accepted_at_ms` integer, `delivered_at_ms` integer);
CREATE INDEX `dmarc_ingestions_by_account` ON `dmarc_ingestions` (`account_id`,`mode`,`id`);
CREATE INDEX `dmarc_ingestions_by_domain` ON `dmarc_ingestions` (`domain`,`id`);
CREATE INDEX `dmarc_ingestions_pending` ON `dmarc_ingestions` (`id`) WHERE status = 'pending';
CREATE INDEX `dmarc_ingestions_raw` ON `dmarc_ingestions` (`received_at_ms`) WHERE has_raw = 1;
CREATE INDEX `dmarc_ingestions_by_age` ON `dmarc_ingestions` (`received_at_ms`);
CREATE TABLE `dmarc_raw` (
	`ingestion` text PRIMARY KEY NOT NULL,
	`bytes` blob NOT NULL
);
CREATE INDEX `webhook_secrets_by_account` ON `webhook_secrets` (`account_id`,`mode`);
CREATE TABLE "webhook_gone" (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `url`)
);
CREATE TRIGGER `ledger_never_replaces` BEFORE INSERT ON `ledger`
WHEN EXISTS (SELECT 1 FROM `ledger` WHERE `id` = NEW.`id`)
	OR EXISTS (SELECT 1 FROM `ledger` WHERE `reference` = NEW.`reference` AND kind = 'hold' AND NEW.`kind` = 'hold')
	OR EXISTS (SELECT 1 FROM `ledger` WHERE `reference` = NEW.`reference` AND kind in ('settle', 'release') AND NEW.`kind` IN ('settle', 'release'))
BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TABLE "bulk_evidence" (
	`job` integer NOT NULL,
	`position` integer NOT NULL,
	`body` blob NOT NULL,
	PRIMARY KEY(`job`, `position`)
);
CREATE TABLE "dmarc_daily" (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`source` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`aligned_dkim` integer NOT NULL,
	`aligned_spf` integer NOT NULL,
	`forwarded` integer NOT NULL,
	`authenticated` integer NOT NULL,
	`quarantined` integer NOT NULL,
	`rejected` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `source`, `is_trusted`)
);
CREATE TABLE "dmarc_daily_names" (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`name` text NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `name`, `is_trusted`)
);
CREATE TABLE `account_notifications` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`webhook_url` text,
	`recipients` text NOT NULL,
	`updated_at_ms` integer NOT NULL, `blacklist_severity_min` text, `blacklist_digest` text DEFAULT 'off' NOT NULL, `blacklist_digest_due_at_ms` integer,
	PRIMARY KEY(`account_id`, `mode`)
);
CREATE TABLE `webhook_pauses` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`url` text NOT NULL,
	`until_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `url`)
);
CREATE INDEX `webhook_pauses_by_end` ON `webhook_pauses` (`until_ms`);
CREATE INDEX `webhook_deliveries_queue` ON `webhook_deliveries` (`account_id`,`mode`,`url`,`subject`,`event_id`) WHERE status = 'pending';
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`account_id`,`mode`,`url`,`due_at_ms`) WHERE due_at_ms is not null;
CREATE INDEX `outbox_by_account` ON `outbox` (`account_id`,`mode`,`id`);
CREATE INDEX `outbox_by_subject` ON `outbox` (`account_id`,`mode`,`subject`,`id`);
CREATE INDEX `outbox_undelivered` ON `outbox` (`id`) WHERE delivered_at_ms is null;
CREATE TABLE `blocklist_listings` (
	`target_id` text NOT NULL,
	`listing` text NOT NULL,
	`range_id` text DEFAULT '' NOT NULL,
	`severity` text,
	`meaning` text,
	`since_ms` integer NOT NULL,
	`seen_at_ms` integer NOT NULL,
	`acknowledged_by` text,
	`acknowledged_at_ms` integer,
	`delisting_requested_by` text,
	`delisting_requested_at_ms` integer,
	`note` text,
	`note_by` text,
	`note_at_ms` integer,
	PRIMARY KEY(`target_id`, `listing`)
);
CREATE INDEX `blocklist_listings_of_range` ON `blocklist_listings` (`range_id`,`listing`) WHERE range_id <> '';
CREATE INDEX `blocklist_targets_by_range` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`id`);
CREATE INDEX `blocklist_targets_by_severity` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`severity_rank`,`id`);
CREATE INDEX `blocklist_targets_of_range` ON `blocklist_targets` (`range_id`,`status`,`severity_rank`) WHERE range_id <> '';
CREATE INDEX `blocklist_targets_without_severity` ON `blocklist_targets` (`id`) WHERE severity_rank = 0 and listed_on <> '[]';
CREATE UNIQUE INDEX `blocklist_targets_once` ON `blocklist_targets` (`account_id`,`mode`,`kind`,`value`,`range_id`);
CREATE INDEX `blocklist_targets_due` ON `blocklist_targets` (`next_check_at_ms`) WHERE monitoring_enabled = 1 and members is null;
CREATE INDEX `account_notifications_digest_due` ON `account_notifications` (`blacklist_digest_due_at_ms`) WHERE blacklist_digest_due_at_ms is not null;
CREATE TABLE `blocklist_budgets` (
	`list_id` text PRIMARY KEY NOT NULL,
	`day` integer NOT NULL,
	`reserved` integer NOT NULL
);
CREATE TABLE `blocklist_usability` (
	`list_id` text PRIMARY KEY NOT NULL,
	`since_ms` integer NOT NULL
);
CREATE TABLE `dmarc_as_names` (
	`asn` integer PRIMARY KEY NOT NULL,
	`name` text,
	`due_at_ms` integer NOT NULL
);
CREATE INDEX `dmarc_reverse_names_network_due` ON `dmarc_reverse_names` (`network_due_at_ms`);
CREATE TABLE `dmarc_report_authors` (
	`domain` integer NOT NULL,
	`author` text NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`usage_day` integer DEFAULT 0 NOT NULL,
	`usage_bytes` integer DEFAULT 0 NOT NULL,
	PRIMARY KEY(`domain`, `author`)
);
CREATE TABLE "dmarc_daily_reporters" (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`reporter` text NOT NULL,
	`author` text DEFAULT '' NOT NULL,
	`reports` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	PRIMARY KEY(`domain`, `day`, `reporter`, `author`, `is_trusted`)
);
CREATE TABLE `dmarc_failure_reports` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`ingestion` text NOT NULL,
	`received_at_ms` integer NOT NULL,
	`is_redacted` integer NOT NULL,
	`body` text NOT NULL,
	`sameness` text NOT NULL
);
CREATE UNIQUE INDEX `dmarc_failure_reports_once` ON `dmarc_failure_reports` (`domain`,`sameness`);
CREATE INDEX `dmarc_failure_reports_by_domain` ON `dmarc_failure_reports` (`domain`,`id`);
CREATE INDEX `dmarc_failure_reports_by_age` ON `dmarc_failure_reports` (`domain`,`received_at_ms`);
CREATE TABLE `dmarc_health` (
	`domain` integer PRIMARY KEY NOT NULL,
	`due_at_ms` integer NOT NULL,
	`body` text
);
CREATE INDEX `dmarc_health_due` ON `dmarc_health` (`due_at_ms`);
CREATE INDEX `dmarc_sources_legacy` ON `dmarc_sources` (`domain`,`number`) WHERE instr(key, ' ') = 0;
CREATE TABLE `dmarc_mailbox_marks` (
	`uid` integer PRIMARY KEY NOT NULL,
	`ingestion` text NOT NULL
);
CREATE TABLE `dmarc_mailboxes` (
	`mailbox` text PRIMARY KEY NOT NULL,
	`uid_validity` text NOT NULL,
	`last_uid` integer NOT NULL,
	`usage_day` integer DEFAULT 0 NOT NULL,
	`usage_bytes` integer DEFAULT 0 NOT NULL
);
CREATE TABLE `audit_log` (
	`id` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`at_ms` integer NOT NULL,
	`user` text NOT NULL,
	`host` text NOT NULL,
	`pid` integer NOT NULL,
	`action` text NOT NULL,
	`account_id` text,
	`subject` text,
	`before` text,
	`after` text
);
CREATE INDEX `audit_log_by_account` ON `audit_log` (`account_id`,`id`);
CREATE TRIGGER `audit_log_never_shrinks` BEFORE DELETE ON `audit_log` BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER `audit_log_never_replaces` BEFORE INSERT ON `audit_log`
WHEN EXISTS (SELECT 1 FROM `audit_log` WHERE `id` = NEW.`id`)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE TRIGGER `ledger_never_changes` BEFORE UPDATE OF `id`, `account_id`, `kind`, `available`, `held`, `reference`, `at_ms` ON `ledger` BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END;
CREATE TRIGGER `audit_log_never_changes` BEFORE UPDATE ON `audit_log`
WHEN NOT (
	NEW.`id` IS OLD.`id` AND NEW.`at_ms` IS OLD.`at_ms` AND NEW.`user` IS OLD.`user` AND NEW.`host` IS OLD.`host`
	AND NEW.`pid` IS OLD.`pid` AND NEW.`action` IS OLD.`action` AND NEW.`account_id` IS OLD.`account_id`
	AND (NEW.`subject` IS OLD.`subject` OR coalesce(instr(NEW.`subject`, '[erased]'), 0) > 0)
	AND (NEW.`before` IS OLD.`before` OR coalesce(instr(NEW.`before`, '[erased]'), 0) > 0)
	AND (NEW.`after` IS OLD.`after` OR coalesce(instr(NEW.`after`, '[erased]'), 0) > 0)
)
BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END;
CREATE INDEX `blocklist_checks_by_target` ON `blocklist_checks` (`target_id`,`id`,`finished_at_ms`,`is_change`,`status`,`trigger`);
CREATE INDEX `blocklist_targets_by_state` ON `blocklist_targets` (`account_id`,`mode`,`range_id`,`monitoring_enabled`,`severity_rank`,`status`,`id`);
CREATE TABLE `sessions` (
	`hash` text PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`user_id` text NOT NULL,
	`csrf_token` text NOT NULL,
	`address` text NOT NULL,
	`user_agent` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`last_seen_at_ms` integer NOT NULL,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE UNIQUE INDEX `sessions_id_unique` ON `sessions` (`id`);
CREATE INDEX `sessions_by_user` ON `sessions` (`user_id`);
CREATE TABLE `setup_links` (
	`hash` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`user_id` text,
	`created_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	`used_at_ms` integer,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action,
	FOREIGN KEY (`user_id`) REFERENCES `users`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE INDEX `setup_links_by_user` ON `setup_links` (`user_id`);
CREATE TABLE `users` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`email` text NOT NULL,
	`role` text NOT NULL,
	`is_operator` integer NOT NULL,
	`password_hash` text,
	`totp_secret` text,
	`totp_confirmed_at_ms` integer,
	`totp_last_counter` integer DEFAULT 0 NOT NULL,
	`recovery_codes` text NOT NULL,
	`time_zone` text,
	`created_at_ms` integer NOT NULL,
	`last_sign_in_at_ms` integer, `tag` text, `hidden_steps` text DEFAULT '[]' NOT NULL,
	FOREIGN KEY (`account_id`) REFERENCES `accounts`(`id`) ON UPDATE no action ON DELETE no action
);
CREATE UNIQUE INDEX `users_email_unique` ON `users` (`email`);
CREATE INDEX `users_by_account` ON `users` (`account_id`);
CREATE TABLE `blocklist_mutes` (
	`target_id` text NOT NULL,
	`muted` text NOT NULL,
	`reason` text,
	`until_ms` integer,
	`muted_by` text NOT NULL,
	`muted_at_ms` integer NOT NULL,
	PRIMARY KEY(`target_id`, `muted`)
);
CREATE INDEX `blocklist_mutes_by_end` ON `blocklist_mutes` (`until_ms`) WHERE until_ms is not null;
CREATE INDEX `webhook_deliveries_by_event` ON `webhook_deliveries` (`event_id`);
CREATE TABLE `mail_subscriptions` (
	`token` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`recipient` text NOT NULL,
	`kind` text NOT NULL,
	`stopped_at_ms` integer,
	`created_at_ms` integer NOT NULL
);
CREATE UNIQUE INDEX `mail_subscriptions_by_topic` ON `mail_subscriptions` (`account_id`,`recipient`,`kind`);
CREATE TABLE `rate_limited_daily` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`day` integer NOT NULL,
	`key_id` text NOT NULL,
	`requests` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `day`, `key_id`)
);
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
CREATE INDEX `webhook_attempts_by_delivery` ON `webhook_attempts` (`delivery_id`,`id`);
CREATE INDEX `webhook_attempts_by_url` ON `webhook_attempts` (`account_id`,`mode`,`url`,`id`);
CREATE INDEX `ledger_grants` ON `ledger` (`account_id`,`id`) WHERE kind = 'grant';
CREATE INDEX `verifications_by_account` ON `verifications` (`account_id`,`mode`,`id`);
CREATE TABLE `dmarc_overviews` (
	`domain` integer PRIMARY KEY NOT NULL,
	`computed_at_ms` integer NOT NULL,
	`messages_7` integer NOT NULL,
	`aligned_7` integer NOT NULL,
	`messages_30` integer NOT NULL,
	`aligned_30` integer NOT NULL,
	`actionable_30` integer NOT NULL,
	`body` text NOT NULL
, `messages_before_7` integer, `aligned_before_7` integer);
CREATE TABLE `dmarc_weekly` (
	`domain` integer NOT NULL,
	`source` integer NOT NULL,
	`is_trusted` integer DEFAULT true NOT NULL,
	`week` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	`aligned_dkim` integer NOT NULL,
	`aligned_spf` integer NOT NULL,
	`forwarded` integer NOT NULL,
	`authenticated` integer NOT NULL,
	`quarantined` integer NOT NULL,
	`rejected` integer NOT NULL,
	PRIMARY KEY(`domain`, `source`, `is_trusted`, `week`)
) WITHOUT ROWID;
CREATE TRIGGER `dmarc_weekly_adds` AFTER INSERT ON `dmarc_daily` BEGIN
	INSERT INTO `dmarc_weekly` (`domain`, `source`, `is_trusted`, `week`, `messages`, `aligned`, `aligned_dkim`, `aligned_spf`, `forwarded`, `authenticated`, `quarantined`, `rejected`)
	VALUES (new.`domain`, new.`source`, new.`is_trusted`, new.`day` / 7, new.`messages`, new.`aligned`, new.`aligned_dkim`, new.`aligned_spf`, new.`forwarded`, new.`authenticated`, new.`quarantined`, new.`rejected`)
	ON CONFLICT DO UPDATE SET `messages` = `messages` + excluded.`messages`, `aligned` = `aligned` + excluded.`aligned`, `aligned_dkim` = `aligned_dkim` + excluded.`aligned_dkim`, `aligned_spf` = `aligned_spf` + excluded.`aligned_spf`, `forwarded` = `forwarded` + excluded.`forwarded`, `authenticated` = `authenticated` + excluded.`authenticated`, `quarantined` = `quarantined` + excluded.`quarantined`, `rejected` = `rejected` + excluded.`rejected`;
END;
CREATE TRIGGER `dmarc_weekly_changes` AFTER UPDATE ON `dmarc_daily`
WHEN (old.`domain`, old.`source`, old.`is_trusted`, old.`day`) = (new.`domain`, new.`source`, new.`is_trusted`, new.`day`) BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` + new.`messages` - old.`messages`, `aligned` = `aligned` + new.`aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` + new.`aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` + new.`aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` + new.`forwarded` - old.`forwarded`, `authenticated` = `authenticated` + new.`authenticated` - old.`authenticated`, `quarantined` = `quarantined` + new.`quarantined` - old.`quarantined`, `rejected` = `rejected` + new.`rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
END;
CREATE TRIGGER `dmarc_weekly_subtracts` AFTER DELETE ON `dmarc_daily` BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` - old.`messages`, `aligned` = `aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` - old.`forwarded`, `authenticated` = `authenticated` - old.`authenticated`, `quarantined` = `quarantined` - old.`quarantined`, `rejected` = `rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
	DELETE FROM `dmarc_weekly` WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7 AND `messages` <= 0;
END;
CREATE TRIGGER `dmarc_weekly_moves` AFTER UPDATE ON `dmarc_daily`
WHEN (old.`domain`, old.`source`, old.`is_trusted`, old.`day`) <> (new.`domain`, new.`source`, new.`is_trusted`, new.`day`) BEGIN
	UPDATE `dmarc_weekly` SET `messages` = `messages` - old.`messages`, `aligned` = `aligned` - old.`aligned`, `aligned_dkim` = `aligned_dkim` - old.`aligned_dkim`, `aligned_spf` = `aligned_spf` - old.`aligned_spf`, `forwarded` = `forwarded` - old.`forwarded`, `authenticated` = `authenticated` - old.`authenticated`, `quarantined` = `quarantined` - old.`quarantined`, `rejected` = `rejected` - old.`rejected`
	WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7;
	DELETE FROM `dmarc_weekly` WHERE `domain` = old.`domain` AND `source` = old.`source` AND `is_trusted` = old.`is_trusted` AND `week` = old.`day` / 7 AND `messages` <= 0;
	INSERT INTO `dmarc_weekly` (`domain`, `source`, `is_trusted`, `week`, `messages`, `aligned`, `aligned_dkim`, `aligned_spf`, `forwarded`, `authenticated`, `quarantined`, `rejected`)
	VALUES (new.`domain`, new.`source`, new.`is_trusted`, new.`day` / 7, new.`messages`, new.`aligned`, new.`aligned_dkim`, new.`aligned_spf`, new.`forwarded`, new.`authenticated`, new.`quarantined`, new.`rejected`)
	ON CONFLICT DO UPDATE SET `messages` = `messages` + excluded.`messages`, `aligned` = `aligned` + excluded.`aligned`, `aligned_dkim` = `aligned_dkim` + excluded.`aligned_dkim`, `aligned_spf` = `aligned_spf` + excluded.`aligned_spf`, `forwarded` = `forwarded` + excluded.`forwarded`, `authenticated` = `authenticated` + excluded.`authenticated`, `quarantined` = `quarantined` + excluded.`quarantined`, `rejected` = `rejected` + excluded.`rejected`;
END;
CREATE INDEX `dmarc_reports_by_day` ON `dmarc_reports` (`domain`,`day`,`number`,`is_complete`,`org`,`authenticity`,`sameness`);
CREATE INDEX `dmarc_reports_doubtful` ON `dmarc_reports` (`domain`,`authenticity`,`day`,`number`) WHERE authenticity <> 'pass' AND is_complete = 1;
CREATE INDEX `verifications_by_email` ON `verifications` (`account_id`,`mode`,`normalized_email`,`id`);
CREATE INDEX `verifications_by_result` ON `verifications` (`account_id`,`mode`,`sub_status`,`id`);
CREATE INDEX `verifications_by_source` ON `verifications` (`account_id`,`mode`,`source`,`id`) WHERE source is not null;
CREATE TABLE `dmarc_accepted_reporters` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`author` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `author`)
);
CREATE TABLE `dmarc_reporters` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`domain` integer NOT NULL,
	`author` text NOT NULL,
	`is_known` integer NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`excessive_since_ms` integer
);
CREATE UNIQUE INDEX `dmarc_reporters_once` ON `dmarc_reporters` (`domain`,`author`,`is_known`);
CREATE INDEX `dmarc_weekly_unknown` ON `dmarc_weekly` (`domain`,`week`) WHERE is_trusted > 1;
CREATE INDEX `blocklist_checks_by_change_and_age` ON `blocklist_checks` (`is_change`,`finished_at_ms`);
CREATE INDEX `idempotency_keys_by_resource` ON `idempotency_keys` (`resource_id`);
CREATE TABLE `blocklist_removed_targets` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL
);
CREATE TABLE `dmarc_shares` (
	`hash` text PRIMARY KEY NOT NULL,
	`id` text NOT NULL,
	`domain` integer NOT NULL,
	`note` text,
	`created_at_ms` integer NOT NULL,
	`expires_at_ms` integer NOT NULL,
	`revoked_at_ms` integer,
	`last_used_at_ms` integer
);
CREATE UNIQUE INDEX `dmarc_shares_id_unique` ON `dmarc_shares` (`id`);
CREATE INDEX `dmarc_shares_by_domain` ON `dmarc_shares` (`domain`,`id`);
CREATE TABLE `dmarc_record_history` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`kind` text NOT NULL,
	`host` text NOT NULL,
	`at_ms` integer NOT NULL,
	`before` text,
	`value` text NOT NULL
);
CREATE INDEX `dmarc_record_history_by_domain` ON `dmarc_record_history` (`domain`,`id`);
CREATE INDEX `dmarc_record_history_by_host` ON `dmarc_record_history` (`domain`,`kind`,`host`,`id`);
CREATE TABLE `dmarc_mta_sts` (
	`domain` integer PRIMARY KEY NOT NULL,
	`mode` text NOT NULL,
	`mode_since_ms` integer NOT NULL,
	`hosts` text NOT NULL,
	`since_ms` integer NOT NULL,
	`seen` text NOT NULL,
	`seen_since_ms` integer NOT NULL,
	`published_id` text,
	`problem` text,
	`checked_at_ms` integer NOT NULL,
	`due_at_ms` integer NOT NULL,
	`enforced_until_ms` integer
);
CREATE INDEX `dmarc_mta_sts_due` ON `dmarc_mta_sts` (`due_at_ms`);
CREATE TABLE `machine_acknowledgements` (
	`warning` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`until_ms` integer NOT NULL,
	`acknowledged_by` text NOT NULL,
	`acknowledged_at_ms` integer NOT NULL
);
CREATE TABLE `bulk_mails` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`account_id` text NOT NULL,
	`job` integer NOT NULL,
	`created_at_ms` integer NOT NULL
);
CREATE INDEX `bulk_mails_by_recipient` ON `bulk_mails` (`recipient`,`id`);
CREATE INDEX `bulk_mails_by_account` ON `bulk_mails` (`account_id`);
CREATE INDEX `bulk_mails_by_job` ON `bulk_mails` (`job`);
CREATE TABLE `bulk_troubles` (
	`job` integer NOT NULL,
	`number` integer NOT NULL,
	`host` text NOT NULL,
	`reading` text NOT NULL,
	`addresses` integer DEFAULT 0 NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`job`, `number`)
);
CREATE UNIQUE INDEX `bulk_troubles_once` ON `bulk_troubles` (`job`,`host`,`reading`);
CREATE TABLE `dmarc_tag_digests` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`tag` text NOT NULL,
	`digest` text NOT NULL,
	`recipients` text NOT NULL,
	`due_at_ms` integer,
	PRIMARY KEY(`account_id`, `mode`, `tag`)
);
CREATE INDEX `dmarc_tag_digests_due` ON `dmarc_tag_digests` (`due_at_ms`);
