CREATE TABLE `blocklist_mutes` (
	`target_id` text NOT NULL,
	`muted` text NOT NULL,
	`reason` text,
	`until_ms` integer,
	`muted_by` text NOT NULL,
	`muted_at_ms` integer NOT NULL,
	PRIMARY KEY(`target_id`, `muted`)
);
--> statement-breakpoint
CREATE INDEX `blocklist_mutes_by_end` ON `blocklist_mutes` (`until_ms`) WHERE until_ms is not null;--> statement-breakpoint
CREATE INDEX `webhook_deliveries_by_event` ON `webhook_deliveries` (`event_id`);