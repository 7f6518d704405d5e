CREATE TABLE `machine_acknowledgements` (
	`warning` text PRIMARY KEY NOT NULL,
	`reason` text NOT NULL,
	`until_ms` integer NOT NULL,
	`acknowledged_by` text NOT NULL,
	`acknowledged_at_ms` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `dmarc_overviews` ADD `messages_before_7` integer;--> statement-breakpoint
ALTER TABLE `dmarc_overviews` ADD `aligned_before_7` integer;--> statement-breakpoint
ALTER TABLE `users` ADD `hidden_steps` text DEFAULT '[]' NOT NULL;