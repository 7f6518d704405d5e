CREATE TABLE `dmarc_failure_reports` (
	`id` text PRIMARY KEY NOT NULL,
	`domain` integer NOT NULL,
	`ingestion` text NOT NULL,
	`received_at_ms` integer NOT NULL,
	`is_redacted` integer NOT NULL,
	`body` text NOT NULL,
	`sameness` text NOT NULL
);
--> statement-breakpoint
CREATE UNIQUE INDEX `dmarc_failure_reports_once` ON `dmarc_failure_reports` (`domain`,`sameness`);--> statement-breakpoint
CREATE INDEX `dmarc_failure_reports_by_domain` ON `dmarc_failure_reports` (`domain`,`id`);--> statement-breakpoint
CREATE INDEX `dmarc_failure_reports_by_age` ON `dmarc_failure_reports` (`domain`,`received_at_ms`);--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `store_failure_reports` integer DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_domains` ADD `failure_reports_redact` integer DEFAULT true NOT NULL;