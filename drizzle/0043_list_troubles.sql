CREATE TABLE `bulk_mails` (
	`id` text PRIMARY KEY NOT NULL,
	`recipient` text NOT NULL,
	`account_id` text NOT NULL,
	`job` integer NOT NULL,
	`created_at_ms` integer NOT NULL
);
--> statement-breakpoint
CREATE INDEX `bulk_mails_by_recipient` ON `bulk_mails` (`recipient`,`id`);--> statement-breakpoint
CREATE INDEX `bulk_mails_by_account` ON `bulk_mails` (`account_id`);--> statement-breakpoint
CREATE INDEX `bulk_mails_by_job` ON `bulk_mails` (`job`);--> statement-breakpoint
CREATE TABLE `bulk_troubles` (
	`job` integer NOT NULL,
	`number` integer NOT NULL,
	`host` text NOT NULL,
	`reading` text NOT NULL,
	`addresses` integer DEFAULT 0 NOT NULL,
	`position` integer NOT NULL,
	PRIMARY KEY(`job`, `number`)
);
--> statement-breakpoint
CREATE UNIQUE INDEX `bulk_troubles_once` ON `bulk_troubles` (`job`,`host`,`reading`);--> statement-breakpoint
ALTER TABLE `bulk_addresses` ADD `trouble` integer;--> statement-breakpoint
ALTER TABLE `bulk_jobs` ADD `notify_email` text;