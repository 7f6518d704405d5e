CREATE TABLE `mail_subscriptions` (
	`token` text PRIMARY KEY NOT NULL,
	`account_id` text NOT NULL,
	`recipient` text NOT NULL,
	`kind` text NOT NULL,
	`stopped_at_ms` integer,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `mail_subscriptions_by_topic` ON `mail_subscriptions` (`account_id`,`recipient`,`kind`);--> statement-breakpoint
ALTER TABLE `blocklist_alerts` ADD `account_id` text DEFAULT '' NOT NULL;