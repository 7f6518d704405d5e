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
--> statement-breakpoint
CREATE INDEX `dmarc_mta_sts_due` ON `dmarc_mta_sts` (`due_at_ms`);