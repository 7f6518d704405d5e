CREATE TABLE `dmarc_as_names` (
	`asn` integer PRIMARY KEY NOT NULL,
	`name` text,
	`due_at_ms` integer NOT NULL
);
--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `asn` integer;--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `as_name` text;--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `country` text;--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `prefix` text;--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `network_due_at_ms` integer DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE `dmarc_reverse_names` ADD `network_asked_at_ms` integer;--> statement-breakpoint
CREATE INDEX `dmarc_reverse_names_network_due` ON `dmarc_reverse_names` (`network_due_at_ms`);--> statement-breakpoint
-- The networks of the addresses that are known already are looked up over a day, not all at once.
UPDATE `dmarc_reverse_names` SET `network_due_at_ms` = unixepoch() * 1000 + (rowid % 1440) * 60000;
