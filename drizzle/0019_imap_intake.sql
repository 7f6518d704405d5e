CREATE TABLE `dmarc_mailbox_marks` (
	`uid` integer PRIMARY KEY NOT NULL,
	`ingestion` text NOT NULL
);
--> statement-breakpoint
CREATE TABLE `dmarc_mailboxes` (
	`mailbox` text PRIMARY KEY NOT NULL,
	`uid_validity` text NOT NULL,
	`last_uid` integer NOT NULL,
	`usage_day` integer DEFAULT 0 NOT NULL,
	`usage_bytes` integer DEFAULT 0 NOT NULL
);
--> statement-breakpoint
ALTER TABLE `dmarc_ingestions` ADD `delivered_at_ms` integer;