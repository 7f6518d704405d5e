CREATE TABLE `dmarc_record_history` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`kind` text NOT NULL,
	`host` text NOT NULL,
	`at_ms` integer NOT NULL,
	`before` text,
	`value` text NOT NULL
);
--> statement-breakpoint
CREATE INDEX `dmarc_record_history_by_domain` ON `dmarc_record_history` (`domain`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_record_history_by_host` ON `dmarc_record_history` (`domain`,`kind`,`host`,`id`);