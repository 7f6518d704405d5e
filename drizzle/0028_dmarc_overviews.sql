CREATE TABLE `dmarc_overviews` (
	`domain` integer PRIMARY KEY NOT NULL,
	`computed_at_ms` integer NOT NULL,
	`messages_7` integer NOT NULL,
	`aligned_7` integer NOT NULL,
	`messages_30` integer NOT NULL,
	`aligned_30` integer NOT NULL,
	`actionable_30` integer NOT NULL,
	`body` text NOT NULL
);
--> statement-breakpoint
ALTER TABLE `dmarc_source_words` ADD `note` text;--> statement-breakpoint
ALTER TABLE `dmarc_alerts` ADD `acknowledged_at_ms` integer;