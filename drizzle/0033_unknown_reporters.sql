CREATE TABLE `dmarc_accepted_reporters` (
	`account_id` text NOT NULL,
	`mode` text NOT NULL,
	`author` text NOT NULL,
	`at_ms` integer NOT NULL,
	PRIMARY KEY(`account_id`, `mode`, `author`)
);
--> statement-breakpoint
CREATE TABLE `dmarc_reporters` (
	`number` integer PRIMARY KEY AUTOINCREMENT NOT NULL,
	`domain` integer NOT NULL,
	`author` text NOT NULL,
	`is_known` integer NOT NULL,
	`first_day` integer NOT NULL,
	`last_day` integer NOT NULL,
	`excessive_since_ms` integer
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_reporters_once` ON `dmarc_reporters` (`domain`,`author`,`is_known`);--> statement-breakpoint
CREATE INDEX `dmarc_weekly_unknown` ON `dmarc_weekly` (`domain`,`week`) WHERE is_trusted > 1;--> statement-breakpoint
ALTER TABLE `dmarc_reports` ADD `voucher` integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_tls_reports` ADD `voucher` integer DEFAULT 1 NOT NULL;