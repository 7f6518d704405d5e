CREATE TABLE `dmarc_daily` (
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
	PRIMARY KEY(`domain`, `day`, `source`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_daily_names` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`name` text NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	PRIMARY KEY(`domain`, `day`, `name`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_daily_reporters` (
	`domain` integer NOT NULL,
	`day` integer NOT NULL,
	`reporter` text NOT NULL,
	`reports` integer NOT NULL,
	`messages` integer NOT NULL,
	`aligned` integer NOT NULL,
	PRIMARY KEY(`domain`, `day`, `reporter`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_names` (
	`domain` integer NOT NULL,
	`name` text NOT NULL,
	`first_day` integer NOT NULL,
	`first_seen_at_ms` integer NOT NULL,
	`is_reviewed` integer DEFAULT false NOT NULL,
	PRIMARY KEY(`domain`, `name`)
);
--> statement-breakpoint
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
--> statement-breakpoint
CREATE INDEX `dmarc_records_by_day` ON `dmarc_records` (`domain`,`day`,`rank`,`report`,`position`);--> statement-breakpoint
CREATE INDEX `dmarc_records_by_source` ON `dmarc_records` (`source`,`day`,`rank`,`report`,`position`);--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_reports_id_unique` ON `dmarc_reports` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_reports_once` ON `dmarc_reports` (`domain`,`sameness`);--> statement-breakpoint
CREATE INDEX `dmarc_reports_by_day` ON `dmarc_reports` (`domain`,`day`);--> statement-breakpoint
CREATE INDEX `dmarc_reports_by_domain` ON `dmarc_reports` (`domain`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_reports_incomplete` ON `dmarc_reports` (`number`) WHERE is_complete = 0;--> statement-breakpoint
CREATE INDEX `dmarc_reports_unproven` ON `dmarc_reports` (`number`) WHERE authenticity = 'pending';--> statement-breakpoint
CREATE TABLE `dmarc_reverse_names` (
	`ip` text PRIMARY KEY NOT NULL,
	`name` text,
	`is_confirmed` integer NOT NULL,
	`due_at_ms` integer NOT NULL,
	`asked_at_ms` integer
);
--> statement-breakpoint
CREATE INDEX `dmarc_reverse_names_due` ON `dmarc_reverse_names` (`due_at_ms`);--> statement-breakpoint
CREATE TABLE `dmarc_source_addresses` (
	`source` integer NOT NULL,
	`ip` text NOT NULL,
	`last_day` integer NOT NULL,
	PRIMARY KEY(`source`, `ip`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_source_words` (
	`domain` integer NOT NULL,
	`key` text NOT NULL,
	`classification` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`domain`, `key`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_sources` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`domain` integer NOT NULL,
	`key` text NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`first_seen_at_ms` integer NOT NULL,
	`is_reviewed` integer DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_sources_once` ON `dmarc_sources` (`domain`,`key`);--> statement-breakpoint
CREATE INDEX `dmarc_sources_unreviewed` ON `dmarc_sources` (`domain`) WHERE is_reviewed = 0;--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_tls_reports_once` ON `dmarc_tls_reports` (`domain`,`sameness`);--> statement-breakpoint
CREATE INDEX `dmarc_tls_reports_by_domain` ON `dmarc_tls_reports` (`domain`,`id`);--> statement-breakpoint
CREATE TABLE `dmarc_alert_mails` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`alert` text NOT NULL,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dmarc_alert_mails_by_recipient` ON `dmarc_alert_mails` (`recipient`,`id`);--> statement-breakpoint
CREATE TABLE `dmarc_alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`rule` text NOT NULL,
	`subject` text NOT NULL,
	`at_ms` integer NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dmarc_alerts_by_subject` ON `dmarc_alerts` (`domain`,`rule`,`subject`,`at_ms`);--> statement-breakpoint
CREATE INDEX `dmarc_alerts_by_domain` ON `dmarc_alerts` (`domain`,`id`);--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_domains_id_unique` ON `dmarc_domains` (`id`);--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_domains_token_unique` ON `dmarc_domains` (`token`);--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_domains_once` ON `dmarc_domains` (`account_id`,`mode`,`domain`) WHERE deleted_at_ms is null;--> statement-breakpoint
CREATE INDEX `dmarc_domains_by_account` ON `dmarc_domains` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_domains_due` ON `dmarc_domains` (`next_check_at_ms`) WHERE deleted_at_ms is null and monitoring_enabled = 1;--> statement-breakpoint
CREATE INDEX `dmarc_domains_deleted` ON `dmarc_domains` (`deleted_at_ms`) WHERE deleted_at_ms is not null;--> statement-breakpoint
CREATE TABLE `dmarc_history` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`trigger` text NOT NULL,
	`at_ms` integer NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dmarc_history_by_domain` ON `dmarc_history` (`domain`,`id`);--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE INDEX `dmarc_ingestions_by_account` ON `dmarc_ingestions` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_ingestions_by_domain` ON `dmarc_ingestions` (`domain`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_ingestions_pending` ON `dmarc_ingestions` (`id`) WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX `dmarc_ingestions_raw` ON `dmarc_ingestions` (`received_at_ms`) WHERE has_raw = 1;--> statement-breakpoint
CREATE INDEX `dmarc_ingestions_by_age` ON `dmarc_ingestions` (`received_at_ms`);--> statement-breakpoint
CREATE TABLE `dmarc_raw` (
	`ingestion` text PRIMARY KEY NOT NULL,
	`bytes` blob NOT NULL
);
