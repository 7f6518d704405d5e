CREATE TABLE `blocklist_alerts` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`body` text NOT NULL,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `blocklist_alerts_by_recipient` ON `blocklist_alerts` (`recipient`,`id`);--> statement-breakpoint
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
--> statement-breakpoint
CREATE INDEX `blocklist_checks_by_target` ON `blocklist_checks` (`target_id`,`id`);--> statement-breakpoint
CREATE INDEX `blocklist_checks_by_age` ON `blocklist_checks` (`finished_at_ms`);--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE UNIQUE INDEX `blocklist_targets_once` ON `blocklist_targets` (`account_id`,`mode`,`kind`,`value`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_by_account` ON `blocklist_targets` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `blocklist_targets_due` ON `blocklist_targets` (`next_check_at_ms`) WHERE monitoring_enabled = 1;--> statement-breakpoint
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
);
--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_account` ON `webhook_deliveries` (`account_id`,`mode`,`id`);--> statement-breakpoint
CREATE INDEX `webhook_deliveries_line` ON `webhook_deliveries` (`account_id`,`url`,`id`) WHERE status = 'pending';--> statement-breakpoint
CREATE INDEX `webhook_deliveries_due` ON `webhook_deliveries` (`due_at_ms`) WHERE due_at_ms is not null;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_finished` ON `webhook_deliveries` (`finished_at_ms`) WHERE finished_at_ms is not null;--> statement-breakpoint
CREATE TABLE `webhook_gone` (
	`account_id` text NOT NULL,
	`url` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `url`)
);
--> statement-breakpoint
CREATE TABLE `webhook_secrets` (
	`id` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`secret` text NOT NULL,
	`created_at_ms` integer NOT NULL,
	`valid_until_ms` integer
);
--> statement-breakpoint
CREATE INDEX `webhook_secrets_by_account` ON `webhook_secrets` (`account_id`);--> statement-breakpoint
ALTER TABLE `outbox` ADD `mode` text DEFAULT 'live' NOT NULL;